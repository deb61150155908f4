/* One call of a sanitized build: a program of its own, in the sandbox, on copies of the inputs. */
#include "eval/cpu/sanitize.h"

#include "base/random.h"
#include "eval/cpu/hold.h"
#include "eval/cpu/private.h"
#include "process/clean.h"
#include "process/toolchain.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOWER = 6, LEAST_MS = 20000, REPORT_LINES = 14, EXIT_CODES = 80, SAID_MAX = 64 << 10 };

/* The numbers that the program of eval/cpu/source.h reads from descriptor 3. */
int sanitize_numbers(const struct call *call, size_t unit, int *exit_code, struct err *err)
{
    uint64_t numbers[CALL_POINTERS_MAX + DIMS_MAX + 2] = {0};
    *exit_code = 1 + (int)(random_seed() % EXIT_CODES);
    numbers[CALL_POINTERS_MAX + DIMS_MAX] = (uint64_t)*exit_code;
    numbers[CALL_POINTERS_MAX + DIMS_MAX + 1] = unit;
    memcpy(numbers, call->offsets, sizeof call->offsets);
    memcpy(numbers + CALL_POINTERS_MAX, call->dims, sizeof call->dims);
    int fd = memfd_create("twagent-numbers", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, numbers, sizeof numbers) == (ssize_t)sizeof numbers)
        return fd;
    err_set_errno(err, ERR_ENVIRONMENT, errno, "sanitizer: numbers");
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool wanted(const char *line, size_t length)
{
    static const char *const words[] = {"runtime error:", "ERROR: AddressSanitizer",
                                        "READ of size",   "WRITE of size",
                                        " in kernel",     "candidate.c",
                                        "located ",       "SUMMARY:"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(line, length, words[i], strlen(words[i])) != NULL)
            return true;
    return false;
}

static int shorten(const struct buf *said, struct buf *report)
{
    int lines = 0;
    const char *at = buf_text(said), *end = at + said->length;
    while (at < end && lines < REPORT_LINES) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop != NULL ? stop : end) - at);
        if (wanted(at, length)) {
            clean_line(report, at, length);
            lines++;
        }
        at += length + 1;
    }
    return lines;
}

static int call_once(const struct lane_facts *lane, const struct region *region,
                     const char *artifact, const struct call *call, size_t unit, struct buf *said,
                     struct err *err)
{
    ARENA_LOCAL(arena);
    const char *env[] = {
        "LC_ALL=C", arena_printf(arena, "OMP_NUM_THREADS=%d", (int)lane->core_count),
        /* An exit code that programs of their own do not use; and locals stay on the
         * stack: where gcc 13.3 moves them to, 64-byte vectors are not aligned. */
        arena_printf(arena, "ASAN_OPTIONS=%s:%s", "detect_leaks=0:exitcode=86",
                     "allocator_may_return_null=1:detect_stack_use_after_return=0"),
        "UBSAN_OPTIONS=print_stacktrace=1:exitcode=86", NULL};
    int exit_code, numbers = sanitize_numbers(call, unit, &exit_code, err), result = -1;
    if (numbers >= 0) {
        uint64_t timeout_ms = call->timeout_ms * SLOWER;
        struct tool tool = {.argv = (const char *const[]){artifact, NULL},
                            .profile = "sanitized",
                            .env = env,
                            .reads = (const char *const[]){artifact, "/proc/cpuinfo", NULL},
                            .fds = (int[]){numbers, region->inputs_read_fd, region->outputs_fd},
                            .fd_count = 3,
                            .threads_max = HOLD_THREADS_MOST,
                            .exit_code = exit_code,
                            .timeout_ms = timeout_ms > LEAST_MS ? timeout_ms : LEAST_MS};
        result = tool_run(&tool, NULL, said, err);
        close(numbers);
    }
    return result;
}

/* A whole aligned block of 64 bytes that begins inside an input may be loaded; what is used of it
 * is seen in guarded calls (measure/guard.h). */
static bool read_a_vector(const struct buf *said)
{
    static const char *const sizes[] = {"READ of size 16 ", "READ of size 32 ", "READ of size 64 "};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (memmem(buf_text(said), said->length, sizes[i], strlen(sizes[i])) != NULL)
            return true;
    return false;
}

int cpu_sanitize(const struct lane_facts *lane, const struct region *region, const char *artifact,
                 const struct call *call, struct buf *report, struct err *err)
{
    enum { BLOCK_BYTES = 64 };
    BUF_LOCAL(said, SAID_MAX);
    int result = call_once(lane, region, artifact, call, 1, &said, err);
    if (read_a_vector(&said)) {
        buf_reset(&said);
        result = call_once(lane, region, artifact, call, BLOCK_BYTES, &said, err);
    }
    bool found = shorten(&said, report) > 0;
    if (found) /* also where it went on to its end */
        result = err_set(err, ERR_CHILD, "the sanitizers found a defect");
    else if (result != 0 && memmem(buf_text(&said), said.length, "cannot open shared", 18) != NULL)
        result = err_set(err, ERR_UNSUPPORTED, "the sanitizers' libraries are not installed");
    else if (result != 0 && err->code == ERR_CHILD)
        result = err_set(err, ERR_CHILD, "the sanitized build ended before its call was over");
    return result;
}
