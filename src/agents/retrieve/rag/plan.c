#include "agents/retrieve/rag/plan.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void plan_start(struct plan *plan)
{
    *plan = (struct plan){.arena = arena_new(), .words = words_new()};
    plan->builder = builder_new(plan->words);
}

void plan_end(struct plan *plan)
{
    builder_free(plan->builder);
    words_free(plan->words);
    mem_free(plan->items);
    mem_free(plan->removed);
    mem_free(plan->roots_removed);
    arena_free(plan->arena);
}

static struct planned *append(struct plan *plan)
{
    MEM_MORE(plan->items, plan->count, plan->capacity);
    struct planned *planned = &plan->items[plan->count++];
    *planned = (struct planned){0};
    return planned;
}

/* The path below the one that was added, since folders say what a header is about. */
static const char *name_of(const struct document_record *record)
{
    size_t root = strlen(record->root);
    const char *slash = strrchr(record->path, '/');
    if (strncmp(record->path, record->root, root) == 0 && record->path[root] == '/')
        return record->path + root + 1;
    return slash ? slash + 1 : record->path;
}

int plan_add(struct plan *plan, const struct document_record *record, const char *text,
             size_t length, struct err *err)
{
    struct passage_list list = {.arena = plan->arena};
    chunk_document((enum document_kind)record->kind, name_of(record), text, length, &list);
    struct passage *passages = arena_array(plan->arena, list.count + 1, sizeof *passages);
    if (list.count > 0)
        memcpy(passages, list.items, list.count * sizeof *passages);
    size_t count = list.count;
    passage_list_free(&list);
    if (plan->passages + count > RAG_PASSAGES_MOST)
        return err_set(err, ERR_LIMIT, "more than %d passages (the limit \"passages\")",
                       RAG_PASSAGES_MOST);
    for (size_t i = 0; i < count; i++)
        builder_add(plan->builder, plan->passages++, (enum document_kind)record->kind,
                    &passages[i]);
    struct planned *planned = append(plan);
    planned->record = *record;
    planned->record.path = arena_strdup(plan->arena, record->path);
    planned->passages = passages;
    planned->count = count;
    return 0;
}

void plan_retag(struct plan *plan, const struct document_record *record)
{
    append(plan)->record = *record;
}

void plan_remove(struct plan *plan, struct hash document)
{
    MEM_MORE(plan->removed, plan->removed_count, plan->removed_capacity);
    plan->removed[plan->removed_count++] = document;
}

struct writing {
    struct rag *rag;
    MDB_txn *txn;
    struct plan *plan;
    struct rag_change *change;
    struct index_builder *gone;
    uint64_t next, passages;
};

