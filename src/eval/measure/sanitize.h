/* eval/measure/sanitize: a candidate's small shapes under the backend's sanitizer.
 *
 *   sanitize_ahead   as the problem is opened its slowest process starts, of a device's sanitizer
 *   sanitize_warm    all of its processes start
 *   sanitize_begin   where nobody else waits a thread makes them ready with the shapes, which run
 *                    from sanitize_encourage() on, while the candidate is checked and sets are
 *                    computed
 *   sanitize_hold    nothing of it runs from here on: before anything is timed
 *   sanitize_finish  of a win: what is left, and what it all says
 *
 * What hung or died beside the checks says nothing: all is asked again behind the timing, from the
 * first shape on. The same shapes either way, and all of them. Inside src/eval/measure. Worker's
 * measuring thread. */
#pragma once

#include "eval/measure/measure.h"

int sanitize_ahead(struct session *session, struct err *err) MUST_USE;
int sanitize_warm(struct bench *bench, struct err *err) MUST_USE;
int sanitize_begin(struct bench *bench, struct err *err) MUST_USE;
/* It may win: they run; where the baseline's time was known before, the thread starts now.
 * `unless_known`: not there, where a call of the main shape will tell. */
void sanitize_encourage(struct bench *bench, bool unless_known);
/* It will be no win: no more shapes beside the checks; `surely`: nor is what they do waited for. */
void sanitize_discourage(struct bench *bench, bool surely);
/* Computes sets of the main shape, which timing will ask for, as long as shapes are given. */
int sanitize_hold(struct bench *bench, struct err *err) MUST_USE;
bool sanitize_was_beside(const struct bench *bench); /* it has run beside calls of the candidate */
int sanitize_finish(struct bench *bench, struct err *err) MUST_USE;
/* What was found of one that is no win is a note: others like it are not asked. */
void sanitize_tell(struct bench *bench);
void sanitize_close(struct bench *bench);
