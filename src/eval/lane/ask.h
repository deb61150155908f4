/* eval/lane/ask: opens a lane, asks it one thing, and closes it. Blocking: a loop of its own. */
#pragma once

#include "eval/lane/lane.h"

/* `open` has the answer or the error, and the arena that the caller frees; so has `then`, which is
 * submitted once the lane is open (NULL: nothing is). At one of `signals`, which end with 0 (NULL:
 * none), what is under way ends with ERR_CANCELLED. */
void lane_ask(const struct lane_spec *spec, const char *name, struct lane_request *open,
              struct lane_request *then, const int *signals);