static int by_first(const void *a, const void *b)
{
    const struct document_record *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int remove_passage(struct writing *writing, uint32_t number, struct arena *arena,
                          struct err *err)
{
    struct key_number key = database_number_key(number);
    struct passage_record record;
    MDB_val value;
    if (database_get(writing->rag, writing->txn, TABLE_PASSAGES, &key, sizeof key, &value, err) !=
            0 ||
        passage_decode(value.mv_data, value.mv_size, arena, &record, err) != 0)
        return -1;
    /* Its terms are what is asked for, not their impacts. */
    builder_add(writing->gone, number, DOCUMENT_PLAIN, &record.passage);
    writing->passages--;
    writing->change->passages_removed++;
    if (database_remove(writing->rag, writing->txn, TABLE_IDS, &record.id, sizeof record.id, err))
        return -1;
    if (database_remove(writing->rag, writing->txn, TABLE_VECTORS, &key, sizeof key, err) != 0)
        return -1;
    return database_remove(writing->rag, writing->txn, TABLE_PASSAGES, &key, sizeof key, err);
}

static int remove_document(struct writing *writing, const struct document_record *record,
                           struct err *err)
{
    struct key_hash key = database_hash_key(record_key(record->path));
    struct key_hash content = database_hash_key(record->content);
    ARENA_LOCAL(arena);
    int result = 0;
    for (uint32_t i = 0; result == 0 && i < record->count; i++)
        result = remove_passage(writing, record->first + i, arena, err);
    if (result == 0)
        result = database_remove(writing->rag, writing->txn, TABLE_CONTENTS, &content,
                                 sizeof content, err);
    if (result == 0)
        result =
            database_remove(writing->rag, writing->txn, TABLE_DOCUMENTS, &key, sizeof key, err);
    return result;
}

/* In the order of their passages' numbers, which builder_add() needs. */
static int remove_documents(struct writing *writing, struct err *err)
{
    const struct plan *plan = writing->plan;
    struct document_record *records = mem_array(plan->removed_count + 1, sizeof *records);
    int result = 0;
    for (size_t i = 0; result == 0 && i < plan->removed_count; i++) {
        struct key_hash key = database_hash_key(plan->removed[i]);
        MDB_val value;
        result = database_get(writing->rag, writing->txn, TABLE_DOCUMENTS, &key, sizeof key, &value,
                              err);
        if (result == 0)
            result = document_decode(value.mv_data, value.mv_size, plan->arena, &records[i], err);
    }
    if (result == 0)
        qsort(records, plan->removed_count, sizeof *records, by_first);
    for (size_t i = 0; result == 0 && i < plan->removed_count; i++)
        result = remove_document(writing, &records[i], err);
    mem_free(records);
    return result;
}

static bool is_taken(struct writing *writing, uint64_t id)
{
    struct err ignored;
    MDB_val value;
    return database_get(writing->rag, writing->txn, TABLE_IDS, &id, sizeof id, &value, &ignored) ==
           0;
}

/* Twins stand behind one another; a file of one line again and again has thousands of them, so the
 * end of the row is found by halving. */
static uint64_t passage_id(struct writing *writing, const char *source,
                           const struct passage *passage)
{
    uint64_t id = passage_identity(source, passage), taken = 0, open = 1;
    if (!is_taken(writing, id))
        return id;
    for (; is_taken(writing, id + open); open *= 2)
        taken = open;
    while (open - taken > 1) {
        uint64_t middle = taken + (open - taken) / 2;
        if (is_taken(writing, id + middle))
            taken = middle;
        else
            open = middle;
    }
    return id + open;
}

static int add_passage(struct writing *writing, const struct planned *planned, size_t index,
                       struct buf *bytes, struct err *err)
{
    const struct passage *passage = &planned->passages[index];
    uint32_t number = (uint32_t)writing->next++;
    struct key_number key = database_number_key(number);
    struct passage_record record = {.id = passage_id(writing, planned->record.path, passage),
                                    .document = record_key(planned->record.path),
                                    .passage = *passage};
    writing->passages++;
    writing->change->passages_added++;
    buf_reset(bytes);
    passage_encode(&record, bytes);
    if (database_put(writing->rag, writing->txn, TABLE_PASSAGES, &key, sizeof key, bytes->data,
                     bytes->length, err) != 0)
        return -1;
    return database_put(writing->rag, writing->txn, TABLE_IDS, &record.id, sizeof record.id,
                        &number, sizeof number, err);
}

static int add_document(struct writing *writing, struct planned *planned, struct buf *bytes,
                        struct err *err)
{
    struct document_record *record = &planned->record;
    struct key_hash key = database_hash_key(record_key(record->path));
    struct key_hash content = database_hash_key(record->content);
    size_t count = planned->passages != NULL ? planned->count : 0;
    if (planned->passages != NULL) {
        record->first = (uint32_t)writing->next;
        record->count = (uint32_t)count;
    }
    for (size_t i = 0; i < count; i++)
        if (add_passage(writing, planned, i, bytes, err) != 0)
            return -1;
    buf_reset(bytes);
    document_encode(record, bytes);
    if (database_put(writing->rag, writing->txn, TABLE_DOCUMENTS, &key, sizeof key, bytes->data,
                     bytes->length, err) != 0)
        return -1;
    return database_put(writing->rag, writing->txn, TABLE_CONTENTS, &content, sizeof content, &key,
                        sizeof key, err);
}

static int write_roots(struct writing *writing, struct buf *bytes, struct err *err)
{
    const struct plan *plan = writing->plan;
    for (size_t i = 0; i < plan->roots_removed_count; i++) {
        struct key_hash key = database_hash_key(plan->roots_removed[i]);
        if (database_remove(writing->rag, writing->txn, TABLE_ROOTS, &key, sizeof key, err) != 0)
            return -1;
    }
    for (size_t i = 0; i < plan->root_count; i++) {
        struct key_hash key = database_hash_key(record_key(plan->roots[i].path));
        buf_reset(bytes);
        root_encode(&plan->roots[i], bytes);
        if (database_put(writing->rag, writing->txn, TABLE_ROOTS, &key, sizeof key, bytes->data,
                         bytes->length, err) != 0)
            return -1;
    }
    return 0;
}

static int empty_tables(struct writing *writing, struct err *err)
{
    static const enum table made[] = {TABLE_DOCUMENTS, TABLE_CONTENTS, TABLE_PASSAGES,
                                      TABLE_IDS,       TABLE_TERMS,    TABLE_VECTORS};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        int code = mdb_drop(writing->txn, writing->rag->tables[made[i]], 0);
        if (code != 0)
            return database_error(writing->rag, code, err);
    }
    writing->next = writing->passages = 0;
    return database_set_number(writing->rag, writing->txn, "version", database_version(), err);
}

