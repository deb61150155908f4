/* What the index holds, for people: documents, their passages, sizes. One snapshot each. */
#include "agents/retrieve/rag/database.h"
#include "agents/retrieve/rag/documents.h"
#include "agents/retrieve/rag/records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"

static int entries(struct rag *rag, MDB_txn *txn, enum table table, MDB_stat *stat, struct err *err)
{
    int code = mdb_stat(txn, rag->tables[table], stat);
    return code == 0 ? 0 : database_error(rag, code, err);
}

static int by_source(const void *a, const void *b)
{
    return strcmp(((const struct rag_document *)a)->source,
                  ((const struct rag_document *)b)->source);
}

static int list(struct rag *rag, MDB_txn *txn, struct arena *arena, struct rag_document **items,
                size_t *count, struct err *err)
{
    MDB_stat stat;
    MDB_cursor *cursor;
    MDB_val key, value;
    if (entries(rag, txn, TABLE_DOCUMENTS, &stat, err) != 0)
        return -1;
    *items = arena_array(arena, stat.ms_entries + 1, sizeof **items);
    int code = mdb_cursor_open(txn, rag->tables[TABLE_DOCUMENTS], &cursor);
    if (code != 0)
        return database_error(rag, code, err);
    int result = 0;
    while (result == 0 && *count < stat.ms_entries &&
           (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        struct document_record record;
        result = document_decode(value.mv_data, value.mv_size, arena, &record, err);
        (*items)[(*count)++] =
            (struct rag_document){.source = record.path,
                                  .root = record.root,
                                  .tags = record.tags,
                                  .kind = document_kind_name((enum document_kind)record.kind),
                                  .bytes = record.bytes,
                                  .passages = record.count};
    }
    mdb_cursor_close(cursor);
    if (result == 0 && code != 0 && code != MDB_NOTFOUND)
        result = database_error(rag, code, err);
    if (result == 0)
        qsort(*items, *count, sizeof **items, by_source);
    return result;
}

int rag_documents(struct rag *rag, struct arena *arena, struct rag_document **items, size_t *count,
                  struct err *err)
{
    MDB_txn *txn;
    *count = 0;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = list(rag, txn, arena, items, count, err);
    mdb_txn_abort(txn);
    return result;
}

static int passages_of(struct rag *rag, MDB_txn *txn, const char *source, struct arena *arena,
                       struct rag_passage **items, size_t *count, struct err *err)
{
    struct key_hash key = database_hash_key(record_key(source));
    struct document_record document;
    MDB_val value;
    if (database_get(rag, txn, TABLE_DOCUMENTS, &key, sizeof key, &value, err) != 0) {
        if (err->code == ERR_NOT_FOUND)
            err_set(err, ERR_NOT_FOUND, "no document of the index is %s", source);
        return -1;
    }
    uint64_t there;
    if (document_decode(value.mv_data, value.mv_size, arena, &document, err) != 0 ||
        database_entries(rag, txn, TABLE_PASSAGES, &there, err) != 0)
        return -1;
    if (document.count > there)
        return err_set(err, ERR_CORRUPT, "a damaged document in the index of documents");
    *items = arena_array(arena, (size_t)document.count + 1, sizeof **items);
    for (uint32_t i = 0; i < document.count; i++) {
        struct key_number number = database_number_key(document.first + i);
        struct passage_record record;
        if (database_get(rag, txn, TABLE_PASSAGES, &number, sizeof number, &value, err) != 0 ||
            passage_decode(value.mv_data, value.mv_size, arena, &record, err) != 0)
            return -1;
        (*items)[(*count)++] = passage_shown(&record, &document);
    }
    return 0;
}

int rag_document_passages(struct rag *rag, const char *source, struct arena *arena,
                          struct rag_passage **items, size_t *count, struct err *err)
{
    MDB_txn *txn;
    *count = 0;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = passages_of(rag, txn, source, arena, items, count, err);
    mdb_txn_abort(txn);
    return result;
}

static int sum_values(struct rag *rag, MDB_txn *txn, enum table table, uint64_t *bytes,
                      struct err *err)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, rag->tables[table], &cursor);
    if (code != 0)
        return database_error(rag, code, err);
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        *bytes += value.mv_size;
    mdb_cursor_close(cursor);
    return code == MDB_NOTFOUND ? 0 : database_error(rag, code, err);
}

static int read_stats(struct rag *rag, MDB_txn *txn, struct rag_stats *stats, struct err *err)
{
    MDB_stat table;
    if (entries(rag, txn, TABLE_ROOTS, &table, err) != 0)
        return -1;
    stats->roots = table.ms_entries;
    if (entries(rag, txn, TABLE_PASSAGES, &table, err) != 0)
        return -1;
    stats->passages = table.ms_entries;
    if (entries(rag, txn, TABLE_TERMS, &table, err) != 0)
        return -1;
    stats->terms = table.ms_entries;
    if (entries(rag, txn, TABLE_VECTORS, &table, err) != 0)
        return -1;
    stats->vectors = table.ms_entries;
    if (sum_values(rag, txn, TABLE_PASSAGES, &stats->text_bytes, err) != 0 ||
        sum_values(rag, txn, TABLE_TERMS, &stats->posting_bytes, err) != 0)
        return -1;
    struct rag_document *items;
    ARENA_LOCAL(arena);
    int result = list(rag, txn, arena, &items, &stats->documents, err);
    for (size_t i = 0; result == 0 && i < stats->documents; i++)
        stats->document_bytes += items[i].bytes;
    return result;
}

int rag_stats(struct rag *rag, struct rag_stats *stats, struct err *err)
{
    MDB_txn *txn;
    struct stat file;
    *stats = (struct rag_stats){0};
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = read_stats(rag, txn, stats, err);
    mdb_txn_abort(txn);
    MEM_LOCAL char *path = file_join(rag->folder, "data.mdb");
    if (stat(path, &file) == 0)
        stats->file_bytes = (uint64_t)file.st_blocks * 512;
    return result;
}
