#include "eval/cuda/compile/cubin.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

struct reading {
    const unsigned char *image;
    size_t bytes;
    Elf64_Ehdr header;
};

static bool lies_within(const struct reading *reading, uint64_t from, uint64_t bytes)
{
    return from <= reading->bytes && bytes <= reading->bytes - from;
}

static bool section(const struct reading *reading, uint64_t index, Elf64_Shdr *section)
{
    uint64_t from = reading->header.e_shoff + index * sizeof *section;
    if (index >= reading->header.e_shnum || !lies_within(reading, from, sizeof *section))
        return false;
    memcpy(section, reading->image + from, sizeof *section);
    return section->sh_type == SHT_NOBITS ||
           lies_within(reading, section->sh_offset, section->sh_size);
}

/* A name in a table of strings; NULL where it does not end in there. */
static const char *name_at(const struct reading *reading, const Elf64_Shdr *strings, uint64_t at)
{
    if (strings->sh_type != SHT_STRTAB || at >= strings->sh_size)
        return NULL;
    const char *name = (const char *)reading->image + strings->sh_offset + at;
    return memchr(name, '\0', (size_t)(strings->sh_size - at)) != NULL ? name : NULL;
}

static bool holds_variables(const char *name)
{
    static const char *const sections[] = {".nv.global", ".nv.global.init", ".nv.constant3"};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        if (strcmp(name, sections[i]) == 0)
            return true;
    return false;
}

/* The driver's own functions, malloc and free, come from it when the module is loaded. */
static int read_symbols(const struct reading *reading, const Elf64_Shdr *table, struct cubin *cubin)
{
    static const char *const heap[] = {"malloc", "free"};
    Elf64_Shdr strings;
    Elf64_Sym symbol;
    if (!section(reading, table->sh_link, &strings))
        return -1;
    for (uint64_t at = 0; at + sizeof symbol <= table->sh_size; at += sizeof symbol) {
        memcpy(&symbol, reading->image + table->sh_offset + at, sizeof symbol);
        const char *name = name_at(reading, &strings, symbol.st_name);
        if (name == NULL)
            return -1;
        for (size_t i = 0; i < sizeof heap / sizeof heap[0]; i++)
            if (symbol.st_shndx == SHN_UNDEF && strcmp(name, heap[i]) == 0)
                cubin->heap = heap[i];
        if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && strncmp(name, "$__", 3) == 0)
            cubin->hidden = true; /* ptxas makes "$__kept__42$1" of "{.global .u32 kept; ...}" */
    }
    return 0;
}

int cubin_read(const void *image, size_t bytes, struct cubin *cubin)
{
    struct reading reading = {.image = (const unsigned char *)image, .bytes = bytes};
    Elf64_Ehdr *header = &reading.header;
    Elf64_Shdr names = {0}, each;
    *cubin = (struct cubin){0};
    if (bytes < sizeof *header)
        return -1;
    memcpy(header, image, sizeof *header);
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_shoff > bytes || !section(&reading, header->e_shstrndx, &names))
        return -1;
    for (uint64_t i = 0; i < header->e_shnum; i++) {
        if (!section(&reading, i, &each))
            return -1;
        const char *name = name_at(&reading, &names, each.sh_name);
        if (name == NULL)
            return -1;
        if (holds_variables(name) && each.sh_size > 0)
            cubin->variables = true;
        if (each.sh_type == SHT_SYMTAB && read_symbols(&reading, &each, cubin) != 0)
            return -1;
    }
    size_t note = sizeof CUBIN_UNUSED - 1;
    if (bytes >= note && memcmp(reading.image + bytes - note, CUBIN_UNUSED, note) == 0)
        cubin->variables = false; /* those that are there nobody names */
    return 0;
}

/* ---- .nv.info: a byte of form, one of kind, a length or a number, and what has that length ----
 */

enum { FORM_SIZED = 4, KIND_FRAME = 0x11, KIND_REGISTERS = 0x2f };

static void read_info(const struct reading *reading, const Elf64_Shdr *info, uint32_t symbol,
                      struct cubin_kernel *kernel)
{
    const unsigned char *at = reading->image + info->sh_offset, *end = at + info->sh_size;
    while (end - at >= 4) {
        uint16_t length;
        uint32_t words[2];
        memcpy(&length, at + 2, sizeof length);
        size_t size = at[0] == FORM_SIZED ? length : 0;
        if ((size_t)(end - at) - 4 < size)
            return;
        if (size == sizeof words) {
            memcpy(words, at + 4, sizeof words);
            if (words[0] == symbol && at[1] == KIND_REGISTERS)
                kernel->registers = words[1];
            if (words[0] == symbol && at[1] == KIND_FRAME)
                kernel->stack_bytes = words[1];
        }
        at += 4 + size;
    }
}

/* The number of a symbol of that name; 0: none. */
static uint32_t find_symbol(const struct reading *reading, const Elf64_Shdr *table,
                            const char *name)
{
    Elf64_Shdr strings;
    Elf64_Sym symbol;
    if (!section(reading, table->sh_link, &strings))
        return 0;
    for (uint64_t i = 0; (i + 1) * sizeof symbol <= table->sh_size; i++) {
        memcpy(&symbol, reading->image + table->sh_offset + i * sizeof symbol, sizeof symbol);
        const char *found = name_at(reading, &strings, symbol.st_name);
        if (found != NULL && strcmp(found, name) == 0)
            return (uint32_t)i;
    }
    return 0;
}

struct cubin_kernel cubin_kernel(const void *image, size_t bytes, const char *entry)
{
    struct reading reading = {.image = (const unsigned char *)image, .bytes = bytes};
    struct cubin_kernel kernel = {-1, -1};
    struct cubin whole;
    Elf64_Shdr names, each, symbols;
    if (cubin_read(image, bytes, &whole) != 0) /* all tables lie within it */
        return kernel;
    memcpy(&reading.header, image, sizeof reading.header);
    if (!section(&reading, reading.header.e_shstrndx, &names))
        return kernel;
    for (uint64_t i = 0; i < reading.header.e_shnum; i++) {
        const char *name =
            section(&reading, i, &each) ? name_at(&reading, &names, each.sh_name) : NULL;
        if (name != NULL && strcmp(name, ".nv.info") == 0 && each.sh_type != SHT_NOBITS &&
            section(&reading, each.sh_link, &symbols) && symbols.sh_type == SHT_SYMTAB)
            read_info(&reading, &each, find_symbol(&reading, &symbols, entry), &kernel);
    }
    return kernel;
}

/* What a kernel takes from the device's heap stays until the context ends, and nobody can clear it:
 * a launch would find what another one left. A workspace is cleared. Nor is there a need to hide a
 * variable in assembly: who counts launches there may be right for as many as anybody checks. */
int cubin_loadable(const void *image, size_t bytes, struct cubin *cubin, struct err *err)
{
    if (cubin_read(image, bytes, cubin) != 0)
        return err_set(err, ERR_UNSUPPORTED, "the cubin cannot be loaded: it is none");
    if (cubin->hidden)
        return err_set(err, ERR_UNSUPPORTED,
                       "inline assembly declares a variable: it would keep state between launches; "
                       "use a workspace");
    if (cubin->heap == NULL)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "%s() in device code: the heap would keep state between launches; use a "
                   "workspace",
                   cubin->heap);
}
