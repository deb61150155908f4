/* cli/eval/eval: one candidate through everything, once, for whoever prints what comes of it. Main
 * thread. */
#pragma once

#include "base/value.h"
#include "cli/options/settings.h"
#include "eval/data/evaluation.h"

/* Gets the verdict and the lane's facts (or NULL), for stdout, as JSON or as text. */
typedef void eval_printer(void *context, const struct evaluation *evaluation,
                          const struct value *facts, bool json);

struct eval_kernel {     /* borrowed */
    const char *problem; /* as problem_load() takes it */
    const char *name;    /* the source's file name */
    const char *source;
    size_t length;
    const char *tune;    /* JSON object of numbers; NULL: each one's first */
    uint64_t within_ms;  /* then it is given up: ERR_TIMEOUT; 0: as long as it takes */
    bool cached;         /* an earlier answer will do, and this one is kept */
    eval_printer *print; /* NULL: as `eval` prints */
    void *context;       /* the printer's */
};

/* Evaluates it in a lane of its own, prints, and returns the exit code: EXIT_WIN for a kernel. A
 * name.cu goes to the backend cuda unless the command line names one. */
int eval_kernel(const struct settings *settings, const struct eval_kernel *kernel);
/* The same of PROBLEM and FILE, the two `arguments`. */
int eval_run(const struct settings *settings, const char *const *arguments, eval_printer *print);
