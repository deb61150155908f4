#include "eval/measure/sanitize.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/measure/accuracy.h"
#include "eval/measure/session_private.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    REPORT_MOST = 1 << 16,
    SANITIZED_SHAPES = 6,
    SANITIZED_ELEMENTS = 1 << 20, /* of inputs and outputs; where all shapes have more: */
    SANITIZED_ELEMENTS_MOST = 1 << 26,
    /* But for a final: a tool makes a kernel 100 times slower. Of a shape, and behind one element
     * of its outputs: a small shape with long sums is a block or two that go through them alone. */
    SANITIZED_FLOPS = 1 << 24,
    SANITIZED_FLOPS_EACH = 1 << 10,
    STEP_MS = 2,
    /* With the shape that is under way when all else is done; a final's may be large. */
    PATIENCE_MS = 3000,
    PATIENCE_FINAL_MS = 60000
};

struct sanitizing {
    struct bench *bench;
    const char *artifact;
    struct set *sets[SHAPES_MOST]; /* one of each shape */
    size_t at[SHAPES_MOST];        /* where its inputs lie in the sanitizer's region */
    size_t count, inputs_bytes;    /* of them; of all inputs */
    struct call calls[SHAPES_MOST];
    size_t given; /* calls: of those that were fit to be */
    bool placed;  /* all of them */
    bool done;    /* all was asked, and well */
    bool apart;   /* what failed together is asked one after the other */
    struct err err;
    struct buf report;
    /* The thread, which has all of the above until it is over. */
    pthread_t thread;
    bool waits, runs, was_beside; /* waits: for a call that says that the candidate may win */
    bool hopeless;                /* nobody waits for what is under way */
    atomic_bool stop, over;
};

/* ---- which shapes ---- */

/* Before a final a win waits for this. */
static bool is_quick(const struct session *session, bool final, const struct shape *shape)
{
    double flops = 0.0, bytes = 0.0, outputs = (double)shape->layout.outputs[0].elements;
    struct err ignored;
    return final || problem_work(session->problem, &shape->dims, &flops, &bytes, &ignored) != 0 ||
           (flops <= SANITIZED_FLOPS && flops <= SANITIZED_FLOPS_EACH * outputs);
}

