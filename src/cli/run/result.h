/* cli/run/result: what a finished run prints and leaves: result, report, kernel file, exit code. */
#pragma once

#include "agents/search/search.h"
#include "cli/options/settings.h"
#include "store/store.h"

#include <stdio.h>

/* `folder` is the store's. Writes the report there (or to --report) and prints the result, as text
 * or as one JSON object. Returns the process' exit code: 4 where answers of a mailbox are awaited,
 * else 0 where a win was verified, 4 where a budget or a person stopped the run before one was, 1
 * otherwise. */
int run_result(const struct settings *settings, struct store *store, const struct search *search,
               const char *folder);

/* After a failure: that nothing is lost, and how to go on. */
void run_result_hint(const struct search *search, FILE *out);
