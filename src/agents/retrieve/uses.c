/* What became of the prompts that held a passage: read from the records of a run that has ended,
 * when the next one begins, so that no run's own prompts depend on how far it was.
 *
 * A prompt for code has won when its candidate was faster than its parent beyond doubt, one for
 * ideas when any of its ideas was, a repair when the candidate became a kernel. */
#include "agents/retrieve/retrieve.h"

#include "agents/record/record.h"
#include "base/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct use {               /* one prompt */
    const char *candidate; /* "r3-c17", or "r3-round2.0" */
    const char *kind;      /* "implement", "repair-1", "ideas" */
    const char *purpose;
    int64_t first_idea, ideas;
    uint64_t passages[RETRIEVE_MOST];
    size_t count;
    bool won, done;
};

struct counting {
    struct store *store;
    struct arena *arena;
    struct err *err;
    const char *run; /* being counted */
    const char **runs;
    size_t run_count, run_capacity;
    struct use *uses;
    size_t use_count, use_capacity;
    struct candidate_record *candidates;
    size_t candidate_count, candidate_capacity;
    bool failed;
};

/* ---- which runs ---- */

static const char *mark_of(struct arena *arena, const char *run)
{
    return arena_printf(arena, "counted/%s", run);
}

static bool note_run(void *context, const char *key, const char *text, size_t length)
{
    struct counting *all = context;
    size_t size = strcspn(key, "-");
    const char *last = all->run_count ? all->runs[all->run_count - 1] : "";
    (void)text, (void)length;
    if (strlen(last) == size && strncmp(last, key, size) == 0)
        return true;
    all->runs =
        arena_room(all->arena, all->runs, all->run_count, &all->run_capacity, sizeof *all->runs);
    all->runs[all->run_count++] = arena_strndup(all->arena, key, size);
    return true;
}

/* ---- one run ---- */

static bool read_use(void *context, const char *key, const char *text, size_t length)
{
    struct counting *all = context;
    struct value *record;
    const char *slash = strchr(key, '/');
    if (!slash || value_parse_json(all->arena, key, text, length, &record, all->err))
        return true;
    all->uses =
        arena_room(all->arena, all->uses, all->use_count, &all->use_capacity, sizeof *all->uses);
    struct use *use = &all->uses[all->use_count++];
    *use = (struct use){.candidate = arena_strndup(all->arena, key, (size_t)(slash - key)),
                        .kind = arena_strdup(all->arena, slash + 1),
                        .purpose = value_text(record, "purpose", ""),
                        .first_idea = value_int(record, "first_idea", 0),
                        .ideas = value_int(record, "ideas", 0)};
    const struct value *ids = value_get(record, "passages");
    for (size_t i = 0; ids && i < ids->count && use->count < RETRIEVE_MOST; i++)
        if (ids->items[i]->kind == VALUE_TEXT && ids->items[i]->text[0] == 'p')
            use->passages[use->count++] = strtoull(ids->items[i]->text + 1, NULL, 16);
    return true;
}

static bool read_candidate(void *context, const char *key, const char *text, size_t length)
{
    struct counting *all = context;
    (void)key;
    all->candidates = arena_room(all->arena, all->candidates, all->candidate_count,
                                 &all->candidate_capacity, sizeof *all->candidates);
    struct candidate_record *record = &all->candidates[all->candidate_count];
    all->candidate_count +=
        candidate_record_decode(all->arena, text, length, record, all->err) == 0;
    return true;
}

static const struct candidate_record *find(const struct counting *all, const char *id)
{
    for (size_t i = 0; i < all->candidate_count; i++)
        if (strcmp(all->candidates[i].id, id) == 0)
            return &all->candidates[i];
    return NULL;
}

static bool is_kernel(const struct candidate_record *candidate)
{
    return candidate && !*candidate->duplicate_of && strcmp(candidate->state, "kept") == 0;
}

static bool has_won(const struct counting *all, const struct candidate_record *candidate)
{
    const struct candidate_record *parent = candidate ? find(all, candidate->parent) : NULL;
    return is_kernel(candidate) && (!parent || candidate->speedup_low > parent->speedup_high);
}

static bool use_won(const struct counting *all, const struct use *use)
{
    if (strcmp(use->kind, "implement") == 0)
        return has_won(all, find(all, use->candidate));
    if (strcmp(use->kind, "ideas") != 0)
        return is_kernel(find(all, use->candidate));
    for (size_t i = 0; i < all->candidate_count; i++) {
        const char *number = strstr(all->candidates[i].idea, "-i");
        int64_t idea = number ? strtoll(number + 2, NULL, 10) : 0;
        if (idea >= use->first_idea && idea < use->first_idea + use->ideas &&
            has_won(all, &all->candidates[i]))
            return true;
    }
    return false;
}

/* All prompts of a purpose and an end in one transaction: each costs a sync. */
static int note(struct counting *all, struct rag *rag)
{
    uint64_t *ids = arena_array(all->arena, all->use_count * RETRIEVE_MOST + 1, sizeof *ids);
    for (size_t i = 0; i < all->use_count; i++)
        all->uses[i].won = use_won(all, &all->uses[i]);
    for (size_t i = 0; i < all->use_count; i++) {
        const struct use *first = &all->uses[i];
        size_t count = 0;
        for (size_t k = i; k < all->use_count; k++) {
            struct use *use = &all->uses[k];
            if (use->done || use->won != first->won || strcmp(use->purpose, first->purpose) != 0)
                continue;
            use->done = true;
            memcpy(ids + count, use->passages, use->count * sizeof *ids);
            count += use->count;
        }
        if (count > 0 && rag_note_use(rag, first->purpose, ids, count, first->won, all->err) != 0)
            return -1;
    }
    return 0;
}

/* The mark first: what is noted twice would mislead for ever, what is not noted is only forgotten.
 */
static int count_run(struct counting *all, struct rag *rag)
{
    struct store_batch *batch = store_batch_new();
    const char *prefix = arena_printf(all->arena, "%s-", all->run);
    all->use_count = all->candidate_count = 0;
    store_batch_put(batch, STORE_PASSAGES, mark_of(all->arena, all->run), "{}", 2);
    int failed = store_scan(all->store, STORE_PASSAGES, prefix, read_use, all, all->err) ||
                 store_scan(all->store, STORE_CANDIDATES, prefix, read_candidate, all, all->err) ||
                 store_commit(all->store, batch, all->err) || note(all, rag);
    store_batch_free(batch);
    return failed ? -1 : 0;
}

int retrieve_count_uses(struct store *store, struct rag *rag, struct err *err)
{
    struct counting all = {.store = store, .arena = arena_new(), .err = err};
    int failed = store_scan(store, STORE_PASSAGES, "r", note_run, &all, err);
    for (size_t i = 0; i < all.run_count && !failed; i++) {
        all.run = all.runs[i];
        if (!store_has(store, STORE_PASSAGES, mark_of(all.arena, all.run)))
            failed = count_run(&all, rag);
    }
    arena_free(all.arena);
    return failed ? -1 : 0;
}
