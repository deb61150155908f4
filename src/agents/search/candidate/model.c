/* agents/search/candidate/model: who is asked, and what every prompt of a run says.
 *
 * What prompts say of the machine is what the run's record has: the same bytes in a process that
 * goes on with the run, so that its requests are found in the store.
 */
#include "agents/llm/completion_record.h"
#include "agents/search/candidate/candidate.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

const struct models *search_models(const struct search *search, bool idea)
{
    const struct search_options *o = &search->options;
    return !idea && o->code_models && o->code_models->count > 0 ? o->code_models : o->idea_models;
}

/* Who answered it in an earlier process, whoever can be asked now. */
static const struct model *recorded(struct search *search, const struct draw *draw,
                                    const struct models *models)
{
    char key[256];
    struct err ignored;
    const struct model *found = NULL;
    if (!search->options.resume)
        return NULL;
    completion_draw_key(draw->asker, draw->purpose, draw->step, key);
    BUF_LOCAL(text, 1 << 12);
    if (store_get(search->store, STORE_FACTS, key, &text, &ignored) == 0) {
        struct arena *arena = arena_new();
        struct value *root = NULL;
        (void)!value_parse_json(arena, key, buf_text(&text), text.length, &root, &ignored);
        for (size_t i = 0; root && i < models->count; i++)
            if (strcmp(models->items[i].name, value_text(root, "model", "")) == 0)
                found = &models->items[i];
        arena_free(arena);
    }
    return found;
}

/* Draws among those that can be asked now and have not failed at it; NULL: there are none. A person
 * or a batch behind a mailbox answers nobody else's questions. */
static const struct model *draw_other(struct search *search, const struct draw *draw,
                                      const struct models *models, uint64_t number)
{
    struct model *items = mem_array(models->count, sizeof *items);
    MEM_LOCAL size_t *places = mem_array(models->count, sizeof *places);
    struct models alive = {.items = items, .count = 0};
    const struct model *drawn = NULL;
    for (size_t i = 0; i < models->count; i++) {
        const struct model *model = &models->items[i];
        if (!model->codec || draw->tried >> i & 1 ||
            completions_avoided(search->completions, model))
            continue;
        places[alive.count] = i;
        items[alive.count++] = *model;
    }
    if (alive.count > 0)
        drawn = &models->items[places[models_pick(&alive, number) - items]];
    mem_free(items);
    return drawn;
}

const struct model *search_pick_model(struct search *search, const struct draw *draw)
{
    const struct models *models = search_models(search, draw->idea);
    const int64_t words[] = {search->options.seed, draw->number, draw->idea};
    const uint64_t number = hash_bytes(words, sizeof words).low;
    const struct model *drawn = models_pick(models, number);
    const size_t place = (size_t)(drawn - models->items);
    const size_t turned = place + (size_t)search_staleness(search);
    const struct model *first = &models->items[turned % models->count];
    const struct model *model = recorded(search, draw, models);
    if (model)
        return model;
    const struct err *why = completions_blocked(search->completions, first);
    bool tried = draw->tried >> (first - models->items) & 1;
    if (!tried && !completions_avoided(search->completions, first))
        return first;
    model = draw_other(search, draw, models, number + draw->tried + 1);
    if (model)
        return model;
    if (!why->code) /* all of them are away for a while: it waits */
        return first;
    for (size_t i = 0; i < models->count; i++)
        if (!completions_blocked(search->completions, &models->items[i])->code)
            return &models->items[i];
    search_stop_provider(search, why->message);
    log_event(LOG_DEBUG, "provider.none", draw->asker, "provider: %s", why->message);
    task_wake(&search->task);
    return NULL;
}

double search_temperature(const struct search *search, const struct model *model)
{
    const double step = 0.1, most = 1.2;
    double temperature = model->temperature + step * (double)search_staleness(search);
    if (model->temperature < 0 || model->temperature >= most) /* not all models take one */
        return model->temperature;
    return temperature < most ? temperature : most;
}

bool search_pick_another(struct search *search, struct draw *draw, const struct model *model)
{
    const struct models *models = search_models(search, draw->idea);
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->items[i].name, model->name) == 0)
            draw->tried |= UINT64_C(1) << i;
    return draw_other(search, draw, models, 0) != NULL;
}

/* ---- what every prompt says ---- */

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
    struct err ignored;
    BUF_LOCAL(reference, 1 << 20);
    search->context = (struct prompt_context){
        .problem = search->problem,
        .reference = file_read(search->problem->reference_file, &reference, &ignored) == 0
                         ? arena_strdup(search->arena, buf_text(&reference))
                         : "",
        .device = value_json(value_get(context, "device"), search->arena),
        .facts = value_json(value_get(context, "facts"), search->arena),
        .baseline = o->baseline ? o->baseline : search->problem->baseline,
        .untuned = o->tuning == 0,
        .work = search->work};
}

int search_budget_open(struct search *search, struct err *err)
{
    const struct search_options *o = &search->options;
    const struct models *lists[] = {o->idea_models, search_models(search, false),
                                    o->embedding_models};
    const struct budget_caps caps = {.micro_dollars = o->budget_micro_dollars,
                                     .tokens = o->budget_tokens};
    if (!search_has_model(search))
        return 0;
    return budget_open(search->store, search->id, &caps, lists, 3, &search->budget, err);
}

/* Said at once: a night's wait for an answer does not go into an hour. */
static bool warn_of_batches(const struct search *search, const struct models *models)
{
    const uint64_t within_ms = search_within_ms(search);
    const bool minutes = within_ms >= 2 * 60 * 1000;
    for (size_t i = 0; models && i < models->count; i++) {
        const struct model *model = &models->items[i];
        if (!model->batch || within_ms == 0 || within_ms >= model->batch->wait_ms)
            continue;
        log_event(LOG_WARN, "batch.late", search->id,
                  "batches of %s may take %.0f h, and this run ends in %.0f %s", model->name,
                  ceil((double)model->batch->wait_ms / 3600000),
                  (double)within_ms / (minutes ? 60000 : 1000), minutes ? "min" : "s");
        return true;
    }
    return false;
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
    if (!search->completions)
        return -1;
    if (!warn_of_batches(search, o->idea_models))
        (void)warn_of_batches(search, o->code_models);
    return 0;
}

void search_model_close(struct search *search)
{
    completions_free(search->completions);
    budget_free(search->budget);
    search->completions = NULL;
    search->budget = NULL;
}