static void add(struct sanitizing *sanitizing, struct set *set)
{
    sanitizing->at[sanitizing->count] = sanitizing->inputs_bytes;
    sanitizing->sets[sanitizing->count++] = set;
    sanitizing->inputs_bytes +=
        (set->shape->layout.inputs_bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
}

/* One set a shape, hidden shapes always; for a problem whose weights alone are large, as those of
 * PyTorch files often are, the smallest. */
static void choose(struct session *session, bool final, struct sanitizing *sanitizing)
{
    const struct shape *last = NULL;
    struct set *least = NULL;
    for (size_t i = 0; i < session->edge_case; i++) {
        struct set *set = &session->cases[i];
        bool small =
            set->shape->elements <= SANITIZED_ELEMENTS && is_quick(session, final, set->shape);
        if (least == NULL || set->shape->elements < least->shape->elements)
            least = set;
        if (!small || set->shape == last || sanitizing->count == SHAPES_MOST ||
            (sanitizing->count >= SANITIZED_SHAPES && i < session->hidden_case))
            continue;
        last = set->shape;
        add(sanitizing, set);
    }
    if (sanitizing->count == 0 && least != NULL &&
        least->shape->elements <= SANITIZED_ELEMENTS_MOST)
        add(sanitizing, least);
}

static struct sanitizing *open(struct bench *bench, const char *artifact)
{
    struct sanitizing *sanitizing = bench->sanitizing = MEM_NEW(struct sanitizing);
    sanitizing->bench = bench;
    sanitizing->artifact = artifact;
    buf_init(&sanitizing->report, REPORT_MOST);
    choose(bench->session, bench->request->effort == EFFORT_FINAL, sanitizing);
    return sanitizing;
}

/* ---- their inputs ---- */

/* Where the sanitizer shares the candidate's region it is asked when the candidate is not. */
static const struct region *region_of(const struct bench *bench)
{
    return bench->session->backend->hold_sanitizer != NULL ? &bench->session->sanitized
                                                           : bench->region;
}

/* Grows alone, so that nothing that was started for another one seems to fit. */
static int open_region(struct session *session, size_t inputs_bytes, struct err *err)
{
    struct region *region = &session->sanitized;
    if (region->inputs != NULL && region->inputs_bytes >= inputs_bytes)
        return 0;
    if (region->inputs != NULL)
        region_close(region);
    *region = (struct region){0};
    return region_open(2 * inputs_bytes + PAGE_BYTES, PAGE_BYTES, region, err);
}

/* In a region of its own every shape has a place of its own, so that all are there at once. */
static int place_beside(struct sanitizing *sanitizing, size_t index, struct err *err)
{
    struct bench *bench = sanitizing->bench;
    const struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct set *set = sanitizing->sets[index];
    struct layout layout;
    if (layout_make(session->problem, &set->shape->dims, request->candidate, request->tune, 0,
                    &layout, err) != 0)
        return bench_failed(bench, err);
    size_t at = sanitizing->at[index];
    call_make(&layout, at, session->options.call_timeout_ms,
              &sanitizing->calls[sanitizing->given++]);
    for (size_t i = 0; i < layout.input_count; i++)
        parallel_copy(session->sanitized.inputs + at + layout.inputs[i].offset, set->inputs[i],
                      layout.inputs[i].bytes);
    return 0;
}

static int place_all(struct sanitizing *sanitizing, struct err *err)
{
    struct bench *bench = sanitizing->bench;
    for (size_t i = 0; i < sanitizing->count && !sanitizing->placed && !bench->ended; i++)
        if (set_expect(bench->session, sanitizing->sets[i], err) != 0 ||
            (!sanitizing->sets[i]->unfit && place_beside(sanitizing, i, err) != 0))
            return -1;
    sanitizing->placed = true;
    return 0;
}

static int place_one(struct sanitizing *sanitizing, size_t index, struct call *call,
                     struct err *err)
{
    struct bench *bench = sanitizing->bench;
    const struct set *set = sanitizing->sets[index];
    struct arrangement arrangement;
    if (bench_arrange(bench, set->shape, &arrangement, err) != 0)
        return bench_failed(bench, err);
    call_place(bench, set, &arrangement);
    *call = arrangement.call;
    return 0;
}

/* ---- asking ---- */

/* Any thread that has `sanitizing`. On a large shape a tool that takes too long says nothing
 * against the kernel. What went well may have failed at first, and left words of that. */
static int ask(struct sanitizing *sanitizing, const struct call *calls, size_t count)
{
    struct err err = {0};
    const struct bench *bench = sanitizing->bench;
    const struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct program program = {session->problem, request->candidate, request->tune, NULL};
    int status = -1;
    if (session->backend->sanitize != NULL)
        status = session->backend->sanitize(session->lane, region_of(bench), sanitizing->artifact,
                                            &program, calls, count, !sanitizing->apart,
                                            &sanitizing->report, &err);
    else
        err_set(&err, ERR_UNSUPPORTED, "backend %s has none", session->backend->target->name);
    if (status < 0)
        sanitizing->err = err;
    if (status < 0 && err.code == ERR_TIMEOUT &&
        sanitizing->sets[0]->shape->elements > SANITIZED_ELEMENTS)
        sanitizing->err.code = ERR_UNSUPPORTED;
    return status;
}

/* ---- beside the checks ---- */

static void rest(void)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
}

/* Sets are the measuring thread's: what is needed of them lies in the region by now. */
static void *work(void *argument)
{
    struct sanitizing *sanitizing = (struct sanitizing *)argument;
    uint64_t begun = timeline_begin();
    sanitizing->done = ask(sanitizing, sanitizing->calls, sanitizing->given) == 0;
    timeline_end("sanitize.beside", begun);
    atomic_store(&sanitizing->over, true);
    return NULL;
}

int sanitize_ahead(struct session *session, struct err *err)
{
    struct sanitizing ahead = {0};
    const struct backend *backend = session->backend;
    if (backend->hold_sanitizer == NULL)
        return 0;
    choose(session, false, &ahead);
    if (ahead.count == 0)
        return 0;
    if (open_region(session, ahead.inputs_bytes, err) != 0)
        return -1;
    backend->warm_sanitizer(session->lane, &session->sanitized, false);
    return 0;
}

int sanitize_warm(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const struct backend *backend = session->backend;
    if (!bench->request->sanitizes || backend->hold_sanitizer == NULL)
        return 0;
    struct sanitizing *sanitizing = open(bench, bench->request->artifact);
    if (sanitizing->count == 0)
        return 0;
    if (open_region(session, sanitizing->inputs_bytes, err) != 0)
        return -1;
    backend->warm_sanitizer(session->lane, &session->sanitized, true);
    return 0;
}

