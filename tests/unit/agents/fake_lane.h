/* A lane that is a function, for tests of whole searches. Included by one file a program. */
#pragma once

#include "check.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"
#include "eval/lane/lane.h"
#include "loop/loop.h"
#include "loop/task.h"

/* ---- what has been asked for, and is answered one by one: the first or the last of it ---- */

static bool last_first;
static const char *const one_state[] = {"there"};
static const uint32_t no_moves[] = {0};

enum { QUEUE_MAX = 256 };

static void *pick(void **items, size_t *count)
{
    size_t at = last_first ? *count - 1 : 0;
    void *item = items[at];
    memmove(&items[at], &items[at + 1], (--*count - at) * sizeof *items);
    return item;
}

/* Some milliseconds after the last answer: so that there is something to pick from. */
static bool gathered(struct timer *timer, struct task *owner)
{
    bool over = timer->fired;
    timer->fired = false;
    if (!over && !timer->armed)
        timer_start(owner->loop, timer, owner, 3);
    return over;
}

/* ---- the lane ---- */

struct lane {
    struct task task;
    struct timer timer;
    void *queue[QUEUE_MAX];
    size_t count;
};

static double number_in(const char *text, const char *name, double missing)
{
    const char *at = text ? strstr(text, name) : NULL;
    return at ? strtod(at + strlen(name), NULL) : missing;
}

static struct interval about(double median, double high)
{
    return (struct interval){.median = median, .low = 0.99 * median, .high = high, .samples = 9};
}

/* A source says itself how long it seems to take (`time`, `high`), how long it takes in turns with
 * another (`true`), and that it is wrong: always, or in the final measurement. */
static void evaluate(struct lane_request *request)
{
    const char *source = request->source;
    double tuned = (double)(hash_bytes(request->tune, strlen(request->tune)).low % 64);
    double time = number_in(source, "time ", 200) + tuned, truth = number_in(source, "true ", time);
    double speedup = 1000 / time;
    bool final = request->effort == EFFORT_FINAL;
    bool wrong = strstr(source, "always wrong") || (final && strstr(source, "wrong late"));
    if (request->rival_source)
        speedup = number_in(request->rival_source, "true ", 0) / truth;
    request->evaluation =
        (struct evaluation){.verdict = wrong ? VERDICT_REJECTED : VERDICT_KERNEL,
                            .stage = wrong ? STAGE_CHECK : STAGE_PROFILE,
                            .reason = wrong ? "wrong result: C[0, 0]" : "",
                            .details = "",
                            .noise = "",
                            .left_out = "",
                            .unfit = "",
                            .unconfined = "",
                            .time_ns = about(time, number_in(source, "high ", 1.02 * time)),
                            .hot_ns = about(time, time),
                            .baseline_ns = about(1000, 1000),
                            .speedup = about(speedup, 1.01 * speedup),
                            .baseline = "naive",
                            .identity = "",
                            .tune = "{}",
                            .metrics = "{}",
                            .device = "{}",
                            .versions = "{}",
                            .baselines = "{}"};
}

static void answer(struct lane_request *request)
{
    static const char facts[] =
        "{\"device\":{\"cpu\":\"none\"},\"facts\":{\"cores\":4},\"ceilings\":{}}";
    struct value *value;
    request->arena = arena_new();
    if (request->op == LANE_OPEN) {
        assert_int_equal(
            value_parse_json(request->arena, "facts", facts, sizeof facts - 1, &value, NULL), 0);
        request->answer = value;
    } else {
        evaluate(request);
    }
    request->active = false;
    request->done = true;
    task_complete(request->owner);
}

static enum task_result lane_step(struct task *task)
{
    struct lane *lane = container_of(task, struct lane, task);
    if (lane->count > 0 && gathered(&lane->timer, task))
        answer(pick(lane->queue, &lane->count));
    if (lane->count > 0)
        (void)gathered(&lane->timer, task);
    return task->pending > 0 ? TASK_WAIT : TASK_DONE;
}

int lane_open(struct loop *loop, const struct lane_spec *spec, struct lane **out, struct err *err)
{
    static const struct task_type type = {"lane", one_state, no_moves, 1, lane_step, NULL};
    (void)spec, (void)err;
    *out = MEM_NEW(struct lane);
    task_start(loop, &(*out)->task, &type, NULL, "lane");
    task_expect(&(*out)->task);
    return 0;
}

void lane_submit(struct lane *lane, struct lane_request *request, struct task *owner)
{
    assert_true(lane->count < QUEUE_MAX);
    request->active = true;
    request->done = false;
    request->err = (struct err){0};
    request->stage = STAGE_PARSE;
    request->owner = owner;
    task_expect(owner);
    lane->queue[lane->count++] = request;
    task_wake(&lane->task);
}

void lane_cancel(struct lane *lane, struct lane_request *request)
{
    (void)lane, (void)request;
    fail_msg("nothing is cancelled here");
}

double lane_busy_ratio(const struct lane *lane)
{
    (void)lane;
    return 0;
}

double lane_waits_ratio(const struct lane *lane)
{
    (void)lane;
    return 0;
}

double lane_busy_ms(const struct lane *lane)
{
    (void)lane;
    return 0;
}

void lane_close(struct lane *lane)
{
    task_complete(&lane->task);
}

void lane_free(struct lane *lane)
{
    mem_free(lane);
}
