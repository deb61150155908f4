/* What the kernel counts for a process that is not ours to believe. */
#include "eval/cpu/private.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t thread_switches(int pid, const char *thread)
{
    char path[64], line[256];
    int64_t count = 0;
    if (snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", pid, thread) >= (int)sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0; /* it ended between the listing and now */
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "nonvoluntary_ctxt_switches:", 27) == 0)
            count = strtoll(line + 27, NULL, 10);
    fclose(file);
    return count;
}

int64_t process_switches(int pid)
{
    char path[40];
    int64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return -1;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            count += thread_switches(pid, entry->d_name);
    closedir(folder);
    return count;
}

int64_t process_cpu_ns(int pid)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return -1;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

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
