/* agents/search_life: how a run comes to be, is stopped, and goes. */
#include "agents/search_private.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { RESERVE_LEAST_MS = 12000 }; /* of the time budget, kept for the champion */

static const char *options_text(struct search *search)
{
    const struct search_options *o = &search->options;
    struct buf text;
    struct json json;
    buf_init(&text, 1 << 16);
    json_init(&json, &text);
    json_object(&json);
    json_put_int(&json, "branching", o->branching);
    json_put_real(&json, "select", o->select);
    json_put_int(&json, "rounds", o->rounds);
    json_put_int(&json, "implementations", o->implementations);
    json_put_int(&json, "beam", o->beam);
    json_put_int(&json, "repairs", o->repairs);
    json_put_int(&json, "seed", o->seed);
    json_put_int(&json, "budget_time_ms", o->budget_ms);
    json_put_int(&json, "budget_evaluations", o->budget_evaluations);
    json_put_text(&json, "baseline", o->baseline);
    json_put_text(&json, "cores", o->cores);
    json_object_end(&json);
    const char *copy = arena_strdup(search->arena, buf_text(&text));
    buf_free(&text);
    return copy;
}

/* Whoever owns the store knows that nobody else is running: what says so died. */
static bool bury(void *context, const char *key, const char *value, size_t length)
{
    struct store_batch *batch = context;
    struct arena *arena = arena_new();
    struct run_record record;
    if (run_record_decode(arena, value, length, &record, NULL) == 0 &&
        strcmp(record.state, "running") == 0) {
        struct buf text;
        record.state = "died";
        record.stopped = "the program was killed";
        buf_init(&text, 1 << 20);
        run_record_encode(&record, &text);
        store_batch_put(batch, STORE_RUNS, key, buf_text(&text), text.length);
        buf_free(&text);
    }
    arena_free(arena);
    return true;
}

static int bury_the_dead(struct search *search, struct err *err)
{
    struct store_batch *batch = store_batch_new();
    int failed = store_scan(search->store, STORE_RUNS, "r", bury, batch, err);
    if (!failed && !store_batch_empty(batch))
        failed = store_commit(search->store, batch, err);
    store_batch_free(batch);
    return failed;
}

static int begin(struct search *search, struct err *err)
{
    uint64_t number;
    if (search_load(search, err) || bury_the_dead(search, err) ||
        store_next_run(search->store, &number, err))
        return -1;
    snprintf(search->id, sizeof search->id, "r%llu", (unsigned long long)number);
    if (search->options.seed == 0)
        search->options.seed = (int64_t)(random_seed() >> 2);
    const struct models *models = search->options.idea_models;
    bool model = models && models->count > 0;
    random_init(&search->random, (uint64_t)search->options.seed);
    search->proposer = proposer_new((uint64_t)search->options.seed);
    search->record = (struct run_record){.id = search->id,
                                         .problem = search->problem->name,
                                         .problem_file = search->problem->file,
                                         .backend = search->options.backend,
                                         .provider = model ? models->items[0].provider : "builtin",
                                         .model = model ? models->items[0].name : "",
                                         .state = "running",
                                         .stopped = "",
                                         .options = options_text(search),
                                         .baseline = "",
                                         .best = "",
                                         .number = (int64_t)number,
                                         .started_ms = clock_wall_ms()};
    return 0;
}

int search_start(struct loop *loop, struct task *parent, struct store *store,
                 const struct search_options *options, struct search **out, struct err *err)
{
    struct search *search = MEM_NEW(struct search);
    search->options = *options;
    search->store = store;
    search->arena = arena_new();
    search->started_ns = clock_now_ns();
    search->phase = search_type.states[0];
    list_init(&search->running);
    list_init(&search->finished);
    list_init(&search->kept);
    slots_init(&search->lane_slots, "lane", LANE_DEPTH);
    if (begin(search, err)) {
        search_free(search);
        return -1;
    }
    search->writer = store_writer_new(loop, store);
    task_start(loop, &search->task, &search_type, parent, search->id);
    if (options->budget_ms > 0) {
        int64_t reserve =
            options->budget_ms / 6 > RESERVE_LEAST_MS ? options->budget_ms / 6 : RESERVE_LEAST_MS;
        if (reserve > options->budget_ms / 3)
            reserve = options->budget_ms / 3;
        if (reserve > 120000)
            reserve = 120000;
        timer_start(loop, &search->deadline, &search->task,
                    (uint64_t)(options->budget_ms - reserve));
    }
    *out = search;
    return 0;
}

void search_stop(struct search *search)
{
    search->stops++;
    if (!search->task.finished)
        task_wake(&search->task);
}

static void free_attempts(struct list *list)
{
    list_each_safe (link, list)
        attempt_free(container_of(link, struct attempt, link));
}

void search_free(struct search *search)
{
    if (!search)
        return;
    proposer_free(search->proposer); /* before the sources that it borrows from */
    search_model_close(search);
    mem_free(search->known);
    free_attempts(&search->finished);
    free_attempts(&search->kept);
    if (search->lane)
        lane_free(search->lane);
    if (search->writer)
        store_writer_free(search->writer);
    for (size_t i = 0; i < search->arm_count; i++)
        candidate_free(search->arms[i].candidate);
    arena_free(search->open.arena);
    arena_free(search->final.arena);
    problem_free(search->problem);
    arena_free(search->arena);
    mem_free(search);
}
