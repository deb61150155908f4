/* agents/search/take: what becomes of a candidate that has ended.
 *
 * It is *counted* at once, for whoever looks at the run, and *taken* in the order of numbers: told
 * to the proposer, put into the history and the pool. In a round with a model everything is taken
 * together when the round is over.
 */
#include "agents/search/private.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* ---- counting ---- */

static void count(struct search *search, const struct attempt *attempt, int64_t by)
{
    struct run_record *run = &search->record;
    run->evaluated += by;
    if (attempt_is_kernel(attempt))
        run->kept += by;
    else if (strcmp(attempt->record.verdict, "rejected") == 0)
        run->rejected += by;
    else
        run->failed += by;
}

void search_count(struct search *search, struct attempt *attempt)
{
    if (!attempt->answered || *attempt->record.duplicate_of)
        return;
    count(search, attempt, 1);
    if (!attempt->recalled && search->measured++ == 0)
        search->first_busy_ms = search_lanes_busy_ms(search);
    if (!search_ranks(attempt))
        return;
    search_rank(search, attempt);
    if (search->floor_ns > 1.1 * attempt->record.time_ns)
        search->ceilings_beaten = true;
}

/* ---- taking ---- */

/* A kernel that a model wrote becomes an arm: from now on the proposer tunes its numbers too. */
static void teach(struct search *search, struct attempt *attempt)
{
    struct arm *arm = attempt->arm;
    bool kernel = attempt_is_kernel(attempt);
    bool twin = *attempt->record.duplicate_of != '\0'; /* whose code is known by another name */
    if (attempt->writing && kernel && !twin && arm->number < 0 && arm->candidate->tune_count > 0)
        search_arm_add(search, arm);
    if (!arm || arm->number < 0)
        return;
    if (attempt->answered)
        proposer_tell(search->proposer, (size_t)arm->number, &attempt->tune,
                      kernel ? attempt->record.time_ns : 0);
    else
        proposer_withdraw(search->proposer, (size_t)arm->number, &attempt->tune);
}

/* A night has thousands of them: of an evaluation that is on the disk the profile alone stays, of a
 * writing the source, and what was read in that only where the proposer has it. */
static void slim(struct attempt *attempt)
{
    const struct evaluation *evaluation = &attempt->request.evaluation;
    const char *metrics = evaluation->metrics;
    attempt->metrics = arena_strdup(attempt->arena, metrics ? metrics : "");
    attempt->finding = evaluation->finding;
    attempt->baseline =
        arena_strdup(attempt->arena, evaluation->baseline ? evaluation->baseline : "");
    attempt->baseline_ns = evaluation->baseline_ns.samples ? evaluation->baseline_ns.median : 0;
    attempt->spread = evaluation->spread;
    arena_free(attempt->request.arena);
    attempt->request = (struct lane_request){0};
    writing_free(attempt->writing);
    attempt->writing = NULL;
    if (!attempt->wrote || attempt->arm->number >= 0)
        return;
    candidate_free(attempt->arm->candidate);
    attempt->arm->candidate = NULL;
}

void search_prune(struct search *search)
{
    size_t count;
    struct contender *all = search_contenders(search, -1, &count);
    for (size_t i = POOL_MAX; i < count; i++) {
        struct attempt *attempt = all[i].item;
        bool is_arm = attempt->wrote && attempt->arm->number >= 0; /* the proposer has it */
        if (!is_arm && attempt != search->best)
            attempt_free(attempt);
    }
    mem_free(all);
}

/* A kernel that is far behind, whose numbers the proposer tunes all the same. */
static bool is_tuned(const struct attempt *attempt)
{
    return attempt_is_kernel(attempt) && attempt->wrote && attempt->arm->number >= 0;
}

void search_take(struct search *search, struct attempt *attempt)
{
    list_remove(&attempt->link);
    if (attempt->answered)
        search_remember(search, attempt);
    teach(search, attempt);
    search_lesson_take(attempt);
    if (!search_has_model(search))
        search_know_one(search, attempt);
    else if (attempt->answered && *attempt->record.identity)
        search_settle(search, attempt);
    bool twin = *attempt->record.duplicate_of && attempt != search->best;
    if (attempt->answered && !twin && (search_ranks(attempt) || is_tuned(attempt))) {
        search->new_kernel = search->new_kernel || attempt->wrote;
        slim(attempt);
        list_append(&search->kept, &attempt->link);
        return;
    }
    attempt_free(attempt);
}

struct attempt *search_ended(struct search *search, int64_t number)
{
    list_each (link, &search->ended) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        if (attempt->record.number == number)
            return attempt;
    }
    return NULL;
}

/* The lowest number above `after`; or NULL. */
static struct attempt *next_ended(struct search *search, int64_t after)
{
    struct attempt *first = NULL;
    list_each (link, &search->ended) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        if (attempt->record.number > after &&
            (!first || attempt->record.number < first->record.number))
            first = attempt;
    }
    return first;
}

static void put_again(struct store_batch *batch, const struct candidate_record *record)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    candidate_record_encode(record, &text);
    store_batch_put(batch, STORE_CANDIDATES, record->id, buf_text(&text), text.length);
    buf_free(&text);
}

/* `other` is what `attempt`, whose number is lower, was too. */
static void drop_twin(struct search *search, struct attempt *attempt, struct attempt *other,
                      struct store_batch **batch)
{
    bool twins = attempt->answered && other->answered && *attempt->record.identity &&
                 other->record.number > attempt->record.number &&
                 strcmp(other->record.identity, attempt->record.identity) == 0;
    if (!twins || *other->record.duplicate_of)
        return;
    other->record.duplicate_of = arena_strdup(other->arena, attempt->record.id);
    count(search, other, -1);
    if (search->best == other && search_ranks(attempt))
        search->best = attempt;
    *batch = *batch ? *batch : store_batch_new();
    put_again(*batch, &other->record);
    search_lesson_remove(other, *batch);
}

/* Of several candidates with one source and numbers, the one with the lowest number is it. Points
 * that the proposer tuned in this round have higher numbers and are in the pool already. */
static void drop_twins(struct search *search)
{
    struct store_batch *batch = NULL;
    struct attempt *first;
    for (int64_t after = 0; (first = next_ended(search, after)); after = first->record.number) {
        if (*first->record.duplicate_of)
            continue;
        list_each (link, &search->ended)
            drop_twin(search, first, container_of(link, struct attempt, link), &batch);
        list_each (link, &search->kept)
            drop_twin(search, first, container_of(link, struct attempt, link), &batch);
    }
    if (batch)
        store_write_take(search->writer, &search->twins, &search->task, batch);
}

void search_take_all(struct search *search)
{
    struct attempt *attempt;
    drop_twins(search);
    while ((attempt = next_ended(search, 0)))
        search_take(search, attempt);
    search_know_all(search);
    search_prune(search);
}

/* ---- the pool ---- */
