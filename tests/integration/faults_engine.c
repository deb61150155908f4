/* One run of the engine for the fault table: a loop, a store, a writer, a budget, some asks. */
#include "faults.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/http.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICK_MS = 5, MAX_TOKENS = 1000, WATCHDOG_TICKS = 60000 };

const char *work_folder;
uint64_t slept_ns;

static uint64_t late_clock(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + slept_ns;
}

const struct codec *codec_of(unsigned format)
{
    return format == OPENAI      ? &codec_openai
           : format == ANTHROPIC ? &codec_anthropic
           : format == GEMINI    ? &codec_gemini
                                 : &codec_responses;
}

const char *base_url(unsigned format, int port)
{
    static char url[128];
    (void)format; /* the codecs find their version's path by themselves; OpenAI's has it here */
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port,
             format == OPENAI || format == RESPONSES ? "/v1" : "");
    return url;
}

/* ---- the log of a trial ---- */

static void keep_event(void *context, const struct event *event)
{
    struct trial *trial = context;
    buf_addf(&trial->log, "%s %s: %s\n", event->kind, event->subject, event->message);
}

bool trial_logged(const struct trial *trial, const char *kind)
{
    char start[80];
    snprintf(start, sizeof start, "\n%s ", kind);
    const char *log = buf_text(&trial->log);
    return strncmp(log, start + 1, strlen(start + 1)) == 0 || strstr(log, start) != NULL;
}

/* ---- a root task that asks ---- */

struct asker {
    struct task task;
    struct trial *trial;
    struct completions *completions;
    struct timer timer;
    size_t started;
    uint64_t start_ns;
    bool cancelled;
};

static int64_t elapsed_ms(const struct asker *asker)
{
    return (int64_t)((clock_now_ns() - asker->start_ns) / 1000000);
}

static void tick(struct asker *asker)
{
    struct trial *trial = asker->trial;
    timer_start(asker->task.loop, &asker->timer, &asker->task, TICK_MS);
    trial->ticks++;
    if (trial->tick != NULL)
        trial->tick(trial, trial->ticks);
    trial->hung = trial->hung || trial->ticks > WATCHDOG_TICKS;
    bool seen = trial->until_event != NULL && trial_logged(trial, trial->until_event);
    if (asker->cancelled || (!trial->hung && !seen))
        return;
    asker->cancelled = true;
    for (size_t i = 0; i < asker->started; i++)
        if (!trial->ask[i].task.finished)
            task_cancel(&trial->ask[i].task);
}

static enum task_result asker_step(struct task *task)
{
    struct asker *asker = container_of(task, struct asker, task);
    struct trial *trial = asker->trial;
    size_t ended = 0;
    if (!asker->timer.armed)
        tick(asker);
    for (size_t i = 0; i < asker->started; i++) {
        if (!trial->ask[i].task.finished)
            continue;
        ended++;
        if (trial->ended_ms[i] < 0)
            trial->ended_ms[i] = elapsed_ms(asker);
    }
    while (asker->started < trial->asks && !asker->cancelled &&
           (!trial->one_by_one || ended == asker->started)) {
        char id[32];
        snprintf(id, sizeof id, "r1-c%zu", asker->started + 1);
        ask_start(asker->completions, &trial->ask[asker->started++], task, id);
    }
    if (ended < asker->started || (asker->started < trial->asks && !asker->cancelled))
        return TASK_WAIT;
    timer_stop(&asker->timer);
    return TASK_DONE;
}

static const char *const states[] = {"asking"};
static const uint32_t moves[] = {1};
static const struct task_type asker_type = {"asker", states, moves, 1, asker_step, NULL};

/* ---- the run ---- */

static _Noreturn void die(const struct err *err)
{
    fprintf(stderr, "faults: %s\n", err->message);
    exit(3);
}

/* Whether the key stands in any file of the store. */
static bool store_has_key(const char *folder)
{
    static const char *const names[] = {"data.mdb", "lock.mdb"};
    bool found = false;
    for (size_t i = 0; i < COUNT(names); i++) {
        struct buf bytes;
        struct err err;
        char *path = file_join(folder, names[i]);
        buf_init(&bytes, 64 << 20);
        if (file_read(path, &bytes, &err) == 0)
            found = found || memmem(buf_text(&bytes), bytes.length, KEY, strlen(KEY)) != NULL;
        else if (i == 0)
            die(&err);
        buf_free(&bytes);
        mem_free(path);
    }
    return found;
}

