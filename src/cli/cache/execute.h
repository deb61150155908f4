/* cli/cache/execute: a cached kernel, called once on a person's own arrays. Main thread; blocks. */
#pragma once

#include "cache/cache.h"
#include "cli/options/settings.h"

/* `files`: .npy, the problem's inputs in order; settings->output: the output, or a folder for
 * several. The kernel runs where kernels run (docs/threat-model.md). ERR_USAGE where an array is
 * not what the entry is for, where the problem is no longer what the kernel was checked against, or
 * where it was rejected. */
int cache_execute(const struct settings *settings, struct arena *arena,
                  const struct cache_entry *entry, const char *const *files, size_t count,
                  struct err *err) MUST_USE;
