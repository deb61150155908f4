/* eval/measure/session_count: a kernel's instructions and cache misses, counted by a simulator
 * where that is asked for. */
#include "eval/measure/session_private.h"

/* The largest shape on which a program that runs fifty times slower is done soon. */
static struct set *countable_set(struct session *session)
{
    enum { ELEMENTS_MOST = 1 << 17 };
    struct set *best = NULL;
    for (size_t i = 0; i < session->edge_case; i++) {
        struct set *set = &session->cases[i];
        if (set->shape->elements <= ELEMENTS_MOST &&
            (best == NULL || set->shape->elements > best->shape->elements))
            best = set;
    }
    return best;
}

static int run_cachegrind(struct bench *bench, struct set *set, struct json *json, struct err *err)
{
    struct session *session = bench->session;
    struct arrangement arrangement;
    if (set_expect(session, set, err) != 0 ||
        bench_arrange(bench, set->shape, &arrangement, err) != 0)
        return -1;
    call_place(bench, set, &arrangement);
    if (session->backend->cachegrind(session->lane, bench->region, bench->request->portable,
                                     &arrangement.call, json, err) != 0)
        return -1;
    json_put_names(json, "cachegrind_shape", &set->shape->dims);
    return 0;
}

/* Advice, as the profile: what it cannot find out is a note. */
void session_count_caches(struct bench *bench, struct json *json)
{
    struct session *session = bench->session;
    struct err err = {0};
    struct set *set = countable_set(session);
    bench->stage = STAGE_PROFILE;
    if (session->backend->cachegrind == NULL)
        err_set(&err, ERR_UNSUPPORTED, "backend %s has none", session->backend->target->name);
    else if (set == NULL)
        err_set(&err, ERR_UNSUPPORTED, "the problem has no shape that is small enough");
    else if (run_cachegrind(bench, set, json, &err) == 0)
        return;
    bench_note(bench, "cachegrind: %s", err.message);
}
