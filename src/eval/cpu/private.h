/* eval/cpu/private: the backend's operations, whose contracts are in eval/backend/backend.h. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/emit/emit.h"

/* kernel.c and kernel.h, build.sh, a test against the problem's plain C where it has one; as numpy
 * kernel.py and test.py besides. */
extern const struct emitter emitter_cpu;

int cpu_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
              struct lane_facts *lane, struct err *err) MUST_USE;
int cpu_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
             const char *const *env, struct subject **subject, struct err *err) MUST_USE;
int cpu_sanitize(const struct lane_facts *lane, const struct region *region, const char *artifact,
                 const struct call *call, struct buf *report, struct err *err) MUST_USE;
int cpu_profile(const struct lane_facts *lane, const struct problem *problem,
                const struct names *dims, const char *artifact, const char *remarks_log,
                double time_ns, struct subject *subject, const struct call *call, struct json *json,
                struct err *err) MUST_USE;

/* Of one of its threads, since it began: on a core, and in the queue for one. 0: not known. */
struct thread_times {
    uint64_t cpu_ns, queued_ns;
};
struct thread_times thread_times(int pid, int thread);
char thread_state(int pid, int thread); /* as in proc(5): 'R', 'S', 'Z', ...; 0: not known */
/* Of one that is traced: a stop or an end that is there, as by waitpid(). The end of the process
 * itself, which may come at any moment, is left to who reaps it. */
bool thread_take(int pid, int thread, int *status);
bool thread_await_stop(int pid, int thread, int *status); /* false: it has ended */
