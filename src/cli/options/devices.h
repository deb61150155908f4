/* cli/options/devices: what --devices says. Main thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* "0", "0,2" or "all"; NULL is fine. ERR_USAGE on anything else, and where one is named twice: two
 * workers would time on it in turns, and each would wait for the other. */
int devices_check(const char *text, struct err *err) MUST_USE;

/* The first one, as a worker is told: 0 for "all"; -1 where devices_check() refuses it. */
int devices_first(const char *text);

/* What a run's lanes are told: "all" becomes the numbers of those that the driver shows, as
 * CUDA_VISIBLE_DEVICES has it; NULL where the backend has none. In `arena`. Blocks. */
int devices_resolve(struct arena *arena, const char *backend, const char *launcher,
                    const char **devices, struct err *err) MUST_USE;
