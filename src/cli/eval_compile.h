/* cli/eval_compile: what can be said of a CUDA candidate where there is no GPU: its front matter
 * read, its source compiled, its launch plan computed as for the GPU that most have in mind. No
 * verdict, unless one of these is wrong. Main thread; blocks. */
#ifndef CLI_EVAL_COMPILE_H
#define CLI_EVAL_COMPILE_H

#include "cli/eval.h"

struct eval_compile { /* borrowed */
    const struct settings *settings;
    const char *problem, *name, *source;
    size_t length;
    const char *tune;    /* JSON object, or NULL */
    eval_printer *print; /* of what is wrong; NULL: as eval does */
};

/* EXIT_NONE where the candidate is wrong, EXIT_ENVIRONMENT where nothing was found against it. */
/* -1: there is a GPU. */
int eval_compile(const struct eval_compile *asked);

#endif
