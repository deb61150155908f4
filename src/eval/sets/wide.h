/* eval/sets/wide: what a set should give, by a kernel in float64 that the problem has
 * beside its definition (ref_impl.cu for ref_impl.py), where the definition takes its time. The
 * kernel runs in a runner of its own, in which nothing of a candidate's ever is. It is believed
 * once it has agreed with the definition in every element, on each check shape and each hidden one,
 * and on a whole set of the main shape; one disagreement or fault, and the definition computes all.
 * Worker's measuring thread. Inside src/eval. */
#pragma once

#include "eval/sets/session.h"

/* Begins its runner, where the definition took its time for a set of the main shape or, before the
 * first, such a set is large; what is done until wide_open() does not wait for it. */
void wide_warm(struct session *session);
void wide_begin(struct session *session); /* the same, and builds it */
bool wide_open(
    struct session *session); /* waits for its runner, where it has been built; true: now */
/* Whether it gives what the definition has given for a set, in every element; false: see *err. */
bool wide_agrees(struct session *session, const struct set *set, struct err *err);
void wide_believe(struct session *session);
void wide_give_up(struct session *session, const char *why);
bool wide_believed(const struct session *session);
/* As reference_compute(), of EXACT or LOWER, for a set of the main shape that is drawn. False: ask
 * the definition, for it is another shape, SPEC, or not believed (any more). */
bool wide_compute(struct session *session, const struct set *set,
                  enum reference_precision precision, void **out);
void wide_close(struct session *session);
