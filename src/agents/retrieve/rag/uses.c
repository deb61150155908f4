/* How often a passage stood in prompts of a purpose, and how often those led to a win. */
#include "agents/retrieve/rag/uses.h"

#include <string.h>

struct use_key {
    unsigned char bytes[16];
};

static struct use_key use_key(const char *purpose, uint64_t id)
{
    struct use_key key;
    uint64_t hash = hash_checksum(purpose, strlen(purpose), 1);
    memcpy(key.bytes, &hash, sizeof hash);
    memcpy(key.bytes + sizeof hash, &id, sizeof id);
    return key;
}

int use_read(struct rag *rag, MDB_txn *txn, const char *purpose, uint64_t id, struct rag_use *use,
             struct err *err)
{
    struct use_key key = use_key(purpose, id);
    MDB_val value;
    *use = (struct rag_use){0, 0};
    if (database_get(rag, txn, TABLE_USES, &key, sizeof key, &value, err) != 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    if (value.mv_size != sizeof *use)
        return err_set(err, ERR_CORRUPT, "the index %s: a damaged count", rag->folder);
    memcpy(use, value.mv_data, sizeof *use);
    return 0;
}

int rag_note_use(struct rag *rag, const char *purpose, const uint64_t *ids, size_t count, bool won,
                 struct err *err)
{
    MDB_txn *txn;
    if (database_write(rag, &txn, err) != 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct use_key key = use_key(purpose, ids[i]);
        struct rag_use use;
        if (use_read(rag, txn, purpose, ids[i], &use, err) != 0) {
            mdb_txn_abort(txn);
            return -1;
        }
        use.prompts++;
        use.wins += won;
        if (database_put(rag, txn, TABLE_USES, &key, sizeof key, &use, sizeof use, err) != 0) {
            mdb_txn_abort(txn);
            return -1;
        }
    }
    return database_commit(rag, txn, err);
}

int rag_use(struct rag *rag, const char *purpose, uint64_t id, struct rag_use *use, struct err *err)
{
    MDB_txn *txn;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = use_read(rag, txn, purpose, id, use, err);
    mdb_txn_abort(txn);
    return result;
}
