/* Where there are no counters: a portable build (cpu_build_portable) under cachegrind, when asked.
 * Some fifty times slower than the machine: for a small shape. */
#include "eval/cpu/cpu.h"
#include "eval/cpu/sanitize.h"
#include "eval/cpu/toolchain.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { SAID_MAX = 64 << 10, CACHEGRIND_MS = 120000 };

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

static int run(const struct region *region, const char *artifact, const struct call *call,
               struct buf *said, struct err *err)
{
    const char *valgrind = tool_find("valgrind");
    if (valgrind == NULL)
        return err_set(err, ERR_UNSUPPORTED, "no valgrind found in /usr/bin or on PATH");
    int numbers = sanitize_numbers(call, err);
    if (numbers < 0)
        return -1;
    const char *const argv[] = {valgrind,
                                "--tool=cachegrind",
                                "--cache-sim=yes",
                                "--branch-sim=yes",
                                "--cachegrind-out-file=/dev/null",
                                "--vgdb=no",
                                artifact,
                                NULL};
    const char *const env[] = {"LC_ALL=C", "OMP_NUM_THREADS=1", "PATH=/usr/bin:/bin", NULL};
    struct tool tool = {.argv = argv,
                        .profile = "sanitized",
                        .env = env,
                        .reads = (const char *const[]){artifact, NULL},
                        .fds = (int[]){numbers, region->inputs_read_fd, region->outputs_fd},
                        .fd_count = 3,
                        .timeout_ms = CACHEGRIND_MS};
    int result = tool_run(&tool, NULL, said, err);
    close(numbers);
    return result;
}

int cpu_cachegrind(const struct region *region, const char *artifact, const struct call *call,
                   struct json *json, struct err *err)
{
    struct buf said;
    buf_init(&said, SAID_MAX);
    int result = run(region, artifact, call, &said, err);
    if (result == 0) {
        json_key(json, "cachegrind");
        json_object(json);
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            double number = number_after(buf_text(&said), lines[i].line);
            json_key(json, lines[i].key);
            if (number >= 0)
                json_real(json, number);
            else
                json_null(json);
        }
        json_object_end(json);
    }
    buf_free(&said);
    return result;
}
