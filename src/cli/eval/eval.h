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
    const char *tune; /* JSON object of numbers; NULL: each one's first */
    const char *rival_name, *rival_source, *rival_tune; /* timed with it; NULL: the baseline */
    size_t rival_length;
    const char *rival;   /* as a person called it */
    uint64_t within_ms;  /* then it is given up: ERR_TIMEOUT; 0: as long as it takes */
    bool cached;         /* an earlier answer will do, and this one is kept */
    eval_printer *print; /* NULL: as `eval` prints */
    void *context;       /* the printer's */
};

/* Evaluates them in a lane of their own, prints, and returns the exit code: EXIT_WIN for a kernel.
 * A name.cu goes to the backend cuda unless the command line names one. */
int eval_kernels(const struct settings *settings, const struct eval_kernel *kernels, size_t count);
int eval_kernel(const struct settings *settings, const struct eval_kernel *kernel); /* one */
/* What runs it: the backend of the file's language, whatever a configuration says of others. */
struct settings eval_settings_for(const struct settings *settings, const char *file);

/* --- files.c --- */
/* The same of PROBLEM and FILE, the first two of `arguments`, or of PROBLEM and each further FILE,
 * one after the other in one lane: then the worst exit code. */
int eval_run(const struct settings *settings, const char *const *arguments, size_t count,
             eval_printer *print);
