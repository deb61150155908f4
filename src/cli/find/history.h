/* cli/find/history: the store that the settings name, and what else list, show, best and the report
 * read beside facts/records. Main thread. */
#pragma once

#include "cli/options/settings.h"
#include "facts/records.h"
#include "report/report.h"

/* Opens the store for reading: settings->store, else the default folder. */
int history_open(const struct settings *settings, struct store **store, struct err *err) MUST_USE;

/* A run's pauses, oldest first; *items is in the arena. */
void history_pauses(struct arena *arena, const struct run_record *run, struct report_pause **items,
                    size_t *count);