static void start(struct sanitizing *sanitizing, enum sanitizer_hold hold)
{
    const struct backend *backend = sanitizing->bench->session->backend;
    backend->hold_sanitizer(hold);
    sanitizing->runs = pthread_create(&sanitizing->thread, NULL, work, sanitizing) == 0;
    sanitizing->was_beside = sanitizing->runs;
    if (!sanitizing->runs)
        backend->hold_sanitizer(HOLD_NOTHING);
}

static bool is_baseline_known(const struct session *session)
{
    return !isnan(baseline_median(&session->baselines[session->baseline]));
}

int sanitize_begin(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL || !bench->request->alone || bench->request->rival != NULL)
        return 0;
    if (place_all(sanitizing, err) != 0)
        return -1;
    sanitizing->waits = sanitizing->given > 0 && !bench->ended;
    if (!sanitizing->waits || is_baseline_known(bench->session))
        return 0;
    sanitizing->waits = false;
    start(sanitizing, HOLD_RUNS);
    return 0;
}

void sanitize_encourage(struct bench *bench, bool unless_known)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL || (unless_known && is_baseline_known(bench->session)))
        return;
    if (sanitizing->waits)
        start(sanitizing, HOLD_NOTHING);
    else if (sanitizing->runs && !atomic_load(&sanitizing->stop))
        bench->session->backend->hold_sanitizer(HOLD_NOTHING);
    sanitizing->waits = false;
}

static void stop(struct sanitizing *sanitizing)
{
    atomic_store(&sanitizing->stop, true);
    sanitizing->bench->session->backend->hold_sanitizer(HOLD_ALL); /* nothing where it is over */
}

void sanitize_discourage(struct bench *bench, bool surely)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL)
        return;
    sanitizing->waits = false;
    if (!sanitizing->runs)
        return;
    sanitizing->hopeless = sanitizing->hopeless || surely;
    stop(sanitizing);
}

bool sanitize_was_beside(const struct bench *bench)
{
    return bench->sanitizing != NULL && bench->sanitizing->was_beside;
}

/* A set that timing will ask for; then the one that a win will be asked for, as long as tools are
 * at work. *more is false where there is none. */
static int expect_one(struct bench *bench, bool *more, struct err *err)
{
    struct session *session = bench->session;
    *more = true;
    for (size_t i = 0; i < session->pool_count; i++)
        if (!session->pool[i].expected)
            return set_expect(session, &session->pool[i], err);
    if (accuracy_expects(bench))
        return accuracy_expect(bench, err);
    *more = false;
    return 0;
}

/* What passed, and what was found with a report of it: kernels that run at the same time may wait
 * for each other. */
static bool is_believed(const struct sanitizing *sanitizing)
{
    return sanitizing->err.code == ERR_NONE || sanitizing->apart ||
           (sanitizing->err.code == ERR_CHILD && sanitizing->report.length > 0);
}

/* As if nothing had been asked: it is again, one call after the other. */
static void forget(struct sanitizing *sanitizing)
{
    sanitizing->err = (struct err){0};
    sanitizing->apart = true;
    buf_reset(&sanitizing->report);
}

int sanitize_hold(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    struct session *session = bench->session;
    bool more = true;
    int status = 0;
    if (sanitizing == NULL || !sanitizing->runs)
        return 0;
    uint64_t begun = timeline_begin();
    if (!bench->ended && !atomic_load(&sanitizing->stop))
        session_expect_shared(session);
    while (status == 0 && more && !bench->ended && !atomic_load(&sanitizing->stop) &&
           !atomic_load(&sanitizing->over) && !atomic_load(&session->cancelled))
        status = expect_one(bench, &more, err);
    stop(sanitizing);
    int patience_ms = bench->request->effort == EFFORT_FINAL ? PATIENCE_FINAL_MS : PATIENCE_MS;
    if (status != 0 || bench->ended || sanitizing->hopeless)
        patience_ms = 0;
    for (int ms = 0;
         ms < patience_ms && !atomic_load(&sanitizing->over) && !atomic_load(&session->cancelled);
         ms += STEP_MS)
        rest();
    session->backend->hold_sanitizer(HOLD_CANCEL); /* nothing where it is over */
    pthread_join(sanitizing->thread, NULL);
    session->backend->hold_sanitizer(HOLD_NOTHING);
    sanitizing->runs = false;
    if (!is_believed(sanitizing))
        forget(sanitizing);
    timeline_end("sanitize.hold", begun);
    return status;
}

