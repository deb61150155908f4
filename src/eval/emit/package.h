/* eval/emit/package: a kernel as its user will have it: its package, built and loaded in a Python
 * process, called on arrays or tensors that Python allocated. Blocking; worker's measuring thread.
 *
 * The process is as disposable as a runner, and as little believed: it has the region's inputs to
 * read and its outputs to write, and a reference's sandbox. What it says decides nothing but
 * whether a call has ended. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/emit/emit.h"

struct package_request {       /* borrowed */
    struct emission *emission; /* its folder is not there yet, and removed with the subject */
    const struct emitter *emitter;
    const struct lane_facts *lane;
    const struct region *region;
    const struct torch_device *device; /* that the package computes on; NULL: the CPU */
    const char *python;                /* configured, or NULL */
};

/* *library: "PyTorch 2.9.1", "numpy 2.4", in the emission's arena. Any error says why there is no
 * such process: no Python, no compiler, a package that cannot be loaded. */
int package_open(const struct package_request *request, struct subject **subject,
                 const char **library, struct err *err) MUST_USE;
