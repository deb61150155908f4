/* cli/report/fill: what the store knows of a run, as the report's plain values. Any thread. */
#pragma once

#include "agents/record/record.h"
#include "report/report.h"
#include "store/store.h"

/* Texts in `arena`; a table that cannot be read is an empty one. `problem`: its file is read, too,
 * for its description and dims; a PyTorch file takes a Python. */
void report_fill(struct store *store, struct arena *arena, const struct run_record *run,
                 bool problem, struct report *report);
