/* agents/search/proposed: how a candidate comes to be; its way is candidate.c. */
#include "agents/search/private.h"

#include "base/mem.h"

#include <inttypes.h>

static struct attempt *attempt_new(struct search *search, int64_t number)
{
    struct attempt *attempt = MEM_NEW(struct attempt);
    attempt->search = search;
    attempt->arena = arena_new();
    attempt->record = (struct candidate_record){
        .id = arena_printf(attempt->arena, "%s-c%lld", search->id, (long long)number),
        .run = search->id,
        .idea = "",
        .parent = "",
        .name = "",
        .source = "",
        .tune = "{}",
        .identity = "",
        .duplicate_of = "",
        .verdict = "",
        .reason = "",
        .failure = "",
        .diagnostics = "",
        .first_failure = "",
        .number = number,
        .round = search->record.round};
    if (number > search->numbers)
        search->numbers = number;
    search->in_flight++;
    list_append(&search->running, &attempt->link);
    search_recall_candidate(attempt);
    return attempt;
}

struct attempt *attempt_start(struct search *search, const struct chain *chain)
{
    const struct proposal *proposal = &chain->proposal;
    struct attempt *attempt = attempt_new(search, chain->first + chain->proposed);
    if (!search_writes(search))
        attempt->record.round = chain->proposed / search_round_size(search) + 1;
    attempt->arm = search->by_number[proposal->start];
    attempt->record.island = attempt->island = attempt->arm->island;
    attempt->tune = proposal->tune;
    attempt->record.tuning = chain->tuning;
    attempt->record.idea = arena_printf(attempt->arena, "%s-i%" PRId64, search->id,
                                        chain->ideas_first + chain->proposed);
    attempt->record.parent = attempt->arm->origin;
    attempt->record.name = attempt->arm->name;
    attempt->record.source = attempt->arm->source_hash;
    attempt_identify(attempt);
    search_idea_words(search, proposal, attempt);
    task_start(search->task.loop, &attempt->task, &attempt_type, &search->task, attempt->record.id);
    return attempt;
}

struct attempt *attempt_start_writing(struct search *search, struct task *round, int64_t number,
                                      const struct idea *idea, const char *idea_id,
                                      const struct attempt *parent, int island, int64_t sample)
{
    struct attempt *attempt = attempt_new(search, number);
    writing_new(attempt, idea, parent, sample);
    attempt->wrote = true;
    attempt->record.island = attempt->island = island;
    attempt->record.idea = arena_strdup(attempt->arena, idea_id);
    attempt->record.parent = parent ? arena_strdup(attempt->arena, parent->record.id) : "";
    attempt->idea = (struct idea_record){.id = attempt->record.idea,
                                         .run = search->id,
                                         .parent = attempt->record.parent,
                                         .title = arena_strdup(attempt->arena, idea->title),
                                         .category = search_constant(idea->category),
                                         .why = arena_strdup(attempt->arena, idea->why),
                                         .expected = idea->expected,
                                         .round = search->record.round};
    search_lesson_parent(attempt, parent);
    task_start(search->task.loop, &attempt->task, &attempt_type, round, attempt->record.id);
    return attempt;
}
