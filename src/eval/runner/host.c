#include "eval/runner/host.h"

#include "base/clock.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
enum { START_S = 60, LAST_WORDS = 200, ERRORS_MOST = 1 << 16, LOOK_NS = 20000000 };

/* ---- its start ---- */

/* A page of ours, zeroed, whose size nobody can change; its descriptor is what the runner gets of
 * it, which only with `writable` it can write to. */
static bool make_page(struct host_page *page, const char *name, size_t bytes, bool writable)
{
    char path[40];
    void *mapped = MAP_FAILED;
    int memory = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return false;
    if (ftruncate(memory, (off_t)bytes) == 0)
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    (void)fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    if (!writable)
        (void)fcntl(memory, F_ADD_SEALS, 0x0010 /* F_SEAL_FUTURE_WRITE, Linux 5.1 */);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    if (mapped != MAP_FAILED)
        *page = (struct host_page){mapped, bytes,
                                   open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC)};
    close(memory);
    return page->fd >= 0;
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int host_begin(struct host *host, const struct host_kind *kind, size_t control_bytes,
               size_t report_bytes, struct err *err)
{
    host->kind = kind;
    host->pidfd = host->go = host->done = host->errors = -1;
    host->control_page.fd = host->report_page.fd = -1;
    if (make_page(&host->control_page, "twagent-control", control_bytes, false) &&
        (report_bytes == 0 || make_page(&host->report_page, "twagent-report", report_bytes, true)))
        return 0;
    return err_set_errno(err, ERR_ENVIRONMENT, errno, "runner: descriptors");
}

static ino_t inode_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

int host_start(struct host *host, const struct region *region, const struct spawn_spec *program,
               bool hears_stdout, struct err *err)
{
    int pipe_fds[2] = {-1, -1};
    host->region = region;
    host->inputs_inode = inode_of(region->inputs_fd);
    host->outputs_inode = inode_of(region->outputs_fd);
    host->inputs_bytes = region->inputs_bytes;
    host->outputs_bytes = region->outputs_bytes;
    host->go = eventfd(0, EFD_CLOEXEC);
    host->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool fine = pipe2(pipe_fds, O_CLOEXEC) == 0;
    host->errors = pipe_fds[0];
    if (!fine || host->go < 0 || host->done < 0 || fcntl(host->errors, F_SETFL, O_NONBLOCK) != 0) {
        err_set_errno(err, ERR_ENVIRONMENT, errno, "runner: descriptors");
        fine = false;
    }
    const int standard[] = {-1, hears_stdout ? pipe_fds[1] : -1, pipe_fds[1]};
    const int fds[] = {
        host->control_page.fd, region->inputs_read_fd, region->outputs_fd, host->go, host->done,
        host->report_page.fd};
    struct spawn_spec spec = *program;
    spec.fds = fds;
    spec.fd_count = host->report_page.fd >= 0 ? 6 : 5;
    fine = fine && spawn(&spec, standard, &host->subject.pid, &host->pidfd, err) == 0;
    if (!fine)
        host->subject.pid = 0;
    const int given[] = {pipe_fds[1], host->control_page.fd, host->report_page.fd};
    close_all(given, sizeof given / sizeof given[0]);
    host->control_page.fd = host->report_page.fd = -1;
    return fine ? 0 : -1;
}

bool host_fits(const struct host *host, const struct region *region)
{
    return host->region == region && host->inputs_inode == inode_of(region->inputs_fd) &&
           host->outputs_inode == inode_of(region->outputs_fd) &&
           host->inputs_bytes == region->inputs_bytes &&
           host->outputs_bytes == region->outputs_bytes;
}

int host_wait_warm(struct host *host, struct err *err)
{
    unsigned said;
    if (host->warm) {
        struct pollfd death = {.fd = host->pidfd, .events = POLLIN};
        return poll(&death, 1, 0) > 0 ? host_ended(host, err) : 0;
    }
    if (host_await(host, 1, clock_now_ns() + START_S * SECOND_NS, &said, err) != 0) {
        err->code = ERR_ENVIRONMENT;
        return err_wrap(err, "%s", host->name);
    }
    host->warm = true;
    return 0;
}

/* ---- its end ---- */

void host_errors(struct host *host, struct buf *text)
{
    char bytes[4096];
    ssize_t got;
    while ((got = read(host->errors, bytes, sizeof bytes)) > 0)
        buf_add(text, bytes, (size_t)got);
}

/* The last line that the process wrote, harmless and short; "" where it was silent. A pipe holds
 * 64 KiB: whoever wrote more is still writing, or dead. */
static void last_words(struct host *host, char words[LAST_WORDS])
{
    BUF_LOCAL(said, ERRORS_MOST);
    host_errors(host, &said);
    const char *text = buf_text(&said);
    size_t length = said.length, kept = 0;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    size_t start = length;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    for (size_t i = start; i < length && kept < LAST_WORDS - 1; i++)
        words[kept++] = isprint((unsigned char)text[i]) ? text[i] : '?';
    words[kept] = '\0';
}

static bool hit_guard(struct host *host, const char *words)
{
    char *stop;
    size_t length = sizeof WIRE_GUARD_HIT - 1;
    if (strncmp(words, WIRE_GUARD_HIT, length) != 0)
        return false;
    host->subject.hit_offset = strtoull(words + length, &stop, 16);
    host->subject.hit = stop == words + length + 16 && *stop == '\0';
    return host->subject.hit;
}

