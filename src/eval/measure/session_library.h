/* eval/measure/session_library: what a library does for the problem: baselines/torch.py, a PyTorch
 * `Model` whose forward takes the inputs and then the dims. Inside src/eval. Worker's measuring
 * thread. */
#pragma once

#include "eval/measure/session_private.h"

void library_add(struct session *session); /* as the last baseline */
/* Starts a Python with torch; ERR_ENVIRONMENT or what PyTorch says where that cannot be. */
int library_open(struct session *session, struct baseline *baseline, struct err *err) MUST_USE;
