/* store/internal: what the files of src/store share beyond their own headers, and hooks for tests.
 * Nobody else includes it, tests of src/store apart. */
#pragma once

#include "base/err.h"
#include "store/environment.h"
#include "store/key.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

struct store {
    struct environment *environment;
    bool owner;
};

#define STORE_MAP_BYTES ((size_t)64 << 30) /* address space only */
#define STORE_FILE      "data.mdb"
#define STORE_MARK      "twagent-store"

struct store_operation {
    enum store_table table;
    size_t key_length, size; /* size 0: a removal */
    unsigned char *bytes;    /* the key, then the record */
};

struct store_batch {
    struct store_operation *operations;
    size_t count, capacity;
    struct err err; /* the first thing that could not be put in; the commit says it */
};

/* ---- the tables inside the data file ---- */

enum { STORE_TABLE_UNKNOWN = 256 };

/* The store's own table: "schema" and "next_run". */
#define STORE_SELF_NAME "store"

/* The last table of the first stores of this schema; each that came later may be missing. */
enum { STORE_TABLES_FIRST = STORE_LESSONS };

const char *store_table_name(enum store_table table);

/* An enum store_table, STORE_TABLE_SELF, or STORE_TABLE_UNKNOWN. */
unsigned store_table_number(const char *name);

/* ---- the data file ---- */

/* Opens the LMDB environment of one that is there, after looking it over: sets `lmdb` and the
 * tables. ERR_CORRUPT, ERR_UNSUPPORTED with what to do. */
int environment_open(struct environment *environment, struct err *err) MUST_USE;

/* One transaction for several batches, in order. ERR_LIMIT as soon as one holds an error. */
int store_commit_all(struct store *store, const struct store_batch *const *batches, size_t count,
                     struct err *err) MUST_USE;

/* Makes the data file of a new store; the caller owns the folder. A data file that is there is
 * whole: it is made beside its place, synced and renamed. */
int store_create_files(const char *folder, size_t map_bytes, struct err *err) MUST_USE;

/* Writes the mark that says "there was a data file here"; store_mark_there() looks for it. */
int store_mark(const char *folder, struct err *err) MUST_USE;
bool store_mark_there(const char *folder);

/* Tests: a store with a small map, and a write that fails. The n-th LMDB call of a commit from now
 * on (1: the next) fails with `code` (MDB_MAP_FULL, EIO, ...); 0 disarms. */
int store_open_sized(const char *folder, bool create, bool read_only, size_t map_bytes,
                     struct store **store, struct err *err) MUST_USE;
void store_fail_commit_after(int calls, int code);

/* Tests: how long a writer waits for room before it tries again. */
struct store_writer;
void store_writer_retry_after(struct store_writer *writer, uint64_t ms);
