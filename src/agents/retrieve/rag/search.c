/* A query, term by term: each term's postings add to the scores of the passages they name, rare
 * terms first. Ids and impacts lie packed in the map, about two bytes a posting, so that a term
 * that every passage holds costs some tenths of a millisecond at 100,000 passages. (Passing over
 * what common terms alone name, once the best are settled, was measured there: it gains nothing,
 * since the best are settled late.) */
#include "agents/retrieve/rag/candidates.h"
#include "agents/retrieve/rag/database.h"
#include "agents/retrieve/rag/query/nearness.h"
#include "agents/retrieve/rag/query/query.h"
#include "agents/retrieve/rag/records.h"
#include "agents/retrieve/rag/tagged.h"
#include "agents/retrieve/rag/uses.h"
#include "agents/retrieve/rag/vectors.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float AGAIN = 0.8f; /* what the next passage of the same thing is worth */
static const float NEAR = 0.6f;  /* what words that stand together add */

enum { CANDIDATES = 48, REFINED = 20, MOST_DEFAULT = 5, MOST_MOST = 1000 };

struct scratch { /* what a search needs and the next can use again */
    struct scratch *next;
    struct words *words;
    struct synonyms *synonyms;
    struct messages *messages;
    float *scores; /* by number; all 0 between searches */
    float *met;    /* weights of the query's terms that the passage has */
    uint32_t *touched;
    size_t capacity, touched_count;
};

struct search {
    struct rag *rag;
    MDB_txn *txn;
    struct scratch *scratch;
    struct query query;
    float weights;        /* of all terms */
    float missing;        /* of the words that no passage has */
    struct tagged tagged; /* the passages that are asked about */
};

static struct scratch *scratch_take(struct rag *rag)
{
    pthread_mutex_lock(&rag->lock);
    struct scratch *scratch = rag->scratches;
    if (scratch != NULL)
        rag->scratches = scratch->next;
    pthread_mutex_unlock(&rag->lock);
    if (scratch == NULL) {
        scratch = MEM_NEW(struct scratch);
        scratch->words = words_new();
        scratch->synonyms = synonyms_new(scratch->words);
        scratch->messages = messages_new(scratch->words);
    }
    return scratch;
}

static void scratch_give(struct rag *rag, struct scratch *scratch)
{
    for (size_t i = 0; i < scratch->touched_count; i++)
        scratch->scores[scratch->touched[i]] = scratch->met[scratch->touched[i]] = 0;
    scratch->touched_count = 0;
    pthread_mutex_lock(&rag->lock);
    scratch->next = rag->scratches;
    rag->scratches = scratch;
    pthread_mutex_unlock(&rag->lock);
}

void scratch_free_all(struct rag *rag)
{
    for (struct scratch *scratch = rag->scratches, *next; scratch != NULL; scratch = next) {
        next = scratch->next;
        synonyms_free(scratch->synonyms);
        messages_free(scratch->messages);
        words_free(scratch->words);
        mem_free(scratch->scores);
        mem_free(scratch->met);
        mem_free(scratch->touched);
        mem_free(scratch);
    }
}

static void scratch_size(struct scratch *scratch, size_t count)
{
    if (count <= scratch->capacity)
        return;
    mem_free(scratch->scores);
    mem_free(scratch->met);
    mem_free(scratch->touched);
    scratch->capacity = count + count / 4;
    scratch->scores = mem_array(scratch->capacity, sizeof *scratch->scores);
    scratch->met = mem_array(scratch->capacity, sizeof *scratch->met);
    scratch->touched = mem_array(scratch->capacity, sizeof *scratch->touched);
}

static int by_count(const void *a, const void *b)
{
    const struct query_term *x = a, *y = b;
    return (x->postings.count > y->postings.count) - (x->postings.count < y->postings.count);
}

static float idf(uint64_t passages, uint64_t holders)
{
    return (float)log(1 + ((double)passages - (double)holders + 0.5) / ((double)holders + 0.5));
}

