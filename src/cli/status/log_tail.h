/* cli/status/log_tail: the end of a run's log file (base/log_file), read back. Any thread; blocks.
 */
#pragma once

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct log_line { /* texts in the arena */
    const char *wall, *level, *kind;
    const char *text; /* subject and message */
};

struct log_tail {
    struct log_line *lines; /* the last that are news, oldest first */
    size_t count;
    struct log_line *providers; /* what each endpoint said last, unless that it is ready */
    size_t provider_count;
};

/* At most `most` lines of `path`; none where there is no such file. */
struct log_tail log_tail_read(struct arena *arena, const char *path, size_t most);

/* "02:13:44", local, of a line's wall clock. */
const char *log_tail_clock(const char *wall, char text[32]);
