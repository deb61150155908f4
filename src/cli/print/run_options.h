/* cli/print/run_options: the options that a run was told, as a person would give them again. Main
 * thread.
 */
#pragma once

#include "agents/record/record.h"

/* "--budget-time 25s", "--no-final", ...: those of the record that are not the defaults, in the
 * table's order. In `arena`, as the texts are. */
const char *const *run_options(struct arena *arena, const struct run_record *run, size_t *count);
/* All in one line; "all defaults" where there is none. */
const char *run_options_line(struct arena *arena, const struct run_record *run);
/* "--budget-time 20m": twice what ended the run. */
const char *run_options_larger(struct arena *arena, const struct run_record *run);
