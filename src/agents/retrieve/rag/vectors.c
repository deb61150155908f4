#include "agents/retrieve/rag/vectors.h"

#include "agents/retrieve/rag/documents.h"
#include "agents/retrieve/rag/records.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* In TABLE_META: hash of the model that made the vectors; who that is, for people and runs. */
static const char MODEL[] = "embedding", NAME[] = "embedding name", URL[] = "embedding url";

struct batch {
    uint32_t numbers[EMBED_BATCH];
    const char *texts[EMBED_BATCH];
    size_t count;
    uint32_t next; /* the first number not looked at */
    bool more;
};

static uint64_t model_mark(const char *model)
{
    uint64_t mark = hash_checksum(model, strlen(model), 1);
    return mark ? mark : 1;
}

/* A scale, then components in 1/127 of the largest. */
static int put(struct rag *rag, MDB_txn *txn, uint32_t number, const float *vector,
               size_t dimensions, struct err *err)
{
    unsigned char bytes[sizeof(float) + EMBED_DIMENSIONS_MOST];
    struct key_number key = database_number_key(number);
    float most = 0;
    for (size_t i = 0; i < dimensions; i++)
        most = fmaxf(most, fabsf(vector[i]));
    float scale = most / 127;
    memcpy(bytes, &scale, sizeof scale);
    for (size_t i = 0; i < dimensions; i++)
        bytes[sizeof scale + i] = (unsigned char)(int8_t)lrintf(vector[i] / scale);
    return database_put(rag, txn, TABLE_VECTORS, &key, sizeof key, bytes, sizeof scale + dimensions,
                        err);
}

static float dot(const float *vector, const int8_t *bytes, size_t count)
{
    float sums[8] = {0};
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t k = 0; k < 8; k++)
            sums[k] += vector[i + k] * (float)bytes[i + k];
    for (; i < count; i++)
        sums[0] += vector[i] * (float)bytes[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

int vectors_rank(struct rag *rag, MDB_txn *txn, const float *vector, size_t dimensions,
                 const struct tagged *tagged, struct candidates *best, struct err *err)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, rag->tables[TABLE_VECTORS], &cursor);
    if (code != 0)
        return database_error(rag, code, err);
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        float scale;
        if (key.mv_size != sizeof(struct key_number) || value.mv_size != sizeof scale + dimensions)
            continue;
        uint32_t number = database_key_number(key.mv_data);
        if (!tagged_has(tagged, number))
            continue;
        memcpy(&scale, value.mv_data, sizeof scale);
        if (!isfinite(scale))
            continue;
        const int8_t *bytes = (const int8_t *)value.mv_data + sizeof scale;
        candidates_offer(best, (struct candidate){number, scale * dot(vector, bytes, dimensions)});
    }
    mdb_cursor_close(cursor);
    candidates_sort(best);
    return code == MDB_NOTFOUND ? 0 : database_error(rag, code, err);
}

static int take_passage(struct rag *rag, MDB_txn *txn, const MDB_val *key, const MDB_val *value,
                        struct arena *arena, struct batch *batch, struct err *err)
{
    struct passage_record record;
    MDB_val known;
    if (key->mv_size != sizeof(struct key_number))
        return err_set(err, ERR_CORRUPT, "the index %s: a damaged number", rag->folder);
    uint32_t number = database_key_number(key->mv_data);
    batch->next = number + 1;
    int missing = database_get(rag, txn, TABLE_VECTORS, key->mv_data, key->mv_size, &known, err);
    if (!missing)
        return 0;
    if (err->code != ERR_NOT_FOUND ||
        passage_decode(value->mv_data, value->mv_size, arena, &record, err) != 0)
        return -1;
    batch->numbers[batch->count] = number;
    batch->texts[batch->count++] = arena_printf(arena, "%s > %s\n%s", record.passage.path,
                                                record.passage.title, record.passage.text);
    return 0;
}

