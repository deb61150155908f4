/* eval/sets/session: a problem that is open on a lane, as what draws its sets and what measures
 * with them see it. Inside src/eval. Worker's measuring thread. */
#pragma once

#include "base/random.h"
#include "eval/data/parallel.h"
#include "eval/sets/large.h"

#include <stdatomic.h>

struct bench;
struct helpers;
struct wide;

enum {
    PAGE_BYTES = 4096,
    SLOTS = 2, /* of the input region */
    POOL_LEAST = 5,
    POOL_MOST = 16,
    CASES_MOST = 160,
    HISTORY_MOST = 16,
    HIDDEN_SHAPES = 2,
    BEYOND_SHAPES = 3,
    SHAPES_MOST = SHAPES_MAX + HIDDEN_SHAPES + 2 + BEYOND_SHAPES,
    LARGE_SHAPES = 2,
    FORM_SHAPES = 8,
    LARGE_SETS = 4 + FORM_SHAPES,
    LARGE_TURNS = 8, /* evaluations until they are of other shapes */
    BASELINES_MOST = BASELINES_MAX + 1,
    SCRATCHES = 5 * OUTPUTS_MAX
};

struct baseline {
    const char *name, *artifact; /* artifact NULL: the reference's own subject */
    const char *const *env;
    const char *file;            /* of its source; NULL: the reference, or: */
    const char *library;         /* of a PyTorch module that is nobody's definition; else NULL */
    struct reference *own;       /* its process; NULL: it has none, or not yet */
    const char *broken;          /* why there is none to be had in this session; NULL: there is */
    struct candidate *candidate; /* where the source is one, with a launch plan; owned */
    struct names tune;           /* the candidate's first point */
    struct subject *subject;     /* NULL until first used, or after it died */
    bool warm, verified;
    double verified_ns;           /* that the call took by which it was; 0: not known */
    double history[HISTORY_MOST]; /* medians of earlier evaluations, ns; a ring */
    size_t history_count;
};

struct costs {       /* by the wall clock; session_cost.c */
    double spent_ms; /* drawing sets and computing what they should give, so far */
    double once_ms;  /* of that, for what the session keeps: bounds, a kernel that is believed */
    bool known;      /* there was a kernel; the rest is of that one */
    double sets_ms;  /* of all sets once */
    double calls_ms, compile_ms, sanitize_ms, profile_ms; /* 0: not known */
    double pair_ms; /* of timing, for each sample: both calls and what lies around them */
    double samples; /* that a verdict of the search took */
};

struct session {
    const struct problem *problem;
    const struct backend *backend;
    const struct lane_facts *lane;
    struct session_options options;
    struct arena *arena;
    struct region region;    /* with room for small workspaces */
    struct region roomy;     /* the same inputs, larger outputs; outputs NULL until needed */
    struct region sanitized; /* a sanitizer's own inputs; NULL until needed */
    size_t slot_bytes;       /* one slot of the input region */
    size_t slots;            /* of those there are; SLOTS, or one where it is: */
    bool sliced;             /* sets of the main shape are views; memory.c, hurry.c */
    bool scarce;             /* ... since memory is: one at a time has its inputs */
    struct reference *reference;
    const char *python, *versions;
    struct random random;
    size_t
        shape_count; /* the spec's; then hidden, a long, a short one, those beyond the main one */
    size_t shape_total, beyond_shape, beyond_count;
    const struct shape *long_shape; /* small, with sums as long as the main shape's; or that */
    struct shape *short_shape;      /* with sums shorter than a vector; NULL: none */
    struct shape shapes[SHAPES_MOST];
    uint64_t slices; /* bits of the dims that can be sliced; slice.c */
    bool slices_known;
    uint64_t divisors; /* problem_divisors() */
    size_t large_shape_count;
    struct shape large_shapes[LARGE_SHAPES], timed_shape; /* timed: the main one, for `large` */
    struct shape form_shapes[FORM_SHAPES]; /* problem_draw_form(); the main one where none is */
    unsigned forms, forms_asked;           /* bits of these: there are; for this candidate */
    struct set large[LARGE_SETS];          /* large.c */
    size_t pool_count, case_count, refreshed;
    size_t
        drawn_ahead; /* sets that the definition's process draws by itself, and was not asked for */
    size_t hidden_case, edge_case;   /* where these begin among `cases` */
    struct set pool[POOL_MOST];      /* of the main shape */
    struct set cases[CASES_MOST];    /* of check shapes, edge cases, hidden shapes */
    size_t baseline_count, baseline; /* which one speed-ups are against */
    struct baseline baselines[BASELINES_MOST];
    double integers;       /* the largest that the definition takes; 0: no more than usual */
    double integers_terms; /* ... in sums of so many terms */
    bool integers_known;
    int additive;          /* the definition: 1, 0 not, -1 not known yet; sets/additive.c */
    unsigned known_bounds; /* bit set: distributions of a large main shape, in `bounds` */
    struct bound bounds[DRAW_RANDOM_COUNT][OUTPUTS_MAX];
    unsigned beside; /* bit set: distributions where the definition failed the spec's tolerance */
    void *scratch[SCRATCHES];
    size_t scratch_bytes[SCRATCHES];
    double bandwidth, flops_per_s; /* measured ceilings, the best seen; 0: not known */
    double bytes_floor_ns, flops_floor_ns;
    bool stays_fit; /* it was when it was opened: so must be the sets that a candidate met */
    atomic_bool cancelled;
    struct helpers *helpers;   /* sets/helpers.c; NULL until they are worth their memory */
    double load;               /* of other programs on the lane's cores, when last looked at */
    unsigned waits_in_vain;    /* for a quiet machine; quiet.c */
    uint64_t baseline_most_ms; /* for one call of a baseline; 0: as long as a definition's */
    double exact_ns;           /* that the last exact results of the main shape took */
    double exact_cores;        /* that the definition kept busy meanwhile; 0: not known */
    struct wide *wide;         /* sets/wide.c; NULL: none, or not yet */
    bool wide_over;            /* it was tried, and is not to be believed */
    struct costs costs;
    const char *empty; /* artifact of a kernel that does nothing; NULL: none. measure/empty.c */
    bool empty_tried;
    struct bench *bench; /* the candidate between session_check() and session_finish() */
};

/* --- region.c --- */
/* Of all at which a kernel may be called; NULL behind the last. */
const struct shape *session_shape_at(const struct session *session, size_t index);
int session_open_region(struct session *session, struct err *err) MUST_USE;
/* The one with room for a layout of `outputs_bytes`; ERR_LIMIT past what the machine should give.
 */
int session_region_for(struct session *session, size_t outputs_bytes, const struct region **region,
                       struct err *err) MUST_USE;
void session_close_region(struct session *session);
