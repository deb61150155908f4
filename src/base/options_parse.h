/* base/options_parse: from one text to one field, and back; inside base/options*.c only.
 * Main thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/options.h"

#include <stdbool.h>

/* Stores what `text` says in the option's field of `target`; texts are copied into the arena.
 * Errors: ERR_USAGE, "expected ..., not "..."", without saying where. */
int option_store(const struct option *option, void *target, const char *text, struct arena *arena,
                 struct err *err) MUST_USE;

/* Writes the field of `target` as option_store() would read it; false where it is not set. */
bool option_write(const struct option *option, const void *target, struct buf *out);

/* "N", "DURATION", ...: what stands for the value in help; NULL for a bool. */
const char *option_metavar(const struct option *option);

/* "from 1 to 64", "one of a, b", or nothing. */
void option_write_range(const struct option *option, struct buf *out);
