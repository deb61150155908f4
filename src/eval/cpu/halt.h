/* eval/cpu/halt: a call in which nothing is held until a thread besides the caller's writes what it
 * was to write, or reads what it needs for that: then it is stopped, in the middle of its work. So
 * who asks whether his helper runs beside him is told that it does: the caller, and other threads,
 * wait at something that they write until it has begun. If the caller says "done" while it is
 * stopped, it has not waited for it, and its outputs lack what that had left. Who waits sleeps or
 * uses CPU time: then it goes on, and the call is late, not wrong. The CPU tells who reads and
 * writes (debug registers, set by ptrace), whatever else the machine does. A late call traces
 * nobody before it stops one, at some moment: what can feel a tracer does not. Measuring thread,
 * one thread for all of a call. */
#pragma once

#include "eval/backend/subject.h"

struct halt;

/* Is this CPU asked who writes what? Else nothing is ever stopped by that, and no call that was
 * watched has shown anything. */
bool halt_watches(void);

/* The runner's threads rest, or with `late` are stopped; `inputs`, `outputs`: where it has them.
 * Where this user may not trace, or on another CPU, nothing is ever stopped. */
struct halt *halt_begin(int pid, uint64_t inputs, uint64_t outputs, const struct watch *watch);
/* The call has begun. Returns, and frees, when the word is in `done` or the process has ended
 * (`pidfd`), which is left to others, or the threads go on, at the deadline (clock_now_ns()) at the
 * latest. Where the word was said before they did, the group has had its SIGSTOP. */
void halt_run(struct halt *halt, int done, int pidfd, uint64_t deadline_ns);
