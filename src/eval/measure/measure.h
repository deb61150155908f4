/* eval/measure: one checked call. Worker's measuring thread. docs/threat-model.md says why. */
#pragma once

#include "eval/measure/apart.h"
#include "eval/measure/left.h"
#include "eval/measure/session.h"

enum { PAIRS_MOST = 320, GUARD_BYTES = 4096 };

struct arrangement { /* where one call's tensors lie */
    struct layout layout;
    size_t slot_offset;
    struct call call;
};

struct output_sample { /* an output element that is read the moment a call is done */
    const unsigned char *at;
    unsigned bytes;
    uint64_t early;
};

struct outcome {
    uint64_t elapsed_ns, delay_ns; /* delay: threads were ready and did not run; noise.h */
    bool disturbed;                /* ... which is too much of the sample */
};

/* What a candidate needed of the allowed error: accuracy.h. */
struct accuracy {
    bool seen, beyond;          /* beyond: it was called at a shape larger than the timed one */
    double ratio, honest, last; /* the largest so far, the honest computation's there; the last */
    uint64_t seed;              /* of the last set */
    enum distribution distribution; /* of the largest */
    struct names dims, reached;     /* of the largest; the largest shape, accuracy.c */
    unsigned judged[DISTRIBUTIONS], over[DISTRIBUTIONS]; /* sets of the main shape; too inexact */
    size_t weighed_count;
    uint64_t weighed[8];          /* kinds of sets that were drawn again */
    const char *reason, *details; /* of the last that was too inexact, but in doubt */
};

/* A candidate under measurement. A generation is the time from one fresh runner to the next. */
struct spent {                          /* on sets, of the stages of one evaluation */
    double check_ms, time_ms, again_ms; /* again: timing, before the one that counts */
};

struct bench {
    struct session *session;
    const struct measure_request *request; /* NULL: only a baseline is called */
    struct arena *arena;
    struct evaluation *evaluation;
    const struct region *region;    /* whose outputs the candidate has */
    struct bench *rival;            /* the request's; NULL: none. rival.c */
    struct subject *subject, *twin; /* twin: the same kernel once more, for an A/A run */
    enum stage stage;
    double estimate_ns;                   /* fastest call of the main shape while it was checked */
    unsigned generation, twin_generation; /* counts runners; which of them the twin belongs to */
    uint64_t seen;                 /* bit set: sets of the pool that this generation has met */
    unsigned warm;                 /* bit set: slots whose pages this generation has touched */
    bool ended, timed, never_held; /* it has its verdict; is timed; its threads are held no more */
    unsigned held_late[2], held_ended[2]; /* held calls: of other shapes, of the main one */
    bool fresh;              /* every generation is a process that no candidate was in before */
    bool stays, clocked;     /* calls find the program as the last one left it; go as timed ones */
    bool threaded;           /* it had other threads than the caller's while it was checked */
    uint64_t longest_ns;     /* of its calls so far, all threads at once */
    size_t slot, shift;      /* where the last call found its inputs */
    uint64_t place_seed;     /* ... of whoever has memory of its own */
    unsigned rounds, behind; /* of the next calls that stay; call.rounds, call.behind */
    bool earlier, crowded;   /* the next call: call.earlier, call.crowded */
    bool wrote_around;       /* the last call did, where only its subject could see it */
    bool follows, one_slot;  /* calls are where its owner says, in slot and shift; in slot 0 */
    bool by_device, settles; /* a device's clock times it; a round gets its runners warm */
    bool slot_forced, held;  /* the next call: in slot_wanted; threads run while the caller waits */
    bool halted;             /* ... one of them is stopped in the middle of its work */
    struct apart apart;
    struct growth growth;
    size_t slot_wanted, output_sample_count;
    enum guard guarded;                             /* of the next call's inputs */
    unsigned char *outputs;                         /* of the last call */
    size_t outputs_at, outputs_end, outputs_fenced; /* the first one; past the red zone; past all */
    struct output_sample output_samples[OUTPUT_SAMPLES];
    unsigned char guard[GUARD_BYTES]; /* what red zones hold during this call */
    struct accuracy accuracy;
    struct set few;                /* that a win is asked for; shape NULL: not drawn. check.c */
    struct low_bits *low_bits;     /* outputs that a win is asked for; NULL: none yet */
    struct comparison against;     /* the baseline, once timed */
    struct sanitizing *sanitizing; /* sanitize.h; NULL: nothing was asked of it */
    const char *packaged;          /* metrics.package, an object; NULL: it was not called */
    struct buf notes;              /* lines for metrics.notes */
    uint64_t ends_ns;              /* when the request's time is over; 0: never */
    struct spent on_sets;          /* while a stage runs: session->costs.spent_ms as it began */
    struct device_state watched;   /* over the candidate's timed calls; span_ns, wall_ns: sums */
};

