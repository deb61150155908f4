/* eval/measure/packaged: is it right where its user has it? A runner's process is ours: its memory,
 * its few calls, nothing else in it. So a finalist's package is built and loaded in a Python
 * process, after other work was done there, and each build that it has is called 300 times on
 * PyTorch's or numpy's own memory, on inputs that change from call to call. Every output is
 * verified, as a runner's is. */
#include "eval/measure/packaged.h"

#include "base/clock.h"
#include "eval/data/timeline.h"
#include "eval/emit/package.h"
#include "eval/measure/session_private.h"

enum {
    CALLS = 300,
    BUILDS = 2,       /* of a CPU package: numpy_kernel.py */
    OTHER_SHAPES = 4, /* one call in so many */
    OF_MAIN_LEAST = 12,
    SMALL_ELEMENTS = 1 << 16
};
static const uint64_t main_shape_ns = 1500000000; /* after this long the small shapes do */

/* Never the one before; NULL: there is none that can be used. */
static struct set *choose(struct session *session, bool main_shape, bool small,
                          const struct set *before)
{
    enum { TRIES = 64 };
    struct set *sets = main_shape ? session->pool : session->cases;
    size_t count = main_shape ? session->pool_count : session->case_count;
    struct set *any = NULL;
    for (int i = 0; i < TRIES && count > 0; i++) {
        struct set *set = &sets[random_below(&session->random, count)];
        if (set->unfit || set == before)
            continue;
        any = any != NULL && any->shape->elements <= set->shape->elements ? any : set;
        if (!small || set->shape->elements <= SMALL_ELEMENTS)
            return set;
    }
    return any;
}

static int call_all(struct bench *bench, size_t *calls, size_t *shapes, struct err *err)
{
    struct session *session = bench->session;
    const struct set *before = NULL;
    uint64_t started = clock_now_ns(), seen = 0;
    size_t of_main = 0, most = session->backend->device ? CALLS : BUILDS * CALLS;
    while (!bench->ended && *calls < most) {
        struct outcome outcome;
        bool late = clock_now_ns() - started > main_shape_ns;
        bool main_shape =
            (!late || of_main < OF_MAIN_LEAST) && random_below(&session->random, OTHER_SHAPES) != 0;
        struct set *set = choose(session, main_shape, late, before);
        set = set != NULL ? set : choose(session, !main_shape, late, before);
        if (set == NULL)
            break;
        if (bench_check(bench, set, &outcome, err) != 0)
            return -1;
        before = set;
        *calls += !set->unfit;
        of_main += main_shape && !set->unfit;
        seen |= UINT64_C(1) << ((size_t)(set->shape - session->shapes) % 64);
    }
    *shapes = (size_t)__builtin_popcountll(seen);
    return 0;
}

static void tell_untried(struct bench *bench, const char *why)
{
    struct evaluation *evaluation = bench->evaluation;
    bool first = evaluation->left_out == NULL || *evaluation->left_out == '\0';
    evaluation->left_out = arena_printf(bench->arena, "%s%sits package (%s)",
                                        first ? "" : evaluation->left_out, first ? "" : ", ", why);
    bench_note(bench, "its package was not called in Python: %s", why);
}

static void keep(struct bench *bench, const char *library, size_t calls, size_t shapes)
{
    JSON_LOCAL(json, text, 1024);
    json_object(&json);
    json_put_text(&json, "in", library);
    json_put_int(&json, "calls", (int64_t)calls);
    json_put_int(&json, "shapes", (int64_t)shapes);
    json_object_end(&json);
    bench->packaged = arena_strdup(bench->arena, buf_text(&text));
}

static int open_it(struct bench *bench, struct emission *emission, const char **library,
                   struct err *err)
{
    struct session *session = bench->session;
    const struct package_request request = {
        .emission = emission,
        .emitter = session->backend->emitter,
        .lane = session->lane,
        .region = bench->region,
        .device = session->backend->device ? session->backend->torch : NULL,
        .python = session->options.python};
    return package_open(&request, &bench->subject, library, err);
}

int measure_packaged(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const enum stage stage = bench->stage;
    struct emission emission = {
        .arena = bench->arena,
        .folder = arena_printf(bench->arena, "%s/package", session->options.folder),
        .id = "the kernel",
        .title = session->problem->name,
        .problem = (struct problem *)(uintptr_t)session->problem,
        .candidate = (struct candidate *)(uintptr_t)bench->request->candidate,
        .tune = *bench->request->tune};
    struct err why = {0};
    const char *library = "";
    if (bench->request->effort != EFFORT_FINAL || !packaged_applies(session))
        return 0;
    if (bench_left_ms(bench) < PACKAGED_MS) {
        tell_untried(bench, "no time is left");
        return 0;
    }
    uint64_t started = clock_now_ns();
    bench_close(bench);
    if (open_it(bench, &emission, &library, &why) != 0) {
        bench->subject = NULL;
        tell_untried(bench, arena_strdup(bench->arena, why.message));
        return why.code == ERR_CANCELLED ? err_set(err, ERR_CANCELLED, "cancelled") : 0;
    }
    timeline_put("packaged.open", started, clock_now_ns() - started);
    bench->generation++;
    bench->stage = STAGE_CHECK;
    size_t calls = 0, shapes = 0;
    int status = call_all(bench, &calls, &shapes, err);
    if (status != 0 && err->code == ERR_ENVIRONMENT) { /* no memory, say */
        tell_untried(bench, arena_strdup(bench->arena, err->message));
        *err = (struct err){0};
        status = 0;
        calls = 0;
    }
    if (status == 0 && bench->ended)
        bench->evaluation->reason =
            arena_printf(bench->arena, "in call %zu of its package in %s: %s", calls, library,
                         bench->evaluation->reason);
    if (calls > 0)
        keep(bench, library, calls, shapes);
    bench->stage = stage;
    timeline_put("packaged", started, clock_now_ns() - started);
    if (status == 0 && !bench->ended)
        bench_close(bench);
    return status;
}

void packaged_put(const struct bench *bench, struct json *json)
{
    if (bench->packaged != NULL)
        json_put_raw(json, "package", bench->packaged);
}
