#include "eval/runner/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void give_up(const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    length = length < (int)sizeof text - 1 ? length : (int)sizeof text - 2;
    text[length++] = '\n';
    ssize_t ignored = write(2, text, (size_t)length);
    (void)ignored;
    _exit(RUNNER_EXIT);
}

void wait_go(void)
{
    uint64_t count;
    while (read(WIRE_GO, &count, sizeof count) != (ssize_t)sizeof count)
        if (errno != EINTR)
            _exit(RUNNER_EXIT);
}

void say_done(void)
{
    const uint64_t one = 1;
    while (write(WIRE_DONE, &one, sizeof one) != (ssize_t)sizeof one)
        if (errno != EINTR)
            _exit(RUNNER_EXIT);
}

void *map_shared(int fd, size_t bytes, int protection, int flags)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED | flags, fd, 0);
    if (memory == MAP_FAILED)
        give_up("mmap of %zu bytes: %s", bytes, strerror(errno));
    return memory;
}

/* Whoever starts a run at three in the morning would rather lose a runner than the machine. */
void prefer_as_victim(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t ignored = write(fd, "1000", 4);
    (void)ignored;
    close(fd);
}
