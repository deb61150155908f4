/* cli/cache_use: what eval and run ask of the cache, and leave there. Nothing here fails them: what
 * cannot be asked or kept is measured, or goes without. Main thread; blocks. */
#pragma once

#include "agents/record/record.h"
#include "cache/cache.h"
#include "cli/options/settings.h"

struct cache_ask { /* one evaluation's */
    struct arena *arena;
    bool known; /* there is an entry, and it may be told */
    struct cache_entry entry;
    struct question question; /* text NULL: it cannot be cached */
    const char *problem, *file, *source;
};

/* An entry for this source with these numbers (JSON, or NULL), where the lane answered `facts`:
 * {"device": {...}, "versions": {...}, ...}. With --force none is known. */
void cache_ask_eval(const struct settings *settings, struct arena *arena, const char *problem,
                    const char *file, const char *source, const char *tune,
                    const struct value *facts, struct cache_ask *ask);
/* Keeps a verdict, and says under which name; on stderr why it was not kept. */
void cache_keep(const struct settings *settings, const struct cache_ask *ask,
                const struct evaluation *evaluation);

/* `choice`: of models, as a run's record has it, or NULL. True: an earlier run has answered all of
 * this, and that was printed; *code is the exit code. */
bool cache_answers_run(const struct settings *settings, const char *choice, int *code);
void cache_keep_found(const struct settings *settings, struct store *store, const char *run);

/* A line that says that what follows is an old answer, and from when. */
void cache_say(const struct cache_entry *entry);
/* {"name", "written", ...}: member "cached" of an open object. */
void cache_put(const struct cache_entry *entry, struct json *json);

/* Of all files that a definition is made of; ERR_USAGE where one lies outside of its folder. */
int cache_definition(struct arena *arena, const struct problem *problem, const char *baseline,
                     struct hash *hash, struct err *err) MUST_USE;
/* "3 h", "12 d": how long ago. */
const char *cache_age(uint64_t written_ms, char text[32]);
