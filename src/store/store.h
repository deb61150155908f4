/* store/store: what a run leaves behind, in LMDB: every commit synced, one owner, one writer.
 * Reads: any thread, one snapshot each. Writes: store_commit() blocks on fsync, so call it on a
 * pool thread (loop/work); batches are committed whole or not at all.
 *
 * Values are JSON texts behind a header of magic, schema version, length and checksum; a damaged
 * value is ERR_CORRUPT with its key, never an empty answer. A full disk or map is ERR_FULL: the
 * batch is kept by the caller, nothing is lost, and the commit can be tried again. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store; /* opaque */

enum store_table {                    /* key -> value */
                   STORE_RUNS,        /* "r3" */
                   STORE_IDEAS,       /* "r3-i12" */
                   STORE_CANDIDATES,  /* "r3-c17": source hash, idea, parent, tune, state */
                   STORE_EVALUATIONS, /* "r3-c17": verdict, samples, metrics */
                   STORE_COMPLETIONS, /* request hash: request, answer, usage, cost */
                   STORE_SOURCES,     /* source hash: the text */
                   STORE_EVENTS,      /* "r3-000000042" */
                   STORE_FACTS, /* "machine/roofline", "python/path": measured once and cached */
                   STORE_LESSONS,
                   STORE_SPENDING, /* "r3-17": what one request may cost, then what it did */
                   STORE_PASSAGES, /* "r3-c17/implement": which a prompt held; "p01...": a text */
                   STORE_TABLES
};

/* Creates the folder where `create`. ERR_BUSY where another process owns it (message has its pid),
 * ERR_CORRUPT with what to do, ERR_UNSUPPORTED for a newer schema. `read_only` needs no ownership.
 */
int store_open(const char *folder, bool create, bool read_only, struct store **store,
               struct err *err) MUST_USE;
void store_close(struct store *store); /* NULL is fine */
/* Closes, and removes a store that this owner's store_open() made and that no run is in: true. */
bool store_close_unused(struct store *store);

/* Puts the value into the emptied buf as text. ERR_NOT_FOUND where there is none. */
int store_get(struct store *store, enum store_table table, const char *key, struct buf *value,
              struct err *err) MUST_USE;
bool store_has(struct store *store, enum store_table table, const char *key);

/* Visits keys with `prefix` in natural order (r3-c2 before r3-c10) from one snapshot, until
 * `visit` returns false. A damaged value ends the scan with ERR_CORRUPT. */
typedef bool store_visit(void *context, const char *key, const char *value, size_t length);
int store_scan(struct store *store, enum store_table table, const char *prefix, store_visit *visit,
               void *context, struct err *err) MUST_USE;
int store_count(struct store *store, enum store_table table, const char *prefix, size_t *count,
                struct err *err) MUST_USE;

/* The last commit's number: another one where anything may have changed. What is read after it is
 * at least as new. */
uint64_t store_version(struct store *store);

/* A batch copies what it is given. A key over 511 bytes as stored (digit runs take up to 3 more
 * than they have), an empty one, or a value over 64 MiB makes its commit fail with ERR_LIMIT. */
struct store_batch; /* opaque */
struct store_batch *store_batch_new(void);
void store_batch_free(struct store_batch *batch);
void store_batch_put(struct store_batch *batch, enum store_table table, const char *key,
                     const char *value, size_t length);
void store_batch_remove(struct store_batch *batch, enum store_table table, const char *key);
bool store_batch_empty(const struct store_batch *batch);

int store_commit(struct store *store, const struct store_batch *batch, struct err *err) MUST_USE;

/* The next run's number, taken and committed at once: 1, 2, 3... */
int store_next_run(struct store *store, uint64_t *number, struct err *err) MUST_USE;

/* Compacted copy while a run goes on (another process may own the store). */
int store_backup(const char *folder, const char *target, struct err *err) MUST_USE;

/* Frees what dead readers hold on to, which else lets the file grow, and gives back the map's pages
 * that this process has read: the owner, now and then. */
int store_check_readers(struct store *store, size_t *cleared, struct err *err) MUST_USE;

const char *store_folder(const struct store *store); /* absolute; for the store's life */
/* $TWAGENT_STORE, else $XDG_STATE_HOME/twagent, else ~/.local/state/twagent. mem_free() it. */
char *store_default_folder(void);
