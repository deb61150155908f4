/* eval/measure/session_measure: one candidate, from its first call to its last.
 *
 *   session_check: every check shape, edge case and hidden shape, and the main shape among them
 *   session_time:  time.c, floor.c, final.c; alone on the lane's cores
 *   session_finish: the sanitized build, the profile, and the end of its runner
 */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/measure/accuracy.h"
#include "eval/measure/guard.h"
#include "eval/measure/measure.h"
#include "eval/measure/session_private.h"
#include "eval/sets/helpers.h"
#include "eval/sets/wide.h"

#include <sched.h>
#include <string.h>
#include <time.h>

enum { MAIN_CALLS = 2, LINGERS = 3, REPEATS = 3, LINGER_NS = 3000000, NOTES_MOST = 4096 };
enum {
    METRICS_MOST = 1 << 18,
    REPORT_MOST = 1 << 16,
    SANITIZED_SHAPES = 6,
    SANITIZED_ELEMENTS = 1 << 20, /* of inputs and outputs; where all shapes have more: */
    SANITIZED_ELEMENTS_MOST = 1 << 26,
    /* But for a final: a tool makes a kernel 100 times slower. Of a shape, and behind one element
     * of its outputs: a small shape with long sums is a block or two that go through them alone. */
    SANITIZED_FLOPS = 1 << 24,
    SANITIZED_FLOPS_EACH = 1 << 10,
};

/* --- beginning --- */

void evaluation_begin(struct evaluation *evaluation, const struct candidate *candidate,
                      const struct names *tune, struct arena *arena)
{
    char identity[33];
    hash_format(candidate_identity(candidate, tune), identity);
    *evaluation = evaluation_empty();
    evaluation->identity = arena_strdup(arena, identity);
    evaluation->tune = names_json(tune, arena);
}

static struct bench *bench_begin(struct session *session, const struct measure_request *request,
                                 struct arena *arena, struct evaluation *evaluation)
{
    struct bench *bench = MEM_NEW(struct bench);
    double compile_ms = evaluation->stage_ms[STAGE_COMPILE];
    evaluation_begin(evaluation, request->candidate, request->tune, arena);
    evaluation->stage_ms[STAGE_COMPILE] = compile_ms;
    evaluation->device = session->lane->device != NULL ? session->lane->device : "{}";
    evaluation->versions = session->versions;
    evaluation->baseline = session->baselines[session->baseline].name;
    *bench = (struct bench){.session = session,
                            .request = request,
                            .arena = arena,
                            .evaluation = evaluation,
                            .region = &session->region,
                            .stage = STAGE_CHECK};
    if (request->within_ms > 0)
        bench->ends_ns = clock_now_ns() + request->within_ms * 1000000;
    bench->on_sets.check_ms = session->costs.spent_ms;
    buf_init(&bench->notes, NOTES_MOST);
    return bench;
}

/* --- checking --- */

/* Work that goes on after "done" shows as bytes that change while the runner is let go again. */
static void linger(struct bench *bench)
{
    size_t end = bench->outputs_end;
    uint64_t key = random_next(&bench->session->random);
    if (bench->subject == NULL || bench->ended)
        return;
    uint64_t begun = timeline_begin(), before = hash_checksum(bench->outputs, end, key);
    bench->subject->ops->resume(bench->subject);
    struct timespec rest = {.tv_nsec = LINGER_NS};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    bench->subject->ops->pause(bench->subject);
    if (hash_checksum(bench->outputs, end, key) != before)
        bench_reject(bench, VERDICT_REJECTED,
                     "an output changed after the call had ended: work was left behind", "");
    timeline_end("check.linger", begun);
}

