/* eval/cpu/hold: a call in which at most one thread of a runner runs at a time, and the caller's
 * always before the others: they run only while it waits. Whoever waits for its threads loses some
 * milliseconds; work that nobody waits for has not been done when "done" is said, on any machine,
 * however idle or busy (who asks first whether he is held, and waits then: eval/cpu/halt.h). The
 * kernel enforces it (ptrace), down to threads that are made meanwhile. Measuring thread; one
 * thread for all of a call, from hold_begin() to hold_end().
 *
 * A thread is held (stopped), runs, or waits in the kernel; what comes back from there is held. A
 * caller that has used `hold_ns` of CPU time without an answer counts as one that waits in a
 * loop: then the others have turns, in a random order, and it has one after each of theirs. */
#pragma once

#include "eval/backend/subject.h"

#include <stdbool.h>
#include <stdint.h>

enum { HOLD_THREADS_MOST = 256 };

struct hold;

enum hold_end {
    HOLD_DONE,   /* the caller has written its word; nothing runs */
    HOLD_DIED,   /* it is there to be reaped */
    HOLD_LATE,   /* past the deadline */
    HOLD_FORGED, /* another thread than the caller's wrote the word */
    HOLD_CROWDED /* more than HOLD_THREADS_MOST besides the caller's */
};

/* The subject's group is stopped; its hold_ns stays until the end. NULL with errno: EPERM and the
 * like where this user may not trace. */
bool hold_permitted(void); /* as far as can be told without a process to hold */
struct hold *hold_begin(const struct subject *subject);
/* Lets it run until the caller writes to the descriptor WIRE_DONE. */
enum hold_end hold_run(struct hold *hold, uint64_t deadline_ns);
unsigned hold_threads(const struct hold *hold); /* the most that there were besides the caller's */
/* Lets go of all of them and sends the group SIGSTOP: none has run when it has stopped. */
void hold_end(struct hold *hold);
/* Of one that was killed: reaps what only its tracer can, and frees. NULL is fine. */
void hold_bury(struct hold *hold);
