/* agents/llm/completion: the engine itself: its endpoints, its totals, what it shares out. The life
 * of one request is completion_ask.c. */
#include "agents/llm/completion_private.h"

#include "agents/llm/completion_batch.h"
#include "base/mem.h"

#include <assert.h>
#include <string.h>

enum { IN_FLIGHT = 8, BATCH_CAPACITY = 10000 };

static const struct err no_err;

struct completions *completions_new(struct loop *loop, struct store *store,
                                    struct store_writer *writer,
                                    const struct completions_spec *spec, struct err *err)
{
    struct http *http = http_new(loop, err);
    if (http == NULL)
        return NULL;
    struct completions *completions = MEM_NEW(struct completions);
    completions->loop = loop;
    completions->store = store;
    completions->writer = writer;
    completions->http = http;
    completions->policy = spec->policy != NULL ? spec->policy : &retry_policy_default;
    completions->run = mem_strdup(spec->run != NULL ? spec->run : "");
    completions->ca_file = spec->ca_file != NULL ? mem_strdup(spec->ca_file) : NULL;
    completions->budget = spec->budget;
    completions->connect_ms = spec->connect_ms;
    completions->first_byte_ms = spec->first_byte_ms;
    completions->between_bytes_ms = spec->between_bytes_ms;
    completions->total_ms = spec->total_ms;
    completions->capacity = spec->in_flight > 0 ? spec->in_flight : IN_FLIGHT;
    random_init(&completions->random, spec->seed);
    list_init(&completions->endpoints);
    list_init(&completions->replays);
    list_init(&completions->tallies);
    list_init(&completions->asks);
    list_init(&completions->budget_queue);
    list_init(&completions->batches);
    if (batches_recall(completions, err) == 0)
        return completions;
    completions_free(completions);
    return NULL;
}

void completions_free(struct completions *completions)
{
    if (completions == NULL)
        return;
    assert(list_empty(&completions->asks));
    for (struct link *link; (link = list_pop(&completions->endpoints)) != NULL;)
        endpoint_free(container_of(link, struct endpoint, link));
    for (struct link *link; (link = list_pop(&completions->replays)) != NULL;)
        replay_free(container_of(link, struct replay, link));
    completions_free_tallies(completions);
    batches_free(completions);
    http_free(completions->http);
    mem_free(completions->run);
    mem_free(completions->ca_file);
    mem_free(completions);
}

/* ---- endpoints ---- */

struct endpoint *completions_find_endpoint(const struct completions *completions,
                                           const struct model *model)
{
    list_each (link, &completions->endpoints) {
        struct endpoint *endpoint = container_of(link, struct endpoint, link);
        if (endpoint_fits(endpoint, model))
            return endpoint;
    }
    return NULL;
}

struct endpoint *completions_endpoint(struct completions *completions, const struct model *model)
{
    struct endpoint *endpoint = completions_find_endpoint(completions, model);
    if (endpoint != NULL)
        return endpoint;
    endpoint = endpoint_new(model, completions->policy, &completions->random,
                            model->command ? model->command->slots
                            : model->batch ? BATCH_CAPACITY
                                           : completions->capacity);
    list_append(&completions->endpoints, &endpoint->link);
    if (completions->held)
        endpoint_hold(endpoint, true);
    return endpoint;
}

struct replay *completions_replay(struct completions *completions, const char *run)
{
    list_each (link, &completions->replays) {
        struct replay *replay = container_of(link, struct replay, link);
        if (strcmp(replay->run, run) == 0)
            return replay;
    }
    struct replay *replay = replay_new(run);
    list_append(&completions->replays, &replay->link);
    return replay;
}

const struct err *completions_blocked(const struct completions *completions,
                                      const struct model *model)
{
    const struct endpoint *endpoint =
        model->codec != NULL ? completions_find_endpoint(completions, model) : NULL;
    return endpoint != NULL ? endpoint_blocked(endpoint, model) : &no_err;
}

size_t completions_endpoints(const struct completions *completions, struct endpoint_view *views,
                             size_t most)
{
    size_t count = 0;
    list_each (link, &completions->endpoints) {
        const struct endpoint *endpoint = container_of(link, struct endpoint, link);
        size_t wanted = endpoint_views(endpoint, views + count, most - count);
        count += wanted < most - count ? wanted : most - count;
    }
    return count;
}

size_t completions_causes(const struct completions *completions, const char *model_name,
                          struct cause causes[CAUSES_MOST])
{
    list_each (link, &completions->tallies) {
        const struct model_tally *tally = container_of(link, struct model_tally, link);
        if (tally->endpoint != NULL && strcmp(tally->name, model_name) == 0)
            return endpoint_causes(tally->endpoint, model_name, causes);
    }
    return 0;
}

void completions_wake(struct completions *completions, const struct endpoint *endpoint)
{
    list_each (link, &completions->asks) {
        struct ask *ask = container_of(link, struct ask, all);
        if (endpoint == NULL || ask->endpoint == endpoint)
            task_wake(&ask->task);
    }
}

void completions_hold(struct completions *completions, bool held)
{
    if (completions->held == held)
        return;
    completions->held = held;
    list_each (link, &completions->endpoints)
        endpoint_hold(container_of(link, struct endpoint, link), held);
    completions_wake(completions, NULL);
}

void completions_hurry(struct completions *completions)
{
    completions->hurried = true;
    list_each (link, &completions->batches) {
        struct batch *batch = container_of(link, struct batch, link);
        if (batch->joined > 0 && !batch->task.finished)
            task_wake(&batch->task);
    }
}

bool completions_held(const struct completions *completions)
{
    return completions->held;
}

/* ---- totals ---- */

struct completions_totals completions_totals(const struct completions *completions)
{
    struct completions_totals totals = completions->totals;
    totals.waiting = totals.awaited = 0;
    list_each (link, &completions->asks) {
        const struct ask *ask = container_of(link, struct ask, all);
        totals.waiting++;
        totals.awaited += ask->awaited;
    }
    return totals;
}
