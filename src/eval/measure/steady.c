/* eval/measure/steady: is it still right after many calls? Checks load a program anew for each
 * launch where that is how it forgets, and few generations see more than a dozen calls. Who uses a
 * kernel loads it once and calls it for a year. So a finalist is called 64 times as it was loaded
 * once, on inputs that change from call to call, and every output is verified; so is whoever wins
 * and keeps something between its launches. */
#include "base/clock.h"
#include "eval/data/timeline.h"
#include "eval/measure/session_private.h"

enum { LAUNCHES = 64, OF_MAIN_LEAST = 16, OTHER_SHAPES = 4 /* one call in so many */ };
static const uint64_t main_shape_ns = 1000000000; /* after this long the smaller shapes do */

static bool is_asked_for(const struct bench *bench)
{
    bool keeps = bench->subject != NULL && bench->subject->keeps_state;
    bool wins = bench->evaluation->finding == FINDING_FASTER;
    enum effort effort = bench->request->effort;
    return effort == EFFORT_FINAL || (effort == EFFORT_FULL && keeps && wins);
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

int measure_steady(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const enum stage stage = bench->stage;
    const struct set *before = NULL;
    struct outcome outcome;
    uint64_t started = clock_now_ns();
    size_t calls = 0, of_main = 0;
    if (!is_asked_for(bench))
        return 0;
    int status = bench_open(bench, err);
    bench->stage = STAGE_CHECK; /* where no launch goes before the one that counts */
    bench->stays = true;
    while (status == 0 && !bench->ended && calls < LAUNCHES) {
        bool late = of_main >= OF_MAIN_LEAST && clock_now_ns() - started > main_shape_ns;
        bool main_shape = !late && random_below(&session->random, OTHER_SHAPES) != 0;
        struct set *set = choose(session, main_shape, before);
        if (set == NULL)
            break;
        status = bench_check(bench, set, &outcome, err);
        before = set;
        calls += !set->unfit;
        of_main += main_shape && !set->unfit;
    }
    if (status == 0 && bench->ended)
        bench->evaluation->reason =
            arena_printf(bench->arena, "in call %zu of a program that was loaded once: %s", calls,
                         bench->evaluation->reason);
    bench->stays = false;
    bench->stage = stage;
    timeline_put("steady", started, clock_now_ns() - started);
    if (status == 0 && !bench->ended)
        bench_close(bench);
    return status;
}
