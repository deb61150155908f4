/* eval/measure_noise: time that threads spent ready to run while something else ran on their core,
 * from the scheduler's own account (/proc/PID/task/TID/schedstat, second number, ns). */
#include "eval/measure_noise.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t delay_at(int folder, const char *path)
{
    char text[96], *end;
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    strtoull(text, &end, 10); /* time on a core */
    return strtoull(end, NULL, 10);
}

static uint64_t delay_of(int pid)
{
    char path[64];
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        char file[sizeof entry->d_name + 16];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/schedstat", entry->d_name);
        sum += delay_at(dirfd(tasks), file);
    }
    closedir(tasks);
    return sum;
}

void noise_read(int pid, struct noise *noise)
{
    char path[64];
    noise->subject_ns = pid > 0 ? delay_of(pid) : 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)syscall(SYS_gettid));
    noise->own_ns = delay_at(AT_FDCWD, path);
}
