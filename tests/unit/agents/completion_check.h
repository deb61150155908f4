/* What the tests of the engine share: a fake provider, a root task that asks, an outcome to look
 * at. Everything of one run is in a struct scene; the store stays between two of them. */
#pragma once

#include "a_provider.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/http.h"
#include "store/store.h"

#include <time.h>

enum { ASKS_MAX = 16, EVENTS_MAX = 256 };

static const struct retry_policy quick = {
    .tries = 4, .base_ms = 2, .cap_ms = 8, .honour_ms = 120000, .break_after = 100};

/* ---- events ---- */

struct events {
    struct {
        char kind[32], message[256];
    } items[EVENTS_MAX];
    size_t count;
};

static void note_event(void *context, const struct event *event)
{
    struct events *events = context;
    if (strncmp(event->kind, "provider.", 9) != 0 || events->count == EVENTS_MAX)
        return;
    snprintf(events->items[events->count].kind, 32, "%s", event->kind);
    snprintf(events->items[events->count++].message, 256, "%s: %s", event->subject, event->message);
}

static inline size_t events_of(const struct events *events, const char *kind)
{
    size_t count = 0;
    for (size_t i = 0; i < events->count; i++)
        count += strcmp(events->items[i].kind, kind) == 0;
    return count;
}

/* ---- who asks ---- */

struct scene {
    struct task task; /* a root that starts its asks at once and ends with the last */
    struct loop *loop;
    struct store *store;
    struct store_writer *writer;
    struct completions *completions;
    struct budget *budget;
    struct completions_spec spec;
    struct budget_caps caps;
    const char *run; /* "r1" */
    struct ask asks[ASKS_MAX];
    char ids[ASKS_MAX][32];
    size_t count;
    bool started, held;    /* held: from the beginning */
    uint64_t act_after_ms; /* 0: never; then act() every so often, or all are cancelled */
    void (*act)(struct scene *scene, int times);
    int acts;
    struct timer timer;
    struct events events;
    /* afterwards */
    struct completions_totals totals;
    struct budget_totals spent;
    struct endpoint_view endpoints[4];
    char reasons[4][480];
    size_t endpoint_count;
    struct err blocked;
};

static char *folder; /* of the present test's store */

static void act(struct scene *scene)
{
    if (scene->act != NULL)
        scene->act(scene, scene->acts++);
    for (size_t i = 0; scene->act == NULL && i < scene->count; i++)
        task_cancel(&scene->asks[i].task);
}

static enum task_result scene_step(struct task *task)
{
    struct scene *scene = container_of(task, struct scene, task);
    if (!scene->started) {
        scene->started = true;
        for (size_t i = 0; i < scene->count; i++)
            ask_start(scene->completions, &scene->asks[i], task,
                      scene->ids[i][0] != '\0' ? scene->ids[i] : "test");
        if (scene->act_after_ms > 0)
            timer_start(task->loop, &scene->timer, task, scene->act_after_ms);
    }
    if (scene->timer.fired) {
        scene->timer.fired = false;
        act(scene);
        if (scene->act != NULL)
            timer_start(task->loop, &scene->timer, task, scene->act_after_ms);
    }
    for (size_t i = 0; i < scene->count; i++)
        if (!scene->asks[i].task.finished)
            return TASK_WAIT;
    timer_stop(&scene->timer);
    return TASK_DONE;
}

static const char *const scene_states[] = {"asking"};
static const uint32_t scene_moves[] = {1};
static const struct task_type scene_type = {"scene", scene_states, scene_moves,
                                            1,       scene_step,   NULL};

/* For scene->act: all are cancelled once two answers have begun. */
static inline void scene_cancel_begun(struct scene *scene, int times)
{
    size_t begun = 0;
    (void)times;
    for (size_t i = 0; i < scene->count; i++)
        begun += scene->asks[i].heard > 0;
    for (size_t i = 0; begun == 2 && i < scene->count; i++)
        task_cancel(&scene->asks[i].task);
}

static uint64_t leapt_ns; /* of the loop's clock, over what nobody has to wait for */

static uint64_t leaping_clock(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + leapt_ns;
}

/* The first answer has begun, and goes silent. By steps that are small beside the limit, so that
 * bytes on their way can come between; a timer that a step passes fires that much later. */
