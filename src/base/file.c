#include "base/file.h"

#include "base/mem.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err_code code_of(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EEXIST:
        return ERR_EXISTS;
    case ENOSPC:
    case EDQUOT:
        return ERR_FULL;
    default:
        return ERR_IO;
    }
}

static int read_all(int fd, const char *path, struct buf *buf, struct err *err)
{
    char piece[64 * 1024];
    for (;;) {
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, code_of(errno), errno, "%s", path);
        if (got == 0)
            return 0;
        buf_add(buf, piece, (size_t)got);
        if (buf->dropped > 0)
            return err_set(err, ERR_LIMIT, "%s: more than %zu bytes", path, buf->max);
    }
}

int file_read(const char *path, struct buf *buf, struct err *err)
{
    buf_reset(buf);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, code_of(errno), errno, "%s", path);
    int result = read_all(fd, path, buf, err);
    close(fd);
    return result;
}

ssize_t file_read_at(int fd, void *bytes, size_t length, uint64_t offset)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = pread(fd, (char *)bytes + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

int file_write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -1;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return mem_strdup(".");
    char *folder = mem_strdup(path);
    folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* A rename is on the disk only when its folder is. */
static int sync_folder_of(const char *path)
{
    MEM_LOCAL char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = fsync(fd);
    int saved = errno;
    close(fd);
    errno = saved;
    /* Some file systems have no fsync of folders; there is nothing to be done about that. */
    return result != 0 && (saved == EINVAL || saved == EROFS) ? 0 : result;
}

static int fill_and_rename(int fd, const char *temporary, const char *path, const void *bytes,
                           size_t length)
{
    struct stat old;
    bool keep_mode = stat(path, &old) == 0 && S_ISREG(old.st_mode);
    int result = file_write_all(fd, (const char *)bytes, length);
    if (result == 0 && keep_mode)
        result = fchmod(fd, old.st_mode & 07777);
    if (result == 0)
        result = fsync(fd);
    int saved = errno;
    if (close(fd) != 0 && result == 0) {
        result = -1;
        saved = errno;
    }
    errno = saved;
    if (result == 0)
        result = rename(temporary, path);
    return result;
}

int file_write(const char *path, const void *bytes, size_t length, struct err *err)
{
    BUF_LOCAL(temporary, PATH_MAX);
    buf_addf(&temporary, "%s.%016llx.tmp", path, (unsigned long long)random_seed());
    int fd = open(buf_text(&temporary), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int result = fd < 0 ? -1 : fill_and_rename(fd, buf_text(&temporary), path, bytes, length);
    int saved = errno;
    if (fd >= 0 && result != 0)
        unlink(buf_text(&temporary));
    errno = saved;
    if (result == 0)
        result = sync_folder_of(path);
    if (result != 0)
        return err_set_errno(err, code_of(errno), errno, "%s", path);
    return 0;
}

int file_open_through(const char *path)
{
    return open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
}

static bool is_replaced(const char *path)
{
    struct stat status;
    return lstat(path, &status) != 0 || (S_ISREG(status.st_mode) && status.st_nlink == 1);
}

int file_put(const char *path, const void *bytes, size_t length, struct err *err)
{
    if (is_replaced(path))
        return file_write(path, bytes, length, err);
    int fd = file_open_through(path);
    int result = fd < 0 ? -1 : file_write_all(fd, (const char *)bytes, length);
    int saved = errno;
    if (fd >= 0 && close(fd) != 0 && result == 0) {
        result = -1;
        saved = errno;
    }
    if (result != 0 && saved != EPIPE)
        return err_set_errno(err, code_of(saved), saved, "%s", path);
    return 0;
}

int file_make_dirs(const char *path, struct err *err)
{
    MEM_LOCAL char *work = mem_strdup(path);
    size_t length = strlen(work);
    int result = 0;
    for (size_t i = 1; i <= length && result == 0; i++) {
        if (work[i] != '/' && work[i] != '\0')
            continue;
        char kept = work[i];
        work[i] = '\0';
        if (mkdir(work, 0700) != 0) {
            int saved = errno;
            if (!file_is_dir(work))
                result = err_set_errno(err, saved == EEXIST ? ERR_EXISTS : code_of(saved),
                                       saved == EEXIST ? ENOTDIR : saved, "%s", work);
        }
        work[i] = kept;
    }
    if (length == 0)
        result = err_set_errno(err, ERR_NOT_FOUND, ENOENT, "%s", "\"\"");
    return result;
}

bool file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool file_is_regular(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

char *file_join(const char *folder, const char *name)
{
    if (name[0] == '/' || folder[0] == '\0')
        return mem_strdup(name);
    size_t length = strlen(folder);
    size_t bytes = length + strlen(name) + 2;
    char *path = (char *)mem_alloc(bytes);
    snprintf(path, bytes, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/", name);
    return path;
}

char *file_self_path(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) {
        fprintf(stderr, "twagent: /proc/self/exe: %s\n", strerror(errno));
        abort(); /* without /proc there are no children's limits to read either */
    }
    path[length] = '\0';
    return mem_strdup(path);
}

const char *file_program_path(void)
{
    static char *path; /* the measuring thread's first call is the first of all */
    const char *given = getenv("TWAGENT_SELF");
    if (given != NULL && *given != '\0')
        return given;
    if (path == NULL)
        path = file_self_path();
    return path;
}

/* Takes `folder`. */
static char *existing_in(char *folder, const char *name)
{
    char *path = file_join(folder, name);
    mem_free(folder);
    if (file_exists(path))
        return path;
    mem_free(path);
    return NULL;
}

char *file_data_path(const char *name)
{
    char *found = NULL;
    const char *data = getenv("TWAGENT_DATA");
    if (data != NULL && data[0] != '\0')
        found = existing_in(mem_strdup(data), name);
    if (found == NULL) {
        char *self = file_self_path();
        char *folder = folder_of(self);
        found = existing_in(file_join(folder, "../share/twagent"), name);
        mem_free(folder);
        mem_free(self);
    }
    if (found == NULL && TWAGENT_SOURCE_DIR[0] != '\0') /* a package has none */
        found = existing_in(mem_strdup(TWAGENT_SOURCE_DIR), name);
    return found;
}

char *file_user_path(const char *variable, const char *folder, const char *rest)
{
    const char *own = getenv(variable), *home = getenv("HOME");
    if (own != NULL && *own == '/') /* XDG: a relative path is ignored */
        return file_join(own, rest);
    if (home == NULL || *home != '/')
        return NULL;
    MEM_LOCAL char *below = file_join(home, folder);
    return file_join(below, rest);
}

char *file_cache_path(const char *kind, const char *name)
{
    MEM_LOCAL char *folder = file_user_path("XDG_CACHE_HOME", ".cache", "twagent");
    MEM_LOCAL char *path = folder != NULL ? file_join(folder, kind) : NULL;
    return path == NULL ? NULL : name != NULL ? file_join(path, name) : mem_strdup(path);
}