static int write_all(struct writing *writing, struct buf *bytes, struct err *err)
{
    struct plan *plan = writing->plan;
    if (database_number(writing->rag, writing->txn, "next", &writing->next, err) != 0 ||
        database_number(writing->rag, writing->txn, "passages", &writing->passages, err) != 0)
        return -1;
    if (plan->anew && empty_tables(writing, err) != 0)
        return -1;
    if (!plan->anew && remove_documents(writing, err) != 0)
        return -1;
    uint32_t base = (uint32_t)writing->next;
    if (writing->next + plan->passages > UINT32_MAX ||
        writing->passages + plan->passages > RAG_PASSAGES_MOST)
        return err_set(err, ERR_LIMIT,
                       "more than %d passages in the index (the limit \"passages\")",
                       RAG_PASSAGES_MOST);
    for (size_t i = 0; i < plan->count; i++)
        if (add_document(writing, &plan->items[i], bytes, err) != 0)
            return -1;
    if (merge_terms(writing->rag, writing->txn, writing->gone, plan->builder, base, err) != 0 ||
        write_roots(writing, bytes, err) != 0 ||
        database_set_number(writing->rag, writing->txn, "next", writing->next, err) != 0)
        return -1;
    return database_set_number(writing->rag, writing->txn, "passages", writing->passages, err);
}

int plan_write(struct rag *rag, struct plan *plan, struct rag_change *change, struct err *err)
{
    struct writing writing = {.rag = rag, .plan = plan, .change = change};
    if (plan->count == 0 && plan->removed_count == 0 && plan->root_count == 0 &&
        plan->roots_removed_count == 0 && !plan->anew)
        return 0; /* nothing changed: nothing is written */
    if (database_write(rag, &writing.txn, err) != 0)
        return -1;
    BUF_LOCAL(bytes, (size_t)256 << 20);
    writing.gone = builder_new(plan->words);
    int result = write_all(&writing, &bytes, err);
    if (result == 0)
        result = database_commit(rag, writing.txn, err);
    else
        mdb_txn_abort(writing.txn);
    if (result == 0)
        result = database_keep_roots(rag, err);
    builder_free(writing.gone);
    return result;
}
