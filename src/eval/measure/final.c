/* eval/measure/final: what a champion goes through besides: a real A/A run, every baseline, and its
 * time with warm caches. Fresh seeds and fresh runners are session_measure's business. */
#include "eval/measure/timing.h"

#include <math.h>
#include <string.h>

enum { HOT_CALLS = 21, BASELINES_TEXT = 1 << 14 };

/* Two runners of the same kernel take the parts of A and B. */
static int measure_spread(struct bench *bench, struct err *err)
{
    struct evaluation *evaluation = bench->evaluation;
    struct timing timing = {.bench = bench};
    timing_limits(bench, &timing.limits);
    bench_close(bench);
    if (timing_run(&timing, err) != 0)
        return -1;
    bench_close(bench);
    if (bench->ended)
        return 0;
    evaluation->spread = fmax(evaluation->spread, timing_stray(&timing));
    bench->against.spread = evaluation->spread;
    evaluation->finding = stats_finding(&bench->against);
    evaluation->noise =
        evaluation->finding == FINDING_NOISY ? quiet_words(bench, &bench->against) : "";
    return 0;
}

static void put_interval(struct json *json, const char *key, const struct interval *interval)
{
    json_key(json, key);
    evaluation_put_interval(json, interval);
}

struct rivals { /* the baselines that were timed */
    size_t count;
    struct rival {
        const struct baseline *baseline;
        struct interval a;
        struct comparison against;
    } items[BASELINES_MOST];
};

/* Speed-ups are told against the best there is, unless a person has chosen: where two baselines are
 * as fast, against the one of which less can be claimed. */
static void tell_against(struct bench *bench, const struct rivals *rivals)
{
    struct evaluation *evaluation = bench->evaluation;
    const struct session *session = bench->session;
    const struct comparison *comparisons[BASELINES_MOST];
    for (size_t i = 0; i < rivals->count; i++)
        comparisons[i] = &rivals->items[i].against;
    if (session->options.baseline != NULL || rivals->count == 0)
        return;
    const struct rival *rival = &rivals->items[stats_least_claim(comparisons, rivals->count)];
    if (rival->baseline == &session->baselines[session->baseline])
        return;
    bench->against = rival->against;
    evaluation->baseline = rival->baseline->name;
    evaluation->baseline_ns = rival->a;
    evaluation->speedup = rival->against.speedup;
    evaluation->finding = stats_finding(&rival->against);
    evaluation->noise =
        evaluation->finding == FINDING_NOISY ? quiet_words(bench, &rival->against) : "";
}

static void leave_out(struct bench *bench, const struct baseline *baseline, const char *why)
{
    struct evaluation *evaluation = bench->evaluation;
    bool first = evaluation->left_out == NULL || *evaluation->left_out == '\0';
    evaluation->left_out = arena_printf(bench->arena, "%s%s%s%s", first ? "" : evaluation->left_out,
                                        first ? "" : ", ", baseline->name, why);
}

static bool is_known(const struct baseline *baseline)
{
    return !isnan(baseline_median(baseline));
}

static bool affords(struct bench *bench, const struct baseline *baseline)
{
    bool afforded =
        bench_affords(bench, cost_of_baseline(bench->session, baseline), baseline->name);
    if (!afforded)
        leave_out(bench, baseline, "");
    return afforded;
}

static int measure_baseline(struct bench *bench, struct baseline *baseline, struct rivals *rivals,
                            struct json *json, struct err *err)
{
    const struct evaluation *evaluation = bench->evaluation;
    struct timing timing = {.bench = bench, .baseline = baseline};
    bool own = baseline == &bench->session->baselines[bench->session->baseline];
    struct interval a = evaluation->baseline_ns;
    struct comparison against = bench->against;
    if (!own) {
        bool afforded = affords(bench, baseline);
        if (afforded && !is_known(baseline)) { /* as it is verified it shows how long it takes */
            if (baseline_ready(bench->session, baseline, err) != 0)
                return -1;
            afforded = affords(bench, baseline);
        }
        if (!afforded)
            return 0;
        timing_limits(bench, &timing.limits);
        if (timing_run(&timing, err) != 0)
            return -1;
        baseline_remember(baseline, timing_whole_a(&timing));
        a = timing.a;
        against = timing_comparison(&timing);
        against.spread = fmax(against.spread, evaluation->spread);
    }
    if (bench->ended)
        return 0;
    json_put_object(json, baseline->name);
    put_interval(json, "ns", &a);
    put_interval(json, "speedup", &against.speedup);
    json_put_bool(json, "win", stats_finding(&against) == FINDING_FASTER);
    json_put_text(json, "finding", finding_name(stats_finding(&against)));
    json_object_end(json);
    rivals->items[rivals->count++] = (struct rival){baseline, a, against};
    return 0;
}

