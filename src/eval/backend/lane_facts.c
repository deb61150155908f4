#include "eval/backend/lane_facts.h"

#include "eval/backend/backend.h"
#include "eval/problem/problem.h"

#include <math.h>
#include <string.h>

int lane_begin(struct lane_facts *lane, bool gpu, const int *cores, size_t count, struct err *err)
{
    *lane = (struct lane_facts){
        .gpu = gpu, .gpu_index = gpu ? lane->gpu_index : 0, .core_count = count};
    if (count == 0 || count > sizeof lane->cores / sizeof lane->cores[0])
        return err_set(err, ERR_USAGE, "a lane has 1 to 64 cores, not %zu", count);
    memcpy(lane->cores, cores, count * sizeof *cores);
    return 0;
}

int lane_take_facts(struct lane_facts *lane, const struct value *answer, const char *none,
                    struct err *err)
{
    const struct value *facts = value_get(answer, "facts");
    if (facts == NULL)
        return err_set(err, ERR_ENVIRONMENT, "%s", value_text(answer, "error", none));
    for (size_t i = 0; i < facts->count; i++)
        if (names_set(&lane->facts, facts->keys[i], facts->items[i]->integer, err) != 0)
            return -1;
    return 0;
}

bool lane_is_apart(const struct lane_facts *lane)
{
    struct names facts = lane->facts;
    int64_t software = 0;
    (void)expr_lookup_names(&facts, "software", &software);
    return lane->gpu && software == 0;
}

double lane_operations_rate(const struct lane_facts *lane, const struct problem *problem)
{
    const struct unit_rates rates = {.flops = lane->flops_per_s,
                                     .tf32 = lane->tf32_flops_per_s,
                                     .bf16 = lane->bf16_flops_per_s,
                                     .fp16 = lane->fp16_flops_per_s};
    return problem_rate(problem, &rates);
}

/* A problem that fits the caches is not held by the memory's rate. */
bool lane_beaten(const struct lane_facts *lane, const struct problem *problem, double time_ns)
{
    double flops = 0.0, bytes = 0.0, floor_s = 0.0;
    struct names facts = lane->facts;
    int64_t cache = 0;
    if (problem_work(problem, &problem->shapes[0], &flops, &bytes, NULL) != 0)
        return false;
    double bandwidth = fmax(lane->copy_bytes_per_s, lane->read_bytes_per_s);
    double rate = lane_operations_rate(lane, problem);
    (void)expr_lookup_names(&facts, "l3_bytes", &cache);
    if (rate > 0.0)
        floor_s = flops / rate;
    if (bandwidth > 0.0 && bytes > 2.0 * (double)cache)
        floor_s = fmax(floor_s, bytes / bandwidth);
    return time_ns > 0.0 && floor_s * 1e9 > 1.1 * time_ns;
}

/* Most bytes are read where a kernel reduces, and as many written where it copies. */
void lane_put_roofline(const struct lane_facts *lane, const struct problem *problem,
                       const struct names *dims, double time_ns, struct json *json)
{
    double flops = 0.0, bytes = 0.0, seconds = time_ns / 1e9;
    if (!(time_ns > 0.0) || problem_work(problem, dims, &flops, &bytes, NULL) != 0)
        return;
    double bandwidth = fmax(lane->copy_bytes_per_s, lane->read_bytes_per_s);
    double rate = lane_operations_rate(lane, problem);
    double memory_s = bandwidth > 0.0 ? bytes / bandwidth : 0.0;
    double compute_s = rate > 0.0 ? flops / rate : 0.0;
    json_put_object(json, "roofline");
    json_put_positive(json, "flops", flops);
    json_put_positive(json, "bytes", bytes);
    json_put_positive(json, "intensity_flops_per_byte", bytes > 0.0 ? flops / bytes : 0.0);
    json_put_positive(json, "gflops_per_s", flops / seconds / 1e9);
    json_put_positive(json, "gbytes_per_s", bytes / seconds / 1e9);
    json_put_positive(json, "share_of_memory_roof", memory_s / seconds);
    json_put_positive(json, "share_of_compute_roof", compute_s / seconds);
    json_put_text(json, "limit",
                  memory_s <= 0.0 && compute_s <= 0.0 ? NULL
                  : memory_s >= compute_s             ? "memory"
                                                      : "compute");
    json_put_positive(json, "share_of_limit", fmax(memory_s, compute_s) / seconds);
    if (lane->under_load)
        json_put_bool(json, "under_load", true);
    json_object_end(json);
}

const struct torch_device *lane_torch(const struct lane_facts *lane,
                                      const struct torch_device *device)
{
    struct names facts = lane->facts;
    int64_t is = 0;
    if (device == NULL || device->fact == NULL)
        return device;
    return expr_lookup_names(&facts, device->fact, &is) && is != 0 ? device : NULL;
}
