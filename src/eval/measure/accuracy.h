/* eval/measure/accuracy: how much of the allowed error a candidate needs; what is between half and
 * twice of it is drawn again. Inside src/eval/measure. Worker's measuring thread.
 */
#pragma once

#include "eval/measure/measure.h"

/* Too inexact, but by so little that it may be the drawing's doing; derived bounds alone. */
bool accuracy_is_doubtful(const struct bound *bound, double ratio);
/* After each checked call of the candidate: its error over the allowed one, an honest one's. */
void accuracy_see(struct bench *bench, const struct set *set, double ratio, double honest);
/* "error" and "checked_up_to", members of an open JSON object. */
void accuracy_put(const struct bench *bench, struct json *json);
/* Notes which inputs do not count, since the definition fails the spec's tolerance there. */
void accuracy_note(struct bench *bench);

/* --- check.c --- */
/* After all timed calls: where most sets of one distribution were too inexact, the same again. */
int accuracy_settle(struct bench *bench, struct err *err) MUST_USE;
/* Of a claimed win of a definition that is a sum of products: one set more, at the main shape. */
int accuracy_of_win(struct bench *bench, struct err *err) MUST_USE;
/* Whether that set, which takes its time, could be computed ahead of it; computes it. */
bool accuracy_expects(const struct bench *bench);
int accuracy_expect(struct bench *bench, struct err *err) MUST_USE;
