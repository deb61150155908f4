#include "agents/retrieve/rag/survey.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct document_record *)a)->path,
                  ((const struct document_record *)b)->path);
}

static int each_record(struct rag *rag, MDB_txn *txn, enum table table,
                       int (*take)(void *context, const MDB_val *value, struct err *err),
                       void *context, struct err *err)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    int code = mdb_cursor_open(txn, rag->tables[table], &cursor);
    if (code != 0)
        return database_error(rag, code, err);
    int result = 0;
    while (result == 0 && (code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        result = take(context, &value, err);
    mdb_cursor_close(cursor);
    if (result == 0 && code != MDB_NOTFOUND)
        result = database_error(rag, code, err);
    return result;
}

static int take_known(void *context, const MDB_val *value, struct err *err)
{
    struct survey *survey = context;
    survey->known = mem_resize(survey->known, (survey->known_count + 1) * sizeof *survey->known);
    return document_decode(value->mv_data, value->mv_size, survey->plan.arena,
                           &survey->known[survey->known_count++], err);
}

static int take_root(void *context, const MDB_val *value, struct err *err)
{
    struct survey *survey = context;
    survey->roots = mem_resize(survey->roots, (survey->root_count + 1) * sizeof *survey->roots);
    return root_decode(value->mv_data, value->mv_size, survey->plan.arena,
                       &survey->roots[survey->root_count++], err);
}

int survey_read_index(struct survey *survey, bool roots, struct err *err)
{
    MDB_txn *txn;
    uint64_t version, next, passages;
    if (database_read(survey->rag, &txn, err) != 0)
        return -1;
    int result = each_record(survey->rag, txn, TABLE_DOCUMENTS, take_known, survey, err);
    if (result == 0 && roots)
        result = each_record(survey->rag, txn, TABLE_ROOTS, take_root, survey, err);
    if (result == 0)
        result = database_number(survey->rag, txn, "version", &version, err);
    if (result == 0)
        result = database_number(survey->rag, txn, "next", &next, err);
    if (result == 0)
        result = database_number(survey->rag, txn, "passages", &passages, err);
    mdb_txn_abort(txn);
    if (result != 0)
        return -1;
    /* Numbers only grow, and a search has a place for each: after many changes all begin anew. */
    survey->plan.anew = version != database_version() || next > 8 * passages + 100000;
    if (survey->known_count > 0)
        qsort(survey->known, survey->known_count, sizeof *survey->known, by_path);
    return 0;
}

const struct document_record *survey_known(const struct survey *survey, const char *path)
{
    struct document_record wanted = {.path = path};
    if (survey->known_count == 0)
        return NULL;
    return bsearch(&wanted, survey->known, survey->known_count, sizeof wanted, by_path);
}

bool survey_is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 &&
           (path[length] == '\0' || path[length] == '/' || strcmp(folder, "/") == 0);
}

struct twin { /* one content, and who has it */
    struct hash content;
    const char *path;
    size_t order;
    bool known;
    struct found *found; /* NULL: a document of another root */
};

static int by_content(const void *a, const void *b)
{
    const struct twin *x = a, *y = b;
    int order = hash_compare(x->content, y->content);
    if (order == 0)
        order = (x->found != NULL) - (y->found != NULL);
    if (order == 0)
        order = (int)y->known - (int)x->known; /* the one that is in stays the one */
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int found_by_path(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (x < y ? -1 : 1); /* NULs of qsort's own copying do not matter here */
}

/* A file that two roots hold is the last root's. */
static void drop_same_paths(struct survey *survey)
{
    size_t kept = 0;
    if (survey->count > 1)
        qsort(survey->found, survey->count, sizeof *survey->found, found_by_path);
    for (size_t i = 0; i < survey->count; i++) {
        if (kept > 0 && strcmp(survey->found[kept - 1].path, survey->found[i].path) == 0) {
            if (strlen(survey->found[i].root->path) >= strlen(survey->found[kept - 1].root->path))
                survey->found[kept - 1] = survey->found[i];
            continue;
        }
        survey->found[kept++] = survey->found[i];
    }
    survey->count = kept;
}

bool survey_within_roots(const struct survey *survey, const char *path)
{
    for (size_t i = 0; i < survey->root_count; i++)
        if (survey_is_below(path, survey->roots[i].path))
            return true;
    return false;
}

/* Of files with the same bytes one stays in survey->found. */
static void drop_doubles(struct survey *survey)
{
    struct twin *twins = mem_array(survey->count + survey->known_count + 1, sizeof *twins);
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < survey->count; i++)
        if (!survey->found[i].keep)
            twins[count++] =
                (struct twin){.content = survey->found[i].file.content,
                              .order = i,
                              .known = survey_known(survey, survey->found[i].path) != NULL,
                              .found = &survey->found[i]};
    for (size_t i = 0; i < survey->known_count; i++)
        if (!survey_within_roots(survey, survey->known[i].path))
            twins[count++] = (struct twin){.content = survey->known[i].content};
    if (count > 1)
        qsort(twins, count, sizeof *twins, by_content);
    for (size_t i = 1; i < count; i++)
        if (hash_compare(twins[i].content, twins[i - 1].content) == 0 && twins[i].found != NULL) {
            twins[i].found->path = NULL;
            survey->change->doubles++;
        }
    mem_free(twins);
    for (size_t i = 0; i < survey->count; i++)
        if (survey->found[i].path != NULL)
            survey->found[kept++] = survey->found[i];
    survey->count = kept;
}

void survey_start(struct survey *survey, struct rag *rag, struct rag_change *change)
{
    *survey = (struct survey){.rag = rag, .change = change};
    *change = (struct rag_change){0};
    plan_start(&survey->plan);
    buf_init(&survey->bytes, (size_t)RAG_FILE_BYTES_MOST + (1 << 17));
}

void survey_end(struct survey *survey)
{
    plan_end(&survey->plan);
    buf_free(&survey->bytes);
    mem_free(survey->roots);
    mem_free(survey->found);
    mem_free(survey->known);
}

void survey_drop_same(struct survey *survey)
{
    drop_same_paths(survey);
    drop_doubles(survey);
}
