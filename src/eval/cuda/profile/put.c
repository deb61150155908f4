/* From raw counters to the numbers that people and rules speak of. Shares are of the hardware's
 * peak while the kernel ran, or of the warps' time; nothing that is not known is written. */
#include "eval/cuda/compile/ptxas.h"
#include "eval/cuda/profile/profile.h"

#include <math.h>

enum { SECTOR_BYTES = 32, NONE = COUNTER_COUNT };

struct number { /* (a + b) / of * scale; b and of may be NONE */
    const char *group, *key;
    enum counter a;
    int b, of;
    double scale;
};

static const struct number numbers[] = {
    {NULL, "sm_busy_share", COUNTER_SM_ACTIVE, NONE, COUNTER_SM_ELAPSED, 1},
    {NULL, "issue_share", COUNTER_ISSUE_PCT, NONE, NONE, 0.01},
    {NULL, "occupancy", COUNTER_WARPS_PCT, NONE, NONE, 0.01},
    {NULL, "eligible_warps", COUNTER_ELIGIBLE, NONE, NONE, 1},
    {NULL, "dram_share", COUNTER_DRAM_PCT, NONE, NONE, 0.01},
    {NULL, "l2_share", COUNTER_L2_PCT, NONE, NONE, 0.01},
    {NULL, "l1_share", COUNTER_L1_PCT, NONE, NONE, 0.01},
    {NULL, "dram_read_bytes", COUNTER_DRAM_READ, NONE, NONE, 1},
    {NULL, "dram_write_bytes", COUNTER_DRAM_WRITE, NONE, NONE, 1},
    {NULL, "l2_read_bytes", COUNTER_L2_READ_SECTORS, NONE, NONE, SECTOR_BYTES},
    {NULL, "l2_write_bytes", COUNTER_L2_WRITE_SECTORS, NONE, NONE, SECTOR_BYTES},
    {NULL, "load_sectors", COUNTER_LOAD_SECTORS, NONE, NONE, 1},
    {NULL, "store_sectors", COUNTER_STORE_SECTORS, NONE, NONE, 1},
    {NULL, "l1_hit_share", COUNTER_LOAD_HITS, NONE, COUNTER_LOAD_SECTORS, 1},
    {NULL, "sectors_per_load", COUNTER_LOAD_SECTORS, NONE, COUNTER_LOAD_REQUESTS, 1},
    {NULL, "sectors_per_store", COUNTER_STORE_SECTORS, NONE, COUNTER_STORE_REQUESTS, 1},
    {NULL, "local_sectors", COUNTER_LOCAL_LOAD_SECTORS, COUNTER_LOCAL_STORE_SECTORS, NONE, 1},
    {NULL, "shared_wavefronts", COUNTER_SHARED_WAVEFRONTS, NONE, NONE, 1},
    {NULL, "bank_conflict_share", COUNTER_SHARED_CONFLICTS, NONE, COUNTER_SHARED_WAVEFRONTS, 1},
    {NULL, "instructions", COUNTER_INSTRUCTIONS, NONE, NONE, 1},
    {NULL, "threads_per_instruction", COUNTER_THREAD_INSTRUCTIONS, NONE, COUNTER_INSTRUCTIONS, 1},
    {"pipes", "fma", COUNTER_PIPE_FMA, NONE, NONE, 0.01},
    {"pipes", "alu", COUNTER_PIPE_ALU, NONE, NONE, 0.01},
    {"pipes", "tensor", COUNTER_PIPE_TENSOR, NONE, NONE, 0.01},
    {"pipes", "lsu", COUNTER_PIPE_LSU, NONE, NONE, 0.01},
    {"pipes", "xu", COUNTER_PIPE_XU, NONE, NONE, 0.01},
    {"mix", "fma", COUNTER_OPS_FMA, NONE, COUNTER_INSTRUCTIONS, 1},
    {"mix", "alu", COUNTER_OPS_ALU, NONE, COUNTER_INSTRUCTIONS, 1},
    {"mix", "lsu", COUNTER_OPS_LSU, NONE, COUNTER_INSTRUCTIONS, 1},
    {"mix", "xu", COUNTER_OPS_XU, NONE, COUNTER_INSTRUCTIONS, 1},
    {"mix", "fp64", COUNTER_OPS_FP64, NONE, COUNTER_INSTRUCTIONS, 1},
    {"mix", "tensor", COUNTER_OPS_TENSOR, NONE, COUNTER_INSTRUCTIONS, 1},
    {"stalls", "long_scoreboard", COUNTER_STALL_LONG_SCOREBOARD, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "short_scoreboard", COUNTER_STALL_SHORT_SCOREBOARD, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "barrier", COUNTER_STALL_BARRIER, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "mio_throttle", COUNTER_STALL_MIO_THROTTLE, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "lg_throttle", COUNTER_STALL_LG_THROTTLE, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "math_pipe_throttle", COUNTER_STALL_MATH_PIPE, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "wait", COUNTER_STALL_WAIT, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "gmma", COUNTER_STALL_GMMA, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "membar", COUNTER_STALL_MEMBAR, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "no_instruction", COUNTER_STALL_NO_INSTRUCTION, NONE, COUNTER_WARP_CYCLES, 1},
    {"stalls", "not_selected", COUNTER_STALL_NOT_SELECTED, NONE, COUNTER_WARP_CYCLES, 1},
};

