/* What this machine is: from cpuid, /sys and the compilers themselves. */
#include "eval/cpu/private.h"

#include "eval/backend/ceilings.h"
#include "eval/cpu/compile.h"
#include "eval/cpu/hold.h"
#include "eval/cpu/roofline.h"
#include "eval/cpu/samples.h"
#include "process/sandbox.h"
#include "process/toolchain.h"

#include <gnu/libc-version.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { TOOL_MS = 60000, MARCH_MAX = 400 };

/* The first line of a small file of /sys or /proc, without its newline; "" where there is none. */
static void read_line(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(text, (int)size, file) == NULL)
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

/* "48K", "32768K", "1M" */
static int64_t parse_size(const char *text)
{
    char *end;
    int64_t number = strtoll(text, &end, 10);
    return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number;
}

/* Bytes of the data or unified cache of `level` that `core` sees; 0 where /sys does not say. */
static int64_t cache_bytes(int core, int level)
{
    char path[128], text[64];
    for (int index = 0; index < 8; index++) {
        const char *format = "/sys/devices/system/cpu/cpu%d/cache/index%d/%s";
        snprintf(path, sizeof path, format, core, index, "level");
        read_line(path, text, sizeof text);
        if (text[0] == '\0')
            break;
        if (strtol(text, NULL, 10) != level)
            continue;
        snprintf(path, sizeof path, format, core, index, "type");
        read_line(path, text, sizeof text);
        if (strcmp(text, "Instruction") == 0)
            continue;
        snprintf(path, sizeof path, format, core, index, "size");
        read_line(path, text, sizeof text);
        return parse_size(text);
    }
    long fallback = level == 1   ? sysconf(_SC_LEVEL1_DCACHE_SIZE)
                    : level == 2 ? sysconf(_SC_LEVEL2_CACHE_SIZE)
                                 : sysconf(_SC_LEVEL3_CACHE_SIZE);
    return fallback > 0 ? fallback : 0;
}

static int vector_bytes(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
#else
    return 16;
#endif
}

static void cpu_model(char *model, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(model, size, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(model, size, "%s", strchr(line, ':') + 2);
            break;
        }
    if (file != NULL)
        fclose(file);
}

/* The bracketed word of a line like "always [madvise] never". */
static void chosen_word(const char *path, char *word, size_t size)
{
    char line[128];
    read_line(path, line, sizeof line);
    const char *open = strchr(line, '['), *close = open != NULL ? strchr(open, ']') : NULL;
    snprintf(word, size, "%.*s", close != NULL ? (int)(close - open - 1) : 7,
             close != NULL ? open + 1 : "unknown");
}

static bool perf_available(void)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_HARDWARE,
                                         .size = sizeof attributes,
                                         .config = PERF_COUNT_HW_CPU_CYCLES,
                                         .disabled = 1,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 8 /* CLOEXEC */);
    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

/* ---- compilers ---- */

static void add_version(const char *compiler, struct json *json)
{
    bool clang;
    struct err ignored;
    const char *path = compile_driver(compiler, false, &clang);
    if (path == NULL || clang != (strcmp(compiler, "clang") == 0))
        return;
    BUF_LOCAL(text, 4096);
    /* gcc's -dumpversion alone may be "12"; clang knows no full one. */
    const char *const argv[] = {path, "-dumpversion", clang ? NULL : "-dumpfullversion", NULL};
    struct tool tool = {.argv = argv, .timeout_ms = TOOL_MS};
    if (tool_run(&tool, &text, NULL, &ignored) == 0 && text.length > 0) {
        const char *line = buf_text(&text);
        json_key(json, compiler);
        json_text_n(json, line, strcspn(line, "\n"));
    }
}

/* What -march=native stands for here: gcc tells it in its own command line for cc1. */
static void march_of_gcc(const char *path, struct buf *march)
{
    struct err ignored;
    BUF_LOCAL(said, 64 << 10);
    struct tool tool = {.argv = (const char *const[]){path, "-march=native", "-E", "-v", "-x", "c",
                                                      "/dev/null", "-o", "/dev/null", NULL},
                        .timeout_ms = TOOL_MS};
    const char *at = NULL;
    if (tool_run(&tool, NULL, &said, &ignored) == 0)
        at = strstr(buf_text(&said), "/cc1 ");
    at = at != NULL ? strstr(at, " -march=") : NULL;
    while (at != NULL && (at = strstr(at, " -m")) != NULL) {
        size_t length = 1 + strcspn(at + 1, " \n");
        if (strncmp(at, " -mno-", 6) != 0)
            buf_addf(march, "%s%.*s", march->length > 0 ? " " : "", (int)length - 1, at + 1);
        if (strncmp(at, " -mtune=", 8) == 0)
            break;
        at += length;
    }
}

