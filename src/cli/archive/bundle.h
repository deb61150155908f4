/* cli/archive/bundle: a kernel of the store with its problem and its evidence as one file. Main
 * thread. */
#pragma once

#include "agents/record/record.h"
#include "cli/options/settings.h"
#include "store/store.h"

/* Writes settings->bundle and says so. ERR_USAGE where it is no kernel, or where its problem needs
 * what a bundle cannot hold. */
int bundle_write(const struct settings *settings, struct store *store, struct arena *arena,
                 const struct candidate_record *candidate, struct err *err) MUST_USE;