static double number_of(const struct number *number, const double values[COUNTER_COUNT])
{
    double sum = values[number->a] + (number->b != NONE ? values[number->b] : 0);
    double of = number->of != NONE ? values[number->of] : 1;
    return of > 0 ? sum / of * number->scale : NAN;
}

/* What is not known is left out. */
static void profile_put_counters(const double values[COUNTER_COUNT], struct json *json)
{
    const char *open = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double number = number_of(&numbers[i], values);
        if (!isfinite(number))
            continue;
        if (open != numbers[i].group) {
            if (open != NULL)
                json_object_end(json);
            open = numbers[i].group;
            json_put_object(json, open);
        }
        json_put_real(json, numbers[i].key, number);
    }
    if (open != NULL)
        json_object_end(json);
}

/* ---- one launch ---- */

void profile_put_extent(struct json *json, const char *key, const uint32_t extent[3])
{
    json_put_array(json, key);
    for (int i = 0; i < 3; i++)
        json_int(json, extent[i]);
    json_array_end(json);
}

struct occupancy_ask profile_ask(const struct plan_launch *launch,
                                 const struct cuda_resources *resources)
{
    int64_t fixed = resources != NULL && resources->shared_bytes > 0 ? resources->shared_bytes : 0;
    return (struct occupancy_ask){
        .registers = resources != NULL ? resources->registers : 0,
        .shared_bytes = launch->shared_bytes + fixed,
        .threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2],
        .blocks = (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]};
}

static void put_known(struct json *json, const char *key, int64_t number)
{
    if (number >= 0)
        json_put_int(json, key, number);
}

static void put_occupancy(const struct profiled *profiled, const struct plan_launch *launch,
                          const struct cuda_resources *resources, struct json *json)
{
    const struct occupancy_ask ask = profile_ask(launch, resources);
    struct occupancy occupancy = occupancy_of(profiled->facts, &ask);
    json_put_int(json, "blocks", ask.blocks);
    json_put_int(json, "threads", ask.threads);
    json_put_int(json, "shared_bytes", ask.shared_bytes);
    if (occupancy.blocks_per_sm == 0)
        return;
    json_put_int(json, "blocks_per_sm", occupancy.blocks_per_sm);
    json_put_real(json, "occupancy_most", occupancy.theoretical);
    json_put_text(json, "occupancy_limit", occupancy.limited_by);
    json_put_real(json, "waves", occupancy.waves);
}

