/* agents/search_model: who is asked, and what every prompt of a run says.
 *
 * What prompts say of the machine is what the run's record has: the same bytes in a process that
 * goes on with the run, so that its requests are found in the store.
 */
#include "agents/search_private.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static const struct models *models_for(const struct search *search, bool idea)
{
    const struct search_options *o = &search->options;
    return !idea && o->code_models && o->code_models->count > 0 ? o->code_models : o->idea_models;
}

const struct model *search_pick_model(struct search *search, bool idea, const char *what,
                                      int64_t number)
{
    const struct models *models = models_for(search, idea);
    const int64_t words[] = {search->options.seed, number, idea};
    const struct model *model = models_pick(models, hash_bytes(words, sizeof words).low);
    const struct err *why = completions_blocked(search->completions, model);
    if (!why->code)
        return model;
    for (size_t i = 0; i < models->count; i++)
        if (!completions_blocked(search->completions, &models->items[i])->code)
            return &models->items[i];
    if (!search->provider_stopped)
        search->provider_stopped = arena_printf(search->arena, "provider: %s", why->message);
    log_event(LOG_DEBUG, "provider.none", what, "%s", search->provider_stopped);
    task_wake(&search->task);
    return NULL;
}

/* ---- what every prompt says ---- */

static const char *json_of(struct arena *arena, const struct value *value)
{
    struct buf text;
    struct json json;
    if (!value)
        return "";
    buf_init(&text, 1 << 20);
    json_init(&json, &text);
    json_value(&json, value);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_free(&text);
    return copy;
}

static const struct value *recorded_context(struct search *search)
{
    struct value *context;
    struct err ignored;
    const char *text = search->record.context;
    if (!text || value_parse_json(search->arena, "context", text, strlen(text), &context, &ignored))
        return NULL;
    return context;
}

static void set_context(struct search *search)
{
    const struct search_options *o = &search->options;
    const struct value *context = recorded_context(search);
    struct buf reference;
    struct err ignored;
    buf_init(&reference, 1 << 20);
    search->context = (struct prompt_context){
        .problem = search->problem,
        .reference = file_read(search->problem->reference_file, &reference, &ignored) == 0
                         ? arena_strdup(search->arena, buf_text(&reference))
                         : "",
        .device = json_of(search->arena, value_get(context, "device")),
        .facts = json_of(search->arena, value_get(context, "facts")),
        .baseline = o->baseline ? o->baseline : search->problem->baseline,
        .floor_ns = search->floor_ns};
    buf_free(&reference);
}

int search_budget_open(struct search *search, struct err *err)
{
    const struct search_options *o = &search->options;
    const struct models *lists[] = {o->idea_models, models_for(search, false), o->embedding_models};
    const struct budget_caps caps = {.micro_dollars = o->budget_micro_dollars,
                                     .tokens = o->budget_tokens};
    if (!search_has_model(search))
        return 0;
    return budget_open(search->store, search->id, &caps, lists, 3, &search->budget, err);
}

int search_model_open(struct search *search, struct err *err)
{
    const struct search_options *o = &search->options;
    if (prompts_load(search->arena, o->backend, &search->prompts, err))
        return -1;
    set_context(search);
    enum { IN_FLIGHT_LEAST = 8, IN_FLIGHT_MOST = 64 };
    int64_t in_flight = o->requests > 0 ? o->requests : search_round_size(search);
    if (o->requests <= 0 && in_flight < IN_FLIGHT_LEAST)
        in_flight = IN_FLIGHT_LEAST;
    if (o->requests <= 0 && in_flight > IN_FLIGHT_MOST)
        in_flight = IN_FLIGHT_MOST;
    const struct completions_spec spec = {.run = search->id,
                                          .budget = search->budget,
                                          .in_flight = (unsigned)in_flight,
                                          .seed = (uint64_t)o->seed,
                                          .first_byte_ms = (uint64_t)o->first_byte_ms,
                                          .between_bytes_ms = (uint64_t)o->silence_ms,
                                          .total_ms = (uint64_t)o->answer_ms,
                                          .ca_file = o->ca_file};
    search->completions =
        completions_new(search->task.loop, search->store, search->writer, &spec, err);
    return search->completions ? 0 : -1;
}

void search_model_close(struct search *search)
{
    search_rounds_close(search);
    search_library_close(search);
    completions_free(search->completions);
    budget_free(search->budget);
    search_lessons_close(search);
    search->completions = NULL;
    search->budget = NULL;
}