static void ask_all(struct trial *trial, struct loop *loop, struct store *store,
                    struct store_writer *writer, const struct model *model)
{
    const struct retry_policy policy = {.tries = trial->tries > 0 ? trial->tries : 4,
                                        .base_ms = 2,
                                        .cap_ms = 8,
                                        .honour_ms = 120000,
                                        .break_after =
                                            trial->break_after > 0 ? trial->break_after : 100,
                                        .probe_ms = 20,
                                        .probe_cap_ms = 40};
    const struct models models = {.items = model, .count = 1};
    const struct models *const all[] = {&models};
    const struct budget_caps caps = {.micro_dollars = 1000000000};
    struct budget *budget;
    struct err err;
    if (budget_open(store, "r1", &caps, all, 1, &budget, &err) != 0)
        die(&err);
    const struct completions_spec spec = {.run = "r1",
                                          .seed = 5,
                                          .budget = budget,
                                          .policy = &policy,
                                          .in_flight = trial->in_flight,
                                          .connect_ms = trial->connect_ms,
                                          .ca_file = trial->ca_file};
    struct completions *completions = completions_new(loop, store, writer, &spec, &err);
    if (completions == NULL)
        die(&err);
    struct asker asker = {.trial = trial, .completions = completions, .start_ns = clock_now_ns()};
    for (size_t i = 0; i < trial->asks; i++) {
        struct ask *ask = &trial->ask[i];
        trial->ended_ms[i] = -1;
        ask->model = model;
        ask->request = (struct completion_request){.prompt = "Make this kernel faster, please."};
        ask->purpose = "implement";
        ask->sample = (int64_t)i;
    }
    task_start(loop, &asker.task, &asker_type, NULL, "asker");
    loop_run(loop);
    trial->totals = completions_totals(completions);
    trial->blocked = *completions_blocked(completions, model);
    trial->spent = budget_totals(budget);
    struct endpoint_view views[4];
    size_t count = completions_endpoints(completions, views, COUNT(views));
    for (size_t i = 0; i < count && i < COUNT(views); i++)
        buf_addf(&trial->log, "endpoint %s: state %d: %s\n", views[i].name, (int)views[i].state,
                 views[i].reason);
    completions_free(completions);
    budget_free(budget);
}

void trial_run(struct trial *trial)
{
    struct err err;
    char own[] = "store";
    char *folder = file_join(work_folder, trial->folder != NULL ? trial->folder : own);
    struct loop *loop = loop_new();
    struct store *store;
    if (store_open(folder, true, false, &store, &err) != 0)
        die(&err);
    struct store_writer *writer = store_writer_new(loop, store);
    const struct codec *codec = codec_of(trial->format);
    const struct model model = {.name = "fake",
                                .provider = codec->name,
                                .wire_name = trial->model != NULL ? trial->model : "fake-model",
                                .codec = codec,
                                .base_url = trial->url,
                                .key_variable = codec->key_variable,
                                .key = trial->key != NULL ? trial->key : KEY,
                                .temperature = -1,
                                .max_tokens = MAX_TOKENS,
                                .prompt_price = 0.01,
                                .completion_price = 10,
                                .weight = 1,
                                .where = "here"};
    if (trial->asks == 0)
        trial->asks = 1;
    buf_init(&trial->log, 4 << 20);
    log_add_sink(keep_event, trial, LOG_DEBUG);
    slept_ns = 0;
    clock_inject(late_clock, NULL);
    ask_all(trial, loop, store, writer, &model);
    clock_inject(NULL, NULL);
    log_remove_sink(keep_event, trial);
    if (store_count(store, STORE_COMPLETIONS, "", &trial->stored, &err) != 0)
        die(&err);
    store_writer_free(writer);
    loop_run(loop);
    loop_free(loop);
    store_close(store);
    trial->leaked = store_has_key(folder);
    if (trial->folder == NULL && file_remove_tree(folder, &err) != 0)
        die(&err);
    mem_free(folder);
}

void trial_free(struct trial *trial)
{
    for (size_t i = 0; i < trial->asks; i++)
        ask_free(&trial->ask[i]);
    buf_free(&trial->log);
}

void expect_sound(const struct trial *trial)
{
    const struct budget_totals *spent = &trial->spent;
    EXPECT(!trial->hung, "it hung");
    EXPECT(!trial->leaked, "the key is in the store");
    EXPECT(strstr(buf_text(&trial->log), KEY) == NULL, "the key is in the log");
    EXPECT(strstr(trial->blocked.message, KEY) == NULL, "the key is in the reason");
    for (size_t i = 0; i < trial->asks; i++)
        EXPECT(strstr(trial->ask[i].err.message, KEY) == NULL, "the key is in the message");
    EXPECT(spent->reserved_micro_dollars == 0 && spent->reserved_tokens == 0,
           "%lld tokens are still reserved", (long long)spent->reserved_tokens);
    /* one that had to turn back unsent was released without being sent */
    EXPECT(spent->settled + spent->charged + spent->released >= trial->totals.requests,
           "%lld settled, %lld charged, %lld released, for %lld requests",
           (long long)spent->settled, (long long)spent->charged, (long long)spent->released,
           (long long)trial->totals.requests);
    EXPECT(spent->settled + spent->charged <= trial->totals.requests,
           "%lld settled and %lld charged, for %lld requests", (long long)spent->settled,
           (long long)spent->charged, (long long)trial->totals.requests);
}
