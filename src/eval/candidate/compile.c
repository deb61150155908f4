/* compile: which compiler, and flags from a list. A flag may change how the source is optimized;
 * none may name a file, load a plugin, reach another program or change what is linked. */
#include "eval/candidate/read.h"

#include <ctype.h>
#include <string.h>

static const char *const whole_flags[] = {
    "-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-ffast-math",
    /* what -ffast-math is made of */
    "-fno-math-errno", "-fmath-errno", "-funsafe-math-optimizations", "-ffinite-math-only",
    "-fno-finite-math-only", "-fno-signed-zeros", "-fno-trapping-math", "-fassociative-math",
    "-freciprocal-math", "-fno-rounding-math", "-fno-signaling-nans", "-fcx-limited-range",
    "-fapprox-func", "-fno-fast-math", "-ffp-contract=fast", "-ffp-contract=on",
    "-ffp-contract=off", "-fexcess-precision=fast",
    /* loops and vectors */
    "-funroll-loops", "-funroll-all-loops", "-fpeel-loops", "-fsplit-loops", "-funswitch-loops",
    "-fprefetch-loop-arrays", "-floop-interchange", "-floop-unroll-and-jam", "-floop-block",
    "-floop-strip-mine", "-floop-nest-optimize", "-floop-parallelize-all", "-fvectorize",
    "-fslp-vectorize", "-fno-unroll-loops", "-fno-unroll-all-loops", "-fno-peel-loops",
    "-fno-split-loops", "-fno-unswitch-loops", "-fno-prefetch-loop-arrays", "-fno-loop-interchange",
    "-fno-loop-unroll-and-jam", "-fno-loop-block", "-fno-loop-nest-optimize", "-fno-vectorize",
    "-fno-slp-vectorize", "-fvariable-expansion-in-unroller", "-fmodulo-sched",
    "-fno-schedule-insns", "-fschedule-insns", "-fno-schedule-insns2", "-fno-gcse", "-fno-ivopts",
    "-fivopts", "-fno-inline", "-finline-functions", "-fomit-frame-pointer", "-fopenmp-simd",
    "-fstrict-aliasing", "-fno-strict-aliasing", "-mprefer-vector-width=128",
    "-mprefer-vector-width=256", "-mprefer-vector-width=512", "-std=c11", "-std=c17", "-std=gnu17",
    "-std=c++17", "-std=c++20", "-std=gnu++20", NULL};

/* What follows the prefix is of these characters alone, at most 64 of them. */
static const struct {
    const char *prefix, *characters;
} families[] = {
    {"-ftree-", "abcdefghijklmnopqrstuvwxyz0123456789-="},
    {"-fno-tree-", "abcdefghijklmnopqrstuvwxyz0123456789-"},
    {"-fvect-cost-model=", "abcdefghijklmnopqrstuvwxyz-"},
    {"-fsimd-cost-model=", "abcdefghijklmnopqrstuvwxyz-"},
    {"-mtune=", "abcdefghijklmnopqrstuvwxyz0123456789-_."},
};

/* NVRTC's and ptxas's, for CUDA: the architecture, line information and paths are the lane's own.
 */
static const char *const cuda_flags[] = {"-use_fast_math",
                                         "--use_fast_math",
                                         "-ftz=true",
                                         "-ftz=false",
                                         "-prec-div=true",
                                         "-prec-div=false",
                                         "-prec-sqrt=true",
                                         "-prec-sqrt=false",
                                         "-fmad=true",
                                         "-fmad=false",
                                         "-restrict",
                                         "-extra-device-vectorization",
                                         "-std=c++17",
                                         "-std=c++20",
                                         "--ptxas-options=-O1",
                                         "--ptxas-options=-O2",
                                         "--ptxas-options=-O3",
                                         "--ptxas-options=-dlcm=ca",
                                         "--ptxas-options=-dlcm=cg",
                                         "--ptxas-options=--allow-expensive-optimizations=true",
                                         "--ptxas-options=--allow-expensive-optimizations=false",
                                         NULL};

