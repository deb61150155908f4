/* cli/archive/archive: what history, stats, diff and export have in common: reading the table of
 * kernels that their arguments name. Main thread. */
#pragma once

#include "base/buf.h"
#include "cli/options/settings.h"
#include "facts/kernels.h"

/* The rows of a query, of the problem that `word` means (find_definition(); NULL: of all).
 * ERR_NOT_FOUND with a sentence where there is no such problem or none yet. */
int archive_read(const struct settings *settings, struct arena *arena,
                 const struct kernel_query *query, const char *word, struct kernel_row **rows,
                 size_t *count, struct err *err) MUST_USE;

/* Text that a model or a file said, for a terminal: at most `most` bytes of its first line, or all
 * lines with 0; what would move the cursor or turn the writing round stands as "\x1b", "\u202e". */
void archive_visible(const char *text, size_t most, struct buf *out);
