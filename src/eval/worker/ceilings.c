/* eval/worker/ceilings: what the lane's memory and units can do at most: from an earlier run, from
 * a GPU's own memory, or measured now. */
#include "eval/data/timeline.h"
#include "eval/measure/noise.h"
#include "eval/worker/private.h"

#include <string.h>

#define RATE(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct lane_facts, name)                                                   \
    }
static const struct {
    const char *name;
    size_t offset;
} ceilings[] = {RATE(copy_bytes_per_s), RATE(read_bytes_per_s), RATE(flops_per_s),
                RATE(tf32_flops_per_s), RATE(bf16_flops_per_s), RATE(fp16_flops_per_s)};
enum { CEILINGS = sizeof ceilings / sizeof ceilings[0] };

static double *ceiling_of(struct lane_facts *lane, size_t which)
{
    return (double *)(void *)((char *)lane + ceilings[which].offset);
}

/* The device record as the backend wrote it, with the ceilings that are known now. */
static void patch_device(struct worker *worker)
{
    struct lane_facts *lane = &worker->lane;
    struct value *device;
    if (lane->device == NULL || value_parse_json(worker->arena, "device", lane->device,
                                                 strlen(lane->device), &device, NULL) != 0)
        return;
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    for (size_t i = 0; i < device->count; i++) {
        json_key(&json, device->keys[i]);
        size_t which = 0;
        while (which < CEILINGS && strcmp(ceilings[which].name, device->keys[i]) != 0)
            which++;
        double rate = which < CEILINGS ? *ceiling_of(lane, which) : 0.0;
        if (rate > 0.0)
            json_real(&json, rate);
        else
            json_value(&json, device->items[i]);
    }
    if (lane->under_load)
        json_put_bool(&json, "ceilings_under_load", true);
    json_object_end(&json);
    lane->device = arena_strdup(worker->lane_arena, buf_text(&text));
}

bool ceilings_take(struct worker *worker, const struct value *known)
{
    struct lane_facts *lane = &worker->lane;
    for (size_t i = 0; i < CEILINGS; i++)
        if (!(*ceiling_of(lane, i) > 0.0))
            *ceiling_of(lane, i) = value_real(known, ceilings[i].name, 0.0);
    lane->under_load = lane->under_load || value_bool(known, "under_load", false);
    patch_device(worker);
    return lane->copy_bytes_per_s > 0.0;
}

/* Once; the best that was ever seen stays. */
static int measure_once(struct worker *worker, struct err *err)
{
    const struct lane_facts *lane = &worker->lane;
    struct lane_facts fresh = {.gpu_index = lane->gpu_index};
    ARENA_LOCAL(arena);
    int status =
        worker->options->backend->probe(lane->cores, lane->core_count, true, arena, &fresh, err);
    for (size_t i = 0; status == 0 && i < CEILINGS; i++)
        if (*ceiling_of(&fresh, i) > *ceiling_of(&worker->lane, i))
            *ceiling_of(&worker->lane, i) = *ceiling_of(&fresh, i);
    return status;
}

/* A GPU's are taken by its own clock. */
static bool is_loaded(const struct lane_facts *lane)
{
    return !lane->gpu && noise_load(lane->cores, lane->core_count) > NOISE_QUIET;
}

int ceilings_measure(struct worker *worker, struct err *err)
{
    struct lane_facts *lane = &worker->lane;
    if (!worker->owes_ceilings)
        return 0;
    uint64_t begun = timeline_begin();
    lane->under_load = is_loaded(lane);
    int status = measure_once(worker, err);
    lane->under_load = lane->under_load || is_loaded(lane);
    if (status == 0 && lane->under_load && !is_loaded(lane)) { /* it is over */
        status = measure_once(worker, err);
        lane->under_load = is_loaded(lane);
    }
    if (status != 0)
        return -1;
    worker->owes_ceilings = false;
    patch_device(worker);
    if (worker->session != NULL)
        session_ceilings(worker->session);
    timeline_end("ceilings", begun);
    return 0;
}

void ceilings_put(struct worker *worker, struct json *json)
{
    json_put_object(json, "ceilings");
    for (size_t i = 0; i < CEILINGS; i++)
        if (*ceiling_of(&worker->lane, i) > 0.0)
            json_put_real(json, ceilings[i].name, *ceiling_of(&worker->lane, i));
    if (worker->lane.under_load)
        json_put_bool(json, "under_load", true);
    json_object_end(json);
}
