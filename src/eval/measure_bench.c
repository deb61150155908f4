/* eval/measure_bench: the candidate's runner over its lives, and how its evaluation gets a verdict.
 */
#include "base/mem.h"
#include "eval/measure_guard.h"
#include "eval/session_private.h"

#include <sched.h>
#include <string.h>

enum { CROWDED_MOST_NS = 500000000 }; /* after a call that takes longer no other is crowded */

void bench_note(struct bench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (bench->notes.length > 0)
        buf_add_char(&bench->notes, '\n');
    buf_addv(&bench->notes, format, arguments);
    va_end(arguments);
}

void bench_reject(struct bench *bench, enum verdict verdict, const char *reason,
                  const char *details)
{
    struct evaluation *evaluation = bench->evaluation;
    if (bench->ended)
        return; /* the first reason is the one that tells */
    bench->ended = true;
    evaluation->verdict = verdict;
    evaluation->stage = bench->stage;
    evaluation->reason = reason;
    evaluation->details = details;
    evaluation->finding = FINDING_NONE;
    evaluation->noise = "";
}

void bench_close(struct bench *bench)
{
    if (bench->subject != NULL)
        bench->subject->ops->close(bench->subject);
    if (bench->twin != NULL)
        bench->twin->ops->close(bench->twin);
    bench->subject = bench->twin = NULL;
    bench->seen = 0;
    bench->warm = 0;
}

/* The same process again, without what its calls have left behind. */
static bool renew(struct bench *bench)
{
    if (bench->subject == NULL || bench->subject->renew == NULL ||
        !bench->subject->renew(bench->subject))
        return false;
    bench->seen = 0;
    bench->life++;
    if (bench->twin != NULL && bench->twin->renew(bench->twin)) {
        bench->twin_life = bench->life;
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
    const struct program program = {session->problem, request->candidate, request->tune};
    if (session->backend->open_program != NULL)
        return session->backend->open_program(session->lane, bench->region, request->artifact,
                                              &program, subject, err);
    return session->backend->open(session->lane, bench->region, request->artifact, NULL, subject,
                                  err);
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
    bench->life++;
    if (bench->subject->device_clock)
        bench->warm = (1U << SLOTS) - 1; /* its own memory has no first touch to be timed */
    return 0;
}

/* What a runner does before it dies is its candidate's doing; all else is ours. So is SIGKILL: the
 * sandbox does not let a candidate send it, so that it came from outside, or from a machine out of
 * memory. subject.h fixes the message. */
int bench_failed(struct bench *bench, struct err *err)
{
    static const char outside[] = "killed by SIGKILL", loading[] = "while it was loaded: ";
    const char *how = err->message;
    if (strncmp(how, loading, sizeof loading - 1) == 0)
        how += sizeof loading - 1;
    switch (err->code) {
    case ERR_CHILD:
        if (strncmp(how, outside, sizeof outside - 1) == 0 && !bench->ended)
            bench->evaluation->ours = true;
        /* fall through */
    case ERR_TIMEOUT:
    case ERR_PROTOCOL:
        bench_close(bench);
        bench_reject(bench, VERDICT_FAILED, arena_strdup(bench->arena, err->message), "");
        return 0;
    case ERR_LIMIT:
        bench_close(bench);
        bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, err->message), "");
        return 0;
    default:
        return -1;
    }
}

/* Threads that wait for each other in loops take a time slice for every word between them on one
 * core: that is no verdict. Such a candidate is called again by a fresh runner, on all cores. */
static int call_crowded(struct bench *bench, const struct arrangement *arrangement,
                        struct outcome *outcome, struct err *err)
{
    struct subject *subject = bench->subject;
    bool crowded = bench->crowded && !bench->never_crowded && subject->crowd != NULL;
    cpu_set_t before;
    if (!crowded)
        return call_run(bench, subject, arrangement, true, outcome, err);
    /* This thread looks at once: from another core, where there is one. */
    bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    session_pin(bench->session, bench->session->lane->core_count - 1);
    subject->crowd(subject, true);
    int status = call_run(bench, subject, arrangement, true, outcome, err);
    if (known)
        (void)sched_setaffinity(0, sizeof before, &before);
    if (status == 0) {
        subject->crowd(subject, false);
        bench->never_crowded = outcome->elapsed_ns > CROWDED_MOST_NS;
    }
    if (status == 0 || err->code != ERR_TIMEOUT)
        return status;
    bench->never_crowded = true;
    bench_note(bench, "a call whose threads shared one core took too long, and was made again");
    if (bench_open(bench, err) != 0 || bench->ended)
        return -1;
    return call_run(bench, bench->subject, arrangement, true, outcome, err);
}

int bench_check(struct bench *bench, struct set *set, struct outcome *outcome, struct err *err)
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
    if (call_crowded(bench, &arrangement, outcome, err) != 0)
        return guard_hit(bench, set, &arrangement) ? 0 : bench_failed(bench, err);
    bench_saw(bench, set);
    if (arrangement.layout.guard != GUARD_NONE)
        guard_forget(bench);
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

/* A set that this life of the runner has not met; NULL: it has met them all. */
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

/* The next life begins with a call in each slot, whose times are not used: the first touch of a
 * page is the kernel's work. From the runner's side they are calls like any other. */
int bench_ensure_life(struct bench *bench, size_t sets_needed, struct err *err)
{
    struct session *session = bench->session;
    size_t left = session->pool_count - (size_t)__builtin_popcountll(bench->seen);
    bool fresh = bench->subject == NULL || left < sets_needed;
    if (fresh && (bench_open(bench, err) != 0 || bench->ended))
        return bench->ended ? 0 : -1;
    for (size_t tries = 0; bench->warm != (1U << SLOTS) - 1 && tries < POOL_LEAST; tries++) {
        struct outcome outcome;
        struct set *set = bench_fresh_set(bench);
        if (set == NULL)
            return 0;
        bench->slot_wanted = (bench->warm & 1) != 0 ? 1 : 0;
        bench->slot_forced = true;
        int status = bench_check(bench, set, &outcome, err);
        bench->slot_forced = false;
        if (status != 0 || bench->ended)
            return status;
    }
    return 0;
}

/* The twin lives as long as the runner beside it, and begins with the sets that warmed that one. */
int bench_ensure_twin(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    if (bench->twin != NULL && bench->twin_life == bench->life)
        return 0;
    if (open_subject(bench, &bench->twin, err) != 0) {
        bench->twin = NULL;
        return bench_failed(bench, err);
    }
    bench->twin->ops->pause(bench->twin);
    bench->twin_life = bench->life;
    size_t slot = 0;
    for (size_t i = 0; i < session->pool_count && slot < SLOTS; i++) {
        struct arrangement arrangement;
        struct outcome outcome;
        if ((bench->seen >> i & 1) == 0 || session->pool[i].unfit)
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
