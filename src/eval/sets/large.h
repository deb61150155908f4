/* eval/sets/large: sets of shapes that are as large as the timed one in every dim, or in all but
 * one, and of the timed one, by every distribution. Inside src/eval. Worker's measuring thread. */
#pragma once

#include "eval/sets/view.h"

/* Which shapes: before the region that must have room for them; while it is opened. */
void session_draw_large(struct session *session);
/* Before each evaluation: asks the definition what can be sliced, once; new shapes now and then. */
void session_begin_large(struct session *session, bool all);
/* For the next call, with other indices than before; NULL: there is none, or it would take long.
 * Kept by the session. */
struct set *session_next_large(struct session *session, size_t index);
/* Of a shape that is larger than the timed one in every dim. */
bool large_is_beyond(const struct session *session, const struct set *set);
/* One of its own; false: it would take long. set_free() either way. */
bool large_open(struct session *session, struct set *set, const struct shape *shape,
                enum distribution distribution, enum view_kind kind, bool mixed);
/* After a call: what is large and drawn anew for the next goes. */
void large_rest(struct session *session, struct set *set);
/* Whether the distribution is a question of this problem's. */
bool session_draws(const struct session *session, enum distribution distribution);
void large_close(struct session *session);

/* slice.c: bits of the dims that the spec lets be sliced; then session->slices, by the definition
 */
uint64_t problem_may_be_sliced(const struct problem *problem);
void session_find_slices(struct session *session);