/* The next passages without a vector. */
static int next_batch(struct rag *rag, struct arena *arena, struct batch *batch, struct err *err)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    struct key_number from = database_number_key(batch->next);
    MDB_val key = {sizeof from, &from}, value;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int code = mdb_cursor_open(txn, rag->tables[TABLE_PASSAGES], &cursor);
    int result = code == 0 ? 0 : database_error(rag, code, err);
    batch->count = 0;
    if (code == 0) {
        code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        for (; result == 0 && code == 0 && batch->count < EMBED_BATCH;
             code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
            result = take_passage(rag, txn, &key, &value, arena, batch, err);
        if (result == 0 && code != 0 && code != MDB_NOTFOUND)
            result = database_error(rag, code, err);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    batch->more = code == 0;
    return result;
}

static int write_batch(struct rag *rag, const struct batch *batch, const float *vectors,
                       size_t dimensions, struct err *err)
{
    MDB_txn *txn;
    int result = 0;
    if (database_write(rag, &txn, err) != 0)
        return -1;
    for (size_t i = 0; result == 0 && i < batch->count; i++)
        result = put(rag, txn, batch->numbers[i], vectors + i * dimensions, dimensions, err);
    if (result == 0)
        return database_commit(rag, txn, err);
    mdb_txn_abort(txn);
    return result;
}

static int put_text(struct rag *rag, MDB_txn *txn, const char *key, const char *text,
                    struct err *err)
{
    text = text ? text : "";
    return database_put(rag, txn, TABLE_META, key, strlen(key), text, strlen(text), err);
}

/* Another model's vectors mean something else. */
static int make_room(struct rag *rag, const struct embedder *embedder, struct err *err)
{
    MDB_txn *txn;
    uint64_t mark;
    if (database_write(rag, &txn, err) != 0)
        return -1;
    int result = database_number(rag, txn, MODEL, &mark, err);
    if (result == 0 && mark != model_mark(embedder->model)) {
        int code = mdb_drop(txn, rag->tables[TABLE_VECTORS], 0);
        result = code == 0 ? database_set_number(rag, txn, MODEL, model_mark(embedder->model), err)
                           : database_error(rag, code, err);
    }
    if (result == 0)
        result = put_text(rag, txn, NAME, embedder->name, err) ||
                         put_text(rag, txn, URL, embedder->url, err)
                     ? -1
                     : 0;
    if (result == 0)
        return database_commit(rag, txn, err);
    mdb_txn_abort(txn);
    return result;
}

static int embed_all(struct rag *rag, const struct embedder *embedder, size_t *embedded,
                     struct err *err)
{
    struct batch batch = {.more = true};
    int result = make_room(rag, embedder, err);
    while (result == 0 && batch.more) {
        struct arena *arena = arena_new();
        float *vectors = NULL;
        size_t dimensions;
        result = next_batch(rag, arena, &batch, err);
        if (result == 0 && batch.count > 0)
            result =
                embed_texts(embedder, batch.texts, batch.count, arena, &vectors, &dimensions, err);
        if (result == 0 && batch.count > 0)
            result = write_batch(rag, &batch, vectors, dimensions, err);
        *embedded += result == 0 ? batch.count : 0;
        arena_free(arena);
    }
    return result;
}

int rag_embed(struct rag *rag, const struct embedder *embedder, size_t *embedded, struct err *err)
{
    int lock;
    *embedded = 0;
    if (database_lock(rag, &lock, err) != 0)
        return -1;
    int result = embed_all(rag, embedder, embedded, err);
    database_unlock(lock);
    return result;
}

int rag_has_vectors(struct rag *rag, const char *model, struct err *err)
{
    MDB_txn *txn;
    uint64_t mark;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = database_number(rag, txn, MODEL, &mark, err);
    mdb_txn_abort(txn);
    if (result == 0 && mark != model_mark(model))
        result = err_set(err, ERR_NOT_FOUND,
                         "the index has no vectors of the model %s: `twagent docs update "
                         "--embedding-model %s` asks for them",
                         model, model);
    return result;
}

static int get_text(struct rag *rag, MDB_txn *txn, const char *key, struct arena *arena,
                    const char **text, struct err *err)
{
    MDB_val value;
    *text = "";
    if (database_get(rag, txn, TABLE_META, key, strlen(key), &value, err) != 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    *text = arena_strndup(arena, value.mv_data, value.mv_size);
    return 0;
}

int rag_embedded_by(struct rag *rag, struct arena *arena, const char **name, const char **url,
                    struct err *err)
{
    MDB_txn *txn;
    *name = *url = "";
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result =
        get_text(rag, txn, NAME, arena, name, err) || get_text(rag, txn, URL, arena, url, err) ? -1
                                                                                               : 0;
    mdb_txn_abort(txn);
    return result;
}

int rag_embed_query(struct rag *rag, const struct embedder *embedder, struct arena *arena,
                    struct rag_query *query, struct err *err)
{
    float *vector;
    if (rag_has_vectors(rag, embedder->model, err) != 0 ||
        embed_texts(embedder, &query->text, 1, arena, &vector, &query->dimensions, err) != 0)
        return -1;
    query->vector = vector;
    return 0;
}
