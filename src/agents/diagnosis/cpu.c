/* What holds a kernel on a CPU back. */
#include "agents/diagnosis/private.h"

#define HOT        "loop_hot", '>', 0.5
#define VECTORIZED "scalar_share", '<', 0.5

static const struct diagnosis_rule rules[] = {
    {KIND_LIMIT,
     "memory bandwidth",
     "algorithm, fusion, precision",
     {{MEMORY_BOUND}, {"memory_share", '>', 0.85}, {"memory_share", '<', 1.1}},
     "{memory_share} of the memory roof: these bytes cannot move much faster; only moving fewer of "
     "them helps (one pass, no workspace, no read before a write)"},
    {KIND_LIMIT,
     "compute",
     "algorithm, precision, tuning",
     {{COMPUTE_BOUND}, {"compute_share", '>', 0.85}, {"compute_share", '<', 1.1}},
     "{compute_share} of the compute roof: these operations cannot go much faster; only fewer of "
     "them help"},
    {KIND_LIMIT,
     "overhead",
     "parallelism, algorithm, tuning",
     {{"call_us", '<', 15}, {"limit_share", '<', 0.5}},
     "a call takes {call_us}: starting threads, packing and edges weigh as much as the work"},
    {KIND_LIMIT,
     "parallelism",
     "parallelism",
     {{HOT}, {"cores", '>', 7.5}, {"on_calling_thread", '>', 0.5}, {"of_one_core", '<', 1.3}},
     "the hot loop runs on the calling thread alone, and there are {cores} cores"},
    {KIND_LIMIT,
     "data movement",
     "memory, compute",
     {{"moving_share", '>', 0.5}},
     "{moving_share} of the time goes into loops that only move data (packing, copies, "
     "transposes): "
     "pack less often, in whole vectors, by all threads, or not at all"},
    {KIND_LIMIT,
     "not vectorized",
     "compute, algorithm",
     {{"libm_share", '>', 0.5}},
     "{libm_share} of the time goes into libm's functions, which take one number at a time: vector "
     "versions of them, or polynomials"},
    {KIND_LIMIT,
     "not vectorized",
     "compute, memory, algorithm",
     {{HOT}, {"scalar_share", '>', 0.5}},
     "the hot loop has {scalar_operations} operations on single numbers and {vector_operations} on "
     "vectors: it is not vectorized"},
    {KIND_LIMIT,
     "not vectorized",
     "memory, compute",
     {{HOT}, {"operations", '<', 0.5}, {"vector_bytes", '<', 16.5}, {"stores", '>', 0.5}},
     "the hot loop moves single numbers ({loads} loads, {stores} stores), not vectors"},
    {KIND_LIMIT,
     "parallelism",
     "parallelism",
     {{HOT},
      {"cores", '>', 1.5},
      {"cores", '<', 7.5},
      {"on_calling_thread", '>', 0.5},
      {"of_one_core", '<', 1.3}},
     "the hot loop runs on the calling thread alone, and there are {cores} cores"},
    {KIND_LIMIT,
     "access pattern",
     "memory, algorithm",
     {{HOT}, {"gathers", '>', 0.5}},
     "{gathers} gathers or scatters in the hot loop: what is neighbours in a vector is none in "
     "memory"},
    {KIND_LIMIT,
     "cache misses",
     "memory, algorithm, tuning",
     {{"traffic", '>', 1.5}},
     "{traffic} times the bytes that must move came through the last cache: blocks do not stay in "
     "the caches until they have been used up"},
    {KIND_LIMIT,
     "register pressure",
     "compute, tuning",
     {{HOT}, {VECTORIZED}, {"spill_share", '>', 0.08}, {"spills", '>', 3.5}},
     "{spills} of {instructions} instructions of the hot loop move vectors to and from the stack: "
     "the register tile is too large, or values live too long"},
    {KIND_LIMIT,
     "narrow vectors",
     "compute",
     {{HOT}, {COMPUTE_BOUND}, {VECTORIZED}, {"vector_share", '<', 0.6}},
     "vectors of {vector_bytes} bytes in the hot loop, {vector_share} of the machine's: intrinsics "
     "or -mprefer-vector-width=512"},
    {KIND_EVIDENCE,
     "",
     "",
     {{MEMORY_BOUND}, {"vector_share", '<', 0.6}, {"vector_bytes", '>', 16.5}},
     "vectors of {vector_bytes} bytes in the hot loop, {vector_share} of the machine's"},
    {KIND_LIMIT,
     "latency",
     "compute, tuning",
     {{HOT}, {COMPUTE_BOUND}, {"fma", '>', 0.5}, {"fma", '<', 7.5}, {"stores", '<', 0.5}},
     "{fma} multiply-adds in a loop without stores: each waits for the one before; eight or more "
     "independent accumulators keep the units busy"},
    {KIND_LIMIT,
     "latency",
     "compute, memory",
     {{HOT},
      {MEMORY_BOUND},
      {"vector_operations", '<', 3.5},
      {"stores", '<', 0.5},
      {"memory_share", '<', 0.6}},
     "{vector_operations} vector operations in a loop without stores: each waits for the one "
     "before; several accumulators or several rows at once keep more loads in flight"},
    {KIND_LIMIT,
     "data movement",
     "memory, compute",
     {{HOT}, {COMPUTE_BOUND}, {VECTORIZED}, {"shuffle_share", '>', 0.25}},
     "{shuffles} of {instructions} instructions of the hot loop rearrange vectors: pack the data "
     "once, in the order in which it is loaded"},
    {KIND_EVIDENCE,
     "",
     "",
     {{MEMORY_BOUND}, {"shuffle_share", '>', 0.25}},
     "{shuffles} of {instructions} instructions of the hot loop rearrange vectors"},
    {KIND_LIMIT,
     "register reuse",
     "compute, memory, tuning",
     {{HOT}, {COMPUTE_BOUND}, {VECTORIZED}, {"loads_per_operation", '>', 0.85}},
     "{loads} loads for {operations} operations in the hot loop: a value is used about once after "
     "it was loaded; a larger register tile uses it more often"},
    {KIND_LIMIT,
     "latency",
     "memory, asynchrony",
     {{"ipc", '<', 1}},
     "{ipc} instructions a cycle: the cores wait, most likely for memory"},
    {KIND_LAST,
     DIAGNOSIS_NONE,
     "",
     {{"limit_share", '>', 1.1}},
     "{limit_share} of the roof that binds: the roof was measured under load, or a cache holds the "
     "data, so that no limit follows from it"},
    {KIND_LAST,
     "memory bandwidth",
     "memory, algorithm, fusion",
     {{MEMORY_BOUND}, {"memory_share", '>', 0.6}},
     "near the memory roof, and the hot loop shows no other limit: look at lines that are read "
     "before they are overwritten (non-temporal stores), at second passes, at page faults and TLB "
     "misses"},
    {KIND_LAST,
     DIAGNOSIS_NONE,
     "memory, parallelism, asynchrony",
     {{MEMORY_BOUND}, {"memory_share", '<', 0.6}},
     "far below the memory roof, and the hot loop shows no reason. Possible: too few requests in "
     "flight (prefetch further ahead, several streams, all cores), data passed over more than "
     "once, threads that wait for one another"},
    {KIND_LAST,
     "compute",
     "compute, tuning, algorithm",
     {{COMPUTE_BOUND}, {"compute_share", '>', 0.6}},
     "the hot loop shows no limit: what is left is edges, packing, the loops around it, and "
     "waiting for "
     "the caches"},
    {KIND_LAST,
     DIAGNOSIS_NONE,
     "memory, parallelism, algorithm",
     {{COMPUTE_BOUND}, {"compute_share", '<', 0.6}},
     "far below the roof, and the hot loop shows no reason. Possible: packing, blocks too large "
     "for "
     "their cache, edges, threads that wait for one another"},
};

struct diagnosis_rules diagnosis_rules_cpu(void)
{
    return (struct diagnosis_rules){rules, sizeof rules / sizeof rules[0]};
}
