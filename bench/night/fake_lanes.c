/* eval/lane/lane.h, as a place where evaluations take a drawn time, one at a time in the order of
 * asking. Nine in ten are kernels; what is not is mended by a repair, as long as there are some
 * left. */
#include "night.h"

#include "base/mem.h"
#include "eval/lane/lane.h"
#include "loop/loop.h"
#include "loop/task.h"

#include <stdio.h>
#include <string.h>

struct lane {
    struct task task;
    struct list waiting; /* requests by their link; the first is the one under way */
    struct timer timer;
    uint64_t hash;
    double first_ms, busy_ms;
    int number;
    bool closing;
};

static const char opened[] =
    "{\"device\": {\"backend\": \"cpu\", \"cpu\": \"none\"}, \"versions\": {}, \"facts\": "
    "{\"cores\": 1, \"l1_bytes\": 32768, \"l2_bytes\": 1048576, \"l3_bytes\": 33554432}, "
    "\"ceilings\": {\"copy_bytes_per_s\": 2.5e10, \"read_bytes_per_s\": 2.1e10, \"flops_per_s\": "
    "4.7e11}}";

static struct interval interval(double median)
{
    return (struct interval){
        .median = median, .low = median * 0.995, .high = median * 1.005, .samples = 12};
}

static void evaluate(struct lane_request *request, uint64_t hash)
{
    const double baseline_ns = 1e7;
    /* In whole ones, as the store has them: a run that goes on is told the same. */
    double time_ns = 1000 * (int)(baseline_ns / 1000 * (0.3 + night_share(hash)));
    bool final = request->effort == EFFORT_FINAL;
    bool kernel = final || night_share(hash * 31) < 0.9;
    struct evaluation *e = &request->evaluation;
    *e = (struct evaluation){.verdict = kernel ? VERDICT_KERNEL : VERDICT_REJECTED,
                             .stage = kernel ? STAGE_PROFILE : STAGE_CHECK,
                             .reason = kernel ? "" : "a wrong result",
                             .details = kernel ? "" : "C: 3 of 64 elements are wrong",
                             .finding = kernel ? FINDING_FASTER : FINDING_NONE,
                             .noise = "",
                             .left_out = "",
                             .unfit = "",
                             .baseline = "reference",
                             .spread = 0.002,
                             .checks_passed = kernel ? 60 : 3,
                             .checks_total = 60,
                             .identity = "",
                             .tune = request->tune != NULL ? request->tune : "{}",
                             .metrics = "{}",
                             .device = "{}",
                             .versions = "{}",
                             .baselines = "{}"};
    if (kernel) {
        e->time_ns = interval(time_ns);
        e->baseline_ns = interval(baseline_ns);
        e->speedup = interval(baseline_ns / time_ns);
        e->timed_samples = 12;
    }
}

static void complete(struct lane *lane, struct lane_request *request)
{
    struct err ignored;
    struct value *root;
    list_remove(&request->link);
    request->arena = arena_new();
    if (request->op == LANE_EVALUATE)
        evaluate(request, lane->hash);
    else if (value_parse_json(request->arena, "open", opened, strlen(opened), &root, &ignored) == 0)
        request->answer = root;
    request->active = false;
    request->done = true;
    task_complete(request->owner);
}

static enum task_result lane_step(struct task *task)
{
    struct lane *lane = (struct lane *)task;
    if (lane->closing) {
        timer_stop(&lane->timer);
        return TASK_DONE;
    }
    if (lane->timer.armed)
        return TASK_WAIT;
    if (lane->timer.fired) {
        lane->timer.fired = false;
        complete(lane, container_of(lane->waiting.head.next, struct lane_request, link));
    }
    if (list_empty(&lane->waiting))
        return TASK_WAIT;
    const struct lane_request *next =
        container_of(lane->waiting.head.next, struct lane_request, link);
    const char *tune = next->tune != NULL ? next->tune : "";
    uint64_t ms = 10;
    if (next->op == LANE_EVALUATE) {
        lane->hash = night_hash(tune, next->id, (int64_t)next->source_length);
        lane->hash ^= night_hash(next->source, "", 0);
        ms = night_draw(latencies.evaluation_s, lane->hash);
        if (lane->busy_ms <= 0)
            lane->first_ms = virtual_ms();
        lane->busy_ms += (double)ms;
        printf("evaluation %s %s %d %.1f %llu\n", next->id,
               next->effort == EFFORT_FINAL ? "final" : "search", lane->number, virtual_ms(),
               (unsigned long long)ms);
    }
    timer_start(task->loop, &lane->timer, task, ms);
    return TASK_WAIT;
}

int lane_open(struct loop *loop, const struct lane_spec *spec, struct lane **out, struct err *err)
{
    static const char *const states[] = {"open"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {
        .name = "lane", .states = states, .moves = moves, .state_count = 1, .step = lane_step};
    static int lanes;
    (void)spec;
    (void)err;
    struct lane *lane = MEM_NEW(struct lane);
    list_init(&lane->waiting);
    lane->number = lanes++;
    task_start(loop, &lane->task, &type, NULL, "lane");
    task_expect(&lane->task); /* lane_close() is what it waits for */
    *out = lane;
    return 0;
}

void lane_submit(struct lane *lane, struct lane_request *request, struct task *owner)
{
    request->active = true;
    request->done = false;
    request->err = (struct err){0};
    request->arena = NULL;
    request->answer = NULL;
    request->stage = STAGE_PARSE;
    request->owner = owner;
    list_append(&lane->waiting, &request->link);
    task_expect(owner);
    task_wake(&lane->task);
}

void lane_cancel(struct lane *lane, struct lane_request *request)
{
    if (!request->active)
        return;
    if (lane->waiting.head.next == &request->link)
        timer_stop(&lane->timer);
    list_remove(&request->link);
    err_set(&request->err, ERR_CANCELLED, "cancelled");
    request->active = false;
    request->done = true;
    task_complete(request->owner);
    task_wake(&lane->task);
}

double lane_waits_ratio(const struct lane *lane)
{
    (void)lane; /* nobody else is there */
    return 0;
}

double lane_busy_ms(const struct lane *lane)
{
    return lane->busy_ms;
}

double lane_busy_ratio(const struct lane *lane)
{
    double since = virtual_ms() - lane->first_ms;
    return lane->busy_ms > 0 && since > 0 ? lane->busy_ms / since : 0;
}

void lane_close(struct lane *lane)
{
    if (lane->closing)
        return;
    lane->closing = true;
    task_complete(&lane->task);
}

bool lane_closed(const struct lane *lane)
{
    return lane->task.finished;
}

void lane_free(struct lane *lane)
{
    mem_free(lane);
}
