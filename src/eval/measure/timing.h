/* eval/measure/timing: samples of a candidate and of what it is compared with, taken in turns on
 * the same inputs, and what follows from them. Inside src/eval/measure. */
#pragma once

#include "eval/measure/session_private.h"

enum { SHARED_MOST = 32, BLOCK_PAIRS = 2, CHUNK = 4, ROUNDS_OF_SLOW = 5 };

struct limits {
    size_t pairs_least, pairs_most;
    size_t rounds_least; /* 0: timing does not go in rounds */
    uint64_t budget_ns;  /* of timed calls */
    double narrow;       /* half-width of the interval, as a ratio, that is narrow enough */
    double best_ns;      /* 0, or: stop where the candidate is far behind this */
};

struct sample {
    double a_ns, b_ns;
    double a_delay_ns, b_delay_ns; /* of them: ready to run while others had the core */
    size_t chunk;                  /* shared: how many A samples came before it */
    size_t round;
    double call_ns; /* of a kernel that does nothing, called next; NaN, 0: not known */
    bool disturbed; /* something else ran on the cores meanwhile */
    enum distribution distribution;
};

/* Paired: every sample has an A and a B on the same set, in the order A B B A. Shared, for an A
 * that takes more than five times as long: chunks of B with an A between them. */
struct timing {
    struct bench *bench;
    struct baseline *baseline; /* NULL: A is `rival`, or bench->twin, the same kernel once more */
    struct bench *rival;
    struct limits limits;
    bool paired; /* set before: in pairs, however slow A is */
    bool shared, far_behind;
    size_t count, a_count, disturbed;
    bool by_rounds, slow; /* round.c; slow: a few rounds, each in one slot */
    bool swaps;           /* from round to round candidate and baseline change processes */
    bool with_empty;
    struct subject *empty; /* does nothing; of this round */
    size_t rounds, in_round, pairs_of_round, settling;
    bool settles; /* the first `settling` pairs of a round do not count */
    struct sample samples[PAIRS_MOST];
    double a_ns[SHARED_MOST]; /* shared: in order */
    double a_delay_ns[SHARED_MOST];
    enum distribution a_distribution[SHARED_MOST];
    uint64_t timed_ns, started_ns; /* sum of the calls; when the first one began */
    uint64_t hurry_ns;             /* from then on the fewest rounds will do; 0: never */
    /* what follows */
    size_t used; /* samples that the intervals stand on */
    struct interval a, b, ratio;
    double spread, a_spread; /* of whichever strays further from itself, and A's own */
    struct interval call;    /* what a call itself takes; samples 0: not known */
    bool call_taken;         /* off all of these; not where too little would be left */
};

/* --- empty.c --- */
bool empty_is_wanted(const struct timing *timing, double a_ns);  /* builds it, where it is */
int empty_open(struct timing *timing, struct err *err) MUST_USE; /* a fresh process */
void empty_close(struct timing *timing);
int empty_call(struct timing *timing, const struct arrangement *arrangement, double *call_ns,
               struct err *err) MUST_USE;
double empty_so_far(const struct timing *timing); /* 0: not known */
void empty_interval(const struct timing *timing, struct interval *call);

/* --- session_cost.c --- */
double cost_behind_timing(const struct bench *bench, const struct timing *timing);

/* --- round.c --- */
void rounds_plan(struct timing *timing, double a_ns); /* A takes as long, or 0: as B does */
bool round_is_over(const struct timing *timing);
void round_begin(struct timing *timing); /* what it needs is opened as it is called */

/* Takes samples until the limits say enough. 0 also where B's failure became the verdict. */
int timing_run(struct timing *timing, struct err *err) MUST_USE;
void timing_limits(const struct bench *bench, struct limits *limits);
void timing_results(struct timing *timing); /* fills what follows; result.c */
bool timing_enough(struct timing *timing);
bool timing_hurries(const struct timing *timing); /* its share of the request's time is over */
bool timing_far_behind(struct timing *timing);    /* it is dropped */
void timing_record(const struct timing *timing);  /* these samples are the evaluation's */
struct comparison timing_comparison(const struct timing *timing); /* of the results */
double timing_whole_a(const struct timing *timing); /* A's median with what a call itself takes */
/* Of an A/A run: how far its ratio strays from 1. What disturbed samples may hide widens the
 * speed-up's own interval, and does not count again here. */
double timing_stray(const struct timing *timing);

/* quiet.c: other programs on the lane's cores. True where it is worth measuring again. */
bool quiet_wait(struct bench *bench, const struct timing *timing);
/* Why nothing can be said, and what would help; in the bench's arena. */
const char *quiet_words(struct bench *bench, const struct comparison *comparison);
