/* eval/measure/session_measure: one candidate, from its first call to its last.
 *
 *   session_check: every check shape, edge case and hidden shape, and the main shape among them;
 *                  beside that, the sanitizer of a device (sanitize.h)
 *   session_time:  time.c, floor.c, final.c; alone on the lane's cores
 *   session_finish: what is left of the sanitizer, the profile, and the end of its runner
 */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/measure/accuracy.h"
#include "eval/measure/guard.h"
#include "eval/measure/low_bits.h"
#include "eval/measure/measure.h"
#include "eval/measure/packaged.h"
#include "eval/measure/sanitize.h"
#include "eval/measure/session_private.h"
#include "eval/sets/helpers.h"
#include "eval/sets/wide.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { MAIN_CALLS = 2, LINGERS = 3, REPEATS = 3, LINGER_NS = 3000000, NOTES_MOST = 4096 };
enum { METRICS_MOST = 1 << 18 };

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

struct bench *bench_begin(struct session *session, const struct measure_request *request,
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

/* What takes longer than a call of the baseline by which that was verified will be no win. Beside
 * the tools it takes turns with them on the device, and may look twice as slow as it is. */
static void look_at_estimate(struct bench *bench)
{
    static const double by_turns = 2.0;
    const struct session *session = bench->session;
    const struct baseline *baseline = &session->baselines[session->baseline];
    double usual = baseline_median(baseline);
    usual = isnan(usual) ? baseline->verified_ns : usual;
    if (usual > 0.0 && bench->estimate_ns > usual)
        sanitize_discourage(bench, bench->estimate_ns > by_turns * usual);
    else if (bench->estimate_ns > 0.0)
        sanitize_encourage(bench, false);
}

/* Once held, which shows what others than the caller write; then stopped as they write it. */
static int check_threads(struct bench *bench, bool *held_once, struct err *err)
{
    enum { HELD = 3, WATCHED = 3 };
    int status = 0;
    for (int i = 0; i < HELD && status == 0 && !*held_once && bench->held_ended[1] == 0; i++)
        status = bench_check_apart(bench, false, err);
    for (int i = 0; i < WATCHED && status == 0; i++)
        status = bench_check_apart(bench, true, err);
    *held_once = true;
    return status;
}

/* One that the runner has not met: a fresh runner has met none. Watching threads takes four sets
 * for a call, and a pool of large tensors is small. */
static int find_unmet_set(struct bench *bench, struct set **set, struct err *err)
{
    *set = bench_fresh_set(bench);
    if (*set != NULL)
        return 0;
    if (bench_open(bench, err) != 0)
        return -1;
    *set = bench_fresh_set(bench);
    return 0;
}

/* Where nothing can be sliced a large shape is asked as long as the definition is known to be
 * quick: by its results of the main shape, which are the next to be computed anyway. */
static int know_definition(struct session *session, struct err *err)
{
    bool known = session->exact_ns > 0.0 || session->sliced || session->large_shape_count == 0;
    return known ? 0 : set_expect(session, &session->pool[0], err);
}

/* What threads share by mistake shows in some calls, where sums are long and no tile divides: at a
 * small shape many cost little. */
static int check_races(struct bench *bench, struct set *set, struct err *err)
{
    enum { RACES = 16 };
    const struct session *session = bench->session;
    struct outcome outcome;
    int status = 0;
    if (set->shape != session->long_shape || set->shape == &session->shapes[0])
        return 0;
    bench->held = false;
    for (int i = 0; i < RACES && status == 0 && !bench->ended && !set->unfit; i++)
        if (bench->subject != NULL && bench->subject->threads > 0)
            status = bench_check(bench, set, &outcome, err);
    return status;
}

/* In an order of its own each time, calls of the main shape among them: nothing tells a candidate
 * which call is which. A few are repeated with the same bytes, in the same place or another. */
static int check_all(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    size_t order[CASES_MOST + MAIN_CALLS + LARGE_SETS];
    size_t large = session->case_count + MAIN_CALLS, count = large + large_calls(bench);
    struct outcome outcome;
    bool held_once = false;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    shuffle(&session->random, order, count);
    for (size_t i = 0; i < count && !bench->ended; i++) {
        if (order[i] >= large) {
            if (know_definition(session, err) != 0 ||
                large_check(bench, order[i] - large, err) != 0)
                return -1;
            continue;
        }
        bool main_shape = order[i] >= session->case_count;
        struct set *set = main_shape ? NULL : &session->cases[order[i]];
        if (set == NULL && find_unmet_set(bench, &set, err) != 0)
            return -1;
        if (bench->ended)
            return 0;
        bench->slot_forced = main_shape; /* one call in each slot */
        bench->slot_wanted = main_shape ? order[i] - session->case_count : 0;
        bench->guarded =
            main_shape ? guard_of_main(bench->slot_wanted) : guard_of_case(session, order[i]);
        /* The first call has all its threads at once: what never ends takes its own limit, and not
         * the patience of a held call on a busy machine. It is made again, held. */
        bench->held = !main_shape && i > 0 && random_below(&session->random, 2) == 0;
        int status = bench_check(bench, set, &outcome, err);
        bench->slot_forced = false;
        bench->guarded = GUARD_NONE;
        if (status != 0)
            return -1;
        if (main_shape && !bench->ended && outcome.elapsed_ns > 0 &&
            (bench->estimate_ns <= 0.0 || (double)outcome.elapsed_ns < bench->estimate_ns))
            bench->estimate_ns = (double)outcome.elapsed_ns;
        if (main_shape)
            look_at_estimate(bench);
        if (main_shape && check_threads(bench, &held_once, err) != 0)
            return -1;
        if (i < LINGERS && !set->unfit)
            linger(bench);
        bench->held = !bench->held;
        if (i < REPEATS && !main_shape && bench_check(bench, set, &outcome, err) != 0)
            return -1;
        if (check_races(bench, set, err) != 0)
            return -1;
    }
    bench->held = false;
    large_tell(bench);
    bench->threaded = bench->subject != NULL && bench->subject->threads > 0;
    if (bench->threaded && !bench->ended && bench->subject->unwatched)
        bench_reject(bench, VERDICT_FAILED,
                     "not timed: this machine's CPU cannot be asked which thread writes what, so "
                     "that work which nobody waits for could pass",
                     "");
    return bench->ended ? 0 : session_still_fit(session, err);
}

/* What is started meanwhile is ready before anything is timed. */
static void warm_others(const struct bench *bench)
{
    const struct backend *backend = bench->session->backend;
    if (bench->request->profile && backend->warm_profile != NULL)
        backend->warm_profile(bench->session->lane, bench->region);
}

/* Another process may have had its turns on the device meanwhile: how long a call takes is asked
 * once more, by a call that nothing of ours is beside. */
static int estimate_alone(struct bench *bench, struct err *err)
{
    struct outcome outcome;
    if (bench->ended || !sanitize_was_beside(bench))
        return 0;
    if (bench_ensure_generation(bench, 1, err) != 0)
        return -1;
    struct set *set = bench->ended ? NULL : bench_fresh_set(bench);
    if (set == NULL)
        return 0;
    if (bench_check(bench, set, &outcome, err) != 0)
        return -1;
    if (!bench->ended && outcome.elapsed_ns > 0)
        bench->estimate_ns = (double)outcome.elapsed_ns;
    return 0;
}

int session_check(struct session *session, const struct measure_request *request,
                  struct arena *arena, struct evaluation *evaluation, struct err *err)
{
    uint64_t started = clock_now_ns();
    struct bench *bench = bench_begin(session, request, arena, evaluation);
    session->bench = bench;
    if (request->effort == EFFORT_FINAL)
        baselines_begin(session, true);
    int status = session_refresh(session, request->effort == EFFORT_FINAL, err);
    session_begin_large(session, request->effort == EFFORT_FINAL);
    if (status == 0)
        status = bench_choose_region(bench, err);
    if (status == 0 && !bench->ended && request->rival != NULL)
        status = rival_open(bench, err);
    if (status == 0 && !bench->ended)
        status = sanitize_warm(bench, err);
    if (status == 0 && !bench->ended)
        status = sanitize_begin(bench, err);
    if (status == 0 && !bench->ended)
        wide_begin(session); /* its runner starts while the definition computes the first set */
    if (status == 0 && !bench->ended)
        session_expect_pool(session);
    /* It will be timed with, and is computed while the first runner gets warm. */
    if (status == 0 && !bench->ended && session->backend->warm_runner != NULL)
        status = set_expect(session, &session->pool[0], err);
    if (status == 0 && !bench->ended && bench->sanitizing != NULL)
        baseline_look(session);
    if (status == 0 && !bench->ended) /* on the device's way it is slower than what is behind it */
        sanitize_encourage(bench, true);
    uint64_t begun = timeline_begin();
    if (status == 0 && !bench->ended)
        status = bench_open(bench, err);
    if (status == 0 && !bench->ended)
        warm_others(bench);
    timeline_end("check.open", begun);
    if (status == 0 && !bench->ended)
        status = check_all(bench, err);
    struct err held = {0};
    if (sanitize_hold(bench, &held) != 0 && status == 0) {
        *err = held;
        status = -1;
    }
    if (status == 0 && !bench->ended && request->rival == NULL)
        status = baseline_await(session, err);
    if (status == 0)
        status = estimate_alone(bench, err);
    bench->on_sets.check_ms = session->costs.spent_ms - bench->on_sets.check_ms;
    timeline_put("check", started, clock_now_ns() - started);
    evaluation->stage_ms[STAGE_CHECK] = (double)(clock_now_ns() - started) / 1e6;
    return status;
}

/* --- timing --- */

static int time_pinned(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    cpu_set_t before;
    /* A device's clock does not see where we wait; passes over large tensors begin on this core. */
    bool device = bench->request->effort != EFFORT_FINAL && session_by_device(session);
    bool known = !device && sched_getaffinity(0, sizeof before, &before) == 0;
    if (known)
        bench_bind(session);
    int status = measure_time(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_fresh(bench, err);
    if (status == 0 && !bench->ended)
        status = accuracy_of_win(bench, err);
    if (status == 0 && !bench->ended)
        status = low_bits_of_win(bench, err);
    if (status == 0 && !bench->ended)
        status = large_of_win(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_floor(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_steady(bench, err);
    if (status == 0 && !bench->ended)
        status = measure_final(bench, err);
    if (status == 0)
        status = accuracy_settle(bench, err);
    if (status == 0 && !bench->ended)
        left_tell(bench);
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
    baselines_hold(session, true);
    session_stop_drawing(session);
    double sets_ms = session->costs.spent_ms;
    int status = time_pinned(bench, err);
    bench->on_sets.time_ms = session->costs.spent_ms - sets_ms + bench->on_sets.again_ms;
    timeline_put("time", started, clock_now_ns() - started);
    bench->evaluation->stage_ms[STAGE_TIME] = (double)(clock_now_ns() - started) / 1e6;
    return status;
}

/* --- the profile --- */

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
        bench_affords(bench, cost_of_profile(bench->session), "the profile"))
        profile(bench, &json);
    if (!bench->ended && bench->request->portable != NULL)
        session_count_caches(bench, &json);
    accuracy_put(bench, &json);
    packaged_put(bench, &json);
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
    if (!bench->ended && bench->timed)
        status = measure_packaged(bench, err);
    if (!bench->ended && bench->timed && status == 0) {
        if (bench->request->sanitized != NULL)
            status = sanitize_finish(bench, err);
        else
            sanitize_tell(bench);
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
    sanitize_close(bench);
    rival_close(bench);
    bench_close(bench);
    baselines_rest(session);
    baselines_hold(session, false);
    set_free(&bench->few);
    low_bits_free(bench);
    timeline_end("finish.close", begun);
    buf_free(&bench->notes);
    mem_free(bench);
    session->bench = NULL;
    return status;
}