static void shuffle(struct random *random, size_t *order, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)random_below(random, i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

/* In an order of its own each time, calls of the main shape among them: nothing tells a candidate
 * which call is which. A few are repeated with the same bytes, in the same place or another. */
static int check_all(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    size_t order[CASES_MOST + MAIN_CALLS], count = session->case_count + MAIN_CALLS;
    struct outcome outcome;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    shuffle(&session->random, order, count);
    for (size_t i = 0; i < count && !bench->ended; i++) {
        bool main_shape = order[i] >= session->case_count;
        struct set *set = main_shape ? bench_fresh_set(bench) : &session->cases[order[i]];
        bench->slot_forced = main_shape; /* one call in each slot */
        bench->slot_wanted = main_shape ? order[i] - session->case_count : 0;
        bench->guarded =
            main_shape ? guard_of_main(bench->slot_wanted) : guard_of_case(session, order[i]);
        bench->held = !main_shape && random_below(&session->random, 2) == 0;
        int status = bench_check(bench, set, &outcome, err);
        bench->slot_forced = false;
        bench->guarded = GUARD_NONE;
        if (status != 0)
            return -1;
        if (main_shape && !bench->ended && outcome.elapsed_ns > 0 &&
            (bench->estimate_ns <= 0.0 || (double)outcome.elapsed_ns < bench->estimate_ns))
            bench->estimate_ns = (double)outcome.elapsed_ns;
        if (main_shape && bench->slot_wanted == 0 && bench_check_held(bench, err) != 0)
            return -1;
        if (i < LINGERS && !set->unfit)
            linger(bench);
        bench->held = !bench->held;
        if (i < REPEATS && !main_shape && bench_check(bench, set, &outcome, err) != 0)
            return -1;
    }
    bench->held = false;
    bench->threaded = bench->subject != NULL && bench->subject->threads > 0;
    return bench->ended ? 0 : session_still_fit(session, err);
}

/* What is started meanwhile is ready before anything is timed. */
static void warm_others(const struct bench *bench)
{
    const struct backend *backend = bench->session->backend;
    if (bench->request->profile && backend->warm_profile != NULL)
        backend->warm_profile(bench->session->lane, bench->region);
    if (bench->request->sanitizes && backend->warm_sanitizer != NULL)
        backend->warm_sanitizer(bench->session->lane, bench->region);
}

int session_check(struct session *session, const struct measure_request *request,
                  struct arena *arena, struct evaluation *evaluation, struct err *err)
{
    uint64_t started = clock_now_ns();
    struct bench *bench = bench_begin(session, request, arena, evaluation);
    session->bench = bench;
    atomic_store(&session->cancelled, false);
    int status = session_refresh(session, request->effort == EFFORT_FINAL, err);
    if (status == 0)
        status = bench_choose_region(bench, err);
    if (status == 0 && !bench->ended && request->rival != NULL)
        status = rival_open(bench, err);
    if (status == 0 && !bench->ended)
        wide_begin(session); /* its runner starts while the definition computes the first set */
    if (status == 0 && !bench->ended)
        session_expect_pool(session);
    /* It will be timed with, and is computed while the first runner gets warm. */
    if (status == 0 && !bench->ended && session->backend->warm_runner != NULL)
        status = set_expect(session, &session->pool[0], err);
    uint64_t begun = timeline_begin();
    if (status == 0 && !bench->ended)
        status = bench_open(bench, err);
    if (status == 0 && !bench->ended)
        warm_others(bench);
    timeline_end("check.open", begun);
    if (status == 0 && !bench->ended)
        status = check_all(bench, err);
    bench->on_sets.check_ms = session->costs.spent_ms - bench->on_sets.check_ms;
    timeline_put("check", started, clock_now_ns() - started);
    evaluation->stage_ms[STAGE_CHECK] = (double)(clock_now_ns() - started) / 1e6;
    return status;
}

/* --- timing --- */

/* Where this thread waits decides by tens of microseconds how long a wake-up takes: on the core of
 * a subject's first thread, always, for every subject alike. Both take turns there. */
static void session_pin(const struct session *session, size_t core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core >= session->lane->core_count)
        return;
    CPU_SET((size_t)session->lane->cores[core], &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static int time_pinned(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    cpu_set_t before;
    bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    if (known)
        session_pin(session, 0);
    int status = measure_time(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_fresh(bench, err);
    if (status == 0 && !bench->ended)
        status = accuracy_of_win(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_floor(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_steady(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_final(bench, err);
    if (status == 0)
        status = accuracy_settle(bench, err);
    if (known)
        (void)sched_setaffinity(0, sizeof before, &before);
    return status;
}

int session_time(struct session *session, struct err *err)
{
    struct bench *bench = session->bench;
    uint64_t started = clock_now_ns();
    if (bench->ended)
        return 0;
    bench->stage = STAGE_TIME;
    double sets_ms = session->costs.spent_ms;
    int status = time_pinned(bench, err);
    bench->on_sets.time_ms = session->costs.spent_ms - sets_ms;
    timeline_put("time", started, clock_now_ns() - started);
    bench->evaluation->stage_ms[STAGE_TIME] = (double)(clock_now_ns() - started) / 1e6;
    return status;
}

/* --- the sanitized build and the profile --- */

/* `call` NULL: the last word. */
static int run_sanitizer(struct bench *bench, const struct call *call, struct buf *report,
                         struct err *err)
{
    const struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct program program = {session->problem, request->candidate, request->tune, NULL};
    if (session->backend->sanitize == NULL)
        return err_set(err, ERR_UNSUPPORTED, "backend %s has none", session->backend->target->name);
    return session->backend->sanitize(session->lane, bench->region, request->sanitized, &program,
                                      call, report, err);
}

/* What its failure means. 1: it cannot be had, and asked once is enough. */
static int take_finding(struct bench *bench, const struct buf *report, struct err *err)
{
    if (err->code == ERR_CHILD || err->code == ERR_TIMEOUT) {
        bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, err->message),
                     arena_strdup(bench->arena, buf_text(report)));
        return 0;
    }
    if (err->code != ERR_UNSUPPORTED)
        return -1;
    bench_note(bench, "sanitizer: %s", err->message);
    return 1;
}

/* On a large shape a tool that takes too long says nothing against the kernel. */
static int sanitize_one(struct bench *bench, struct set *set, struct buf *report, struct err *err)
{
    struct session *session = bench->session;
    struct arrangement arrangement;
    if (set_expect(session, set, err) != 0)
        return -1;
    if (set->unfit)
        return 0;
    if (bench_arrange(bench, set->shape, &arrangement, err) != 0)
        return bench_failed(bench, err);
    call_place(bench, set, &arrangement);
    bench->evaluation->checks_total++;
    if (run_sanitizer(bench, &arrangement.call, report, err) == 0) {
        bench->evaluation->checks_passed++;
        return 0;
    }
    if (err->code == ERR_TIMEOUT && set->shape->elements > SANITIZED_ELEMENTS)
        err->code = ERR_UNSUPPORTED;
    int status = take_finding(bench, report, err);
    bench->evaluation->checks_total -= status > 0;
    return status;
}

/* For a problem whose weights alone are large, as those of PyTorch files often are. */
static int sanitize_smallest(struct bench *bench, struct buf *report, struct err *err)
{
    struct session *session = bench->session;
    struct set *least = NULL;
    for (size_t i = 0; i < session->edge_case; i++)
        if (least == NULL || session->cases[i].shape->elements < least->shape->elements)
            least = &session->cases[i];
    if (least != NULL && least->shape->elements <= SANITIZED_ELEMENTS_MOST)
        return sanitize_one(bench, least, report, err);
    bench_note(bench, "sanitizer: not run, no check shape has less than %d million elements",
               SANITIZED_ELEMENTS_MOST >> 20);
    return 1;
}

/* Before a final a win waits for this. */
static bool is_quick(const struct bench *bench, const struct shape *shape)
{
    double flops = 0.0, bytes = 0.0, outputs = (double)shape->layout.outputs[0].elements;
    struct err ignored;
    return bench->request->effort == EFFORT_FINAL ||
           problem_work(bench->session->problem, &shape->dims, &flops, &bytes, &ignored) != 0 ||
           (flops <= SANITIZED_FLOPS && flops <= SANITIZED_FLOPS_EACH * outputs);
}

static int sanitize(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    size_t done = 0;
    uint64_t started = clock_now_ns();
    bench->stage = STAGE_SANITIZE;
    BUF_LOCAL(report, REPORT_MOST);
    int status = 0;
    const struct shape *last = NULL;
    for (size_t i = 0; i < session->edge_case && status == 0 && !bench->ended; i++) {
        struct set *set = &session->cases[i];
        bool small = set->shape->elements <= SANITIZED_ELEMENTS && is_quick(bench, set->shape);
        if (!small || set->shape == last || (done >= SANITIZED_SHAPES && i < session->hidden_case))
            continue; /* one set a shape, hidden shapes always */
        last = set->shape;
        done++;
        status = sanitize_one(bench, set, &report, err);
    }
    if (done == 0 && status == 0 && !bench->ended)
        status = sanitize_smallest(bench, &report, err);
    struct err last_word = {0};
    if (run_sanitizer(bench, NULL, &report, &last_word) != 0 && status == 0 && !bench->ended) {
        *err = last_word;
        status = take_finding(bench, &report, err);
    }
    if (status == 0) /* else it could not be had */
        bench->evaluation->stage_ms[STAGE_SANITIZE] = (double)(clock_now_ns() - started) / 1e6;
    return status < 0 ? -1 : 0;
}

/* What a profile says is advice, and an error in it costs no verdict: but for times that turn out
 * there to be none. */
static void profile(struct bench *bench, struct json *json)
{
    struct session *session = bench->session;
    struct arrangement arrangement;
    struct err err = {0};
    struct outcome outcome;
    uint64_t started = clock_now_ns();
    struct set *set = &session->pool[0];
    bench->stage = STAGE_PROFILE;
    if (bench_open(bench, &err) != 0 || bench->ended || set_expect(session, set, &err) != 0 ||
        bench_arrange(bench, set->shape, &arrangement, &err) != 0)
        return;
    call_place(bench, set, &arrangement);
    if (call_run(bench, bench->subject, &arrangement, true, &outcome, &err) != 0)
        return;
    bench->subject->ops->resume(bench->subject);
    if (session->backend->profile(session->lane, session->problem, &set->shape->dims,
                                  bench->request->artifact, bench->request->remarks_log,
                                  bench->evaluation->time_ns.median, bench->subject,
                                  &arrangement.call, json, &err) == 0)
        err.code = ERR_NONE;
    if (err.code == ERR_PROTOCOL)
        bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, err.message), "");
    else if (err.code != ERR_NONE)
        bench_note(bench, "profile: %s", err.message);
    bench->evaluation->stage = STAGE_PROFILE;
    bench->evaluation->stage_ms[STAGE_PROFILE] = (double)(clock_now_ns() - started) / 1e6;
}

static void put_notes(struct bench *bench, struct json *json)
{
    char *rest = bench->notes.data, *line;
    if (bench->notes.length == 0)
        return;
    json_put_array(json, "notes");
    while ((line = strsep(&rest, "\n")) != NULL)
        json_text(json, line);
    json_array_end(json);
}

static void finish_metrics(struct bench *bench)
{
    JSON_LOCAL(json, text, METRICS_MOST);
    json_object(&json);
    bench->stage = STAGE_PROFILE;
    if (!bench->ended && bench->request->profile && !bench->evaluation->dropped &&
        bench->session->backend->profile != NULL &&
        bench_affords(bench, bench->session->costs.profile_ms, "the profile"))
        profile(bench, &json);
    if (!bench->ended && bench->request->portable != NULL)
        session_count_caches(bench, &json);
    accuracy_put(bench, &json);
    bench_put_watched(bench, &json);
    accuracy_note(bench);
    put_notes(bench, &json);
    json_object_end(&json);
    if (text.dropped == 0)
        bench->evaluation->metrics = arena_strdup(bench->arena, buf_text(&text));
}

int session_finish(struct session *session, struct err *err)
{
    struct bench *bench = session->bench;
    int status = 0;
    if (bench == NULL)
        return 0;
    if (!bench->ended && bench->timed) {
        if (bench->request->sanitized != NULL)
            status = sanitize(bench, err);
        if (!bench->ended && status == 0) {
            bench->evaluation->verdict = VERDICT_KERNEL;
            bench->evaluation->stage = STAGE_TIME;
        }
        if (status == 0)
            finish_metrics(bench);
    } else {
        finish_metrics(bench);
    }
    cost_learn(session, bench->evaluation, &bench->on_sets);
    uint64_t begun = timeline_begin();
    rival_close(bench);
    bench_close(bench);
    baselines_rest(session);
    timeline_end("finish.close", begun);
    buf_free(&bench->notes);
    mem_free(bench);
    session->bench = NULL;
    return status;
}
