#include "eval/cuda/compile/source.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { HEADERS_MAX = 24, NAME_MAX_BYTES = 80 };

/* ---- headers that a source begins with ---- */

/* A name that ends with '/' stands for what lies in that folder. */
static const char *const known[] = {
    "cuda.h",
    "cuda_awbarrier.h",
    "cuda_awbarrier_primitives.h",
    "cuda_bf16.h",
    "cuda_fp16.h",
    "cuda_fp8.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "cooperative_groups.h",
    "cooperative_groups/",
    "cub/block/",
    "cub/warp/",
    "cuda/",
    "curand_kernel.h",
    "math_constants.h",
    "mma.h",
};

static bool is_known(const char *name)
{
    for (size_t i = 0; name[i] != '\0'; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
            strchr("_/.", name[i]) == NULL)
            return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i]);
        bool folder = known[i][length - 1] == '/';
        if (folder ? strncmp(name, known[i], length) == 0 && strstr(name, "..") == NULL
                   : strcmp(name, known[i]) == 0)
            return true;
    }
    return false;
}

/* Past blanks and comments; a source that plays tricks with them loses nothing but time. */
static const char *skip(const char *at, const char *end)
{
    for (;;) {
        while (at < end && isspace((unsigned char)*at))
            at++;
        const char *close = NULL;
        if (end - at >= 2 && memcmp(at, "/*", 2) == 0)
            close = (const char *)memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
        else if (end - at >= 2 && memcmp(at, "//", 2) == 0)
            close = (const char *)memchr(at, '\n', (size_t)(end - at));
        else
            return at;
        if (close == NULL)
            return end;
        at = *close == '\n' ? close : close + 2;
    }
}

/* "#include <NAME>" or with quotes at `at`; where the line ends, or NULL: something else. */
static const char *read_include(const char *at, const char *end, char name[NAME_MAX_BYTES])
{
    static const char word[] = "include";
    if (at >= end || *at != '#')
        return NULL;
    for (at++; at < end && (*at == ' ' || *at == '\t');)
        at++;
    if ((size_t)(end - at) < sizeof word || memcmp(at, word, sizeof word - 1) != 0)
        return NULL;
    for (at += sizeof word - 1; at < end && (*at == ' ' || *at == '\t');)
        at++;
    if (at >= end || (*at != '<' && *at != '"'))
        return NULL;
    char close = *at++ == '<' ? '>' : '"';
    size_t length = 0;
    while (at + length < end && at[length] != close && at[length] != '\n')
        length++;
    if (at + length >= end || at[length] != close || length == 0 || length >= NAME_MAX_BYTES)
        return NULL;
    memcpy(name, at, length);
    name[length] = '\0';
    return at + length + 1;
}

static size_t insert(char names[HEADERS_MAX][NAME_MAX_BYTES], size_t count, const char *name)
{
    size_t place = 0;
    while (place < count && strcmp(names[place], name) < 0)
        place++;
    if (count == HEADERS_MAX || (place < count && strcmp(names[place], name) == 0))
        return count;
    memmove(names[place + 1], names[place], (count - place) * sizeof names[0]);
    strcpy(names[place], name);
    return count + 1;
}

void cuda_source_prefix(const char *text, size_t length,
                        bool (*exists)(void *context, const char *name), void *context,
                        struct buf *out)
{
    char names[HEADERS_MAX + 1][NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    const char *end = text + length;
    size_t count = 0;
    for (const char *at = skip(text, end); (at = read_include(at, end, name)) != NULL;
         at = skip(at, end))
        if (is_known(name) && exists(context, name))
            count = insert(names, count, name);
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "#include <%s>\n", names[i]);
}

/* ---- the unit ---- */

static const char numbers[] =
    "#ifndef INFINITY\n#define INFINITY __builtin_bit_cast(float, 0x7f800000)\n#endif\n"
    "#ifndef NAN\n#define NAN __builtin_bit_cast(float, 0x7fffffff)\n#endif\n";

void cuda_source_unit(const struct candidate *candidate, const struct names *tune, const char *name,
                      const char *prefix, struct buf *out)
{
    buf_addf(out, "#include <%s>\n%s" CUDA_SOURCE_STOP "%s", CUDA_SOURCE_TYPES, prefix, numbers);
    for (size_t i = 0; tune != NULL && i < tune->count; i++)
        buf_addf(out, "#define %s %" PRId64 "\n", tune->name[i], tune->number[i]);
    buf_addf(out, "#line 1 \"%s\"\n", name);
    buf_add(out, candidate->source, candidate->length);
    buf_add_char(out, '\n');
}
