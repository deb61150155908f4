/* eval/measure/steady: is it still right after many calls? Checks load a program anew for each
 * launch where that is how it forgets, and few generations see more than a dozen calls. Who uses a
 * kernel loads it once and calls it for a year. So a finalist is called 64 times as it was loaded
 * once, on inputs that change from call to call, and every output is verified; so is whoever wins,
 * or keeps something between its launches. On a device each of these calls is sixteen launches, all
 * of whose results are compared, behind 100,000 launches that the context has seen before. On the
 * CPU a call costs little besides itself, and there are a thousand. */
#include "base/clock.h"
#include "eval/data/timeline.h"
#include "eval/measure/session_private.h"

enum {
    CALLS = 64,
    CALLS_OF_HOST = 1000,
    OF_MAIN_LEAST = 16,
    OTHER_SHAPES = 4 /* one call in so many */
};
enum { LAUNCHES = 1024, ROUNDS = 15 /* before the one that counts */, BEHIND = 100000 };
static const uint64_t main_shape_ns = 1000000000; /* after this long the smaller shapes do */

/* Sixteen launches a call cost little: so a device that counts them is asked of every win, and of
 * whatever keeps something between its launches. */
static bool is_asked_for(const struct bench *bench)
{
    bool keeps = bench->subject != NULL && bench->subject->keeps_state;
    bool counts = bench->subject != NULL && bench->subject->launches > 0;
    bool wins = bench->evaluation->finding == FINDING_FASTER;
    enum effort effort = bench->request->effort;
    return effort == EFFORT_FINAL ||
           (effort == EFFORT_FULL && (counts ? keeps || wins : keeps && wins));
}

/* Never the one before; NULL: there is none that can be used. */
static struct set *choose(struct session *session, bool main_shape, const struct set *before)
{
    enum { TRIES = 32 };
    struct set *sets = main_shape ? session->pool : session->cases;
    size_t count = main_shape ? session->pool_count : session->case_count;
    for (int i = 0; i < TRIES && count > 0; i++) {
        struct set *set = &sets[random_below(&session->random, count)];
        if (!set->unfit && set != before)
            return set;
    }
    return NULL;
}

/* A device's launches of one call gave two results on the same bytes. Sums whose order is left to
 * chance may; both are verified. From then on the one that counts is any of a call's launches. */
static int verify_other(struct bench *bench, struct set *set, struct err *err)
{
    struct outcome outcome;
    bench->earlier = bench->follows = true;
    int status = bench_check_once(bench, set, &outcome, err);
    bench->earlier = bench->follows = false;
    return status;
}

struct steady { /* what was called so far */
    size_t calls, of_main, launches;
    bool differs; /* its results hang on chance */
    uint64_t started_ns;
};

static bool is_enough(const struct bench *bench, const struct steady *steady)
{
    size_t calls = bench->subject != NULL && !bench->subject->device_clock ? CALLS_OF_HOST : CALLS;
    return steady->launches > 0 ? steady->launches >= LAUNCHES : steady->calls >= calls;
}

static int call_once(struct bench *bench, struct steady *steady, const struct set **before,
                     struct err *err)
{
    struct session *session = bench->session;
    struct outcome outcome;
    bool late =
        steady->of_main >= OF_MAIN_LEAST && clock_now_ns() - steady->started_ns > main_shape_ns;
    bool main_shape = !late && random_below(&session->random, OTHER_SHAPES) != 0;
    struct set *set = choose(session, main_shape, *before);
    if (set == NULL)
        return 0;
    bench->behind =
        steady->calls == 0 ? BEHIND + (unsigned)random_below(&session->random, BEHIND) : 0;
    bench->rounds = steady->differs ? (unsigned)random_below(&session->random, ROUNDS + 1) : ROUNDS;
    int status = bench_check(bench, set, &outcome, err);
    *before = set;
    if (status != 0 || set->unfit || bench->ended)
        return status;
    steady->calls++;
    steady->of_main += main_shape;
    steady->launches += bench->subject->launches;
    if (!bench->subject->differs)
        return 0;
    steady->differs = true;
    return verify_other(bench, set, err);
}

int measure_steady(struct bench *bench, struct err *err)
{
    enum { TRIES = 8 * CALLS_OF_HOST }; /* where no set is fit */
    const enum stage stage = bench->stage;
    const struct set *before = NULL;
    struct steady steady = {.started_ns = clock_now_ns()};
    if (!is_asked_for(bench))
        return 0;
    int status = bench_open(bench, err);
    bench->stage = STAGE_CHECK; /* where no launch goes before the one that counts */
    bench->stays = true;
    for (int i = 0; i < TRIES && status == 0 && !bench->ended && !is_enough(bench, &steady); i++)
        status = call_once(bench, &steady, &before, err);
    if (status == 0 && bench->ended)
        bench->evaluation->reason =
            arena_printf(bench->arena, "in call %zu of a program that was loaded once: %s",
                         steady.calls + 1, bench->evaluation->reason);
    bench->stays = false;
    bench->stage = stage;
    timeline_put("steady", steady.started_ns, clock_now_ns() - steady.started_ns);
    if (status == 0 && !bench->ended)
        bench_close(bench);
    return status;
}