static inline void scene_leap(struct scene *scene, int times)
{
    const struct http_request *http = scene->asks[0].http;
    (void)times;
    if (completions_totals(scene->completions).requests == 1 && http != NULL &&
        http_connected(http) && http_status(http) == 200)
        leapt_ns += UINT64_C(1000000000);
}

/* Where the first fault is a silence, nobody waits for its end. */
static inline void scene_leap_over(struct scene *scene, const char *fault)
{
    if (fault == NULL || strncmp(fault, "stall", 5) != 0)
        return;
    scene->act = scene_leap;
    scene->act_after_ms = 5;
}

static inline struct scene *scene_new(size_t count)
{
    struct scene *scene = MEM_NEW(struct scene);
    scene->run = "r1";
    scene->count = count;
    scene->spec = (struct completions_spec){.seed = 5, .policy = &quick};
    return scene;
}

static inline void scene_ask(struct scene *scene, size_t number, const struct model *model,
                             const char *prompt)
{
    struct ask *ask = &scene->asks[number];
    ask->model = model;
    ask->request = (struct completion_request){.prompt = prompt};
    ask->purpose = "test";
    ask->sample = (int64_t)number;
}

static void scene_look(struct scene *scene)
{
    scene->totals = completions_totals(scene->completions);
    scene->endpoint_count = completions_endpoints(scene->completions, scene->endpoints, 4);
    for (size_t i = 0; i < scene->endpoint_count; i++) {
        snprintf(scene->reasons[i], sizeof scene->reasons[i], "%s", scene->endpoints[i].reason);
        scene->endpoints[i].reason = scene->reasons[i];
        scene->endpoints[i].name = "";
    }
    scene->blocked = *completions_blocked(scene->completions, scene->asks[0].model);
    if (scene->budget != NULL)
        scene->spent = budget_totals(scene->budget);
}

/* Runs it to its end. A budget is kept where there is a cap. */
static inline void scene_run(struct scene *scene)
{
    struct err err = {0};
    leapt_ns = 0;
    clock_inject(leaping_clock, NULL);
    scene->loop = loop_new();
    if (store_open(folder, true, false, &scene->store, &err) != 0)
        fail_msg("%s", err.message);
    scene->writer = store_writer_new(scene->loop, scene->store);
    scene->spec.run = scene->run;
    if (scene->caps.micro_dollars != 0 || scene->caps.tokens != 0) {
        if (budget_open(scene->store, scene->run, &scene->caps, NULL, 0, &scene->budget, &err) != 0)
            fail_msg("%s", err.message);
        scene->spec.budget = scene->budget;
    }
    scene->completions =
        completions_new(scene->loop, scene->store, scene->writer, &scene->spec, &err);
    assert_non_null(scene->completions);
    completions_hold(scene->completions, scene->held);
    log_add_sink(note_event, &scene->events, LOG_DEBUG);
    task_start(scene->loop, &scene->task, &scene_type, NULL, "scene");
    loop_run(scene->loop);
    log_remove_sink(note_event, &scene->events);
    scene_look(scene);
    for (size_t i = 0; i < scene->count; i++) { /* stored before it was used */
        const struct ask *ask = &scene->asks[i];
        assert_int_equal(store_has(scene->store, STORE_COMPLETIONS, ask->key),
                         ask->err.code == ERR_NONE || ask->fault == FAULT_REFUSED);
    }
    completions_free(scene->completions);
    budget_free(scene->budget);
    store_writer_free(scene->writer);
    loop_run(scene->loop);
    loop_free(scene->loop);
    store_close(scene->store);
    clock_inject(NULL, NULL);
}

static inline void scene_free(struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        ask_free(&scene->asks[i]);
    mem_free(scene);
}

/* ---- the store's folder ---- */

static int set_up(void **state)
{
    (void)state;
    char path[] = "/tmp/twagent-test-XXXXXX";
    if (mkdtemp(path) == NULL)
        return -1;
    folder = file_join(path, "store");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct err err;
    char *slash = strrchr(folder, '/');
    *slash = '\0';
    int status = file_remove_tree(folder, &err);
    mem_free(folder);
    return status;
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
