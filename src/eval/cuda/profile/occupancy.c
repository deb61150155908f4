#include "eval/cuda/profile/occupancy.h"

enum {
    WARP = 32,
    PARTITIONS = 4,          /* of a multiprocessor, each with its own registers */
    REGISTERS_GRANULE = 256, /* a warp's registers come in so many */
    SHARED_GRANULE = 128,
    SHARED_RESERVED = 1024 /* a block's, for the system, since compute capability 8.0 */
};

static int64_t round_up(int64_t number, int64_t granule)
{
    return (number + granule - 1) / granule * granule;
}

/* Blocks that a multiprocessor can have at most, by compute capability. */
static int64_t blocks_most(int64_t capability)
{
    static const struct {
        int64_t capability, blocks;
    } known[] = {{75, 16},  {80, 32},  {86, 16},  {87, 16},  {89, 24}, {90, 32},
                 {100, 32}, {103, 32}, {110, 24}, {120, 24}, {121, 24}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].capability == capability)
            return known[i].blocks;
    return capability < 75 ? 32 : 24;
}

static int64_t by_registers(int64_t registers, int64_t warps, int64_t in_all)
{
    if (registers <= 0)
        return INT64_MAX;
    int64_t a_warp = round_up(registers * WARP, REGISTERS_GRANULE);
    int64_t warps_fit = in_all / PARTITIONS / a_warp * PARTITIONS;
    return warps_fit / warps;
}

static int64_t by_shared(int64_t bytes, int64_t capability, int64_t in_all)
{
    int64_t a_block = bytes + (capability >= 80 ? SHARED_RESERVED : 0);
    return a_block <= 0 ? INT64_MAX : in_all / round_up(a_block, SHARED_GRANULE);
}

struct occupancy occupancy_of(const struct names *facts, const struct occupancy_ask *ask)
{
    int64_t sm_count, threads, registers, shared, capability;
    struct names known = *facts;
    if (!expr_lookup_names(&known, "sm_count", &sm_count) || sm_count <= 0 ||
        !expr_lookup_names(&known, "max_threads_per_sm", &threads) || threads < WARP ||
        !expr_lookup_names(&known, "registers_per_sm", &registers) ||
        !expr_lookup_names(&known, "sm_shared_bytes", &shared) ||
        !expr_lookup_names(&known, "compute_capability", &capability) || ask->threads <= 0)
        return (struct occupancy){.limited_by = ""};
    int64_t warps = round_up(ask->threads, WARP) / WARP, warps_most = threads / WARP;
    const struct {
        const char *name;
        int64_t blocks;
    } limits[] = {{"warps", warps_most / warps},
                  {"registers", by_registers(ask->registers, warps, registers)},
                  {"shared memory", by_shared(ask->shared_bytes, capability, shared)},
                  {"blocks", blocks_most(capability)}};
    struct occupancy found = {.blocks_per_sm = INT64_MAX, .limited_by = ""};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].blocks < found.blocks_per_sm) {
            found.blocks_per_sm = limits[i].blocks;
            found.limited_by = limits[i].name;
        }
    found.warps_per_sm = found.blocks_per_sm * warps;
    found.theoretical = (double)found.warps_per_sm / (double)warps_most;
    if (found.blocks_per_sm > 0)
        found.waves = (double)ask->blocks / (double)(found.blocks_per_sm * sm_count);
    return found;
}
