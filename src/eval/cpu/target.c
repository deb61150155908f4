/* What is written for the CPU: C and C++. A flag may change how the source is optimized; none may
 * name a file, load a plugin, reach another program or change what is linked. */
#include "eval/cpu/target.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static bool allows(const char *flag)
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

/* One machine's ceilings are measured once: of a model of CPU and the lane's cores. */
static char *ceilings_key(const char *cores, const char *devices)
{
    char line[256], model[128] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    (void)devices;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    char *key = mem_alloc(400);
    snprintf(key, 400, "machine/ceilings/%s/%ld/%s", model, sysconf(_SC_NPROCESSORS_ONLN),
             cores ? cores : "all");
    return key;
}

#define OF_C                                                                                       \
    .open = "/*---", .close = "---*/", .comment_end = "*/", .entry = "kernel", .allows = allows,   \
    .facts = "cores vector_bytes l1_bytes l2_bytes l3_bytes page_bytes"

static const char *const c_suffixes[] = {".c", NULL};
static const char *const cxx_suffixes[] = {".cc", ".cpp", ".cxx", NULL};

const struct language language_c = {OF_C, .name = "c", .suffixes = c_suffixes,
                                    .compile = "gcc -std=gnu17"};
const struct language language_cxx = {OF_C, .name = "c++", .suffixes = cxx_suffixes,
                                      .sign = "extern \"C\"", .compile = "g++ -std=gnu++20"};

static const struct language *const languages[] = {&language_cxx, &language_c, NULL};

const struct target target_cpu = {
    .name = "cpu", .title = "cpu", .languages = languages, .ceilings_key = ceilings_key};
