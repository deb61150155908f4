/* A damaged index: finding it out, and making it again from the paths that were added. Those stand
 * beside the data file, STORE/rag/paths: a checksum, then each root_record behind its length. How
 * often passages helped is lost with the file. */
#include "agents/retrieve/rag/database.h"
#include "agents/retrieve/rag/query/postings.h"
#include "agents/retrieve/rag/records.h"
#include "base/file.h"
#include "base/mem.h"

#include <string.h>
#include <unistd.h>

enum { ROOTS_BYTES_MOST = 64 << 20, ANEW = 1 /* a version that no program writes for good */ };

/* ---- the paths ---- */

static int collect_roots(struct rag *rag, MDB_txn *txn, struct buf *out, struct err *err)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, rag->tables[TABLE_ROOTS], &cursor);
    if (code != 0)
        return database_error(rag, code, err);
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        uint32_t length = (uint32_t)value.mv_size;
        buf_add(out, (const char *)&length, sizeof length);
        buf_add(out, value.mv_data, value.mv_size);
    }
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : database_error(rag, code, err);
}

int database_keep_roots(struct rag *rag, struct err *err)
{
    MDB_txn *txn;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    BUF_LOCAL(bytes, ROOTS_BYTES_MOST);
    BUF_LOCAL(file, ROOTS_BYTES_MOST);
    int result = collect_roots(rag, txn, &bytes, err);
    mdb_txn_abort(txn);
    uint64_t sum = hash_checksum(buf_text(&bytes), bytes.length, 0);
    buf_add(&file, (const char *)&sum, sizeof sum);
    buf_add(&file, buf_text(&bytes), bytes.length);
    MEM_LOCAL char *path = file_join(rag->folder, "paths");
    if (result == 0)
        result = file_write(path, file.data, file.length, err);
    return result;
}

static int put_roots(struct rag *rag, MDB_txn *txn, const struct buf *file, struct err *err)
{
    ARENA_LOCAL(arena);
    int result = 0;
    uint32_t length;
    for (size_t at = sizeof(uint64_t); result == 0 && file->length - at >= sizeof length;) {
        struct root_record root;
        memcpy(&length, file->data + at, sizeof length);
        at += sizeof length;
        if (length > file->length - at) {
            result = err_set(err, ERR_CORRUPT, "a damaged list of paths");
            break;
        }
        result = root_decode(file->data + at, length, arena, &root, err);
        struct key_hash key = database_hash_key(record_key(result == 0 ? root.path : ""));
        if (result == 0)
            result =
                database_put(rag, txn, TABLE_ROOTS, &key, sizeof key, file->data + at, length, err);
        at += length;
    }
    return result;
}

/* The next update then reads all that they name. */
static int database_restore_roots(struct rag *rag, struct err *err)
{
    uint64_t sum = 0;
    MDB_txn *txn;
    MEM_LOCAL char *path = file_join(rag->folder, "paths");
    BUF_LOCAL(file, ROOTS_BYTES_MOST);
    int result = file_read(path, &file, err);
    if (result == 0 && file.length >= sizeof sum)
        memcpy(&sum, file.data, sizeof sum);
    if (result != 0 || file.length < sizeof sum ||
        sum != hash_checksum(file.data + sizeof sum, file.length - sizeof sum, 0)) {
        return err_set(err, ERR_CORRUPT,
                       "the index %s was damaged and is empty now; which documents it had is not "
                       "known: add them again",
                       rag->folder);
    }
    result = database_write(rag, &txn, err);
    if (result == 0) {
        result = put_roots(rag, txn, &file, err);
        if (result == 0)
            result = database_set_number(rag, txn, "version", ANEW, err);
        if (result == 0)
            result = database_commit(rag, txn, err);
        else
            mdb_txn_abort(txn);
    }
    return result;
}

/* ---- what the pages hold ---- */

