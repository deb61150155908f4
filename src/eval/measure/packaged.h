/* eval/measure/packaged: calls of a finalist's package. Inside src/eval/measure. */
#pragma once

#include "eval/emit/emit.h"
#include "eval/measure/session_private.h"

enum { PACKAGED_MS = 5000 }; /* what it takes, mostly PyTorch's import and two compiles */

/* There is such a package. */
static inline bool packaged_applies(const struct session *session)
{
    const struct emitter *emitter = session->backend->emitter;
    return emitter != NULL && emitter->python != NULL;
}

/* After all that is timed. 0 also where it was not tried, which left_out says. */
int measure_packaged(struct bench *bench, struct err *err) MUST_USE;
void packaged_put(const struct bench *bench, struct json *json); /* "package", if it was called */
