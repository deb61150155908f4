#include "agents/retrieve/rag/tagged.h"

#include "agents/retrieve/rag/records.h"
#include "base/mem.h"

#include <stdlib.h>

static int by_first(const void *a, const void *b)
{
    const struct number_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int read_ranges(MDB_cursor *cursor, const char *tags, struct arena *arena,
                       struct tagged *tagged, struct err *err)
{
    MDB_val key, value;
    int code;
    size_t capacity = 0;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        struct document_record record;
        if (document_decode(value.mv_data, value.mv_size, arena, &record, err) != 0)
            return -1;
        if (!tags_meet(record.tags, tags))
            continue;
        MEM_MORE(tagged->ranges, tagged->count, capacity);
        tagged->ranges[tagged->count++] = (struct number_range){record.first, record.count};
    }
    return code;
}

int tagged_find(struct rag *rag, MDB_txn *txn, const char *tags, struct tagged *tagged,
                struct err *err)
{
    MDB_cursor *cursor;
    *tagged = (struct tagged){.all = tags == NULL || tags[0] == '\0'};
    if (tagged->all)
        return 0;
    int code = mdb_cursor_open(txn, rag->tables[TABLE_DOCUMENTS], &cursor);
    if (code != 0)
        return database_error(rag, code, err);
    ARENA_LOCAL(arena);
    code = read_ranges(cursor, tags_normal(arena, tags), arena, tagged, err);
    mdb_cursor_close(cursor);
    if (tagged->count > 1)
        qsort(tagged->ranges, tagged->count, sizeof *tagged->ranges, by_first);
    if (code == MDB_NOTFOUND)
        return 0;
    tagged_free(tagged);
    return code == -1 ? -1 : database_error(rag, code, err);
}

bool tagged_has(const struct tagged *tagged, uint32_t number)
{
    size_t low = 0, high = tagged->count;
    if (tagged->all)
        return true;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct number_range *range = &tagged->ranges[middle];
        if (number < range->first)
            high = middle;
        else if (number - range->first < range->count)
            return true;
        else
            low = middle + 1;
    }
    return false;
}

void tagged_free(struct tagged *tagged)
{
    mem_free(tagged->ranges);
    *tagged = (struct tagged){0};
}
