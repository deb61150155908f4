/* Where there are no counters: a portable build (cpu_build_portable) under cachegrind, when asked.
 * Some fifty times slower than the machine: for a small shape. */
#include "eval/cpu/cpu.h"
#include "eval/cpu/sanitize.h"
#include "process/toolchain.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { SAID_MAX = 64 << 10, CACHEGRIND_MS = 120000, LINE_BYTES = 64 };

static const struct {
    const char *line, *key;
} lines[] = {
    {"I   refs:", "instructions"},     {"D   refs:", "data_references"},
    {"D1  misses:", "l1_data_misses"}, {"LLd misses:", "last_level_data_misses"},
    {"Branches:", "branches"},         {"Mispredicts:", "branch_mispredictions"},
};

/* "==12== D1  misses:   1,234  (...": the first number after the label; -1 where there is none. */
static double number_after(const char *text, const char *label)
{
    const char *at = strstr(text, label);
    if (at == NULL)
        return -1;
    at += strlen(label);
    at += strspn(at, " ");
    double number = 0;
    if (!isdigit((unsigned char)*at))
        return -1;
    for (; isdigit((unsigned char)*at) || *at == ','; at++)
        if (*at != ',')
            number = number * 10 + (*at - '0');
    return number;
}

/* "--LL=33554432,8,64": valgrind misreads the caches of many virtual machines. It wants a number of
 * sets that is a power of two. NULL where the size is not known. */
static const char *cache_option(const char *name, const struct lane_facts *lane, const char *fact,
                                struct arena *arena)
{
    int64_t bytes = 0, sets = 1;
    if (!expr_lookup_names((void *)(uintptr_t)&lane->facts, fact, &bytes) || bytes < 4096)
        return NULL;
    int64_t cache_lines = bytes / LINE_BYTES;
    while (sets * 16 <= cache_lines)
        sets *= 2;
    while (cache_lines % sets != 0)
        sets /= 2;
    return arena_printf(arena, "--%s=%" PRId64 ",%" PRId64 ",%d", name, cache_lines * LINE_BYTES,
                        cache_lines / sets, (int)LINE_BYTES);
}

static int run(const struct lane_facts *lane, const struct region *region, const char *artifact,
               const struct call *call, struct buf *said, struct err *err)
{
    const char *valgrind = tool_find("valgrind");
    if (valgrind == NULL)
        return err_set(err, ERR_UNSUPPORTED, "no valgrind found in /usr/bin or on PATH");
    int exit_code, numbers = sanitize_numbers(call, 1, &exit_code, err);
    if (numbers < 0)
        return -1;
    ARENA_LOCAL(arena);
    const char *argv[16] = {valgrind,          "--tool=cachegrind",
                            "--cache-sim=yes", "--branch-sim=yes",
                            "--vgdb=no",       "--cachegrind-out-file=/dev/null"};
    size_t count = 6;
    const char *first = cache_option("D1", lane, "l1_bytes", arena);
    const char *last = cache_option("LL", lane, "l3_bytes", arena);
    if (first != NULL && last != NULL) {
        argv[count++] = first;
        argv[count++] = last;
    }
    argv[count] = artifact;
    const char *folder =
        arena_strndup(arena, artifact, (size_t)(strrchr(artifact, '/') - artifact));
    const char *const env[] = {"LC_ALL=C", "OMP_NUM_THREADS=1", "PATH=/usr/bin:/bin",
                               arena_printf(arena, "TMPDIR=%s", folder), NULL};
    struct tool tool = {.argv = argv,
                        .profile = "sanitized",
                        .env = env,
                        .reads = (const char *const[]){artifact, "/proc/cpuinfo", NULL},
                        .write = folder, /* valgrind's own, of this one run */
                        .fds = (int[]){numbers, region->inputs_read_fd, region->outputs_fd},
                        .fd_count = 3,
                        .exit_code = exit_code,
                        .timeout_ms = CACHEGRIND_MS};
    int result = tool_run(&tool, NULL, said, err);
    close(numbers);
    return result;
}

int cpu_cachegrind(const struct lane_facts *lane, const struct region *region, const char *artifact,
                   const struct call *call, struct json *json, struct err *err)
{
    BUF_LOCAL(said, SAID_MAX);
    int result = run(lane, region, artifact, call, &said, err);
    if (result == 0) {
        json_put_object(json, "cachegrind");
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            json_put_known(json, lines[i].key, number_after(buf_text(&said), lines[i].line));
        json_object_end(json);
    }
    return result;
}
