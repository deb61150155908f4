/* eval/cuda/run/sanitizer_wire: what a supervised runner is told of a call; part of its control
 * page.
 */
#pragma once

#include "eval/candidate/layout.h"

struct wire_sanitize {
    uint64_t bytes[CALL_POINTERS_MAX]; /* of each tensor of the call, without red zones */
};
