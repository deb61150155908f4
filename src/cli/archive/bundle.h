/* cli/archive/bundle: a kernel of the store with its problem and its evidence as one file. Main
 * thread. */
#pragma once

#include "agents/record/record.h"
#include "cli/options/settings.h"
#include "eval/problem/problem.h"
#include "proof/bundle.h"
#include "store/store.h"

/* Writes settings->bundle and says so. ERR_USAGE where it is no kernel, or where its problem needs
 * what a bundle cannot hold. */
int bundle_write(const struct settings *settings, struct store *store, struct arena *arena,
                 const struct candidate_record *candidate, struct err *err) MUST_USE;

/* The files that a problem is made of, those of `baseline` among them, into bundle->files; and its
 * name, entry and size. */
int bundle_pack(struct arena *arena, const struct problem *problem, const char *baseline,
                struct bundle *bundle, struct err *err) MUST_USE;
