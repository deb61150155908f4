/* base/quota: what of the machine a job has: its control group's memory and CPU time (cgroup v2 and
 * v1). The tightest of a group and those that it lies in counts. Any thread. */
#pragma once

#include <stdint.h>

struct quota {
    uint64_t memory_bytes; /* 0: no limit */
    uint64_t memory_used;  /* of that group */
    double cpus;           /* 0: no limit */
    int64_t throttled;     /* how often its processes were held for having used that up */
};

/* `list` as in /proc/self/cgroup; `root` where the groups are, as /sys/fs/cgroup. What is not there
 * is no limit. */
void quota_read_at(const char *list, const char *root, struct quota *quota);
void quota_read(struct quota *quota); /* of this process */
uint64_t quota_memory(void);          /* the machine's, or what the job has of it, in bytes */