/* --- call.c --- */
int bench_arrange(struct bench *bench, const struct shape *shape, struct arrangement *arrangement,
                  struct err *err) MUST_USE; /* slot and shift at random */
void call_place(struct bench *bench, const struct set *set, const struct arrangement *arrangement);
/* Poisons, flushes, calls, reads samples of outputs, pauses. An error is the subject's end. */
int call_run(struct bench *bench, struct subject *subject, const struct arrangement *arrangement,
             bool cold, struct outcome *outcome, struct err *err) MUST_USE;
/* Red zones, samples of outputs and every output; the verdict is in bench->evaluation where it is
 * not well. */
bool call_verify(struct bench *bench, const struct set *set, const struct arrangement *arrangement);

/* --- verdict.c --- */
void bench_note(struct bench *bench, const char *format, ...) PRINTF_LIKE(2, 3);
void bench_close(struct bench *bench);
void bench_reject(struct bench *bench, enum verdict verdict, const char *reason,
                  const char *details);
int bench_failed(struct bench *bench, struct err *err) MUST_USE; /* of a subject's call */

/* --- bench.c; 0 also where the subject's failure became the verdict (bench->ended) --- */
int bench_choose_region(struct bench *bench, struct err *err) MUST_USE; /* for all its shapes */
int bench_open(struct bench *bench,
               struct err *err) MUST_USE; /* a fresh runner: a new generation */
int bench_ensure_twin(struct bench *bench, struct err *err) MUST_USE;
void bench_bind(const struct session *session); /* this thread, to the core that it times on */
void bench_saw(struct bench *bench, const struct set *set);
struct set *bench_fresh_set(struct bench *bench);
int bench_check_once(struct bench *bench, struct set *set, struct outcome *outcome,
                     struct err *err) MUST_USE; /* one checked call */

/* --- check.c; the same; a checked call: where that was in doubt more sets are drawn --- */
int bench_check(struct bench *bench, struct set *set, struct outcome *outcome,
                struct err *err) MUST_USE;
/* One more of the main shape, on a set that this generation has not met, where one is left; threads
 * besides the caller's are held, or one is stopped in the middle of its work. */
int bench_check_apart(struct bench *bench, bool halted, struct err *err) MUST_USE;
int bench_ensure_generation(struct bench *bench, size_t sets_needed, struct err *err) MUST_USE;

/* --- rival.c: the request's other kernel; an error is its end, too --- */
int rival_open(struct bench *bench, struct err *err) MUST_USE;   /* builds it */
int rival_ensure(struct bench *bench, struct err *err) MUST_USE; /* as old as the bench's runner */
/* On the bench's set, in the same place; checked like any other. */
int rival_call(struct bench *bench, const struct set *set, struct outcome *outcome,
               struct err *err) MUST_USE;
void rival_close(struct bench *bench);

/* --- watch.c: how a device was doing beside the timed calls --- */
void bench_watch(struct bench *bench, const struct device_state *state);
/* What a call is to be, as far as it concerns a subject with memory of its own. */
void bench_tell_device(const struct bench *bench, bool candidate, struct call *call);
/* metrics.device_state, a member of an open object; nothing where there was no device. */
void bench_put_watched(const struct bench *bench, struct json *json);

int measure_time(struct bench *bench, struct err *err) MUST_USE;   /* time.c */
int measure_fresh(struct bench *bench, struct err *err) MUST_USE;  /* fresh.c */
int measure_floor(struct bench *bench, struct err *err) MUST_USE;  /* floor.c */
int measure_steady(struct bench *bench, struct err *err) MUST_USE; /* steady.c */
/* Of EFFORT_FINAL; of EFFORT_FULL it says which baselines that alone times. final.c */
int measure_final(struct bench *bench, struct err *err) MUST_USE;
