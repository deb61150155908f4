/* eval/sets: shapes, and sets of inputs with their expected outputs. Inside
 * src/eval. Worker's measuring thread. */
#pragma once

#include "eval/check/check.h"
#include "eval/data/draw.h"
#include "eval/data/evaluation.h"
#include "eval/reference/reference.h"
#include "eval/sets/gather.h"

struct session;
struct view;

struct session_options {
    const char *python;       /* or NULL */
    const char *folder;       /* for builds; exists */
    const char *baseline;     /* NULL: the problem's */
    uint64_t call_timeout_ms; /* one call of a candidate; 0: 10 s */
    uint64_t time_budget_ms;  /* for timed samples of one evaluation; 0: 400 ms */
    uint64_t memory_bytes;    /* for the pool; 0: a quarter of what is free, at most 2 GiB */
    uint64_t within_ms;       /* all that is asked for is to be done by then; 0: no hurry */
    uint64_t machine_bytes;   /* that there are for all of it; 0: quota_memory() */
    bool sanitizes;           /* what is asked for first will be, if it wins */
    bool final;               /* there will be a measurement of that effort */
    /* Called when the reference has been started: then the lane's facts must be there, which were
     * asked for at the same time. NULL: they are. */
    int (*know_lane)(void *context, struct err *err);
    void (*meanwhile)(void *context); /* next, where the reference may still be starting; or NULL */
    void *context;
};

struct shape {
    struct names dims;
    struct layout layout; /* no workspaces, no shift */
    size_t reduction;     /* longest sum behind one output element, estimated */
    size_t products;      /* of its terms, as problem_products() says */
    size_t elements;      /* of all tensors */
};

/* One drawing of a shape's inputs. Drawn when first needed; so are the expected outputs. */
struct set {
    const struct shape *shape;
    enum distribution distribution;
    uint64_t seed;
    bool filled, drawn, expected; /* filled: drawn, and not yet made what the reference takes */
    bool unfit;    /* not used: the reference itself leaves the output's range on these inputs, or
                      does not pass the spec's own tolerance there */
    bool beside;   /* ... the latter */
    bool optional; /* its shape is ours, not the spec's: a reference that raises there is unfit */
    /* What the bounds say of the lower precision's results; of the main shape's first sets. */
    enum { LOWER_UNKNOWN, LOWER_REFUSED, LOWER_PASSED } lower;
    unsigned char *inputs[INPUTS_MAX];
    double *exact[OUTPUTS_MAX];
    struct bound bounds[OUTPUTS_MAX];
    struct view *view; /* of a large one: what is drawn and computed in its place; else NULL */
};

/* --- shapes.c --- */
int shape_make(struct session *session, const struct names *dims, struct shape *shape,
               struct err *err) MUST_USE;
/* Of the main shape a set has over 64 MiB: to draw, compute and compare one is what takes time. */
bool session_is_large(const struct session *session);
/* Whether a pattern can show there (1); and in so many rows that not all wrong ones are right by
 * chance (2); more for sums of several terms, or a row's largest number in its first vector. */
int shape_shows(const struct session *session, const struct shape *shape);
/* For the edge cases: the smallest of those that show most, or the largest where none does. */
const struct shape *session_small_shape(const struct session *session);
void session_make_long(struct session *session); /* after the spec's shapes, before a region */
/* The same, with sums of 4 to 15 terms, where the main shape's are longer; and again. */
void session_draw_short(struct session *session);
/* True before there is a region, and where that has room for the shape. */
bool shape_fits(const struct session *session, const struct shape *shape);
/* The same; and again, no larger than the region that was made for them. */
int session_draw_hidden(struct session *session, size_t index, struct err *err) MUST_USE;
void session_draw_beyond(struct session *session);