static int check_document(struct rag *rag, MDB_txn *txn, const MDB_val *key, const MDB_val *value,
                          struct arena *arena, struct err *err)
{
    struct document_record record;
    MDB_val passage;
    if (document_decode(value->mv_data, value->mv_size, arena, &record, err) != 0)
        return -1;
    struct key_hash expected = database_hash_key(record_key(record.path));
    if (key->mv_size != sizeof expected || memcmp(key->mv_data, &expected, sizeof expected) != 0)
        return err_set(err, ERR_CORRUPT, "a damaged document in the index of documents");
    for (uint32_t i = 0; i < record.count; i++) {
        struct key_number number = database_number_key(record.first + i);
        struct passage_record found;
        if (database_get(rag, txn, TABLE_PASSAGES, &number, sizeof number, &passage, err) != 0 ||
            passage_decode(passage.mv_data, passage.mv_size, arena, &found, err) != 0 ||
            passage_verify(&found, record.path, err) != 0)
            return err_set(err, ERR_CORRUPT, "a damaged passage of %.200s", record.path);
    }
    return 0;
}

static int check_term(struct rag *rag, MDB_txn *txn, const MDB_val *key, const MDB_val *value,
                      struct arena *arena, struct err *err)
{
    struct postings postings;
    uint32_t ids[POSTINGS_BLOCK];
    const uint8_t *impacts;
    (void)rag, (void)txn, (void)arena, (void)key;
    if (postings_open(value->mv_data, value->mv_size, &postings, err) != 0)
        return -1;
    for (uint32_t block = 0; block < postings.blocks; block++)
        if (postings_block(&postings, block, ids, &impacts) == 0)
            return err_set(err, ERR_CORRUPT, "a damaged list of postings");
    return 0;
}

static int check_table(struct rag *rag, MDB_txn *txn, enum table table,
                       int (*check)(struct rag *rag, MDB_txn *txn, const MDB_val *key,
                                    const MDB_val *value, struct arena *arena, struct err *err),
                       struct err *err)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, rag->tables[table], &cursor), result = 0;
    if (code != 0)
        return database_error(rag, code, err);
    while (result == 0 && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        struct arena *arena = arena_new();
        result = check(rag, txn, &key, &value, arena, err);
        arena_free(arena);
    }
    mdb_cursor_close(cursor);
    if (result == 0 && code != MDB_NOTFOUND)
        result = database_error(rag, code, err);
    return result;
}

int rag_check(struct rag *rag, struct err *err)
{
    MDB_txn *txn;
    uint64_t version, next, passages, there;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = check_table(rag, txn, TABLE_DOCUMENTS, check_document, err);
    if (result == 0)
        result = check_table(rag, txn, TABLE_TERMS, check_term, err);
    if (result == 0 && (database_number(rag, txn, "version", &version, err) != 0 ||
                        database_number(rag, txn, "next", &next, err) != 0 ||
                        database_number(rag, txn, "passages", &passages, err) != 0 ||
                        database_entries(rag, txn, TABLE_PASSAGES, &there, err) != 0))
        result = -1;
    if (result == 0 && (passages != there || next < there || next > UINT32_MAX))
        result = err_set(err, ERR_CORRUPT, "the index of documents counts wrongly");
    mdb_txn_abort(txn);
    return result;
}

/* ---- making it again ---- */

static int is_whole(const char *folder, struct rag **rag, struct err *err)
{
    if (rag_open(folder, false, rag, err) != 0)
        return -1;
    if (rag_check(*rag, err) == 0)
        return 0;
    rag_close(*rag);
    *rag = NULL;
    return -1;
}

/* Who has the old file open goes on with it. */
static void remove_files(const char *folder)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = file_join(folder, names[i]);
        unlink(path);
        mem_free(path);
    }
}

int rag_open_repaired(const char *folder, bool *repaired, struct rag **rag, struct err *err)
{
    *repaired = false;
    if (is_whole(folder, rag, err) == 0)
        return 0;
    if (err->code != ERR_CORRUPT)
        return -1;
    struct rag place = {.folder = file_join(folder, "rag"), .data = -1};
    int lock, result = database_lock(&place, &lock, err);
    if (result == 0) {
        result = is_whole(folder, rag, err); /* somebody may have been here meanwhile */
        if (result != 0 && err->code == ERR_CORRUPT) {
            *repaired = true;
            remove_files(place.folder);
            result = rag_open(folder, true, rag, err);
            if (result == 0 && database_restore_roots(*rag, err) != 0) {
                rag_close(*rag);
                *rag = NULL;
                result = -1;
            }
        }
        database_unlock(lock);
    }
    mem_free(place.folder);
    return result;
}
