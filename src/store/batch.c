#include "base/mem.h"
#include "store/internal.h"
#include "store/record.h"

#include <assert.h>
#include <string.h>

struct store_batch *store_batch_new(void)
{
    return MEM_NEW(struct store_batch);
}

void store_batch_free(struct store_batch *batch)
{
    if (batch == NULL)
        return;
    for (size_t i = 0; i < batch->count; i++)
        mem_free(batch->operations[i].bytes);
    mem_free(batch->operations);
    mem_free(batch);
}

bool store_batch_empty(const struct store_batch *batch)
{
    return batch->count == 0 && batch->err.code == ERR_NONE;
}

/* What cannot be stored makes the whole batch fail when it is committed: the callers that build
 * one have nobody to tell yet. */
static bool encode(struct store_batch *batch, enum store_table table, const char *key,
                   struct store_key *stored)
{
    assert(table >= 0 && table < STORE_TABLES);
    struct err err;
    if (store_key_encode(key, stored, &err) == 0)
        return true;
    if (batch->err.code == ERR_NONE) {
        batch->err = err;
        (void)err_wrap(&batch->err, "table %s", store_table_name(table));
    }
    return false;
}

static struct store_operation *append(struct store_batch *batch, enum store_table table,
                                      const struct store_key *key, size_t size)
{
    if (batch->count == batch->capacity) {
        batch->capacity = batch->capacity == 0 ? 8 : 2 * batch->capacity;
        batch->operations =
            mem_resize(batch->operations, batch->capacity * sizeof *batch->operations);
    }
    struct store_operation *operation = &batch->operations[batch->count++];
    *operation = (struct store_operation){.table = table,
                                          .key_length = key->length,
                                          .size = size,
                                          .bytes = mem_resize(NULL, key->length + size)};
    memcpy(operation->bytes, key->bytes, key->length);
    return operation;
}

void store_batch_put(struct store_batch *batch, enum store_table table, const char *key,
                     const char *value, size_t length)
{
    struct store_key stored;
    if (!encode(batch, table, key, &stored))
        return;
    if (length > STORE_VALUE_MAX) {
        if (batch->err.code == ERR_NONE)
            (void)err_set(&batch->err, ERR_LIMIT,
                          "table %s: the value of %.100s has %zu bytes: more than %zu",
                          store_table_name(table), key, length, STORE_VALUE_MAX);
        return;
    }
    struct store_operation *operation = append(batch, table, &stored, store_record_size(length));
    store_record_write(operation->bytes + stored.length, table, &stored, length > 0 ? value : "",
                       length);
}

void store_batch_remove(struct store_batch *batch, enum store_table table, const char *key)
{
    struct store_key stored;
    if (encode(batch, table, key, &stored))
        (void)append(batch, table, &stored, 0);
}