bool candidate_cuda_flag_allowed(const char *flag)
{
    static const char registers[] = "-maxrregcount=";
    for (size_t i = 0; cuda_flags[i] != NULL; i++)
        if (strcmp(flag, cuda_flags[i]) == 0)
            return true;
    if (strncmp(flag, registers, sizeof registers - 1) != 0)
        return false;
    size_t digits = strspn(flag + sizeof registers - 1, "0123456789");
    return digits >= 2 && digits <= 3 && flag[sizeof registers - 1 + digits] == '\0';
}

/* --param=NAME=NUMBER */
static bool is_param(const char *flag)
{
    static const char prefix[] = "--param=";
    if (strncmp(flag, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *name = flag + sizeof prefix - 1;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (length == 0 || length > 64 || name[length] != '=')
        return false;
    const char *number = name + length + 1;
    size_t digits = strspn(number, "0123456789");
    return digits >= 1 && digits <= 9 && number[digits] == '\0';
}

bool candidate_flag_allowed(const char *flag)
{
    for (size_t i = 0; whole_flags[i] != NULL; i++)
        if (strcmp(flag, whole_flags[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        size_t prefix = strlen(families[i].prefix);
        if (strncmp(flag, families[i].prefix, prefix) != 0)
            continue;
        size_t length = strspn(flag + prefix, families[i].characters);
        return length >= 1 && length <= 64 && flag[prefix + length] == '\0';
    }
    return is_param(flag);
}

static int add_flag(struct candidate_reading *reading, int line, const char *flag)
{
    const struct document *document = &reading->document;
    struct candidate *candidate = reading->candidate;
    if (candidate->flag_count == FLAGS_MAX)
        return document_refuse(document, line, "expected at most %d flags", FLAGS_MAX);
    if (strncmp(flag, "-march", 6) == 0 || strcmp(flag, "-fopenmp") == 0)
        return document_refuse(document, line,
                               "expected no \"%.40s\": the lane itself builds with -march=native "
                               "and -fopenmp",
                               flag);
    bool cuda = candidate->language != NULL && strcmp(candidate->language, "cuda") == 0;
    if (cuda ? !candidate_cuda_flag_allowed(flag) : !candidate_flag_allowed(flag))
        return document_refuse(document, line,
                               "expected a flag of the list in docs/candidate-format.md, not "
                               "\"%.80s\"",
                               flag);
    candidate->flags[candidate->flag_count++] = flag;
    return 0;
}

static int read_flags(struct candidate_reading *reading, const struct value *value)
{
    if (value->kind == VALUE_LIST) {
        for (size_t i = 0; i < value->count; i++) {
            const struct value *item = value->items[i];
            if (item->kind != VALUE_TEXT)
                return document_refuse(&reading->document, item->line, "expected a flag");
            if (add_flag(reading, item->line, item->text) != 0)
                return -1;
        }
        return 0;
    }
    if (value->kind != VALUE_TEXT)
        return document_refuse(&reading->document, value->line, "expected flags: [FLAG, ...]");
    for (const char *at = value->text; *(at += strspn(at, " \t\r\n")) != '\0';) {
        size_t length = strcspn(at, " \t\r\n");
        if (add_flag(reading, value->line, arena_strndup(reading->document.arena, at, length)) != 0)
            return -1;
        at += length;
    }
    return 0;
}

int candidate_read_compile(struct candidate_reading *reading, const struct value *map)
{
    static const char *const keys[] = {"compiler", "flags", NULL};
    const struct document *document = &reading->document;
    if (value_check_keys(map, document->name, keys, document->err) != 0)
        return -1;
    const struct value *compiler = value_get(map, "compiler");
    if (compiler != NULL) {
        if (compiler->kind != VALUE_TEXT ||
            (strcmp(compiler->text, "gcc") != 0 && strcmp(compiler->text, "clang") != 0))
            return document_refuse(document, compiler->line, "expected compiler: gcc or clang");
        reading->candidate->compiler = compiler->text;
    }
    const struct value *flags = value_get(map, "flags");
    return flags != NULL ? read_flags(reading, flags) : 0;
}