/* --- sets.c --- */
static inline bool set_is_spoiled(const struct set *set) /* with NaN and infinities */
{
    return set->distribution == DRAW_NON_FINITE;
}
void set_redraw(struct set *set); /* new seed; buffers are kept */
void set_free(struct set *set);
/* What memory of one fits the other that has none goes there; the rest of it is freed. */
void set_hand_over(const struct session *session, struct set *from, struct set *to);
size_t shape_bytes(const struct shape *shape); /* of a set, inputs and expected outputs */
/* Its inputs lie in the session's region as `call`, of no slot and no shift, says. */
void set_place(const struct session *session, const struct set *set, struct call *call);
void set_draw(struct session *session, struct set *set);
/* Numbers of int32 that 16 bits do not hold: a question where the definition takes them. */
bool set_is_huge_integers(const struct session *session, const struct set *set);
/* 1: it does, as one that is straight in its first input, so that nothing overflows; 0; -1 with
 * *err. The inputs are in place, and are so again. additive.c */
int session_takes_huge(struct session *session, const struct set *set, const struct call *call,
                       struct err *err) MUST_USE;
/* --- integers.c --- */
enum { INTEGERS_LEAST = 1 << 15 }; /* fewer are drawn anyway */
/* One of extremes that has integers without a range: as large as the definition takes them. */
bool set_is_whole_integers(const struct session *session, const struct set *set);
/* How large at that shape; 0: no larger than usual. */
double session_whole_integer(const struct session *session, const struct shape *shape);
/* Before such a one is drawn: asks the definition, once. */
void session_know_integers(struct session *session, const struct set *set);
/* 1: nothing has overflowed on the way; 0; -1 with *err. The inputs are in place. */
int session_takes_whole(struct session *session, const struct set *set, const struct call *call,
                        struct err *err) MUST_USE;
void session_fill(struct session *session); /* sets, while the reference is not ready yet */
/* The first of those whose inputs the definition's own file draws, while others are computed. */
void session_draw_ahead(struct session *session);
void session_stop_drawing(struct session *session); /* something is to be timed */
/* The parts of set_expect(), for who has the results already (expect.c) */
struct results {
    void *honest[OUTPUTS_MAX], *lower[OUTPUTS_MAX];
    bool has_honest, has_lower;
};
void results_place(struct session *session, const struct layout *layout, struct results *results);
bool problem_has_floats(const struct problem *problem);
/* Whether the definition computes in the spec's precision while its kernel does all else. */
bool set_is_shared(const struct session *session, const struct set *set);
void set_derive(struct session *session, struct set *set, const struct results *results);
bool set_bounds_known(const struct session *session, const struct set *set);
void set_known(const struct session *session, struct set *set); /* where they are */
/* Kept between sets: the kernel would clear fresh pages for every one of them. */
void *session_scratch(struct session *session, size_t index, size_t bytes);
int set_expect(struct session *session, struct set *set, struct err *err) MUST_USE; /* view.c */
/* The same of one without a view: the definition computes all of it. expect.c */
int set_expect_whole(struct session *session, struct set *set, struct err *err) MUST_USE;
/* What sets of the pool lack, where wide.h's kernel is believed: the definition computes the next
 * one's part while the present one is bounded. What fails so is left to set_expect(). shared.c */
void session_expect_shared(struct session *session);
/* Opens wide.h's kernel and compares it, where it is there, is worth it and was not tried: computes
 * sets of the other shapes, so that no set may be half computed. */
void session_open_wide(struct session *session);
/* session->additive, once a session: `set` has its exact results, and its inputs are in place. */
int session_find_additive(struct session *session, const struct set *set, const struct call *call,
                          struct err *err) MUST_USE; /* _additive.c */

/* --- shake.c --- */
/* For each output: by how much an element moves, over how much the inputs did, as a part of their
 * largest numbers. */
int session_norm_errors(struct session *session, const struct set *set, double *errors,
                        struct err *err) MUST_USE;
size_t tensor_row(const struct tensor_spec *tensor, const struct placed *placed);
void session_make_cases(struct session *session);
int session_refresh(struct session *session, bool all, struct err *err) MUST_USE;
/* hurry.c: fewer sets, one of each distribution, where the pool would take an eighth of within_ms;
 * views where even that would take a third, which session_open_slices() opens */
int session_hurry(struct session *session, struct err *err) MUST_USE;
/* DRAW_FEW is a question here: long sums of float32 or float64, and no lower precision allowed. */
bool session_few_applies(const struct session *session);
