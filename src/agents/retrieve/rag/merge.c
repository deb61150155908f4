/* Postings of the terms that a change touches, written in the order of the terms. */
#include "agents/retrieve/rag/plan.h"
#include "agents/retrieve/rag/query/postings.h"
#include "base/mem.h"

#include <string.h>

struct merge {
    struct rag *rag;
    MDB_txn *txn;
    uint32_t base;
    uint32_t *ids;
    uint8_t *impacts;
    size_t count, capacity;
    struct buf packed;
};

static void keep(struct merge *merge, uint32_t id, uint8_t impact)
{
    if (merge->count == merge->capacity) {
        merge->capacity = merge->capacity ? merge->capacity * 2 : 4096;
        merge->ids = mem_resize(merge->ids, merge->capacity * sizeof *merge->ids);
        merge->impacts = mem_resize(merge->impacts, merge->capacity);
    }
    merge->ids[merge->count] = id;
    merge->impacts[merge->count++] = impact;
}

static int keep_old(struct merge *merge, const MDB_val *value, const struct term_postings *removed,
                    struct err *err)
{
    struct postings postings;
    uint32_t ids[POSTINGS_BLOCK];
    const uint8_t *impacts;
    size_t next = 0, gone = removed ? removed->count : 0;
    if (postings_open(value->mv_data, value->mv_size, &postings, err) != 0)
        return -1;
    for (uint32_t block = 0; block < postings.blocks; block++) {
        size_t count = postings_block(&postings, block, ids, &impacts);
        if (count == 0)
            return err_set(err, ERR_CORRUPT, "a damaged list of postings; add the documents again");
        for (size_t i = 0; i < count; i++) {
            while (next < gone && removed->ids[next] < ids[i])
                next++;
            if (next == gone || removed->ids[next] != ids[i])
                keep(merge, ids[i], impacts[i]);
        }
    }
    return 0;
}

/* `any` is one of the two; either may be NULL. */
static int merge_term(struct merge *merge, const struct term_postings *any,
                      const struct term_postings *removed, const struct term_postings *added,
                      struct err *err)
{
    MDB_val value;
    merge->count = 0;
    if (database_get(merge->rag, merge->txn, TABLE_TERMS, any->term, any->length, &value, err) ==
        0) {
        if (keep_old(merge, &value, removed, err) != 0)
            return err_wrap(err, "the term \"%s\"", any->term);
    } else if (err->code != ERR_NOT_FOUND) {
        return -1;
    }
    for (size_t i = 0; added && i < added->count; i++)
        keep(merge, merge->base + added->ids[i], added->impacts[i]);
    if (merge->count == 0)
        return database_remove(merge->rag, merge->txn, TABLE_TERMS, any->term, any->length, err);
    buf_reset(&merge->packed);
    postings_encode(merge->ids, merge->impacts, merge->count, &merge->packed);
    return database_put(merge->rag, merge->txn, TABLE_TERMS, any->term, any->length,
                        merge->packed.data, merge->packed.length, err);
}

static int compare(const struct term_postings *a, const struct term_postings *b)
{
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->term, b->term, shorter);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

int merge_terms(struct rag *rag, MDB_txn *txn, struct index_builder *removed,
                struct index_builder *added, uint32_t base, struct err *err)
{
    struct merge merge = {.rag = rag, .txn = txn, .base = base};
    size_t old_count = 0, new_count = 0, old = 0, new = 0;
    const struct term_postings *const *olds = removed ? builder_terms(removed, &old_count) : NULL;
    const struct term_postings *const *news = added ? builder_terms(added, &new_count) : NULL;
    int result = 0;
    buf_init(&merge.packed, (size_t)1 << 31);
    while (result == 0 && (old < old_count || new < new_count)) {
        int order = old == old_count ? 1 : new == new_count ? -1 : compare(olds[old], news[new]);
        const struct term_postings *any = order <= 0 ? olds[old] : news[new];
        const struct term_postings *gone = order <= 0 ? olds[old++] : NULL;
        const struct term_postings *come = order >= 0 ? news[new ++] : NULL;
        result = merge_term(&merge, any, gone, come, err);
    }
    buf_free(&merge.packed);
    mem_free(merge.ids);
    mem_free(merge.impacts);
    return result;
}
