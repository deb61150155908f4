#include "facts/records.h"

#include "base/mem.h"

#include <string.h>

enum { VALUE_BYTES_MAX = 64 << 20 };

static int get(struct store *store, enum store_table table, const char *id, struct buf *text,
               struct err *err)
{
    buf_init(text, VALUE_BYTES_MAX);
    return store_get(store, table, id, text, err);
}

int history_run(struct store *store, struct arena *arena, const char *id, struct run_record *run,
                struct err *err)
{
    struct buf text;
    int failed = get(store, STORE_RUNS, id, &text, err) ||
                 run_record_decode(arena, buf_text(&text), text.length, run, err);
    buf_free(&text);
    return failed ? -1 : 0;
}

int history_candidate(struct store *store, struct arena *arena, const char *id,
                      struct candidate_record *candidate, struct err *err)
{
    struct buf text;
    int failed = get(store, STORE_CANDIDATES, id, &text, err) ||
                 candidate_record_decode(arena, buf_text(&text), text.length, candidate, err);
    buf_free(&text);
    return failed ? -1 : 0;
}

int history_idea(struct store *store, struct arena *arena, const char *id, struct idea_record *idea,
                 struct err *err)
{
    struct buf text;
    int failed = get(store, STORE_IDEAS, id, &text, err) ||
                 idea_record_decode(arena, buf_text(&text), text.length, idea, err);
    buf_free(&text);
    return failed ? -1 : 0;
}

struct scan {
    struct arena *arena;
    char *items; /* array of records, item_bytes each */
    size_t count, capacity, item_bytes;
    bool runs;
    struct err err;
};

static bool visit(void *context, const char *key, const char *value, size_t length)
{
    struct scan *scan = context;
    (void)key;
    scan->items = mem_room(scan->items, scan->count, &scan->capacity, scan->item_bytes);
    void *item = scan->items + scan->count * scan->item_bytes;
    int failed = scan->runs ? run_record_decode(scan->arena, value, length, item, &scan->err)
                            : candidate_record_decode(scan->arena, value, length, item, &scan->err);
    if (failed)
        return false;
    scan->count++;
    return true;
}

static int scan_all(struct store *store, enum store_table table, const char *prefix,
                    struct scan *scan, void **items, size_t *count, struct err *err)
{
    int failed = store_scan(store, table, prefix, visit, scan, err);
    if (!failed && scan->err.code) {
        *err = scan->err;
        failed = -1;
    }
    if (!failed) {
        *items = arena_array(scan->arena, scan->count + 1, scan->item_bytes);
        if (scan->count)
            memcpy(*items, scan->items, scan->count * scan->item_bytes);
        *count = scan->count;
    }
    mem_free(scan->items);
    return failed;
}

int history_candidates(struct store *store, struct arena *arena, const char *run,
                       struct candidate_record **items, size_t *count, struct err *err)
{
    struct scan scan = {.arena = arena, .item_bytes = sizeof **items};
    void *all = NULL;
    char *prefix = arena_printf(arena, "%s-c", run);
    int failed = scan_all(store, STORE_CANDIDATES, prefix, &scan, &all, count, err);
    *items = all;
    return failed;
}

int history_runs(struct store *store, struct arena *arena, struct run_record **items, size_t *count,
                 struct err *err)
{
    struct scan scan = {.arena = arena, .item_bytes = sizeof **items, .runs = true};
    void *all = NULL;
    int failed = scan_all(store, STORE_RUNS, "r", &scan, &all, count, err);
    *items = all;
    return failed;
}

const struct value *history_measured(struct store *store, struct arena *arena, const char *key)
{
    struct buf text;
    struct err ignored;
    struct value *value = NULL;
    int failed = get(store, STORE_EVALUATIONS, key, &text, &ignored);
    if (!failed)
        failed = value_parse_json(arena, key, buf_text(&text), text.length, &value, &ignored);
    buf_free(&text);
    return failed ? NULL : value;
}

const struct value *history_evaluation(struct store *store, struct arena *arena, const char *id)
{
    const struct value *last = history_measured(store, arena, arena_printf(arena, "%s-final", id));
    return last ? last : history_measured(store, arena, id);
}

bool history_is_final(struct store *store, struct arena *arena, const char *id)
{
    struct buf text;
    struct err ignored;
    int failed =
        get(store, STORE_EVALUATIONS, arena_printf(arena, "%s-final", id), &text, &ignored);
    buf_free(&text);
    return failed == 0;
}

const char *history_source(struct store *store, struct arena *arena,
                           const struct candidate_record *candidate)
{
    struct buf text;
    struct err ignored;
    const char *source = NULL;
    if (get(store, STORE_SOURCES, candidate->source, &text, &ignored) == 0)
        source = arena_strndup(arena, buf_text(&text), text.length);
    buf_free(&text);
    return source;
}

bool problem_key_is(const struct problem_key *key, const char *name, const char *hash)
{
    return (key->name == NULL || strcmp(key->name, name) == 0) &&
           (key->hash == NULL || strcmp(key->hash, hash) == 0);
}

const struct run_record *history_best(const struct run_record *runs, size_t count,
                                      const struct problem_key *problem)
{
    const struct run_record *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct run_record *run = &runs[i];
        if (!problem_key_is(problem, run->problem, run->problem_hash) || !*run->best)
            continue;
        if (!best || run->verified > best->verified ||
            (run->verified == best->verified && run->speedup_low > best->speedup_low))
            best = run;
    }
    return best;
}
