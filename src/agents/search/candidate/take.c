/* agents/search/candidate/take: what becomes of a candidate that has ended.
 *
 * It is *counted* at once, for whoever looks at the run, and *taken* in the order of numbers: told
 * to the proposer, put into the history and the pool. In a round with a model everything is taken
 * together when the round is over.
 */
#include "agents/search/candidate/candidate.h"
#include "base/mem.h"

#include <string.h>

/* ---- counting ---- */

static void count(struct search *search, const struct attempt *attempt, int64_t by)
{
    struct run_record *run = &search->record;
    if (attempt->record.outside) {
        run->outside += by;
        return;
    }
    run->evaluated += by;
    if (attempt_is_kernel(attempt))
        run->kept += by;
    else if (attempt->task.state == DROPPED)
        run->dropped += by;
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
    if (!attempt->recalled)
        search_learn_measured(search, search_lanes_busy_ms(search), search_lanes_delay(search));
    if (!search_ranks(attempt))
        return;
    search_rank(search, attempt);
    if (search->floor_ns > 1.1 * attempt->record.time_ns)
        search_ceilings_beaten(search);
}

/* ---- taking ---- */

/* A kernel that a model wrote becomes an arm: from now on the proposer tunes its numbers too. */
static void teach(struct search *search, struct attempt *attempt)
{
    struct arm *arm = attempt->arm;
    bool kernel = attempt_is_kernel(attempt);
    bool twin = *attempt->record.duplicate_of != '\0'; /* whose code is known by another name */
    bool whole = !*attempt->record.attempt;            /* no step of an agent's */
    if (attempt->writing && whole && kernel && !twin && arm->number < 0 &&
        arm->candidate->tune_count > 0)
        search_arm_add(search, arm);
    if (!arm || arm->number < 0)
        return;
    /* All by their looks, where they had one: those that it ended have no other time. */
    double look_ns = attempt->request.evaluation.look_ns;
    double time_ns = look_ns > 0 ? look_ns : attempt->record.time_ns;
    if (attempt->answered)
        proposer_tell(search->proposer, (size_t)arm->number, &attempt->tune,
                      kernel || attempt->task.state == DROPPED ? time_ns : 0);
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
    bool step =
        *attempt->record.attempt; /* of an agent's: what it came to is told, not each of them */
    if (attempt->answered && !step)
        history_add(search, attempt);
    teach(search, attempt);
    if (!step)
        search_lesson_take(attempt);
    twins_take(search, attempt);
    bool twin = *attempt->record.duplicate_of && attempt != search->best;
    if (attempt->answered && !twin && (search_ranks(attempt) || is_tuned(attempt))) {
        if (attempt->wrote)
            search_round_kernel(search);
        slim(attempt);
        list_append(&search->kept, &attempt->link);
        return;
    }
    attempt_free(attempt);
}

static void put_again(struct store_batch *batch, const struct candidate_record *record)
{
    BUF_LOCAL(text, 1 << 20);
    candidate_record_encode(record, &text);
    store_batch_put(batch, STORE_CANDIDATES, record->id, buf_text(&text), text.length);
}

/* `other` is what `first`, whose number is lower, was too. */
static void drop_twin(struct attempt *first, struct attempt *other, struct store_batch **batch)
{
    struct search *search = first->search;
    other->record.duplicate_of = arena_strdup(other->arena, first->record.id);
    count(search, other, -1);
    if (search->best == other && search_ranks(first))
        search->best = first;
    *batch = *batch ? *batch : store_batch_new();
    put_again(*batch, &other->record);
    search_lesson_remove(other, *batch);
}

void search_take_all(struct search *search)
{
    struct attempt *attempt;
    struct store_batch *batch = twins_drop(search, drop_twin);
    if (batch)
        store_write_take(search->writer, &search->twins_write, &search->task, batch);
    while ((attempt = search_next_ended(search, 0)))
        search_take(search, attempt);
    twins_round_end(search);
    search_prune(search);
}
