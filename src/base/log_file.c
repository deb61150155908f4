#include "base/log_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 32768, LINE_BYTES = 1536, FLUSH_MS = 1000 };

struct log_file {
    pthread_mutex_t lock;
    char *path; /* NULL until opened */
    int fd;
    size_t size, most; /* bytes of the present file; when it is rotated */
    int keep;
    uint64_t lost, flushed_ms;
    size_t used;
    char buffer[BUFFER_BYTES];
};

struct log_file *log_file_new(size_t bytes, int keep)
{
    struct log_file *log = MEM_NEW(struct log_file);
    pthread_mutex_init(&log->lock, NULL);
    log->fd = -1;
    log->most = bytes;
    log->keep = keep;
    return log;
}

static int open_file(struct log_file *log)
{
    struct stat status;
    log->fd = open(log->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    log->size = log->fd >= 0 && fstat(log->fd, &status) == 0 ? (size_t)status.st_size : 0;
    return log->fd < 0 ? -1 : 0;
}

/* PATH.2 -> PATH.3, PATH.1 -> PATH.2, PATH -> PATH.1. Where that fails the file simply grows on. */
static void rotate(struct log_file *log)
{
    size_t room = strlen(log->path) + 16;
    MEM_LOCAL char *from = mem_alloc(room);
    MEM_LOCAL char *to = mem_alloc(room);
    for (int i = log->keep; i > 0; i--) {
        snprintf(to, room, "%s.%d", log->path, i);
        snprintf(from, room, i > 1 ? "%s.%d" : "%s", log->path, i - 1);
        (void)!rename(from, to);
    }
    if (log->keep == 0)
        (void)!unlink(log->path);
    close(log->fd);
    (void)open_file(log);
}

static size_t write_some(struct log_file *log, const char *text, size_t length)
{
    size_t done = 0;
    while (log->fd >= 0 && done < length) {
        ssize_t count = write(log->fd, text + done, length - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    log->size += done;
    return done;
}

static void flush(struct log_file *log)
{
    char note[96];
    log->flushed_ms = clock_now_ms();
    if (!log->path || log->used == 0)
        return;
    if (log->fd < 0 && open_file(log) != 0)
        return;
    if (log->size > 0 && log->size + log->used > log->most)
        rotate(log);
    size_t done = write_some(log, log->buffer, log->used);
    memmove(log->buffer, log->buffer + done, log->used - done);
    log->used -= done;
    if (log->lost == 0 || log->used > 0)
        return;
    int length = snprintf(note, sizeof note, "(%llu lines were lost here: there was no room)\n",
                          (unsigned long long)log->lost);
    if (write_some(log, note, (size_t)length) > 0)
        log->lost = 0;
}

int log_file_open(struct log_file *log, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    MEM_LOCAL char *folder = mem_strdup(path);
    folder[slash && slash > path ? (size_t)(slash - path) : 0] = '\0';
    int failed = *folder ? file_make_dirs(folder, err) : 0;
    pthread_mutex_lock(&log->lock);
    mem_free(log->path);
    log->path = mem_strdup(path);
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
    if (!failed && open_file(log) != 0)
        failed = err_set_errno(err, ERR_IO, errno, "cannot open %s", path);
    flush(log);
    pthread_mutex_unlock(&log->lock);
    return failed;
}

void log_file_sink(void *context, const struct event *event)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct log_file *log = context;
    char line[LINE_BYTES], wall[32];
    clock_format_wall(event->wall_ms, wall);
    int length =
        snprintf(line, sizeof line - 1, "%s %s %s%s%s %s", wall, names[event->level], event->kind,
                 event->subject[0] ? " " : "", event->subject, event->message);
    size_t count = length < (int)sizeof line - 1 ? (size_t)length : sizeof line - 2;
    line[count++] = '\n';
    pthread_mutex_lock(&log->lock);
    if (log->used + count > BUFFER_BYTES)
        flush(log);
    if (log->used + count > BUFFER_BYTES) {
        log->lost++;
    } else {
        memcpy(log->buffer + log->used, line, count);
        log->used += count;
    }
    if (event->level >= LOG_WARN || clock_now_ms() - log->flushed_ms >= FLUSH_MS)
        flush(log);
    pthread_mutex_unlock(&log->lock);
}

void log_file_flush(struct log_file *log)
{
    pthread_mutex_lock(&log->lock);
    flush(log);
    pthread_mutex_unlock(&log->lock);
}

void log_file_free(struct log_file *log)
{
    if (!log)
        return;
    log_file_flush(log);
    if (log->fd >= 0)
        close(log->fd);
    pthread_mutex_destroy(&log->lock);
    mem_free(log->path);
    mem_free(log);
}