/* Opens the postings of the terms that the index has, rare ones first. */
static int open_terms(struct search *search, uint64_t passages, struct err *err)
{
    struct query *query = &search->query;
    float own[QUERY_TERMS_MOST] = {
        0}; /* idf, by place: a word's own stands before its other names */
    size_t kept = 0;
    for (size_t i = 0; i < query->count; i++) {
        struct query_term *term = &query->terms[i];
        MDB_val value;
        int missing = database_get(search->rag, search->txn, TABLE_TERMS, term->text, term->length,
                                   &value, err);
        if (missing && err->code != ERR_NOT_FOUND)
            return -1;
        if (missing && term->plain && !term->other)
            search->missing += term->weight * idf(passages, 0);
        if (missing)
            continue;
        if (postings_open(value.mv_data, value.mv_size, &term->postings, err) != 0)
            return -1;
        if (term->postings.count > passages)
            return err_set(err, ERR_CORRUPT, "the index %s: a damaged list of postings",
                           search->rag->folder);
        float rarity = idf(passages, term->postings.count), *word = &own[term->place];
        if (!term->other)
            *word = rarity;
        else if (*word > 0 && rarity > *word)
            rarity = *word; /* a rare name says no more than the word that was used */
        term->weight *= rarity;
        if (!term->other)
            search->weights += query->worth[term->place] = term->weight;
        query->terms[kept++] = *term;
    }
    query->count = kept;
    if (kept > 1)
        qsort(query->terms, kept, sizeof *query->terms, by_count);
    return 0;
}

static int score_term(struct search *search, const struct query_term *term, struct err *err)
{
    struct scratch *scratch = search->scratch;
    uint32_t ids[POSTINGS_BLOCK];
    const uint8_t *impacts;
    float scale = term->weight / 255.0f;
    for (uint32_t block = 0; block < term->postings.blocks; block++) {
        size_t count = postings_block(&term->postings, block, ids, &impacts);
        if (count == 0 || ids[count - 1] >= scratch->capacity)
            return err_set(
                err, ERR_CORRUPT,
                "the index %s is damaged at \"%s\"; `twagent docs update` makes it again",
                search->rag->folder, term->text);
        for (size_t i = 0; i < count; i++) {
            uint32_t id = ids[i];
            if (scratch->scores[id] == 0 && scratch->touched_count < scratch->capacity)
                scratch->touched[scratch->touched_count++] = id;
            scratch->scores[id] += scale * (float)impacts[i];
            scratch->met[id] += term->weight;
        }
    }
    return 0;
}

static float share_of(const struct search *search, uint32_t id)
{
    float share = search->weights > 0 ? search->scratch->met[id] / search->weights : 1;
    return share > 1 ? 1 : share;
}

/* A passage that has all of the words is more than one that has one of them often. */
static float whole_score(const struct search *search, uint32_t id)
{
    return search->scratch->scores[id] * (0.4f + 0.6f * share_of(search, id));
}

static void rank_words(const struct search *search, struct candidates *best)
{
    const struct scratch *scratch = search->scratch;
    for (size_t i = 0; i < scratch->touched_count; i++) {
        struct candidate one = {scratch->touched[i], whole_score(search, scratch->touched[i])};
        if (tagged_has(&search->tagged, one.number))
            candidates_offer(best, one);
    }
    candidates_sort(best);
}

static int passage_of(struct rag *rag, MDB_txn *txn, uint32_t number, struct arena *arena,
                      struct rag_passage *passage, struct err *err)
{
    struct key_number key = database_number_key(number);
    struct passage_record record;
    struct document_record document;
    MDB_val value;
    if (database_get(rag, txn, TABLE_PASSAGES, &key, sizeof key, &value, err) != 0 ||
        passage_decode(value.mv_data, value.mv_size, arena, &record, err) != 0)
        return -1;
    struct key_hash source = database_hash_key(record.document);
    if (database_get(rag, txn, TABLE_DOCUMENTS, &source, sizeof source, &value, err) != 0 ||
        document_decode(value.mv_data, value.mv_size, arena, &document, err) != 0 ||
        passage_verify(&record, document.path, err) != 0)
        return -1;
    *passage = passage_shown(&record, &document);
    return 0;
}

