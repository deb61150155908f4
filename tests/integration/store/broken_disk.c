/* Preloaded into the real program: while the file $BROKEN_DISK names holds two numbers, writes to a
 * data.mdb fail with the first as errno, after as many that succeed as the second says. What a
 * full, broken or read-only disk looks like, without the privileges to make one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_data(int fd)
{
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 9)
        return 0;
    path[length] = '\0';
    return strcmp(path + length - 9, "/data.mdb") == 0;
}

static int broken(int fd)
{
    static int writes;
    char text[32] = "", *spare;
    const char *path = getenv("BROKEN_DISK");
    if (path == NULL)
        return 0;
    int control = open(path, O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return 0;
    ssize_t got = read(control, text, sizeof text - 1);
    close(control);
    if (got <= 0 || !is_data(fd))
        return 0;
    int number = (int)strtol(text, &spare, 10);
    if (number == 0 || writes++ < atoi(spare))
        return 0;
    errno = number;
    return 1;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    return broken(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset)
{
    return pwrite(fd, bytes, length, offset);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    return broken(fd) ? -1 : syscall(SYS_writev, fd, pieces, count);
}

int fdatasync(int fd)
{
    return broken(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}
