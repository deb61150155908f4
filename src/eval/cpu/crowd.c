/* eval/cpu/crowd: a runner whose threads are the candidate's own, all of them on one core for a
 * while. There whoever is made or woken waits until the thread that runs has had its time slice,
 * some milliseconds (SCHED_BATCH: sched(7)), and so has not begun when the kernel returns, unless
 * it is waited for. On cores of its own it is done by then as a rule, whether waited for or not. */
#include "eval/cpu/host.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static void each_thread(int pid, const cpu_set_t *set, int policy)
{
    char path[64];
    const struct sched_param none = {0};
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        int thread = (int)strtol(entry->d_name, NULL, 10);
        if (thread <= 0)
            continue; /* "." and ".." */
        (void)sched_setaffinity(thread, sizeof *set, set);
        (void)sched_setscheduler(thread, policy, &none);
    }
    closedir(tasks);
}

void host_crowd(struct subject *subject, bool one_core)
{
    struct host *host = (struct host *)subject;
    struct control *control = host->control;
    cpu_set_t set;
    if (control->crowded == one_core || host->reaped)
        return;
    CPU_ZERO(&set);
    for (uint32_t i = 0; i < (one_core ? 1 : control->core_count) && i < WIRE_CORES_MAX; i++)
        CPU_SET((size_t)control->cores[i], &set);
    each_thread(subject->pid, &set, one_core ? SCHED_BATCH : SCHED_OTHER);
    control->crowded = one_core;
}
