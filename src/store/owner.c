#include "store/internal.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A lock of the process, not of the open file: a child that was forked but has not run exec() yet
 * would keep the other kind when its parent is killed. The price is that this process loses the
 * lock when it closes any descriptor of the file; environment.c opens it once at most. */
static int lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int result;
    do
        result = fcntl(fd, F_SETLK, &whole);
    while (result != 0 && errno == EINTR);
    return result;
}

static int busy(int fd, const char *folder, struct err *err)
{
    struct flock holder = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
        return err_set(err, ERR_BUSY,
                       "process %ld has the store %s open: stop it, or wait for its end",
                       (long)holder.l_pid, folder);
    return err_set(err, ERR_BUSY, "another process has the store %s open", folder);
}

static int take(int fd, const char *folder, struct err *err)
{
    if (lock(fd) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return busy(fd, folder, err);
        return err_set_errno(err, ERR_ENVIRONMENT, errno,
                             "cannot lock the store %s: its file system must know locks", folder);
    }
    /* For people who look; the kernel tells us. So a full disk does not keep the owner out. */
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length)
        (void)!ftruncate(fd, 0);
    return 0;
}

int store_owner_take(const char *folder, int *result, struct err *err)
{
    MEM_LOCAL char *path = file_join(folder, "owner.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        int saved = errno;
        (void)err_set_errno(err, saved == ENOSPC || saved == EDQUOT ? ERR_FULL : ERR_ENVIRONMENT,
                            saved, "cannot open %s", path);
        return -1;
    }
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
