/* eval/measure/round: a process keeps the luck of its layout, its pages and its core for life, and
 * two of the same kernel differ by more than the calls of one do. So timing goes in rounds where a
 * process's luck counts: each has a fresh process of the candidate and one of the baseline, and
 * takes part in the interval as one unit. On a device, where a process takes long to start, both
 * change places instead: what is one's luck in a round is the other's in the next. */
#include "eval/measure/timing.h"

enum { PAIRS_OF_ROUND = 4, PAIRS_TO_SETTLE = 4 };
#define UNNOTICED_NS 1e9 /* a call that takes longer does not notice cold pages */

/* Where calls are so long that the least number of rounds would take more than the budget, there
 * are fewer, with a block in each behind one pair to get warm, all in one slot. */
static bool is_slow(const struct timing *timing, double a_ns)
{
    const struct limits *limits = &timing->limits;
    double pair_ns = timing->bench->estimate_ns + (a_ns > 0.0 ? a_ns : timing->bench->estimate_ns);
    return pair_ns * (double)((PAIRS_OF_ROUND + PAIRS_TO_SETTLE) * limits->rounds_least) >
           (double)limits->budget_ns;
}

/* Of two kernels in processes of ours that any kernel may have: not where one has to be fresh, or
 * as large as the candidate's workspaces. */
static bool may_swap(const struct timing *timing)
{
    const struct bench *bench = timing->bench;
    return bench->by_device && session_by_device(bench->session) && !timing->shared &&
           timing->baseline != NULL && timing->baseline->artifact != NULL && !bench->fresh &&
           bench->region == &bench->session->region && bench->subject != NULL &&
           bench->subject->gives_back && !bench->subject->keeps_state;
}

/* As many pairs in the one process as in the other. */
static void plan_swaps(struct timing *timing)
{
    struct limits *limits = &timing->limits;
    size_t half = (limits->pairs_least + 1) / 2;
    timing->pairs_of_round = (half + BLOCK_PAIRS - 1) / BLOCK_PAIRS * BLOCK_PAIRS;
    limits->pairs_most -= limits->pairs_most % (2 * timing->pairs_of_round);
}

void rounds_plan(struct timing *timing, double a_ns)
{
    struct limits *limits = &timing->limits;
    timing->swaps = may_swap(timing);
    timing->by_rounds = limits->rounds_least > 0 && !timing->bench->by_device;
    if (!timing->by_rounds)
        limits->rounds_least = 0;
    timing->slow = timing->by_rounds && is_slow(timing, a_ns);
    timing->bench->settles = timing->by_rounds && !timing->shared;
    timing->bench->one_slot = timing->slow && timing->bench->settles;
    timing->settling = !timing->bench->settles ? 0
                       : timing->slow          ? a_ns < UNNOTICED_NS
                                               : PAIRS_TO_SETTLE;
    timing->with_empty = empty_is_wanted(timing, a_ns);
    timing->pairs_of_round = timing->slow ? BLOCK_PAIRS : PAIRS_OF_ROUND;
    if (timing->swaps)
        plan_swaps(timing);
    if (timing->slow && limits->rounds_least > ROUNDS_OF_SLOW)
        limits->rounds_least = ROUNDS_OF_SLOW;
}

bool round_is_over(const struct timing *timing)
{
    return (timing->by_rounds || timing->swaps) &&
           (timing->rounds == 0 || timing->in_round >= timing->pairs_of_round);
}

/* What computes in a process that takes seconds to start, as NumPy does, keeps it. */
static bool is_renewed(const struct timing *timing)
{
    return timing->baseline != NULL && timing->baseline->artifact != NULL && !timing->shared;
}

void round_begin(struct timing *timing)
{
    struct bench *bench = timing->bench;
    if (timing->rounds > 0 || !timing->swaps)
        bench_close(bench); /* and so the twin's and the rival's, which are as old as its */
    if (timing->rounds > 0 && is_renewed(timing)) /* the first one's is fresh */
        baseline_close(bench->session, timing->baseline);
    timing->rounds++;
    timing->in_round = 0;
}