static void march_of_clang(const char *path, struct buf *march)
{
    struct err ignored;
    BUF_LOCAL(said, 64 << 10);
    struct tool tool = {.argv = (const char *const[]){path, "-march=native", "-###", "-c", "-x",
                                                      "c", "/dev/null", NULL},
                        .timeout_ms = TOOL_MS};
    if (tool_run(&tool, NULL, &said, &ignored) == 0) {
        const char *at = strstr(buf_text(&said), "\"-target-cpu\" \"");
        if (at != NULL)
            buf_addf(march, "-march=%.*s", (int)strcspn(at + 15, "\""), at + 15);
    }
}

/* ---- the two objects of the record ---- */

static void describe_memory(const struct lane_facts *lane, struct json *json)
{
    char word[32];
    for (size_t i = 0; i < lane->facts.count; i++)
        json_put_int(json, lane->facts.name[i], lane->facts.number[i]);
    chosen_word("/sys/kernel/mm/transparent_hugepage/enabled", word, sizeof word);
    json_put_text(json, "huge_pages", word);
    chosen_word("/sys/kernel/mm/transparent_hugepage/shmem_enabled", word, sizeof word);
    json_put_text(json, "huge_pages_shared", word);
}

static const char *describe_device(const struct lane_facts *lane, struct arena *arena)
{
    char model[128];
    bool clang;
    struct sandbox_facts sandbox;
    BUF_LOCAL(text, 16 << 10);
    BUF_LOCAL(march, MARCH_MAX * 4);
    cpu_model(model, sizeof model);
    const char *driver = compile_driver(NULL, false, &clang);
    if (driver != NULL)
        (clang ? march_of_clang : march_of_gcc)(driver, &march);
    struct json json = {.out = &text};
    json_object(&json);
    json_put_text(&json, "backend", "cpu");
    json_put_text(&json, "cpu", model);
    json_put_array(&json, "cores_used");
    for (size_t i = 0; i < lane->core_count; i++)
        json_int(&json, lane->cores[i]);
    json_array_end(&json);
    describe_memory(lane, &json);
    json_put_text(&json, "march", buf_text(&march));
    json_put_bool(&json, "perf_counters", perf_available());
    json_put_bool(&json, "perf_samples", samples_available());
    json_put_bool(&json, "ptrace", hold_permitted());
    json_put_positive(&json, "copy_bytes_per_s", lane->copy_bytes_per_s);
    json_put_positive(&json, "read_bytes_per_s", lane->read_bytes_per_s);
    json_put_positive(&json, "flops_per_s", lane->flops_per_s);
    sandbox_probe(&sandbox);
    json_key(&json, "sandbox");
    sandbox_describe(&sandbox, &json);
    json_object_end(&json);
    return arena_strdup(arena, buf_text(&text));
}

static const char *describe_versions(struct arena *arena)
{
    struct utsname system;
    JSON_LOCAL(json, text, 4096);
    json_object(&json);
    add_version("gcc", &json);
    add_version("clang", &json);
    json_put_text(&json, "libc", gnu_get_libc_version());
    if (uname(&system) == 0)
        json_put_text(&json, "kernel", system.release);
    json_object_end(&json);
    return arena_strdup(arena, buf_text(&text));
}

/* One boot of one machine, and the cores of it: another host below a virtual machine boots anew. */
static const char *identity_of(const struct lane_facts *lane, struct arena *arena)
{
    char model[128], boot[64];
    cpu_model(model, sizeof model);
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    const char *words = arena_printf(arena, "cpu %s, boot %s, cores", model, boot);
    for (size_t i = 0; i < lane->core_count; i++)
        words = arena_printf(arena, "%s %d", words, lane->cores[i]);
    return words;
}

int cpu_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
              struct lane_facts *lane, struct err *err)
{
    struct sandbox_facts sandbox;
    if (lane_begin(lane, false, cores, core_count, err) != 0)
        return -1;
    sandbox_probe(&sandbox);
    lane->unconfined = sandbox.missing;
    lane->exposed = !sandbox.seccomp;
    const struct {
        const char *name;
        int64_t number;
    } facts[] = {{"cores", (int64_t)core_count},         {"vector_bytes", vector_bytes()},
                 {"l1_bytes", cache_bytes(cores[0], 1)}, {"l2_bytes", cache_bytes(cores[0], 2)},
                 {"l3_bytes", cache_bytes(cores[0], 3)}, {"page_bytes", sysconf(_SC_PAGESIZE)}};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (names_set(&lane->facts, facts[i].name, facts[i].number, err) != 0)
            return -1;
    lane->identity = identity_of(lane, arena);
    if (!roofline)
        ceilings_recall(lane);
    else if (roofline_measure(lane, err) != 0)
        return -1;
    lane->device = describe_device(lane, arena);
    lane->versions = describe_versions(arena);
    return 0;
}
