/* eval/measure/session: opening a problem on a lane. What is done with a candidate is in
 * session_measure.c.
 */
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/measure/sanitize.h"
#include "eval/measure/session_private.h"
#include "eval/sets/helpers.h"
#include "eval/sets/memory.h"
#include "eval/sets/wide.h"

#include <string.h>

enum { POOL_LARGE = 8, POOL_RENEWED = 5 };
enum { CALL_TIMEOUT_MS = 10000, TIME_BUDGET_MS = 400, VERSIONS_MOST = 4096 };

#define GIB (UINT64_C(1) << 30)

static uint64_t default_memory(void)
{
    uint64_t available = mem_available(), quarter = available > 0 ? available / 4 : GIB / 4;
    return quarter < 2 * GIB ? quarter : 2 * GIB;
}

static int open_shapes(struct session *session, struct err *err)
{
    const struct problem *problem = session->problem;
    session->shape_count = problem->shape_count;
    for (size_t i = 0; i < problem->shape_count; i++)
        if (shape_make(session, &problem->shapes[i], &session->shapes[i], err) != 0)
            return -1;
    if (session_plan_memory(session, err) != 0)
        return -1;
    for (size_t i = 0; i < HIDDEN_SHAPES; i++)
        if (session_draw_hidden(session, i, err) != 0)
            return -1;
    session->shape_total = session->shape_count + HIDDEN_SHAPES;
    session_make_long(session);
    session_draw_short(session);
    session_draw_beyond(session);
    session_draw_large(session);
    size_t bytes = shape_bytes(&session->shapes[0]) + 1;
    size_t sets = session->options.memory_bytes / bytes;
    bool large = session_is_large(session);
    size_t most = session->sliced ? POOL_LEAST : large ? POOL_LARGE : POOL_MOST;
    if (large && session->backend->renews)
        most = POOL_RENEWED; /* what has met them all is as good as new after a word */
    session->pool_count = sets < POOL_LEAST ? POOL_LEAST : sets > most ? most : sets;
    return 0;
}

static int open_reference(struct session *session, struct err *err)
{
    const struct problem *problem = session->problem;
    const struct backend *backend =
        session->backend->reference != NULL ? session->backend->reference : session->backend;
    if (problem->reference_kind == REFERENCE_C)
        return reference_open_c(problem, backend, session->lane, &session->region,
                                session->options.folder, session->arena, &session->reference, err);
    if (problem->reference_kind == REFERENCE_TORCH)
        return reference_open_torch(problem, session->lane, &session->region,
                                    lane_torch(session->lane, session->backend->torch),
                                    session->options.folder, session->arena, &session->reference,
                                    err);
    return reference_open(problem, session->lane, &session->region, session->options.python,
                          session->arena, &session->python, &session->reference, err);
}

static void put_members(struct json *json, struct arena *arena, const char *text)
{
    struct value *map;
    if (text != NULL && value_parse_json(arena, "versions", text, strlen(text), &map, NULL) == 0)
        json_put_members(json, map);
}

static void gather_versions(struct session *session)
{
    JSON_LOCAL(json, text, VERSIONS_MOST);
    json_object(&json);
    put_members(&json, session->arena, session->lane->versions);
    put_members(&json, session->arena, reference_versions(session->reference));
    json_object_end(&json);
    session->versions = arena_strdup(session->arena, buf_text(&text));
}

static int know_lane(struct session *session, struct err *err)
{
    int (*know)(void *context, struct err *err) = session->options.know_lane;
    session->options.know_lane = NULL;
    return know != NULL ? know(session->options.context, err) : 0;
}

static int open_parts(struct session *session, struct err *err)
{
    if (open_shapes(session, err) != 0 || session_open_region(session, err) != 0 ||
        baselines_open(session, err) != 0)
        return -1;
    uint64_t begun = timeline_begin();
    /* A C reference is built for the machine, and is no process that starts meanwhile. */
    if (session->problem->reference_kind == REFERENCE_C && know_lane(session, err) != 0)
        return -1;
    if (session->backend->warm_runner != NULL)
        session->backend->warm_runner(session->lane, &session->region);
    session_make_cases(session);
    if ((session->options.sanitizes && sanitize_ahead(session, err) != 0) ||
        open_reference(session, err) != 0)
        return -1;
    baselines_begin(session, session->options.final);
    if (know_lane(session, err) != 0)
        return -1;
    /* What does not need the reference is done while it starts. */
    if (session->backend->warm != NULL)
        session->backend->warm(session->lane, &session->region);
    if (session->options.meanwhile != NULL)
        session->options.meanwhile(session->options.context);
    baselines_begin_library(session);
    wide_warm(session);
    session_fill(session);
    if (reference_ready(session->reference, err) != 0 || session_hurry(session, err) != 0)
        return -1;
    timeline_end("open.reference", begun);
    gather_versions(session);
    session_ceilings(session);
    if (session_open_slices(session, err) != 0)
        return -1;
    /* What every evaluation will need is missed now, once, and not in each of them. But what takes
     * longer than all the rest is waited for when something is to be timed with it. */
    begun = timeline_begin();
    struct baseline *baseline = &session->baselines[session->baseline];
    int status = baseline_pending(baseline) ? 0 : baseline_ready(session, baseline, err);
    timeline_end("open.baseline", begun);
    if (status == 0)
        session_draw_ahead(session);
    return status;
}

int session_open(const struct problem *problem, const struct backend *backend,
                 const struct lane_facts *lane, const struct session_options *options,
                 struct session **out, struct err *err)
{
    struct session *session = MEM_NEW(struct session);
    session->arena = arena_new();
    session->problem = problem;
    session->backend = backend;
    session->lane = lane;
    session->additive = -1;
    session->options = *options;
    if (session->options.call_timeout_ms == 0)
        session->options.call_timeout_ms = CALL_TIMEOUT_MS;
    if (session->options.time_budget_ms == 0)
        session->options.time_budget_ms = TIME_BUDGET_MS;
    if (session->options.memory_bytes == 0)
        session->options.memory_bytes = default_memory();
    layout_align(backend->alignment > 0 ? backend->alignment : TENSOR_ALIGN);
    parallel_use(lane->cores, lane->core_count);
    random_init(&session->random, random_seed());
    atomic_init(&session->cancelled, false);
    if (open_parts(session, err) != 0) {
        session_close(session);
        return -1;
    }
    *out = session;
    return 0;
}

void session_close(struct session *session)
{
    if (session == NULL)
        return;
    for (size_t i = 0; i < session->baseline_count; i++)
        baseline_free(session, &session->baselines[i]);
    helpers_close(session);
    wide_close(session);
    reference_close(session->reference);
    for (size_t i = 0; i < session->pool_count; i++)
        set_free(&session->pool[i]);
    for (size_t i = 0; i < session->case_count; i++)
        set_free(&session->cases[i]);
    large_close(session);
    session_close_region(session);
    arena_free(session->arena);
    mem_free(session);
}

void session_cancel(struct session *session)
{
    atomic_store(&session->cancelled, true);
}

void session_uncancel(struct session *session)
{
    atomic_store(&session->cancelled, false);
}

const char *session_versions(const struct session *session)
{
    return session->versions;
}
