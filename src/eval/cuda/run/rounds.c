#include "eval/cuda/run/calling.h"

/* --- company --- */

int crowd_comes(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    if (!calling->call->crowded)
        return 0;
    const size_t from = runner_crowd_from(runner);
    if (!runner->crowd_asked)
        crowd_open(&runner->driver, &runner->scrub,
                   10 * runner->device.major + runner->device.minor, runner->sweep + from,
                   runner->sweep_bytes - from, &runner->service, &runner->crowd);
    runner->crowd_asked = true;
    return calling_broken(calling, "crowd",
                          crowd_gather(&runner->crowd, calling->call->place_seed));
}

int crowd_follows(struct calling *calling)
{
    if (!calling->call->crowded)
        return 0;
    return calling_broken(calling, "crowd",
                          crowd_litter(&calling->runner->crowd, calling->call->place_seed));
}

int crowd_goes(struct calling *calling)
{
    if (!calling->call->crowded)
        return 0;
    return calling_broken(calling, "crowd", crowd_leave(&calling->runner->crowd));
}

/* --- launch after launch --- */

/* One in three is on other bytes: whoever keeps its last result is wrong on the next. */
static bool on_others(const struct call *call, uint32_t round)
{
    uint64_t mixed = (call->poison_seed + round) * UINT64_C(0x9e3779b97f4a7c15);
    return (mixed >> 40) % 3 == 0;
}

static int compare(struct calling *calling, bool *differs)
{
    uint64_t outputs = 0, around = 0;
    cu_result result = tensors_hash_outputs(&calling->tensors, &outputs);
    if (result == 0)
        result = tensors_hash_around(&calling->tensors, &around);
    if (result != 0)
        return calling_broken(calling, "hash", result);
    if (around != calling->around_hash)
        calling->runner->report->around_wrong = 1;
    *differs = calling->compared && outputs != calling->first_hash;
    if (calling->compared)
        return 0;
    calling->compared = true;
    calling->first_hash = outputs;
    result = tensors_keep(&calling->tensors);
    calling->runner->report->kept = result == 0;
    return result == CU_OUT_OF_MEMORY ? 0 : calling_broken(calling, "keeping", result);
}

/* As PyTorch launches, or as a graph of a user's: what a kernel can see of its launch differs. */
int rounds_launch(struct calling *calling)
{
    const bool queued = (calling->call->place_seed >> 21 & 1) != 0;
    return queued ? graph_queue(&calling->graph, &calling->fault)
                  : graph_launch(&calling->graph, &calling->fault);
}

static int one(struct calling *calling, uint32_t round)
{
    const bool others = on_others(calling->call, round);
    bool differs = false;
    if (others && calling_broken(calling, "moving", tensors_swap(&calling->tensors)) != 0)
        return -1;
    if (rounds_launch(calling) != 0)
        return -1;
    calling->runner->report->launches++;
    if (others)
        return calling_broken(calling, "moving", tensors_swap(&calling->tensors));
    if (compare(calling, &differs) != 0)
        return -1;
    calling->taken = differs;
    return 0;
}

static int take_away(struct calling *calling)
{
    cu_result result = graph_clear(&calling->graph);
    if (result == 0 && calling->call->poison_seed != 0)
        result = tensors_poison(&calling->tensors);
    return calling_broken(calling, "poison", result);
}

int rounds_run(struct calling *calling)
{
    struct gpu_runner *runner = calling->runner;
    const struct call *call = calling->call;
    if (!call->stays)
        return 0;
    if (calling_broken(calling, "idle launches",
                       service_idle(&runner->service, call->behind, runner->stream)) != 0)
        return -1;
    for (uint32_t i = 0; i < call->rounds && !calling->taken; i++)
        if (one(calling, i) != 0 || (!calling->taken && take_away(calling) != 0))
            return -1;
    return 0;
}

int rounds_end(struct calling *calling)
{
    struct gpu_report *report = calling->runner->report;
    bool differs = false;
    report->launches += !calling->taken;
    if (!calling->taken && calling->compared && compare(calling, &differs) != 0)
        return -1;
    report->differs = calling->taken || differs;
    return 0;
}
