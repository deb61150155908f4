/* eval/cpu/left: what a kernel leaves in the process that called it. Registers by ptrace, memory
 * and /proc by the kernel's account: nothing that the runner says has a part in it. Measuring
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct left {
    bool traced; /* the registers are known; else this user may not trace */
    uint64_t rounding, flushing, exceptions, stack, direction; /* of the calling thread */
    uint64_t blocked, ignored, handled;                        /* bit sets of signals */
    uint64_t environment, locale, files, folder;               /* to be compared, no more */
    uint64_t memory_bytes; /* that it can write, without the tensors */
    unsigned threads;      /* besides the calling one */
};

/* Where in its memory libc keeps what is compared; 0: not known. The same for as long as it runs.
 */
struct left_places {
    uint64_t environment, locales;
};
/* Before anything of the candidate's has run. */
struct left_places left_find(int pid);

/* Where a file is mapped from its start on, by the kernel's account; 0: it is not, or not known. */
uint64_t left_mapped_at(int pid, ino_t inode);
/* Of a process whose group is stopped; it stays so. False: it has ended, or is about to, and what
 * was read may be of no process. */
bool left_look(int pid, const struct left_places *places, struct left *left);
/* The name of what differs; NULL: nothing does. `loading`: turning denormals off is no difference,
 * since compilers do that to whatever is linked with -ffast-math. */
const char *left_change(const struct left *before, const struct left *after, bool loading);
