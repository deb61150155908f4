/* eval/reference: the trusted definition, computed in a persistent, sandboxed child: numpy in a
 * Python child (libexec/reference.py), found as docs/problem-format.md says; a plain C reference is
 * built and run like a baseline. Blocking; worker's measuring thread. A child that dies is started
 * again at the next call, and costs that call only. Opening starts a child and does not wait for
 * it: what is wrong with the user's file comes with reference_ready(). */
#pragma once

#include "eval/backend/backend.h"
#include "eval/data/draw.h"

struct reference; /* opaque */

/* `python`: configured interpreter, or NULL to probe $VIRTUAL_ENV, PATH, /usr/bin; the answer is
 * written to `*python_found` (arena) for the cache. */
int reference_open(const struct problem *problem, const struct lane_facts *lane,
                   const struct region *region, const char *python, struct arena *arena,
                   const char **python_found, struct reference **reference,
                   struct err *err) MUST_USE;
/* The same for a plain C reference, which `backend` builds in `folder`. A source that says REAL for
 * its floating type is also built with REAL as double, which gives the exact results; one that does
 * not is its own exact result, and check's floor of the bound is all the tolerance there is. */
int reference_open_c(const struct problem *problem, const struct backend *backend,
                     const struct lane_facts *lane, const struct region *region, const char *folder,
                     struct arena *arena, struct reference **reference, struct err *err) MUST_USE;
/* The same for a PyTorch module (eval/problem/torch.h), on `device`, NULL: the CPU; torch.compile
 * writes what it makes to `folder`. */
int reference_open_torch(const struct problem *problem, const struct lane_facts *lane,
                         const struct region *region, const struct torch_device *device,
                         const char *folder, struct arena *arena, struct reference **reference,
                         struct err *err) MUST_USE;
void reference_close(struct reference *reference);         /* NULL is fine */
bool reference_pending(const struct reference *reference); /* reference_ready() would wait */
int reference_ready(struct reference *reference, struct err *err) MUST_USE;

enum reference_precision {
    PRECISION_EXACT, /* float64 inputs and outputs */
    PRECISION_WIDE,  /* the same, integers in 64 bits; of a C function NaN where it overflows, or
                        ERR_UNSUPPORTED where that is not known */
    PRECISION_SPEC,  /* as the spec's dtypes have it */
    PRECISION_LOWER  /* inputs rounded to the next lower precision first */
};

/* Inputs lie in the region at `call`'s offsets. Results go to out[i], [elements] doubles for EXACT,
 * of the output's dtype otherwise. ERR_TIMEOUT, ERR_CHILD, ERR_USAGE (the user's function raised:
 * the message has its last line). */
int reference_compute(struct reference *reference, const struct layout *layout,
                      const struct call *call, enum reference_precision precision, void **out,
                      struct err *err) MUST_USE;

/* Another process of the same definition, with inputs in a region of its own, on any of the lane's
 * cores, with so many threads (1 at least); NULL: this kind has no other. Of such, and of the
 * first, send() and take() are the two halves of compute(). */
struct reference *reference_again(struct reference *reference, const struct region *region,
                                  size_t threads);
int reference_send(struct reference *reference, const struct layout *layout,
                   const struct call *call, enum reference_precision precision,
                   struct err *err) MUST_USE;
int reference_take(struct reference *reference, const struct layout *layout, void **out,
                   struct err *err) MUST_USE;

/* The same child as a subject to be timed, in the spec's precision; owned by `reference`. */
struct subject *reference_subject(struct reference *reference);

/* Another way of the same child to compute it, as "compile" is; NULL where it has none of the name.
 * Its results, in the spec's precision, to be verified with: */
struct subject *reference_baseline(struct reference *reference, const char *name);
int reference_compute_baseline(struct reference *reference, const char *name,
                               const struct layout *layout, const struct call *call, void **out,
                               struct err *err) MUST_USE;

/* Another process, which gets ready for the baseline of this name while the first one is used, and
 * is pending meanwhile; `layout` is the one that it will be called with, and outlives it. NULL: the
 * first one does that by itself. */
struct reference *reference_aside(struct reference *reference, const char *baseline,
                                  const struct layout *layout);

/* What was drawn for an input is made what the reference takes: initial values of a parameter,
 * labels, a triangular matrix. */
void reference_shape_input(const struct reference *reference, size_t input,
                           enum distribution distribution, const struct placed *placed,
                           void *values);
/* Inputs as the definition's own file makes them, under another seed, in place of what was drawn.
 * Where it has none, or they cannot be had for this shape, `values` stay. */
void reference_draw_given(struct reference *reference, const struct layout *layout, uint64_t seed,
                          unsigned char *const *values);
/* Of inputs for which other numbers are none (pointers, masks with infinities), those of the file,
 * whatever the distribution. */
void reference_draw_own(struct reference *reference, const struct layout *layout, uint64_t seed,
                        unsigned char *const *values);
/* The same will be asked for under these seeds next: they are drawn while other things are done,
 * and the definition's process is not paused. False: only when they are asked for. */
bool reference_draw_ahead(struct reference *reference, const uint64_t *seeds, size_t count);
/* Places in the definition's file that compute in float64 whatever they are given, for people; ""
 * where none are seen. Asked where results of it were float64's, or `rounded` from them. */
const char *reference_double_steps(struct reference *reference, bool rounded, struct arena *arena);
const char *reference_versions(const struct reference *reference); /* JSON object text */
