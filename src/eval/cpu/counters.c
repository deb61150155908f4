/* What the kernel counts for a process that is not ours to believe. */
#include "eval/cpu/private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct thread_times thread_times(int pid, int thread)
{
    struct thread_times times = {0};
    char path[80], text[96], *end = text;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, thread);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return times;
    if (fgets(text, sizeof text, file) != NULL) {
        times.cpu_ns = strtoull(text, &end, 10);
        times.queued_ns = strtoull(end, NULL, 10);
    }
    fclose(file);
    return times;
}

bool thread_take(int pid, int thread, int *status)
{
    const int kinds = WSTOPPED | (thread != pid ? WEXITED : 0) | WNOHANG | __WALL;
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)thread, &info, kinds) != 0 || info.si_pid == 0)
        return false;
    bool stopped = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
    *status = stopped ? W_STOPCODE(info.si_status) : 0;
    return true;
}

bool thread_await_stop(int pid, int thread, int *status)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)thread, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0)
        if (errno != EINTR)
            return false;
    return thread_take(pid, thread, status) && WIFSTOPPED(*status);
}

char thread_state(int pid, int thread)
{
    char path[80], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    FILE *file = fopen(path, "re");
    size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    text[size] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : '\0';
}