/* The best once more, with a look at their texts: the words of an error message or of a term of the
 * trade stand together. */
static int refine(const struct search *search, struct candidates *best, struct err *err)
{
    ARENA_LOCAL(arena);
    struct rag_passage passage;
    int result = 0;
    for (size_t i = 0; i < best->count && i < REFINED && result == 0; i++) {
        struct candidate *one = &best->items[i];
        result = passage_of(search->rag, search->txn, one->number, arena, &passage, err);
        if (result == 0)
            one->score *= 1 + NEAR * nearness(&search->query, search->scratch->words, passage.title,
                                              passage.text);
    }
    candidates_sort(best);
    return result;
}

/* By words, and where the query has a vector, by meaning too. */
static int rank(const struct search *search, const struct rag_query *query, struct candidates *best,
                struct err *err)
{
    rank_words(search, best);
    if (refine(search, best, err) != 0)
        return -1;
    if (query->vector == NULL)
        return 0;
    struct candidates near = {mem_array(best->most, sizeof *near.items), 0, best->most};
    int result = vectors_rank(search->rag, search->txn, query->vector, query->dimensions,
                              &search->tagged, &near, err);
    if (result == 0)
        candidates_fuse(best, &near);
    mem_free(near.items);
    return result;
}

static int by_passage_score(const void *a, const void *b)
{
    const struct rag_passage *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    int order = strcmp(x->source, y->source);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Half as good again for a passage that was in prompts which all won, shrunk while there are few.
 */
static int apply_use(const struct search *search, const struct rag_query *query,
                     struct rag_passage *passage, struct err *err)
{
    struct rag_use use;
    if (query->purpose == NULL)
        return 0;
    if (use_read(search->rag, search->txn, query->purpose, passage->id, &use, err) != 0)
        return -1;
    passage->score *= 1 + 0.5 * use.wins / (use.prompts + 4.0);
    return 0;
}

/* Ten overloads of one function say little more than one of them does. */
static void prefer_variety(struct rag_passage *items, size_t count)
{
    for (size_t i = 1; i < count; i++) /* best first */
        for (size_t k = 0; k < i; k++)
            if (strcmp(items[i].title, items[k].title) == 0)
                items[i].score *= AGAIN;
}

/* Reads candidates, best first, until there are enough that the tags and the budget allow. */
static int choose(const struct search *search, const struct rag_query *query,
                  const struct candidate *candidates, size_t count, struct arena *arena,
                  struct rag_passage *items, size_t *chosen, struct err *err)
{
    size_t most = query->most ? query->most : MOST_DEFAULT, used = 0, kept = 0, read = 0;
    most = most > MOST_MOST ? MOST_MOST : most;
    /* Use and variety can lift a passage from a little below: more are read than are wanted. */
    size_t look = most * 4;
    for (size_t i = 0; i < count && read < look; i++) {
        struct rag_passage *passage = &items[read];
        if (passage_of(search->rag, search->txn, candidates[i].number, arena, passage, err) != 0)
            return -1;
        passage->score = candidates[i].score;
        float all = search->weights + search->missing;
        float met = search->scratch->met[candidates[i].number];
        passage->share = query->vector || all <= 0 || met > all ? 1 : met / all;
        if (apply_use(search, query, passage, err) != 0)
            return -1;
        if (query->tokens == 0 || passage->tokens <= query->tokens)
            read++;
    }
    qsort(items, read, sizeof *items, by_passage_score);
    prefer_variety(items, read);
    qsort(items, read, sizeof *items, by_passage_score);
    for (size_t i = 0; i < read && kept < most; i++) {
        if (query->tokens > 0 && used + items[i].tokens > query->tokens)
            continue;
        used += items[i].tokens;
        items[kept++] = items[i];
    }
    *chosen = kept;
    return 0;
}

/* How many places scores need. Two numbers say it, so that neither one, damaged, asks for all
 * memory. */
static int find_places(const struct search *search, uint64_t *places, struct err *err)
{
    MDB_cursor *cursor;
    MDB_val key = {0, NULL}, value;
    if (database_number(search->rag, search->txn, "next", places, err) != 0)
        return -1;
    int code = mdb_cursor_open(search->txn, search->rag->tables[TABLE_PASSAGES], &cursor);
    if (code != 0)
        return database_error(search->rag, code, err);
    code = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    mdb_cursor_close(cursor);
    if (code == MDB_NOTFOUND)
        *places = 0;
    else if (code != 0)
        return database_error(search->rag, code, err);
    else if (key.mv_size != sizeof(struct key_number))
        return err_set(err, ERR_CORRUPT, "the index %s: a damaged number", search->rag->folder);
    else if (database_key_number(key.mv_data) < *places)
        *places = (uint64_t)database_key_number(key.mv_data) + 1;
    return 0;
}

static int run(struct search *search, const struct rag_query *query, struct arena *arena,
               struct rag_passage **items, size_t *count, struct err *err)
{
    uint64_t passages, places;
    if (database_entries(search->rag, search->txn, TABLE_PASSAGES, &passages, err) != 0 ||
        find_places(search, &places, err) != 0)
        return -1;
    scratch_size(search->scratch, (size_t)places);
    query_read(&search->query, query->text, search->scratch->words, search->scratch->synonyms,
               search->scratch->messages);
    if (open_terms(search, passages, err) != 0)
        return -1;
    for (size_t i = 0; i < search->query.count; i++)
        if (score_term(search, &search->query.terms[i], err) != 0)
            return -1;
    size_t wanted = CANDIDATES + 4 * (query->most > MOST_MOST ? MOST_MOST : query->most);
    if (tagged_find(search->rag, search->txn, query->tags, &search->tagged, err) != 0)
        return -1;
    struct candidates best = {mem_array(wanted, sizeof *best.items), 0, wanted};
    int result = rank(search, query, &best, err);
    *items = arena_array(arena, best.count + 1, sizeof **items);
    if (result == 0)
        result = choose(search, query, best.items, best.count, arena, *items, count, err);
    mem_free(best.items);
    tagged_free(&search->tagged);
    return result;
}

int rag_search(struct rag *rag, const struct rag_query *query, struct arena *arena,
               struct rag_passage **items, size_t *count, struct err *err)
{
    struct search *search = MEM_NEW(struct search);
    search->rag = rag;
    *items = NULL;
    *count = 0;
    if (database_read(rag, &search->txn, err) != 0) {
        mem_free(search);
        return -1;
    }
    search->scratch = scratch_take(rag);
    int result = run(search, query, arena, items, count, err);
    scratch_give(rag, search->scratch);
    mdb_txn_abort(search->txn);
    mem_free(search);
    return result;
}

int rag_passage(struct rag *rag, uint64_t id, struct arena *arena, struct rag_passage *passage,
                struct err *err)
{
    MDB_txn *txn;
    MDB_val value;
    uint32_t number;
    if (database_read(rag, &txn, err) != 0)
        return -1;
    int result = database_get(rag, txn, TABLE_IDS, &id, sizeof id, &value, err);
    if (result == 0 && value.mv_size != sizeof number)
        result = err_set(err, ERR_CORRUPT, "the index %s: a damaged id", rag->folder);
    if (result == 0) {
        memcpy(&number, value.mv_data, sizeof number);
        result = passage_of(rag, txn, number, arena, passage, err);
    } else if (err->code == ERR_NOT_FOUND) {
        err_set(err, ERR_NOT_FOUND, "there is no passage p%016llx", (unsigned long long)id);
    }
    mdb_txn_abort(txn);
    return result;
}
