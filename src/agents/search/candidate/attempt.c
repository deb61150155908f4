/* agents/search/candidate/attempt: what a candidate is, how it is left, and goes; its way is
 * candidate.c. */
#include "agents/search/candidate/candidate.h"

#include "base/mem.h"

void attempt_identify(struct attempt *attempt)
{
    char identity[33];
    hash_format(candidate_identity(attempt->arm->candidate, &attempt->tune), identity);
    attempt->record.identity = arena_strdup(attempt->arena, identity);
    attempt->record.tune = names_json(&attempt->tune, attempt->arena);
}

void attempt_abandon(struct attempt *attempt)
{
    attempt->abandoned = true;
    writing_cancel(attempt->writing);
    if (attempt->submitted && !attempt->request.done)
        lane_cancel(attempt->place->lane, &attempt->request);
    task_wake(&attempt->task);
}

void attempt_free(struct attempt *attempt)
{
    list_remove(&attempt->link);
    arena_free(attempt->request.arena);
    if (attempt->wrote && attempt->arm)
        candidate_free(attempt->arm->candidate); /* its own source, not a start's */
    writing_free(attempt->writing);
    arena_free(attempt->arena);
    mem_free(attempt);
}
