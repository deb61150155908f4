/* cli/search_settings: from settings to what a search is told. Main thread. */
#ifndef CLI_SEARCH_SETTINGS_H
#define CLI_SEARCH_SETTINGS_H

#include "agents/search/options.h"
#include "cli/settings.h"

/* Every setting that a search knows; or, with `given`, those that the command line names alone,
 * over what *options holds. Problem, models, choice and resume are the caller's. */
void search_settings_apply(const struct settings *settings, bool given,
                           struct search_options *options);

#endif
