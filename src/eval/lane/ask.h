/* eval/lane/ask: opens a lane, and closes it when it has answered. Blocking: a loop of its own. */
#pragma once

#include "eval/lane/lane.h"

/* `open` has the answer or the error, and the arena that the caller frees. */
void lane_ask(const struct lane_spec *spec, const char *name, struct lane_request *open);
