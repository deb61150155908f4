/* process/python_probe: which Python has numpy, or torch. Inside src/eval/reference. Blocking.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

struct interpreter {
    const char *path, *prefix, *base_prefix; /* absolute; in the arena */
    const char *python, *package;            /* versions */
    /* A folder with the package's byte code, where what is installed came without it and would be
     * compiled at each import; else "". Ours, in $XDG_CACHE_HOME or ~/.cache: a trusted process
     * that imports the package and nothing else fills it. */
    const char *bytecode;
    const char *folder; /* the package's own; "": not known */
};

/* `configured`, or else the first of $VIRTUAL_ENV, every python3 on PATH, and /usr/bin/python3 that
 * imports `package` ("numpy", "torch") in time. ERR_ENVIRONMENT says what was tried. */
int interpreter_find(const char *configured, const char *package, struct arena *arena,
                     struct interpreter *interpreter, struct err *err) MUST_USE;

/* The first with numpy, which is not imported, a tenth of a second of work: that its library can be
 * loaded is enough. `package` is "". */
int interpreter_find_numpy(const char *configured, struct arena *arena,
                           struct interpreter *interpreter, struct err *err) MUST_USE;

/* The first with torch, which is not imported either, one to three seconds of work: whoever starts
 * it imports it, and says what is wrong then. `package` is "". */
int interpreter_find_torch(const char *configured, struct arena *arena,
                           struct interpreter *interpreter, struct err *err) MUST_USE;

/* The first with Triton, whose import is a fifth of a second of work: that its library can be
 * loaded and its version read is enough. */
int interpreter_find_triton(const char *configured, struct arena *arena,
                            struct interpreter *interpreter, struct err *err) MUST_USE;

/* Where a PyTorch has such a folder, byte code of what its compiler imports, too: twice as much as
 * itself. Once; by a process that goes on for seconds while we do, and ends with us. */
void interpreter_fill(const struct interpreter *found);
