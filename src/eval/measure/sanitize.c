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

struct sanitized { /* one shape */
    struct set *set;
    size_t at; /* where its inputs lie in the sanitizer's region */
    struct call call;
    bool placed, fit;
};

struct sanitizing {
    struct bench *bench;
    const char *artifact;
    struct sanitized shapes[SHAPES_MOST];
    size_t count, next, given; /* given: those of them that were fit to be */
    size_t inputs_bytes;       /* of all of them */
    bool said;                 /* the last word was */
    struct err err;            /* of a call, or of the last word */
    struct buf report;
    /* The thread, which has all of the above until it is over. */
    pthread_t thread;
    bool runs;
    atomic_bool was_beside, stop, over;
};

/* ---- which shapes ---- */

/* Before a final a win waits for this. */
static bool is_quick(const struct bench *bench, const struct shape *shape)
{
    double flops = 0.0, bytes = 0.0, outputs = (double)shape->layout.outputs[0].elements;
    struct err ignored;
    return bench->request->effort == EFFORT_FINAL ||
           problem_work(bench->session->problem, &shape->dims, &flops, &bytes, &ignored) != 0 ||
           (flops <= SANITIZED_FLOPS && flops <= SANITIZED_FLOPS_EACH * outputs);
}

static void add(struct sanitizing *sanitizing, struct set *set)
{
    struct sanitized *shape = &sanitizing->shapes[sanitizing->count++];
    *shape = (struct sanitized){.set = set, .at = sanitizing->inputs_bytes};
    sanitizing->inputs_bytes +=
        (set->shape->layout.inputs_bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
}

/* One set a shape, hidden shapes always; for a problem whose weights alone are large, as those of
 * PyTorch files often are, the smallest. */
static void choose(struct bench *bench, struct sanitizing *sanitizing)
{
    struct session *session = bench->session;
    const struct shape *last = NULL;
    struct set *least = NULL;
    for (size_t i = 0; i < session->edge_case; i++) {
        struct set *set = &session->cases[i];
        bool small = set->shape->elements <= SANITIZED_ELEMENTS && is_quick(bench, set->shape);
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
    choose(bench, sanitizing);
    return sanitizing;
}

/* ---- one of them ---- */

/* Where the sanitizer shares the candidate's region it is asked when the candidate is not. */
static const struct region *region_of(const struct bench *bench)
{
    return bench->session->backend->beside != NULL ? &bench->session->sanitized : bench->region;
}

/* Grows alone, so that nothing that was started for another one seems to fit. */
static int open_region(struct bench *bench, const struct sanitizing *sanitizing, struct err *err)
{
    struct region *region = &bench->session->sanitized;
    if (region->inputs != NULL && region->inputs_bytes >= sanitizing->inputs_bytes)
        return 0;
    if (region->inputs != NULL)
        region_close(region);
    *region = (struct region){0};
    return region_open(2 * sanitizing->inputs_bytes + PAGE_BYTES, PAGE_BYTES, region, err);
}

/* In a region of its own every shape has a place of its own, so that all can be there at once. */
static int place_beside(struct bench *bench, struct sanitized *shape, struct err *err)
{
    const struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct set *set = shape->set;
    struct layout layout;
    if (layout_make(session->problem, &set->shape->dims, request->candidate, request->tune, 0,
                    &layout, err) != 0)
        return bench_failed(bench, err);
    call_make(&layout, shape->at, session->options.call_timeout_ms, &shape->call);
    for (size_t i = 0; i < layout.input_count; i++)
        parallel_copy(session->sanitized.inputs + shape->at + layout.inputs[i].offset,
                      set->inputs[i], layout.inputs[i].bytes);
    return 0;
}

static int place(struct bench *bench, struct sanitized *shape, struct err *err)
{
    struct arrangement arrangement;
    if (shape->placed)
        return 0;
    if (set_expect(bench->session, shape->set, err) != 0)
        return -1;
    shape->placed = bench->session->backend->beside != NULL;
    shape->fit = !shape->set->unfit;
    if (!shape->fit)
        return 0;
    if (shape->placed)
        return place_beside(bench, shape, err);
    if (bench_arrange(bench, shape->set->shape, &arrangement, err) != 0)
        return bench_failed(bench, err);
    call_place(bench, shape->set, &arrangement);
    shape->call = arrangement.call;
    return 0;
}

/* `call` NULL: the last word. Any thread that has `sanitizing`. What went well may have failed at
 * first, and left words of that. */
static int run(struct sanitizing *sanitizing, const struct call *call)
{
    struct err err = {0};
    const struct bench *bench = sanitizing->bench;
    const struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct program program = {session->problem, request->candidate, request->tune, NULL};
    int status = 0;
    if (session->backend->sanitize != NULL)
        status = session->backend->sanitize(session->lane, region_of(bench), sanitizing->artifact,
                                            &program, call, &sanitizing->report, &err);
    else
        status =
            err_set(&err, ERR_UNSUPPORTED, "backend %s has none", session->backend->target->name);
    if (status != 0)
        sanitizing->err = err;
    return status;
}

/* It has been placed. On a large shape a tool that takes too long says nothing against the kernel.
 */
static void give(struct sanitizing *sanitizing)
{
    struct sanitized *shape = &sanitizing->shapes[sanitizing->next++];
    if (!shape->fit)
        return;
    sanitizing->given++;
    if (run(sanitizing, &shape->call) != 0 && sanitizing->err.code == ERR_TIMEOUT &&
        shape->set->shape->elements > SANITIZED_ELEMENTS)
        sanitizing->err.code = ERR_UNSUPPORTED;
}

static bool has_more(const struct sanitizing *sanitizing)
{
    return sanitizing->next < sanitizing->count && sanitizing->err.code == ERR_NONE;
}

static void take_last_word(struct sanitizing *sanitizing)
{
    struct err err = sanitizing->err;
    sanitizing->said = true;
    if (run(sanitizing, NULL) != 0 && err.code == ERR_NONE)
        return;
    sanitizing->err = err; /* the first one tells */
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
    const struct sanitizer_beside *beside = sanitizing->bench->session->backend->beside;
    while (!atomic_load(&sanitizing->stop) && !beside->ready())
        rest();
    uint64_t begun = timeline_begin();
    while (!atomic_load(&sanitizing->stop) && has_more(sanitizing)) {
        atomic_store(&sanitizing->was_beside, true);
        give(sanitizing);
    }
    if (atomic_load(&sanitizing->was_beside) && sanitizing->next == sanitizing->count &&
        sanitizing->err.code == ERR_NONE)
        take_last_word(sanitizing);
    timeline_end("sanitize.beside", begun);
    atomic_store(&sanitizing->over, true);
    return NULL;
}

int sanitize_warm(struct bench *bench, struct err *err)
{
    const struct session *session = bench->session;
    const struct backend *backend = session->backend;
    if (!bench->request->sanitizes || backend->beside == NULL)
        return 0;
    struct sanitizing *sanitizing = open(bench, bench->request->artifact);
    if (sanitizing->count == 0)
        return 0;
    if (open_region(bench, sanitizing, err) != 0)
        return -1;
    backend->warm_sanitizer(session->lane, &session->sanitized);
    return 0;
}

int sanitize_begin(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL || !bench->request->alone || bench->request->rival != NULL)
        return 0;
    for (size_t i = 0; i < sanitizing->count && !bench->ended; i++)
        if (place(bench, &sanitizing->shapes[i], err) != 0)
            return -1;
    sanitizing->runs = sanitizing->count > 0 && !bench->ended &&
                       pthread_create(&sanitizing->thread, NULL, work, sanitizing) == 0;
    return 0;
}

void sanitize_discourage(struct bench *bench)
{
    if (bench->sanitizing != NULL)
        atomic_store(&bench->sanitizing->stop, true);
}

bool sanitize_was_beside(const struct bench *bench)
{
    return bench->sanitizing != NULL && atomic_load(&bench->sanitizing->was_beside);
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
    if (sanitize_was_beside(bench) && accuracy_expects(bench))
        return accuracy_expect(bench, err);
    *more = false;
    return 0;
}

/* As if nothing had been asked. */
static void forget(struct sanitizing *sanitizing)
{
    sanitizing->next = sanitizing->given = 0;
    sanitizing->said = false;
    sanitizing->err = (struct err){0};
    buf_reset(&sanitizing->report);
}

/* What passed, and what was found with a report of it; all else is asked again. */
static bool is_believed(const struct sanitizing *sanitizing)
{
    return sanitizing->err.code == ERR_NONE ||
           (sanitizing->err.code == ERR_CHILD && sanitizing->report.length > 0);
}

int sanitize_hold(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    struct session *session = bench->session;
    bool more = true;
    int status = 0;
    if (sanitizing == NULL || !sanitizing->runs)
        return 0;
    const struct sanitizer_beside *beside = session->backend->beside;
    uint64_t begun = timeline_begin();
    while (status == 0 && more && !bench->ended && !atomic_load(&sanitizing->stop) &&
           !atomic_load(&sanitizing->over) && !atomic_load(&session->cancelled))
        status = expect_one(bench, &more, err);
    atomic_store(&sanitizing->stop, true);
    int patience_ms = bench->request->effort == EFFORT_FINAL ? PATIENCE_FINAL_MS : PATIENCE_MS;
    if (status != 0 || bench->ended)
        patience_ms = 0;
    for (int ms = 0;
         ms < patience_ms && !atomic_load(&sanitizing->over) && !atomic_load(&session->cancelled);
         ms += STEP_MS)
        rest();
    beside->cancel(true); /* nothing where it is over */
    pthread_join(sanitizing->thread, NULL);
    beside->cancel(false);
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

static int finish(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    const struct sanitizer_beside *beside = bench->session->backend->beside;
    if (beside != NULL && sanitizing->next > 0 && !sanitizing->said &&
        sanitizing->err.code == ERR_NONE && !beside->holds(sanitizing->artifact))
        forget(sanitizing); /* with the last words of what it was */
    if (sanitizing->count == 0) {
        bench_note(bench, "sanitizer: not run, no check shape has less than %d million elements",
                   SANITIZED_ELEMENTS_MOST >> 20);
        return 1;
    }
    if (beside != NULL && open_region(bench, sanitizing, err) != 0)
        return -1;
    while (has_more(sanitizing)) {
        if (place(bench, &sanitizing->shapes[sanitizing->next], err) != 0)
            return -1;
        if (bench->ended)
            return 0;
        give(sanitizing);
    }
    if (!sanitizing->said)
        take_last_word(sanitizing);
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
    bool found = sanitizing->err.code == ERR_CHILD;
    if (sanitizing->next > 0 && !sanitizing->said && !found &&
        bench->session->backend->beside != NULL) { /* nobody waits for what they would say */
        bench->session->backend->beside->cancel(true);
        (void)run(sanitizing, NULL);
        bench->session->backend->beside->cancel(false);
    }
    buf_free(&sanitizing->report);
    mem_free(sanitizing);
    bench->sanitizing = NULL;
}
