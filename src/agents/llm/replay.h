/* agents/llm/replay: the answers of a recorded run, by who asked for what: the asker without its
 * run's name ("c17" of "r3-c17"), the purpose, and which request of that asker and purpose it was.
 * Any thread; the first look-up reads the whole table of completions. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "store/store.h"

struct replay { /* opaque but for its link */
    struct link link;
    char *run;
    struct replay_index *index; /* NULL: not read yet */
};

struct replay *replay_new(const char *run);
void replay_free(struct replay *replay); /* NULL is fine */

/* Puts the record of `name` ("c17") into `value`; ERR_NOT_FOUND names what the run does not have.
 * Blocks. */
int replay_find(struct replay *replay, struct store *store, const char *name, const char *purpose,
                int64_t step, struct buf *value, struct err *err) MUST_USE;

/* "c17" of "r3-c17" where the run is r3; else the whole. */
const char *replay_name(const char *asker, const char *run);