static void put_kernel(const struct profiled *profiled, const struct plan_launch *launch,
                       const double *values, double total_ns, struct json *json)
{
    const struct cuda_resources *resources =
        profiled->report != NULL ? ptxas_entry(profiled->report, launch->entry) : NULL;
    json_object(json);
    json_put_text(json, "entry", launch->entry);
    profile_put_extent(json, "grid", launch->grid);
    profile_put_extent(json, "block", launch->block);
    if (launch->cluster[0] > 0)
        profile_put_extent(json, "cluster", launch->cluster);
    put_occupancy(profiled, launch, resources, json);
    if (resources != NULL) {
        put_known(json, "registers", resources->registers);
        if (resources->spill_store_bytes >= 0 && resources->spill_load_bytes >= 0)
            json_put_int(json, "spill_bytes",
                         resources->spill_store_bytes + resources->spill_load_bytes);
        put_known(json, "stack_bytes", resources->stack_bytes);
    }
    if (values != NULL && isfinite(values[COUNTER_TIME_NS])) {
        json_put_real(json, "time_ns", values[COUNTER_TIME_NS]);
        json_put_real(json, "time_share", values[COUNTER_TIME_NS] / total_ns);
    }
    if (values != NULL)
        profile_put_counters(values, json);
    json_object_end(json);
}

/* ---- the whole ---- */

static void put_records(const struct wire_records *records, struct json *json)
{
    json_put_object(json, "records");
    json_put_int(json, "launches", records->launches);
    if (records->launches > 0) {
        struct clocks_told told = clocks_told(records);
        json_put_real(json, "event_ns", told.event_ns);
        json_put_real(json, "span_ns", told.span_ns);
        json_put_real(json, "kernels_ns", told.busy_ns);
        json_put_int(json, "kernels", records->kernels);
        json_put_int(json, "memsets", records->memsets);
    } else {
        json_put_text(json, "why", records->why);
    }
    json_object_end(json);
}

static void put_source(const struct wire_profile *profile, struct json *json)
{
    static const char *const names[] = {"resources", "records", "counters"};
    uint32_t source = profile->source <= PROFILE_COUNTERS ? profile->source : 0;
    json_put_object(json, "profile");
    json_put_text(json, "source", names[source]);
    if (profile->why[0] != '\0')
        json_put_text(json, "why", profile->why);
    json_put_int(json, "passes", profile->passes);
    json_put_real(json, "ms", profile->spent_ms);
    if (profile->open_ms > 0)
        json_put_real(json, "open_ms", profile->open_ms);
    put_records(&profile->records, json);
    json_object_end(json);
}

static double sum_of(const struct wire_profile *profile, uint32_t first, uint32_t count,
                     enum counter counter)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += profile->values[first + i][counter];
    return sum;
}

void profile_put(const struct profiled *profiled, struct json *json)
{
    const struct wire_profile *profile = profiled->profile;
    uint32_t count = profiled->plan->launch_count, hot = 0;
    /* What a memset runs as comes before the plan's launches, or is not there at all. */
    bool known = profile->kernels >= count && profile->kernels <= PROFILE_KERNELS_MOST;
    uint32_t first = known ? profile->kernels - count : 0;
    double total_ns = known ? sum_of(profile, 0, profile->kernels, COUNTER_TIME_NS) : NAN;
    put_source(profile, json);
    for (uint32_t i = 1; known && i < count; i++)
        if (profile->values[first + i][COUNTER_TIME_NS] >
            profile->values[first + hot][COUNTER_TIME_NS])
            hot = i;
    json_put_array(json, "kernels");
    for (uint32_t i = 0; i < count; i++)
        put_kernel(profiled, &profiled->plan->launches[i],
                   known ? profile->values[first + i] : NULL, total_ns, json);
    json_array_end(json);
    json_key(json, "hot_kernel");
    put_kernel(profiled, &profiled->plan->launches[hot],
               known ? profile->values[first + hot] : NULL, total_ns, json);
    if (!known)
        return;
    double dram = sum_of(profile, 0, profile->kernels, COUNTER_DRAM_READ) +
                  sum_of(profile, 0, profile->kernels, COUNTER_DRAM_WRITE);
    json_put_real(json, "kernels_ns", total_ns);
    if (isfinite(dram))
        json_put_real(json, "dram_bytes", dram);
}
