/* store/read: each call reads from one snapshot; nothing that a writer does is seen in part. */
#include "base/log.h"
#include "store/internal.h"
#include "store/record.h"

#include <assert.h>
#include <string.h>

static int damaged_value(enum store_table table, const char *key, struct err *err)
{
    return err_set(err, ERR_CORRUPT,
                   "the stored value %.100s of table %s is damaged: restore a backup of the store, "
                   "or do without what hangs on it",
                   key, store_table_name(table));
}

static int find(const struct environment *environment, MDB_txn *txn, enum store_table table,
                MDB_val *name, MDB_val *record)
{
    if (environment->tables[table] == NO_TABLE)
        return MDB_NOTFOUND;
    return mdb_get(txn, environment->tables[table], name, record);
}

int store_get(struct store *store, enum store_table table, const char *key, struct buf *value,
              struct err *err)
{
    assert(table >= 0 && table < STORE_TABLES);
    buf_reset(value);
    struct store_key stored;
    MDB_txn *txn;
    if (store_key_encode(key, &stored, err) != 0 ||
        environment_read(store->environment, &txn, err) != 0)
        return -1;
    MDB_val name = {stored.length, stored.bytes}, record;
    const char *text;
    size_t length;
    int result = 0;
    int code = find(store->environment, txn, table, &name, &record);
    if (code == MDB_NOTFOUND)
        result = err_set(err, ERR_NOT_FOUND, "there is no %.100s in table %s", key,
                         store_table_name(table));
    else if (code != 0)
        result = environment_error(store->environment, code, err);
    else if (!store_record_read(record.mv_data, record.mv_size, table, stored.bytes, stored.length,
                                &text, &length))
        result = damaged_value(table, key, err);
    else if (length > value->max)
        result = err_set(err, ERR_LIMIT, "%.100s of table %s has %zu bytes: more than %zu", key,
                         store_table_name(table), length, value->max);
    else
        buf_add(value, text, length);
    environment_read_end(store->environment, txn);
    return result;
}

bool store_has(struct store *store, enum store_table table, const char *key)
{
    assert(table >= 0 && table < STORE_TABLES);
    struct err err = {ERR_NONE, ""};
    struct store_key stored;
    MDB_txn *txn;
    if (store_key_encode(key, &stored, &err) != 0)
        return false; /* no such key can have been stored */
    if (environment_read(store->environment, &txn, &err) != 0) {
        log_event(LOG_ERROR, "store.read", key, "%s", err.message);
        return false;
    }
    MDB_val name = {stored.length, stored.bytes}, record;
    int code = find(store->environment, txn, table, &name, &record);
    environment_read_end(store->environment, txn);
    return code == 0;
}

/* A walk over the keys with a prefix; `visit` NULL counts them. */
struct scan {
    const struct environment *environment;
    enum store_table table;
    const char *prefix;
    size_t prefix_length;
    struct store_key start;
    store_visit *visit;
    void *context;
    size_t count;
};

enum scan_step { SCAN_ON, SCAN_END, SCAN_FAILED };

static enum scan_step scan_one(struct scan *scan, const MDB_val *name, const MDB_val *record,
                               struct err *err)
{
    char key[STORE_KEY_MAX + 1];
    if (name->mv_size < scan->start.length ||
        memcmp(name->mv_data, scan->start.bytes, scan->start.length) != 0)
        return SCAN_END;
    if (!store_key_decode(name->mv_data, name->mv_size, key)) {
        (void)environment_damaged(scan->environment->folder, "a key cannot be read", err);
        return SCAN_FAILED;
    }
    if (strncmp(key, scan->prefix, scan->prefix_length) != 0)
        return SCAN_ON;
    scan->count++;
    if (scan->visit == NULL)
        return SCAN_ON;
    const char *text;
    size_t length;
    if (!store_record_read(record->mv_data, record->mv_size, scan->table, name->mv_data,
                           name->mv_size, &text, &length)) {
        (void)damaged_value(scan->table, key, err);
        return SCAN_FAILED;
    }
    return scan->visit(scan->context, key, text, length) ? SCAN_ON : SCAN_END;
}

static int scan_all(struct scan *scan, MDB_txn *txn, struct err *err)
{
    MDB_cursor *cursor;
    if (scan->environment->tables[scan->table] == NO_TABLE)
        return 0;
    int code = mdb_cursor_open(txn, scan->environment->tables[scan->table], &cursor);
    if (code != 0)
        return environment_error(scan->environment, code, err);
    MDB_val name = {scan->start.length, scan->start.bytes}, record;
    code =
        mdb_cursor_get(cursor, &name, &record, scan->start.length > 0 ? MDB_SET_RANGE : MDB_FIRST);
    enum scan_step step = SCAN_ON;
    while (code == 0) {
        step = scan_one(scan, &name, &record, err);
        if (step != SCAN_ON)
            break;
        code = mdb_cursor_get(cursor, &name, &record, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    if (step == SCAN_FAILED)
        return -1;
    if (code != 0 && code != MDB_NOTFOUND)
        return environment_error(scan->environment, code, err);
    return 0;
}

static int scan_run(struct store *store, struct scan *scan, struct err *err)
{
    assert(scan->table >= 0 && scan->table < STORE_TABLES);
    scan->environment = store->environment;
    scan->prefix_length = strlen(scan->prefix);
    MDB_txn *txn;
    if (store_key_prefix(scan->prefix, &scan->start, err) != 0 ||
        environment_read(store->environment, &txn, err) != 0)
        return -1;
    int result = scan_all(scan, txn, err);
    environment_read_end(store->environment, txn);
    return result;
}

int store_scan(struct store *store, enum store_table table, const char *prefix, store_visit *visit,
               void *context, struct err *err)
{
    struct scan scan = {.table = table, .prefix = prefix, .visit = visit, .context = context};
    return scan_run(store, &scan, err);
}

int store_count(struct store *store, enum store_table table, const char *prefix, size_t *count,
                struct err *err)
{
    struct scan scan = {.table = table, .prefix = prefix};
    *count = 0;
    if (scan_run(store, &scan, err) != 0)
        return -1;
    *count = scan.count;
    return 0;
}

uint64_t store_version(struct store *store)
{
    /* Of a reader's own: while a commit is being synced mdb_env_info() has its number already,
     * though a reader that begins then still sees the one before. */
    struct err ignored;
    MDB_txn *txn;
    if (environment_read(store->environment, &txn, &ignored) != 0)
        return 0;
    uint64_t version = mdb_txn_id(txn);
    environment_read_end(store->environment, txn);
    return version;
}
