/* eval/reference_probe: which Python has numpy. Inside src/eval/reference*.c. Blocking. */
#ifndef EVAL_REFERENCE_PROBE_H
#define EVAL_REFERENCE_PROBE_H

#include "base/arena.h"
#include "base/err.h"

struct interpreter {
    const char *path, *prefix, *base_prefix; /* absolute; in the arena */
    const char *python, *numpy;              /* versions */
};

/* `configured`, or else the first of $VIRTUAL_ENV, every python3 on PATH, and /usr/bin/python3 that
 * imports numpy within ten seconds. ERR_ENVIRONMENT says what was tried. */
int interpreter_find(const char *configured, struct arena *arena, struct interpreter *interpreter,
                     struct err *err) MUST_USE;

#endif