/* ---- behind the timing ---- */

/* What its failure means; a sanitizer that cannot be had is asked once. */
static int take_finding(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    enum err_code code = sanitizing->err.code;
    if (code == ERR_CHILD || code == ERR_TIMEOUT) {
        bench->evaluation->checks_total += (int64_t)sanitizing->given;
        bench->evaluation->checks_passed += (int64_t)sanitizing->given - 1;
        bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, sanitizing->err.message),
                     arena_strdup(bench->arena, buf_text(&sanitizing->report)));
        return 0;
    }
    *err = sanitizing->err;
    if (code != ERR_UNSUPPORTED)
        return -1;
    bench_note(bench, "sanitizer: %s", sanitizing->err.message);
    return 1;
}

/* A death that nothing was said of may be the machine's, whose memory had ended. */
static void ask_one(struct sanitizing *sanitizing, const struct call *call)
{
    if (ask(sanitizing, call, 1) == 0 || sanitizing->err.code != ERR_CHILD ||
        sanitizing->report.length > 0)
        return;
    sanitizing->err = (struct err){0};
    (void)!ask(sanitizing, call, 1);
}

/* In a region that it shares: one after the other. */
static int ask_each(struct sanitizing *sanitizing, struct err *err)
{
    struct call call;
    for (size_t i = 0; i < sanitizing->count && sanitizing->err.code == ERR_NONE; i++) {
        if (set_expect(sanitizing->bench->session, sanitizing->sets[i], err) != 0)
            return -1;
        if (sanitizing->sets[i]->unfit)
            continue;
        if (place_one(sanitizing, i, &call, err) != 0)
            return -1;
        if (sanitizing->bench->ended)
            return 0;
        sanitizing->given++;
        ask_one(sanitizing, &call);
    }
    return 0;
}

/* What is left, of all of them. */
static int ask_all(struct sanitizing *sanitizing, struct err *err)
{
    struct bench *bench = sanitizing->bench;
    if (sanitizing->done || sanitizing->err.code != ERR_NONE)
        return 0;
    if (open_region(bench->session, sanitizing->inputs_bytes, err) != 0 ||
        place_all(sanitizing, err) != 0)
        return -1;
    if (bench->ended || sanitizing->given == 0)
        return 0;
    sanitizing->done = ask(sanitizing, sanitizing->calls, sanitizing->given) == 0;
    if (!is_believed(sanitizing)) {
        forget(sanitizing);
        sanitizing->done = ask(sanitizing, sanitizing->calls, sanitizing->given) == 0;
    }
    return 0;
}

static int finish(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    bool beside = bench->session->backend->hold_sanitizer != NULL;
    if (sanitizing->count == 0) {
        bench_note(bench, "sanitizer: not run, no check shape has less than %d million elements",
                   SANITIZED_ELEMENTS_MOST >> 20);
        return 1;
    }
    if ((beside ? ask_all(sanitizing, err) : ask_each(sanitizing, err)) != 0)
        return -1;
    if (bench->ended)
        return 0;
    if (sanitizing->err.code != ERR_NONE)
        return take_finding(bench, err);
    bench->evaluation->checks_total += (int64_t)sanitizing->given;
    bench->evaluation->checks_passed += (int64_t)sanitizing->given;
    return 0;
}

int sanitize_finish(struct bench *bench, struct err *err)
{
    uint64_t started = clock_now_ns();
    bench->stage = STAGE_SANITIZE;
    if (bench->sanitizing == NULL)
        (void)open(bench, bench->request->sanitized);
    int status = finish(bench, err);
    if (status == 0) /* else it could not be had */
        bench->evaluation->stage_ms[STAGE_SANITIZE] = (double)(clock_now_ns() - started) / 1e6;
    return status < 0 ? -1 : 0;
}

void sanitize_tell(struct bench *bench)
{
    if (bench->sanitizing != NULL && bench->sanitizing->err.code == ERR_CHILD)
        bench_note(bench, "%s: a win would be refused", bench->sanitizing->err.message);
}

void sanitize_close(struct bench *bench)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL)
        return;
    if (sanitizing->was_beside && !sanitizing->done) /* nobody waits for what they would say */
        (void)!ask(sanitizing, NULL, 0);
    buf_free(&sanitizing->report);
    mem_free(sanitizing);
    bench->sanitizing = NULL;
}
