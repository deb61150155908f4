/* eval/sets/memory: sets that are whole, or views of which one at a time has its inputs. Inside
 * src/eval. Worker's measuring thread. */
#pragma once

#include "eval/sets/sets.h"

/* Whether sets of the main shape are whole, by what the machine has; ERR_LIMIT where views would
 * not do either. When shapes[0] is there, before there is a region. */
int session_plan_memory(struct session *session, struct err *err) MUST_USE;
/* Opens those views; the same error where nothing can be sliced. When the definition is ready. */
int session_open_slices(struct session *session, struct err *err) MUST_USE;
