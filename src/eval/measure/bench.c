/* eval/measure/bench: the candidate's runner, its twin, and a checked call of it. */
#include "eval/measure/guard.h"
#include "eval/measure/session_private.h"

#include <sched.h>
#include <string.h>

/* The same process again, without what its calls have left behind. */
static bool renew(struct bench *bench)
{
    if (bench->fresh || bench->subject == NULL || bench->subject->renew == NULL ||
        !bench->subject->renew(bench->subject))
        return false;
    bench->seen = 0;
    bench->generation++;
    if (bench->twin != NULL && bench->twin->renew(bench->twin)) {
        bench->twin_generation = bench->generation;
    } else if (bench->twin != NULL) {
        bench->twin->ops->close(bench->twin);
        bench->twin = NULL;
    }
    return true;
}

static int open_subject(struct bench *bench, struct subject **subject, struct err *err)
{
    struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct program program = {session->problem, request->candidate, request->tune, NULL};
    return session->backend->open(session->lane, bench->region, request->artifact, &program,
                                  bench->fresh, subject, err);
}

/* Workspaces may be of another size for every shape; the largest decides. */
int bench_choose_region(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    size_t most = 0;
    const struct shape *shape;
    for (size_t i = 0; (shape = session_shape_at(session, i)) != NULL; i++) {
        struct layout layout;
        if (layout_make(session->problem, &shape->dims, request->candidate, request->tune, 0,
                        &layout, err) != 0) {
            err->code = ERR_LIMIT; /* the candidate's own expressions */
            return bench_failed(bench, err);
        }
        most = layout.outputs_bytes > most ? layout.outputs_bytes : most;
    }
    if (session_region_for(session, most, &bench->region, err) != 0)
        return bench_failed(bench, err);
    return 0;
}

int bench_open(struct bench *bench, struct err *err)
{
    if (renew(bench))
        return 0;
    bench_close(bench);
    /* What lies beyond the tensors outlives a runner: an answer kept there would be found again by
     * the next one, which meets the same sets. */
    parallel_clear(bench->region->outputs, bench->region->outputs_bytes);
    if (open_subject(bench, &bench->subject, err) != 0) {
        bench->subject = NULL;
        return bench_failed(bench, err);
    }
    bench->subject->ops->pause(bench->subject);
    bench->generation++;
    bench->by_device = bench->subject->device_clock;
    if (bench->settles || bench->by_device)
        bench->warm = (1U << SLOTS) - 1; /* a device's own memory has no first touch to be timed */
    return 0;
}

enum { HOLDS_LATE_MOST = 3 };

/* What ends as usual, and never where it is held, lets that time pass because it feels that it is:
 * so there are several, and nobody knows how many. True: that is the verdict. */
static bool never_ends_held(struct bench *bench, unsigned main_shape)
{
    if (++bench->held_late[main_shape] < HOLDS_LATE_MOST || bench->held_ended[main_shape] > 0)
        return false;
    bench_reject(bench, VERDICT_REJECTED,
                 arena_printf(bench->arena,
                              "none of %d calls ended in which one of its threads ran at a time",
                              HOLDS_LATE_MOST),
                 "Threads that wait for each other in loops have turns there, as on one core.\n");
    return true;
}

/* A caller that waits in a loop looks like one that computes, until it has taken several times as
 * long as any call before. A kernel whose threads meet in such loops again and again takes too long
 * this way: that alone is no verdict, and it is called again by a fresh runner, all threads at
 * once.
 */
static int call_held(struct bench *bench, const struct arrangement *arrangement, bool cold,
                     struct outcome *outcome, struct err *err)
{
    enum { PATIENCE_NS = 30000000, TIMES = 4 };
    struct subject *subject = bench->subject;
    const unsigned main_shape = bench->apart.looks;
    bool held = bench->held && !bench->never_held && subject->holds &&
                bench->held_late[main_shape] < HOLDS_LATE_MOST;
    apart_tell(bench, &arrangement->layout);
    subject->hold_ns = held ? PATIENCE_NS + TIMES * bench->longest_ns : 0;
    int status = call_run(bench, subject, arrangement, cold, outcome, err);
    if (held && subject->unheld) {
        bench->never_held = true;
        bench_note(bench,
                   "no call was made with its threads one at a time: ptrace is not permitted "
                   "here, so that work which nobody waits for may pass");
    }
    bench->held_ended[main_shape] += held && status == 0;
    /* Without what its threads waited for a core: patience is CPU time, which on a busy machine
     * takes as many times longer. */
    uint64_t own_ns =
        outcome->elapsed_ns > outcome->delay_ns ? outcome->elapsed_ns - outcome->delay_ns : 0;
    if (status == 0 && !held && !bench->halted && own_ns > bench->longest_ns)
        bench->longest_ns = own_ns;
    if (status == 0 || !(held || bench->halted) || err->code != ERR_TIMEOUT)
        return status;
    bench_close(bench);
    if (held && never_ends_held(bench, main_shape))
        return -1;
    bench_note(bench, "a call whose threads were held took too long, and was made again");
    if (bench_open(bench, err) != 0 || bench->ended)
        return -1;
    return call_run(bench, bench->subject, arrangement, cold, outcome, err);
}

