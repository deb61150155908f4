/* agents/search/life: how a run comes to be, is stopped, and goes. */
#include "agents/search/private.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/problem/identity.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whoever owns the store knows that nobody else is running: what says so died. */
static bool bury(void *context, const char *key, const char *value, size_t length)
{
    struct store_batch *batch = context;
    ARENA_LOCAL(arena);
    struct run_record record;
    if (run_record_decode(arena, value, length, &record, NULL) == 0 &&
        strcmp(record.state, "running") == 0) {
        record.state = "died";
        record.stopped = "the program was killed";
        BUF_LOCAL(text, 1 << 20);
        run_record_encode(&record, &text);
        store_batch_put(batch, STORE_RUNS, key, buf_text(&text), text.length);
    }
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

/* "gpt-5-mini, claude-sonnet-4-5" */
static const char *model_words(struct search *search)
{
    const struct models *lists[] = {search->options.idea_models, search->options.code_models};
    BUF_LOCAL(text, 1 << 12);
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; lists[l] && i < lists[l]->count; i++)
            if (!strstr(buf_text(&text), lists[l]->items[i].name))
                buf_addf(&text, "%s%s", text.length ? ", " : "", lists[l]->items[i].name);
    return arena_strdup(search->arena, buf_text(&text));
}

static const char *search_problem_hash(struct search *search)
{
    char hash[IDENTITY_BYTES];
    problem_identity(search->problem, hash);
    return arena_strdup(search->arena, hash);
}

static void new_record(struct search *search, uint64_t number)
{
    bool model = search_has_model(search);
    search->record = (struct run_record){
        .id = search->id,
        .problem = search->problem->name,
        .problem_file = search->problem->file,
        .problem_hash = search_problem_hash(search),
        .backend = search->options.backend,
        .provider = model ? search->options.idea_models->items[0].provider : "builtin",
        .model = model_words(search),
        .state = "running",
        .stopped = "",
        .baseline = "",
        .definition = "",
        .best = "",
        .paused = "",
        .agents = "",
        .batches = "",
        .finding = "",
        .noise = "",
        .number = (int64_t)number,
        .started_ms = clock_wall_ms()};
}

static int begin(struct search *search, struct err *err)
{
    uint64_t number;
    if (search_load(search, err) || bury_the_dead(search, err))
        return -1;
    if (search->options.resume) {
        if (search_recall(search, err))
            return -1;
        snprintf(search->id, sizeof search->id, "%s", search->record.id);
    } else {
        if (store_next_run(search->store, &number, err))
            return -1;
        snprintf(search->id, sizeof search->id, "r%llu", (unsigned long long)number);
        new_record(search, number);
    }
    if (search_budget_open(search, err))
        return -1;
    search->record.definition = problem_definition(search->problem);
    search->record.options = search->options.record ? search->options.record : "{}";
    if (search->options.choice)
        search->record.choice = search->options.choice;
    search->record.pid = getpid();
    search->proposer = proposer_new((uint64_t)search->options.seed);
    return 0;
}

/* A night is long: few heaps that threads share, and large pieces go back as soon as they are free,
 * however large the ones before them were (glibc learns otherwise by itself). */
static void settle_memory(void)
{
    enum { HEAPS = 2, LARGE = 256 << 10 };
    (void)mallopt(M_ARENA_MAX, HEAPS);
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * LARGE);
}

/* A part of a room above run.h's is known there by name alone. */
static void make_parts(struct search *search)
{
    search->builtin = ARENA_NEW(search->arena, struct chain);
    search->final = ARENA_NEW(search->arena, struct final);
    search->history = ARENA_NEW(search->arena, struct history);
    search->lessons = ARENA_NEW(search->arena, struct lessons);
    search->passages = ARENA_NEW(search->arena, struct passages);
    search->recall = ARENA_NEW(search->arena, struct recall);
    search->round = ARENA_NEW(search->arena, struct round);
    search->values = ARENA_NEW(search->arena, struct values);
}

int search_start(struct loop *loop, struct task *parent, struct store *store,
                 const struct search_options *options, struct search **out, struct err *err)
{
    settle_memory();
    struct search *search = MEM_NEW(struct search);
    search->options = *options;
    search->store = store;
    search->arena = arena_new();
    make_parts(search);
    search->started_ns = options->begun_ns > 0 ? options->begun_ns : clock_now_ns();
    search->phase = search_type.states[0];
    search_watch_open(search);
    list_init(&search->running);
    list_init(&search->ended);
    list_init(&search->kept);
    if (begin(search, err)) {
        search_free(search);
        return -1;
    }
    search->writer = store_writer_new(loop, store);
    task_start(loop, &search->task, &search_type, parent, search->id);
    search_deadline_set(search);
    *out = search;
    return 0;
}

void search_stop(struct search *search)
{
    search->stops++;
    if (!search->task.finished)
        task_wake(&search->task);
}

void search_pause(struct search *search, bool paused)
{
    search_watch_person(search, paused);
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
    search_rounds_close(search);
    search_values_close(search);
    search_library_close(search);
    search_model_close(search);
    search_lessons_close(search);
    history_free(search);
    twins_free(search);
    search_recall_free(search);
    free_attempts(&search->ended);
    free_attempts(&search->kept);
    search_lanes_free(search);
    search_watch_free(search);
    if (search->writer)
        store_writer_free(search->writer);
    for (size_t i = 0; i < search->arm_count; i++)
        candidate_free(search->arms[i].candidate);
    search_final_free(search);
    problem_free(search->problem);
    arena_free(search->arena);
    mem_free(search);
}
