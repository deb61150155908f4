/* Hardware counters over one call, from outside: perf_event_open on each thread of the runner.
 * Many virtual machines have none: then every number is null. */
#include "eval/cpu/profile.h"

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS = 3, THREADS_MAX = 64 };

static const struct {
    const char *name;
    uint64_t config;
} events[EVENTS] = {{"cycles", PERF_COUNT_HW_CPU_CYCLES},
                    {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
                    {"cache_misses", PERF_COUNT_HW_CACHE_MISSES}};

struct counting {
    size_t threads;
    int fds[THREADS_MAX][EVENTS]; /* -1: not given */
};

static int open_event(int thread, uint64_t config)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attributes,
        .config = config,
        .disabled = 1,
        .inherit = 1, /* threads that the call itself makes */
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void open_all(struct counting *counting, int pid)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    counting->threads = 0;
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.' || counting->threads == THREADS_MAX)
            continue;
        int *fds = counting->fds[counting->threads++];
        for (int i = 0; i < EVENTS; i++)
            fds[i] = open_event((int)strtol(entry->d_name, NULL, 10), events[i].config);
    }
    closedir(folder);
}

static void switch_all(const struct counting *counting, unsigned long request)
{
    for (size_t t = 0; t < counting->threads; t++)
        for (int i = 0; i < EVENTS; i++)
            if (counting->fds[t][i] >= 0)
                ioctl(counting->fds[t][i], request, 0);
}

/* Over all threads, scaled up where the kernel counted only part of the time; -1 where a thread
 * that ran was not counted at all. */
static double sum_of(const struct counting *counting, int event)
{
    double sum = 0;
    for (size_t t = 0; t < counting->threads; t++) {
        uint64_t values[3]; /* count, enabled, running */
        int fd = counting->fds[t][event];
        if (fd < 0 || read(fd, values, sizeof values) != (ssize_t)sizeof values)
            return -1;
        if (values[2] > 0)
            sum += (double)values[0] * (double)values[1] / (double)values[2];
        else if (values[1] > 0)
            return -1;
    }
    return counting->threads > 0 && sum > 0 ? sum : -1;
}

void counters_put(struct subject *subject, const struct call *call, struct json *json)
{
    struct counting counting;
    struct err ignored;
    uint64_t elapsed_ns;
    double sums[EVENTS] = {-1, -1, -1};
    open_all(&counting, subject->pid);
    bool any = counting.threads > 0 && counting.fds[0][0] >= 0;
    switch_all(&counting, PERF_EVENT_IOC_ENABLE);
    bool called = any && subject_call(subject, call, &elapsed_ns, &ignored) == 0;
    switch_all(&counting, PERF_EVENT_IOC_DISABLE);
    for (int i = 0; i < EVENTS && called; i++)
        sums[i] = sum_of(&counting, i);
    for (size_t t = 0; t < counting.threads; t++)
        for (int i = 0; i < EVENTS; i++)
            if (counting.fds[t][i] >= 0)
                close(counting.fds[t][i]);
    json_put_object(json, "counters");
    for (int i = 0; i < EVENTS; i++)
        json_put_known(json, events[i].name, sums[i]);
    json_put_known(json, "instructions_per_cycle",
                   sums[0] > 0 && sums[1] >= 0 ? sums[1] / sums[0] : -1);
    json_object_end(json);
}
