/* cli/run/run: a search in this terminal, from the first request to the report, new or gone on
 * with. */
#pragma once

#include "cli/options/settings.h"
#include "cli/run/chosen.h"

/* As settings->search says, but for the models, which are `chosen`; `folder` is the store's. Asks
 * first whether the models are there. SIGINT, SIGTERM and SIGHUP stop it, SIGUSR1 pauses it,
 * SIGUSR2 lets it go on. Returns the process' exit code. */
int run_search(struct arena *arena, struct settings *settings, const struct chosen *chosen,
               const char *folder);
