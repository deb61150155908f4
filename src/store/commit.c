/* store/commit: a write transaction is begun and ended in one call, since LMDB's write lock
 * belongs to the thread. It is synced when the call returns, or it never was. */
#include "store/internal.h"
#include "store/record.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int fault_calls, fault_code;

void store_fail_commit_after(int calls, int code)
{
    atomic_store(&fault_code, code);
    atomic_store(&fault_calls, calls);
}

/* True: this call is the one that is to fail. */
static bool fault(int *code)
{
    if (atomic_load(&fault_calls) <= 0 || atomic_fetch_sub(&fault_calls, 1) != 1)
        return false;
    *code = atomic_load(&fault_code);
    return true;
}

static int begin(struct environment *environment, MDB_txn **txn)
{
    int code;
    if (fault(&code))
        return code;
    return mdb_txn_begin(environment->lmdb, NULL, 0, txn);
}

static int commit(MDB_txn *txn)
{
    int code;
    if (fault(&code)) {
        mdb_txn_abort(txn);
        return code;
    }
    return mdb_txn_commit(txn);
}

static int put(MDB_txn *txn, MDB_dbi table, MDB_val *key, MDB_val *record)
{
    int code;
    if (fault(&code))
        return code;
    return mdb_put(txn, table, key, record, 0);
}

static int apply(struct environment *environment, MDB_txn *txn,
                 const struct store_operation *operation)
{
    MDB_dbi table = environment->tables[operation->table];
    MDB_val key = {operation->key_length, operation->bytes};
    MDB_val record = {operation->size, operation->bytes + operation->key_length};
    if (operation->size > 0)
        return put(txn, table, &key, &record);
    int code;
    if (!fault(&code))
        code = mdb_del(txn, table, &key, NULL);
    return code == MDB_NOTFOUND ? 0 : code;
}

static int apply_all(struct environment *environment, MDB_txn *txn,
                     const struct store_batch *const *batches, size_t count)
{
    for (size_t b = 0; b < count; b++)
        for (size_t i = 0; i < batches[b]->count; i++) {
            int code = apply(environment, txn, &batches[b]->operations[i]);
            if (code != 0)
                return code;
        }
    return 0;
}

/* Says what went wrong, and leaves the store so that the next try can go well. */
static int failed(struct environment *environment, int code, struct err *err)
{
    if (code == EROFS) /* it was writable when it was opened, and may be so again */
        (void)err_set(err, ERR_FULL,
                      "the file system of the store %s has become read-only; nothing is lost: "
                      "mount it writable again, and the write can be tried again",
                      environment->folder);
    else
        (void)environment_error(environment, code, err);
    environment_heal(environment, code);
    return -1;
}

/* `code`: of all that came before; `txn` NULL where there was none. */
static int end(struct environment *environment, MDB_txn *txn, int code, struct err *err)
{
    if (code == 0)
        code = commit(txn);
    else if (txn != NULL)
        mdb_txn_abort(txn);
    environment_leave(environment);
    return code == 0 ? 0 : failed(environment, code, err);
}

int store_commit_all(struct store *store, const struct store_batch *const *batches, size_t count,
                     struct err *err)
{
    assert(store->owner);
    for (size_t b = 0; b < count; b++)
        if (batches[b]->err.code != ERR_NONE)
            return err_set(err, batches[b]->err.code, "%s", batches[b]->err.message);
    struct environment *environment = store->environment;
    if (environment_enter(environment, err) != 0)
        return -1;
    MDB_txn *txn = NULL;
    int code = begin(environment, &txn);
    if (code == 0)
        code = apply_all(environment, txn, batches, count);
    return end(environment, txn, code, err);
}

int store_commit(struct store *store, const struct store_batch *batch, struct err *err)
{
    return store_commit_all(store, &batch, 1, err);
}

static int read_number(MDB_txn *txn, MDB_dbi self, const struct store_key *key, uint64_t *number)
{
    MDB_val name = {key->length, (void *)key->bytes}, record;
    const char *text;
    char *end;
    size_t length;
    int code = mdb_get(txn, self, &name, &record);
    if (code == MDB_NOTFOUND)
        return MDB_CORRUPTED; /* every store is made with one */
    if (code != 0)
        return code;
    if (!store_record_read(record.mv_data, record.mv_size, STORE_TABLE_SELF, key->bytes,
                           key->length, &text, &length))
        return MDB_CORRUPTED;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' ? MDB_CORRUPTED : 0;
}

static int take_number(struct environment *environment, MDB_txn *txn, const struct store_key *key,
                       uint64_t *number)
{
    int code = read_number(txn, environment->self, key, number);
    if (code != 0)
        return code;
    ++*number;
    char text[24];
    int length = snprintf(text, sizeof text, "%llu", (unsigned long long)*number);
    unsigned char bytes[STORE_RECORD_HEADER + sizeof text];
    store_record_write(bytes, STORE_TABLE_SELF, key, text, (size_t)length);
    MDB_val name = {key->length, (void *)key->bytes};
    MDB_val record = {store_record_size((size_t)length), bytes};
    return put(txn, environment->self, &name, &record);
}

int store_next_run(struct store *store, uint64_t *number, struct err *err)
{
    assert(store->owner);
    struct environment *environment = store->environment;
    struct store_key key;
    uint64_t taken = 0;
    if (store_key_encode("next_run", &key, err) != 0 || environment_enter(environment, err) != 0)
        return -1;
    MDB_txn *txn = NULL;
    int code = begin(environment, &txn);
    if (code == 0)
        code = take_number(environment, txn, &key, &taken);
    int status = end(environment, txn, code, err);
    if (status == 0)
        *number = taken;
    return status;
}
