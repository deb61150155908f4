/* One measurement from its first call to its last. */
#pragma once

#include "eval/measure/session.h"

/* All three steps, as the worker takes them. */
static inline int session_measure(struct session *session, const struct measure_request *request,
                                  struct arena *arena, struct evaluation *evaluation,
                                  struct err *err)
{
    int status = session_check(session, request, arena, evaluation, err);
    if (status == 0)
        status = session_time(session, err);
    struct err ignored;
    if (session_finish(session, status == 0 ? err : &ignored) != 0)
        status = -1;
    return status;
}
