/* cache: verdicts that are still true, by what they answer (cache/question.h), in the folder cache/
 * of a store: an LMDB environment of the same kind (store/store.h). Each fact is in one place. What
 * `eval` found lies here and nowhere else; of a run there is its id alone, and the run's own
 * records say the rest. The files c_NAME.json and r_NAME.json beside it are copies for people and
 * tools: nothing reads them. Main thread; blocks. docs/cache.md says who may believe what. */
#pragma once

#include "cache/question.h"
#include "eval/data/evaluation.h"
#include "store/store.h"

struct cache; /* opaque */

struct cache_entry {  /* texts in the arena that it was read into */
    const char *name; /* "c_matmul_i512x512_512x512_o512x512_h0123456789ab.json" */
    const char *key, *about;
    const char *by;           /* "eval", "run" */
    const char *run, *kernel; /* "r3", "r3-c17"; "" of eval */
    const char *problem, *problem_file, *file, *source;
    const char *asked; /* the question's text */
    const struct value *question;
    bool accepted; /* c_: a kernel. r_: rejected, or failed */
    bool ended;    /* of a run: all that was asked is done, and its kernel is a verified win */
    int64_t seed;  /* of a run */
    uint64_t written_ms;
    size_t bytes; /* of its file */
    struct evaluation evaluation;
};

/* ERR_NOT_FOUND: there is none yet, which `write` makes. ERR_ENVIRONMENT: others may write to it,
 * so that nothing in it is evidence. Waits for another writer, who is never long. */
int cache_open(const char *store_folder, bool write, struct cache **cache,
               struct err *err) MUST_USE;
void cache_close(struct cache *cache); /* NULL is fine */
const char *cache_folder(const struct cache *cache);

/* The entry of this very question. False: there is none that can be read. */
bool cache_find(struct cache *cache, struct arena *arena, const struct question *question,
                struct cache_entry *entry);
/* Newest first; what cannot be read, or whose run is gone, is counted in *damaged. */
int cache_list(struct cache *cache, struct arena *arena, struct cache_entry **entries,
               size_t *count, size_t *damaged, struct err *err) MUST_USE;

/* May this be told in place of measuring: a kernel, all checks passed, no caveat, not too noisy. */
bool cache_is_answer(const struct cache_entry *entry);

/* In place of what was there for the question; *name is in the arena. */
int cache_keep_eval(struct cache *cache, struct arena *arena, const struct question *question,
                    const char *problem_file, const char *file, const char *source,
                    const struct evaluation *evaluation, const char **name,
                    struct err *err) MUST_USE;
int cache_keep_run(struct cache *cache, struct arena *arena, const struct question *question,
                   const char *run, const char **name, struct err *err) MUST_USE;

int cache_remove(struct cache *cache, const struct cache_entry *const *entries, size_t count,
                 struct err *err) MUST_USE;
/* The folder with all that is in it, readable or not. */
int cache_remove_all(const char *store_folder, struct err *err) MUST_USE;

/* The file's text: an object. */
void cache_entry_json(const struct cache_entry *entry, struct json *json);