/* What a library does takes a process and its start: a champion is set against it. */
static void tell_left_out(struct bench *bench)
{
    const struct session *session = bench->session;
    for (size_t i = 1; i < session->baseline_count; i++)
        if (session->baselines[i].library != NULL && i != session->baseline)
            leave_out(bench, &session->baselines[i], " (--effort final times it)");
}

/* The one that speed-ups are against, then those whose time is known, then the rest: a naive one of
 * a large product takes a minute a call, and the others are not to go without for it. */
static size_t put_in_order(struct session *session, struct baseline **order)
{
    struct baseline *own = &session->baselines[session->baseline];
    size_t count = 0;
    order[count++] = own;
    for (int known = 1; known >= 0; known--)
        for (size_t i = 0; i < session->baseline_count; i++)
            if (&session->baselines[i] != own && is_known(&session->baselines[i]) == (known != 0))
                order[count++] = &session->baselines[i];
    return count;
}

/* A baseline that this machine cannot build is no reason to lose the rest. */
static int measure_baselines(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct rivals rivals = {0};
    struct baseline *order[BASELINES_MOST];
    size_t count = put_in_order(session, order);
    int status = 0;
    JSON_LOCAL(json, text, BASELINES_TEXT);
    json_object(&json);
    for (size_t i = 0; i < count && status == 0 && !bench->ended; i++) {
        struct err why = {0};
        double most_ms = bench_left_ms(bench) / (double)(count - i);
        bool source = order[i]->file != NULL; /* in a process of its own, not the reference's */
        session->baseline_most_ms = !source || isinf(most_ms) ? 0 : (uint64_t)fmax(1.0, most_ms);
        status = measure_baseline(bench, order[i], &rivals, &json, &why);
        if (status != 0 && why.code != ERR_CANCELLED && i > 0) {
            bench_note(bench, "%s", why.message);
            leave_out(bench, order[i], "");
            status = 0;
        } else if (status != 0) {
            *err = why;
        }
    }
    session->baseline_most_ms = 0;
    json_object_end(&json);
    if (status == 0 && !bench->ended)
        tell_against(bench, &rivals);
    if (status == 0)
        bench->evaluation->baselines = arena_strdup(bench->arena, buf_text(&text));
    return status;
}

/* The same bytes again and again, caches left as they are; for the record only, since whoever keeps
 * an answer would shine here. */
static int measure_hot(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    struct arrangement arrangement;
    struct outcome outcome;
    const struct evaluation *evaluation = bench->evaluation;
    double samples[HOT_CALLS], call_ns = evaluation->call_taken ? evaluation->call_ns.median : 0.0;
    size_t count = 0;
    bench_close(bench);
    if (bench_open(bench, err) != 0)
        return -1;
    struct set *set = &session->pool[0];
    if (set_expect(session, set, err) != 0)
        return -1;
    if (bench->ended || set->unfit)
        return 0;
    if (bench_arrange(bench, set->shape, &arrangement, err) != 0)
        return -1;
    call_place(bench, set, &arrangement);
    for (size_t i = 0; i < HOT_CALLS && !bench->ended; i++) {
        if (call_run(bench, bench->subject, &arrangement, false, &outcome, err) != 0)
            return bench_failed(bench, err);
        if (!call_verify(bench, set, &arrangement))
            return 0;
        if (i > 0)
            samples[count++] = fmax((double)outcome.elapsed_ns - call_ns, 1.0);
    }
    stats_interval(samples, count, &bench->evaluation->hot_ns);
    if (!bench->by_device) { /* of one process, whose luck these calls do not show */
        bench->evaluation->hot_ns.processes = 1;
        bench->evaluation->hot_ns.low = bench->evaluation->hot_ns.high = NAN;
    }
    return 0;
}

int measure_final(struct bench *bench, struct err *err)
{
    if (bench->request->effort == EFFORT_FULL)
        tell_left_out(bench);
    if (bench->request->effort != EFFORT_FINAL)
        return 0;
    if (measure_spread(bench, err) != 0)
        return -1;
    if (!bench->ended && measure_baselines(bench, err) != 0)
        return -1;
    double hot_ms = HOT_CALLS * bench->evaluation->time_ns.median / 1e6;
    if (bench->ended || !bench_affords(bench, hot_ms, "the time with warm caches"))
        return 0;
    return measure_hot(bench, err);
}
