/* What the hot loop is made of, from a disassembly: a loop is what a jump backwards closes; the
 * innermost one with the most vector arithmetic is where such kernels spend their time. */
#include "eval/cpu/profile.h"

#include "base/mem.h"
#include "eval/cpu/toolchain.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 32 << 20, DISASSEMBLE_MS = 20000, NAME_MAX_SHOWN = 80, LOOPS_MAX = 4096 };

struct instruction {
    uint64_t address, target; /* target: of a jump within the function; 0: none */
    unsigned width;           /* bytes of its vector registers; 0: none */
    bool fma, arithmetic, scalar, load, store, shuffle, gather, stack;
};

struct mix { /* counts over one loop */
    char function[NAME_MAX_SHOWN];
    size_t first, last; /* instructions */
    unsigned vector_bytes;
    size_t fma, arithmetic, scalar, loads, stores, shuffles, gathers, spills;
};

struct function {
    char name[NAME_MAX_SHOWN];
    struct instruction *items;
    size_t count, capacity;
};

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), more = strlen(tail);
    return length >= more && strcmp(text + length - more, tail) == 0;
}

static bool is_shuffle(const char *name)
{
    static const char *const prefixes[] = {
        "vperm",     "vshuf",     "vpshuf", "vunpck",  "vpunpck", "vinsert",    "vpinsrd",
        "vextract",  "vpextr",    "vblend", "vpblend", "vpalign", "valign",     "vpermil",
        "vmovsldup", "vmovshdup", "shufp",  "unpck",   "pshuf",   "vpbroadcast"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (starts(name, prefixes[i]))
            return true;
    return false;
}

static bool is_arithmetic(const char *name)
{
    static const char *const words[] = {"add", "sub", "mul", "div", "max", "min", "sqrt", "dp"};
    const char *base = name[0] == 'v' ? name + 1 : name;
    if (!ends(name, "ps") && !ends(name, "pd") && !ends(name, "ss") && !ends(name, "sd"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (starts(base, words[i]))
            return true;
    return false;
}

/* AT&T order: sources first, the destination last. */
static void read_operands(struct instruction *item, const char *name, const char *operands)
{
    const char *memory = strchr(operands, '(');
    const char *close = memory != NULL ? strchr(memory, ')') : NULL;
    item->width = strstr(operands, "%zmm") != NULL   ? 64
                  : strstr(operands, "%ymm") != NULL ? 32
                  : strstr(operands, "%xmm") != NULL ? 16
                                                     : 0;
    if (close == NULL || starts(name, "lea") || starts(name, "nop") || starts(name, "prefetch"))
        return;
    bool last = strchr(close, ',') == NULL; /* nothing follows: it is the destination */
    item->store = last && !starts(name, "cmp") && !starts(name, "test");
    item->load = !item->store;
    item->stack = starts(memory, "(%rsp") || starts(memory, "(%rbp");
}

static void classify(struct instruction *item, const char *name, const char *operands)
{
    read_operands(item, name, operands);
    item->fma = starts(name, "vfmadd") || starts(name, "vfmsub") || starts(name, "vfnmadd") ||
                starts(name, "vfnmsub") || starts(name, "vdpbf16");
    item->arithmetic = item->fma || is_arithmetic(name);
    item->scalar = item->arithmetic && (ends(name, "ss") || ends(name, "sd"));
    item->gather = starts(name, "vgather") || starts(name, "vpgather") ||
                   starts(name, "vscatter") || starts(name, "vpscatter");
    /* A broadcast from memory costs a load and no shuffle. */
    item->shuffle = is_shuffle(name) || (starts(name, "vbroadcast") && !item->load);
    if (name[0] == 'j' || starts(name, "loop"))
        item->target = strtoull(operands, NULL, 16);
}

/* "    1136:\tvmovaps %zmm1,%zmm2" or "0000000000001110 <kernel>:" */
static bool read_instruction(const char *line, struct instruction *item)
{
    char *colon, name[32];
    *item = (struct instruction){.address = strtoull(line, &colon, 16)};
    if (colon == line || *colon != ':')
        return false;
    const char *at = colon + 1;
    for (;;) { /* prefixes are words of their own */
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t\n");
        if (length == 0 || length >= sizeof name)
            return false;
        memcpy(name, at, length);
        name[length] = '\0';
        at += length;
        if (strcmp(name, "notrack") != 0 && strcmp(name, "bnd") != 0 &&
            strcmp(name, "{evex}") != 0 && strcmp(name, "lock") != 0 && !starts(name, "rep"))
            break;
    }
    char operands[160];
    at += strspn(at, " \t");
    size_t length = strcspn(at, "#<\n");
    length = length < sizeof operands - 1 ? length : sizeof operands - 1;
    memcpy(operands, at, length);
    operands[length] = '\0';
    classify(item, name, operands);
    return true;
}

/* Index of the instruction at `address`, or count. */
static size_t find(const struct function *function, uint64_t address)
{
    size_t low = 0, high = function->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (function->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < function->count && function->items[low].address == address ? low : function->count;
}

static void add_up(const struct function *function, struct mix *mix)
{
    memcpy(mix->function, function->name, sizeof mix->function);
    for (size_t i = mix->first; i <= mix->last; i++) {
        const struct instruction *item = &function->items[i];
        bool vector = item->arithmetic && !item->scalar;
        mix->fma += item->fma && !item->scalar;
        mix->arithmetic += vector;
        mix->scalar += item->scalar;
        mix->loads += item->load;
        mix->stores += item->store;
        mix->shuffles += item->shuffle;
        mix->gathers += item->gather;
        mix->spills += item->stack && item->width > 0;
        if ((vector || (item->width > 16 && (item->load || item->store))) &&
            item->width > mix->vector_bytes)
            mix->vector_bytes = item->width;
    }
}

static double heat(const struct mix *mix)
{
    double width = mix->vector_bytes;
    return width * (4.0 * (double)mix->fma + 2.0 * (double)mix->arithmetic) +
           8.0 * (double)(mix->scalar + mix->gathers) +
           0.1 * width * (double)(mix->loads + mix->stores) +
           0.01 * (double)(mix->last - mix->first);
}

static void find_loops(const struct function *function, struct mix *best)
{
    struct {
        size_t first, last;
    } *loops = mem_array(LOOPS_MAX, sizeof *loops);
    size_t count = 0;
    for (size_t i = 0; i < function->count && count < LOOPS_MAX; i++) {
        uint64_t target = function->items[i].target;
        size_t first = target != 0 && target <= function->items[i].address ? find(function, target)
                                                                           : function->count;
        if (first < function->count) {
            loops[count].first = first;
            loops[count++].last = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        bool innermost = true;
        for (size_t j = 0; j < count && innermost; j++)
            innermost = j == i || loops[j].first < loops[i].first || loops[j].last > loops[i].last;
        if (!innermost)
            continue;
        struct mix mix = {.first = loops[i].first, .last = loops[i].last};
        add_up(function, &mix);
        if (best->function[0] == '\0' || heat(&mix) > heat(best))
            *best = mix;
    }
    mem_free(loops);
}

static void begin_function(struct function *function, const char *open)
{
    size_t length = strcspn(open + 1, ">\n");
    length = length < NAME_MAX_SHOWN - 1 ? length : NAME_MAX_SHOWN - 1;
    memset(function->name, 0, sizeof function->name);
    for (size_t i = 0; i < length; i++)
        function->name[i] = isprint((unsigned char)open[1 + i]) ? open[1 + i] : '?';
    function->count = 0;
}

static void add_instruction(struct function *function, const struct instruction *item)
{
    if (function->count == function->capacity) {
        function->capacity = function->capacity > 0 ? 2 * function->capacity : 1024;
        function->items = mem_resize(function->items, function->capacity * sizeof *function->items);
    }
    function->items[function->count++] = *item;
}

static void put_mix(const struct mix *mix, struct json *json)
{
    json_object(json);
    json_put_text(json, "function", mix->function);
    json_put_int(json, "instructions", (int64_t)(mix->last - mix->first + 1));
    json_put_int(json, "vector_bytes", mix->vector_bytes);
    json_put_int(json, "vector_fma", (int64_t)mix->fma);
    json_put_int(json, "vector_arithmetic", (int64_t)mix->arithmetic);
    json_put_int(json, "scalar_arithmetic", (int64_t)mix->scalar);
    json_put_int(json, "loads", (int64_t)mix->loads);
    json_put_int(json, "stores", (int64_t)mix->stores);
    json_put_int(json, "shuffles", (int64_t)mix->shuffles);
    json_put_int(json, "gathers", (int64_t)mix->gathers);
    json_put_int(json, "spills", (int64_t)mix->spills);
    json_object_end(json);
}

void mix_parse(const char *disassembly, struct json *json)
{
    struct function function = {0};
    struct mix best = {0};
    for (const char *line = disassembly; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        struct instruction item;
        const char *open = memchr(line, '<', length);
        if (length > 2 && line[length - 1] == ':' && open != NULL && line[0] != ' ') {
            find_loops(&function, &best);
            begin_function(&function, open);
        } else if (line[0] == ' ' && read_instruction(line, &item)) {
            add_instruction(&function, &item);
        }
        line += length + (line[length] == '\n');
    }
    find_loops(&function, &best);
    mem_free(function.items);
    if (best.function[0] != '\0')
        put_mix(&best, json);
    else
        json_null(json);
}

void mix_put(const char *artifact, struct json *json)
{
#if defined(__x86_64__)
    struct buf text;
    struct err ignored;
    const char *objdump = tool_find("objdump");
    if (objdump == NULL)
        return;
    buf_init(&text, TEXT_MAX);
    struct tool tool = {.argv = (const char *const[]){objdump, "-d", "--no-show-raw-insn", "-j",
                                                      ".text", artifact, NULL},
                        .reads = (const char *const[]){artifact, NULL},
                        .timeout_ms = DISASSEMBLE_MS};
    if (tool_run(&tool, &text, NULL, &ignored) == 0) {
        json_key(json, "hot_loop");
        mix_parse(buf_text(&text), json);
    }
    buf_free(&text);
#else
    (void)artifact;
    (void)json;
#endif
}
