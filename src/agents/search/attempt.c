/* agents/search/attempt: what a candidate is, how it is left, and goes; its way is candidate.c. */
#include "agents/search/private.h"

#include "base/mem.h"

static const char *tune_text(struct arena *arena, const struct names *tune)
{
    struct buf text;
    struct json json;
    buf_init(&text, 1 << 14);
    json_init(&json, &text);
    json_object(&json);
    for (size_t i = 0; i < tune->count; i++)
        json_put_int(&json, tune->name[i], tune->number[i]);
    json_object_end(&json);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_free(&text);
    return copy;
}

void attempt_identify(struct attempt *attempt)
{
    char identity[33];
    hash_format(candidate_identity(attempt->arm->candidate, &attempt->tune), identity);
    attempt->record.identity = arena_strdup(attempt->arena, identity);
    attempt->record.tune = tune_text(attempt->arena, &attempt->tune);
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
