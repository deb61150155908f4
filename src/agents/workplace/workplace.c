#include "agents/workplace/workplace.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MOST = 4096, LOOK_MS = 50 };

#define REQUESTS ".twagent/requests"
#define ANSWERS  ".twagent/answers"

struct workplace {
    int requests, answers; /* folders, held open: what the names stand for may change */
};

/* ---- the folder ---- */

int workplace_write(const char *folder, const char *name, const char *text, struct err *err)
{
    ARENA_LOCAL(arena);
    char *path = arena_printf(arena, "%s/%s", folder, name), *slash = strrchr(path, '/');
    *slash = '\0';
    if (file_make_dirs(path, err) != 0)
        return -1;
    *slash = '/';
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t length = strlen(text), done = 0;
    while (fd >= 0 && done < length) {
        ssize_t written = write(fd, text + done, length - done);
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    bool whole = fd >= 0 && done == length;
    int failed = errno;
    if (fd >= 0)
        close(fd);
    return whole ? 0 : err_set_errno(err, ERR_IO, failed, "%s", path);
}

static int open_folder(const char *folder, const char *name, struct err *err)
{
    ARENA_LOCAL(arena);
    const char *path = arena_printf(arena, "%s/%s", folder, name);
    if (file_make_dirs(path, err) != 0)
        return -1;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? fd : err_set_errno(err, ERR_IO, errno, "%s", path);
}

struct workplace *workplace_make(const char *folder, struct err *err)
{
    if (file_exists(folder) && file_remove_tree(folder, err) != 0)
        return NULL;
    struct workplace *place = MEM_NEW(struct workplace);
    place->requests = open_folder(folder, REQUESTS, err);
    place->answers = place->requests >= 0 ? open_folder(folder, ANSWERS, err) : -1;
    if (place->answers >= 0)
        return place;
    workplace_free(place);
    return NULL;
}

void workplace_free(struct workplace *place)
{
    if (!place)
        return;
    if (place->requests >= 0)
        close(place->requests);
    if (place->answers >= 0)
        close(place->answers);
    mem_free(place);
}

/* ---- requests ---- */

/* "NAME.evaluate" or "NAME.submit", and nothing else. */
static bool is_request(const char *file, struct workplace_request *request)
{
    const char *point = strchr(file, '.');
    size_t length = point ? (size_t)(point - file) : 0;
    if (length == 0 || length >= WORKPLACE_NAME)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)file[i]) && file[i] != '-')
            return false;
    memcpy(request->name, file, length);
    request->name[length] = '\0';
    request->submits = strcmp(point, ".submit") == 0;
    return request->submits || strcmp(point, ".evaluate") == 0;
}

static int by_name(const void *one, const void *other)
{
    const struct workplace_request *a = one, *b = other;
    return strcmp(a->name, b->name);
}

static void read_source(const struct workplace *place, struct workplace_request *request)
{
    char file[WORKPLACE_NAME + 16];
    struct stat status;
    snprintf(file, sizeof file, "%s.%s", request->name, request->submits ? "submit" : "evaluate");
    int fd = openat(place->requests, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    size_t done = 0, length = 0;
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= WORKPLACE_SOURCE_MOST) {
        length = (size_t)status.st_size;
        text = mem_alloc(length + 1);
        for (ssize_t got; done < length && (got = read(fd, text + done, length - done)) > 0;)
            done += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    unlinkat(place->requests, file, 0);
    if (text && (done != length || length == 0 || memchr(text, '\0', length))) {
        mem_free(text);
        text = NULL;
    }
    request->source = text;
    request->length = length;
}

size_t workplace_take(struct workplace *place,
                      struct workplace_request requests[WORKPLACE_REQUESTS_MOST])
{
    int copy = openat(place->requests, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    struct workplace_request *found = mem_array(ENTRIES_MOST, sizeof *found);
    size_t count = 0;
    for (const struct dirent *entry;
         folder && count < ENTRIES_MOST && (entry = readdir(folder)) != NULL;)
        count += is_request(entry->d_name, &found[count]);
    if (folder)
        closedir(folder);
    else if (copy >= 0)
        close(copy);
    qsort(found, count, sizeof *found, by_name);
    if (count > WORKPLACE_REQUESTS_MOST)
        count = WORKPLACE_REQUESTS_MOST;
    for (size_t i = 0; i < count; i++) {
        requests[i] = found[i];
        read_source(place, &requests[i]);
    }
    mem_free(found);
    return count;
}

static int write_at(int folder, const char *name, const char *text, size_t length)
{
    char before[WORKPLACE_NAME + 16], after[WORKPLACE_NAME + 16];
    snprintf(before, sizeof before, "%s.part", name);
    snprintf(after, sizeof after, "%s.answer", name);
    unlinkat(folder, before, 0);
    int fd = openat(folder, before, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    size_t done = 0;
    for (ssize_t put; done < length && (put = write(fd, text + done, length - done)) > 0;)
        done += (size_t)put;
    close(fd);
    return done == length ? renameat(folder, before, folder, after) : -1;
}

/* An agent that lets nothing be written there has no answer. */
void workplace_answer(struct workplace *place, const char *name, const char *text, size_t length)
{
    (void)write_at(place->answers, name, text, length);
}

/* ---- the agent's side ---- */

static int read_answer(const char *path, struct buf *answer, struct err *err)
{
    while (!file_exists(path)) {
        char folder[4096];
        snprintf(folder, sizeof folder, "%s", path);
        *strrchr(folder, '/') = '\0';
        if (!file_is_dir(folder))
            return err_set(err, ERR_NOT_FOUND, "the attempt is over");
        poll(NULL, 0, LOOK_MS);
    }
    int status = file_read(path, answer, err);
    unlink(path);
    return status;
}

int workplace_ask(const char *folder, bool submits, const char *source, size_t length,
                  struct buf *answer, struct err *err)
{
    ARENA_LOCAL(arena);
    char name[WORKPLACE_NAME];
    snprintf(name, sizeof name, "%016" PRIx64 "-%x", clock_now_ns(), (unsigned)getpid());
    const char *before = arena_printf(arena, "%s/" REQUESTS "/%s.part", folder, name);
    const char *after =
        arena_printf(arena, "%s/" REQUESTS "/%s.%s", folder, name, submits ? "submit" : "evaluate");
    int fd = open(before, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, ERR_NOT_FOUND, "no attempt goes on in %.300s", folder);
    size_t done = 0;
    for (ssize_t put; done < length && (put = write(fd, source + done, length - done)) > 0;)
        done += (size_t)put;
    close(fd);
    if (done < length || rename(before, after) != 0)
        return err_set_errno(err, ERR_IO, errno, "%.300s", after);
    return read_answer(arena_printf(arena, "%s/" ANSWERS "/%s.answer", folder, name), answer, err);
}
