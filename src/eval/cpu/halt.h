/* eval/cpu/halt: a call in which nothing is held until a thread besides the caller's writes what it
 * was to write: then all but the caller's are stopped, in the middle of their work. So who asks
 * whether his helper runs beside him is told that it does. If the caller says "done" while they are
 * stopped, it has not waited for them, and its outputs lack what they had left. Who waits sleeps or
 * uses CPU time: then they go on, and the call is late, not wrong. The CPU tells who writes (debug
 * registers, set by ptrace), whatever else the machine does. Measuring thread, one thread for all
 * of a call. */
#pragma once

#include "eval/backend/subject.h"

struct halt;

/* The runner's threads rest; `outputs`: where it has them. Where this user may not trace, or on
 * another CPU, nothing is ever stopped. */
struct halt *halt_begin(int pid, uint64_t outputs, const struct watch *watch);
/* The call has begun. Returns, and frees, when the word is in `done` or the process has ended
 * (`pidfd`), which is left to others, or the threads go on, at the deadline (clock_now_ns()) at the
 * latest. Where the word was said before they did, the group has had its SIGSTOP. */
void halt_run(struct halt *halt, int done, int pidfd, uint64_t deadline_ns);
