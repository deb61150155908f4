#include "store/owner.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lock belongs to the open file and not to the process: closing another descriptor of the same
 * file, which drops a plain POSIX lock, does nothing to it. */
static int lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int result;
    do
        result = fcntl(fd, F_OFD_SETLK, &whole);
    while (result != 0 && errno == EINTR);
    return result;
}

static long read_pid(int fd)
{
    char text[32] = "";
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    if (got <= 0)
        return 0;
    long pid = strtol(text, NULL, 10);
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM) ? pid : 0;
}

/* Between taking the lock and writing its number, an owner leaves the file empty, or with the
 * number of one that was killed: give it a moment. */
static int busy(int fd, const char *folder, struct err *err)
{
    long pid = 0;
    for (int tries = 0; pid == 0 && tries < 20; tries++) {
        pid = read_pid(fd);
        if (pid == 0)
            usleep(5000);
    }
    if (pid == 0)
        return err_set(err, ERR_BUSY, "another process has the store %s open", folder);
    return err_set(err, ERR_BUSY, "process %ld has the store %s open: stop it, or wait for its end",
                   pid, folder);
}

static int take(int fd, const char *folder, struct err *err)
{
    if (lock(fd) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return busy(fd, folder, err);
        return err_set_errno(err, ERR_ENVIRONMENT, errno,
                             "cannot lock the store %s: its file system must know locks", folder);
    }
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* A full disk must not keep the owner out: the number is only for the message of others. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length)
        (void)ftruncate(fd, 0);
    return 0;
}

int store_owner_take(const char *folder, int *result, struct err *err)
{
    char *path = file_join(folder, "owner.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        int saved = errno;
        (void)err_set_errno(err, saved == ENOSPC || saved == EDQUOT ? ERR_FULL : ERR_ENVIRONMENT,
                            saved, "cannot open %s", path);
        mem_free(path);
        return -1;
    }
    mem_free(path);
    if (take(fd, folder, err) != 0) {
        close(fd);
        return -1;
    }
    *result = fd;
    return 0;
}

void store_owner_release(int fd)
{
    (void)!ftruncate(fd, 0);
    close(fd);
}
