/* What the benches of the loop measure of their own process, from /proc and getrusage. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static inline double cpu_seconds(void) /* user and system, this process alone */
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* A line of /proc/self/status in kB: "VmRSS:" now, "VmHWM:" at most so far. */
static inline long status_kb(const char *name)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtol(line + strlen(name), NULL, 10);
    }
    if (status != NULL)
        fclose(status);
    return kb;
}

static inline int open_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count - 3; /* ".", "..", and the folder itself */
}

/* Processes whose parent we are, zombies among them. */
static inline int children_left(void)
{
    int count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[300], line[512], *end = NULL;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *stat = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        if (stat == NULL)
            continue;
        if (fgets(line, sizeof line, stat) != NULL && (end = strrchr(line, ')')) != NULL)
            count += strtol(end + 4, NULL, 10) == getpid(); /* ") Z PPID" */
        fclose(stat);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

static inline void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
