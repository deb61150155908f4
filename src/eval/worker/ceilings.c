/* eval/worker/ceilings: what the lane's memory and units can do at most: as it was told, as it is
 * remembered, or measured now. */
#include "eval/backend/ceilings.h"
#include "eval/data/noise.h"
#include "eval/data/timeline.h"
#include "eval/worker/private.h"

#include <string.h>

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
        if (strcmp(device->keys[i], "ceilings_under_load") == 0)
            continue;
        json_key(&json, device->keys[i]);
        size_t which = 0;
        while (which < CEILINGS && strcmp(ceiling_names[which], device->keys[i]) != 0)
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
        *ceiling_of(lane, i) = value_real(known, ceiling_names[i], *ceiling_of(lane, i));
    if (value_get(known, ceiling_names[0]) != NULL)
        lane->under_load = value_bool(known, "under_load", false);
    patch_device(worker);
    return lane->copy_bytes_per_s > 0.0 && !lane->under_load;
}

static bool is_loaded(const struct lane_facts *lane)
{
    return !lane_is_apart(lane) && noise_load(lane->cores, lane->core_count) > NOISE_QUIET;
}

int ceilings_probe(const struct worker *worker, bool loaded, struct lane_facts *fresh,
                   struct err *err)
{
    const struct lane_facts *lane = &worker->lane;
    ARENA_LOCAL(arena);
    *fresh = (struct lane_facts){.gpu_index = lane->gpu_index};
    if (worker->options->backend->probe(lane->cores, lane->core_count, true, arena, fresh, err) !=
        0)
        return -1;
    fresh->under_load = loaded || is_loaded(lane);
    ceilings_remember(fresh);
    ceilings_recall(fresh);
    fresh->identity = fresh->device = fresh->versions = NULL; /* the arena's */
    return 0;
}

/* The best that was ever seen stays. */
static void take_best(struct lane_facts *lane, const struct lane_facts *fresh)
{
    struct lane_facts taken = *fresh;
    for (size_t i = 0; i < CEILINGS; i++)
        if (*ceiling_of(&taken, i) > *ceiling_of(lane, i))
            *ceiling_of(lane, i) = *ceiling_of(&taken, i);
    lane->under_load = taken.under_load;
}

static int measure_once(struct worker *worker, bool loaded, struct err *err)
{
    struct lane_facts fresh;
    if (ceilings_probe(worker, loaded, &fresh, err) != 0)
        return -1;
    take_best(&worker->lane, &fresh);
    return 0;
}

void ceilings_keep(struct worker *worker, const struct lane_facts *fresh)
{
    take_best(&worker->lane, fresh);
    worker->owes_ceilings = false;
    patch_device(worker);
    if (worker->session != NULL)
        session_ceilings(worker->session);
}

int ceilings_measure(struct worker *worker, struct err *err)
{
    struct lane_facts *lane = &worker->lane;
    if (!worker->owes_ceilings)
        return 0;
    uint64_t begun = timeline_begin();
    bool loaded = is_loaded(lane);
    int status = 0;
    /* What was remembered of a busy machine would be measured on a busy one again. */
    if (!loaded || !(lane->copy_bytes_per_s > 0.0))
        status = measure_once(worker, loaded, err);
    if (status == 0 && lane->under_load && !is_loaded(lane)) /* it is over */
        status = measure_once(worker, false, err);
    if (status != 0)
        return -1;
    ceilings_keep(worker, lane);
    timeline_end("ceilings", begun);
    return 0;
}
