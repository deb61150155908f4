/* cli/run/no_starts: a problem that a search has nothing to begin with, for want of starts and of a
 * model: what is known of it, a source to fill in, and what to do next. */
#pragma once

#include "cli/options/settings.h"

/* An exit code, or -1: it has starts, or cannot be read, which whoever goes on with it tells. */
int no_starts(const struct settings *settings, const char *problem);