/* Where this thread waits decides by tens of microseconds how long a wake-up takes: on the core of
 * a subject's first thread, always, for every subject alike. Both take turns there. */
void bench_bind(const struct session *session)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (session->lane->core_count == 0)
        return;
    CPU_SET((size_t)session->lane->cores[0], &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

/* Where timed calls are waited for, so that nobody can tell by this thread's core what a call is.
 */
static int call_bound(struct bench *bench, const struct arrangement *arrangement, bool cold,
                      struct outcome *outcome, struct err *err)
{
    cpu_set_t before;
    bool bound = !bench->subject->device_clock && sched_getaffinity(0, sizeof before, &before) == 0;
    if (bound)
        bench_bind(bench->session);
    int status = call_held(bench, arrangement, cold, outcome, err);
    if (bound)
        (void)sched_setaffinity(0, sizeof before, &before);
    return status;
}

/* Nothing of a check is timed but calls of the main shape: half of the others find their inputs in
 * the caches, as a user's calls do. */
static bool is_cold(struct bench *bench, const struct set *set)
{
    const struct session *session = bench->session;
    bool timed = set >= session->pool && set < session->pool + session->pool_count;
    return (timed && !bench->stays) || random_below(&bench->session->random, 2) == 0;
}

/* Half of the calls that are not timed go on beside something else of ours, on a device. Those of
 * the main shape say what a call takes, and have none until nothing is asked of that any more. */
static bool has_company(struct bench *bench, const struct set *set)
{
    const struct session *session = bench->session;
    bool timed = set >= session->pool && set < session->pool + session->pool_count;
    if (bench->stage != STAGE_CHECK || bench->clocked || (timed && !bench->stays))
        return false;
    return bench->subject->device_clock && random_below(&bench->session->random, 2) == 0;
}

int bench_check_once(struct bench *bench, struct set *set, struct outcome *outcome, struct err *err)
{
    struct session *session = bench->session;
    struct arrangement arrangement;
    if (atomic_load(&session->cancelled))
        return err_set(err, ERR_CANCELLED, "cancelled");
    *outcome = (struct outcome){0};
    if (set_expect(session, set, err) != 0)
        return -1;
    if (set->unfit || bench->ended)
        return 0;
    if (bench_arrange(bench, set->shape, &arrangement, err) != 0)
        return bench_failed(bench, err);
    call_place(bench, set, &arrangement);
    bench->crowded = has_company(bench, set);
    int status = call_bound(bench, &arrangement, is_cold(bench, set), outcome, err);
    bench->crowded = false; /* a timed call has no company */
    if (status != 0)
        return guard_hit(bench, set, &arrangement) ? 0 : bench_failed(bench, err);
    bench_saw(bench, set);
    call_verify(bench, set, &arrangement);
    return 0;
}

void bench_saw(struct bench *bench, const struct set *set)
{
    const struct session *session = bench->session;
    if (set >= session->pool && set < session->pool + session->pool_count) {
        bench->seen |= UINT64_C(1) << (set - session->pool);
        bench->warm |= 1U << bench->slot;
    }
}

/* A set that this generation of the runner has not met; NULL: it has met them all. */
struct set *bench_fresh_set(struct bench *bench)
{
    struct session *session = bench->session;
    size_t left = session->pool_count - (size_t)__builtin_popcountll(bench->seen);
    if (left == 0)
        return NULL;
    size_t skip = (size_t)random_below(&session->random, left);
    for (size_t i = 0; i < session->pool_count; i++)
        if ((bench->seen >> i & 1) == 0 && skip-- == 0)
            return &session->pool[i];
    return NULL;
}

/* The twin lives as long as the runner beside it, and begins with the sets that warmed that one. */
int bench_ensure_twin(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    if (bench->twin != NULL && bench->twin_generation == bench->generation)
        return 0;
    if (open_subject(bench, &bench->twin, err) != 0) {
        bench->twin = NULL;
        return bench_failed(bench, err);
    }
    bench->twin->ops->pause(bench->twin);
    bench->twin_generation = bench->generation;
    size_t slot = 0;
    for (size_t i = 0; i < session->pool_count && slot < session->slots; i++) {
        struct arrangement arrangement;
        struct outcome outcome;
        if ((bench->seen >> i & 1) == 0 || session->pool[i].unfit)
            continue;
        if (set_expect(session, &session->pool[i], err) != 0)
            return -1;
        if (session->pool[i].unfit)
            continue;
        bench->slot_forced = true;
        bench->slot_wanted = slot++;
        int status = bench_arrange(bench, session->pool[i].shape, &arrangement, err);
        bench->slot_forced = false;
        if (status != 0)
            return bench_failed(bench, err);
        call_place(bench, &session->pool[i], &arrangement);
        if (call_run(bench, bench->twin, &arrangement, true, &outcome, err) != 0)
            return bench_failed(bench, err);
        if (!call_verify(bench, &session->pool[i], &arrangement))
            return 0;
    }
    return 0;
}
