/* cli/eval: one candidate through everything, once, for whoever prints what comes of it. Main
 * thread. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "base/value.h"
#include "cli/settings.h"
#include "eval/data/evaluation.h"

/* Gets the verdict and the lane's facts (or NULL), for stdout, as JSON or as text. */
typedef void eval_printer(const struct evaluation *evaluation, const struct value *facts,
                          bool json);

/* As command_eval(), whose exit code it returns; `arguments`: PROBLEM, FILE. A FILE.cu goes to the
 * backend cuda unless the command line names one. */
int eval_run(const struct settings *settings, const char *const *arguments, eval_printer *print);

#endif