int host_ended(struct host *host, struct err *err)
{
    char words[LAST_WORDS];
    kill(-host->subject.pid, SIGKILL);
    if (host->kind->bury != NULL)
        host->kind->bury(host);
    siginfo_t info = spawn_reap(host->subject.pid);
    host->reaped = true;
    last_words(host, words);
    /* What says that somebody else ended it: anybody can write that, and leave as a runner does. */
    static const char forged[] = "killed by SIGKILL";
    const char *gap = words[0] != '\0' ? ": " : "";
    bool gave_up = info.si_code == CLD_EXITED && info.si_status == RUNNER_EXIT;
    if (gave_up && hit_guard(host, words))
        return err_set(err, ERR_CHILD, "read out of bounds of an input");
    if (gave_up && words[0] != '\0' && strncmp(words, forged, sizeof forged - 1) != 0)
        return err_set(err, ERR_CHILD, "%s", words);
    if (info.si_code == CLD_EXITED)
        return err_set(err, ERR_CHILD, "exited during a call (status %d)%s%s", info.si_status, gap,
                       words);
    const char *name = sigabbrev_np(info.si_status);
    const char *why =
        info.si_status == SIGSYS ? " (it asked the kernel for what no kernel needs)" : "";
    return err_set(err, ERR_CHILD, "killed by SIG%s%s%s%s", name != NULL ? name : "?", why, gap,
                   words);
}

void host_end(struct host *host)
{
    struct err ignored;
    if (!host->reaped && host->subject.pid > 0)
        (void)host_ended(host, &ignored);
}

void host_close(struct host *host)
{
    if (host == NULL)
        return;
    host_end(host);
    const int fds[] = {
        host->pidfd,         host->go, host->done, host->errors, host->control_page.fd,
        host->report_page.fd};
    close_all(fds, sizeof fds / sizeof fds[0]);
    if (host->kind->free != NULL)
        host->kind->free(host);
    if (host->control_page.at != NULL)
        munmap(host->control_page.at, host->control_page.bytes);
    if (host->report_page.at != NULL)
        munmap(host->report_page.at, host->report_page.bytes);
    mem_free(host);
}

/* ---- the two words ---- */

int host_go(struct host *host, struct err *err)
{
    const uint64_t one = 1;
    while (write(host->go, &one, sizeof one) != (ssize_t)sizeof one)
        if (errno != EINTR)
            return err_set_errno(err, ERR_IO, errno, "runner: go");
    return 0;
}

/* True once the runner has spoken or ended; false at the deadline. */
static bool poll_once(struct host *host, uint64_t deadline_ns, bool *died)
{
    struct pollfd fds[2] = {{.fd = host->done, .events = POLLIN},
                            {.fd = host->pidfd, .events = POLLIN}};
    for (;;) {
        uint64_t now = clock_now_ns();
        uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec wait = {.tv_sec = (time_t)(left / SECOND_NS),
                                .tv_nsec = (long)(left % SECOND_NS)};
        int ready = ppoll(fds, 2, &wait, NULL);
        if (ready < 0 && errno == EINTR)
            continue;
        *died = fds[1].revents != 0;
        return ready > 0;
    }
}

int host_await(struct host *host, unsigned times, uint64_t deadline_ns, unsigned *said,
               struct err *err)
{
    *said = 0;
    while (*said < times) {
        uint64_t count = 0, look_ns = clock_now_ns() + LOOK_NS;
        bool died = false, last = host->kind->look == NULL || look_ns >= deadline_ns;
        bool ready = poll_once(host, last ? deadline_ns : look_ns, &died);
        if (read(host->done, &count, sizeof count) == (ssize_t)sizeof count)
            *said += count < 1000 ? (unsigned)count : 1000;
        if (died)
            return host_ended(host, err);
        if (!ready && host->kind->look != NULL && host->kind->look(host, err) != 0) {
            host_end(host);
            return -1;
        }
        if (!ready && last) {
            host_end(host);
            return err_set(err, ERR_TIMEOUT, "no answer in time");
        }
    }
    if (*said == times)
        return 0;
    host_end(host);
    return err_set(err, ERR_PROTOCOL, "the runner said more than it was asked");
}

int host_judge(struct host *host, uint32_t status, const char *reason, size_t bytes,
               struct err *err)
{
    char words[sizeof err->message];
    size_t shown = bytes < sizeof words ? bytes : sizeof words;
    memcpy(words, reason, shown);
    words[shown - 1] = '\0';
    if (status == REPORT_FINE)
        return 0;
    host->spoilt = true;
    host_end(host);
    return err_set(err, status == REPORT_BROKEN ? ERR_ENVIRONMENT : ERR_CHILD, "%s", words);
}

/* ---- with a device of its own ---- */

void host_rest(struct subject *subject)
{
    (void)subject;
}

static bool renew(struct subject *subject)
{
    const struct host *host = (const struct host *)subject;
    return !host->reaped && !host->spoilt;
}

struct subject *host_on_device(struct host *host, const struct subject_ops *ops)
{
    host->subject.ops = ops;
    host->subject.name = "runner";
    host->subject.device_clock = true;
    host->subject.renew = renew;
    return &host->subject;
}

/* ---- spares ---- */

void host_discard(struct host **spares, int count)
{
    for (int i = 0; i < count; i++) {
        host_close(spares[i]);
        spares[i] = NULL;
    }
}

void host_settle(struct host **spares, int count)
{
    struct err ignored;
    for (int i = 0; i < count; i++)
        if (spares[i] != NULL && host_wait_warm(spares[i], &ignored) != 0)
            host_discard(&spares[i], 1);
}
