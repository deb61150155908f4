/* What holds a kernel on a GPU back: rules over hardware counters where there are some, over
 * resources and the grid where there are none. Limiters have the names that guides use. */
#include "agents/diagnosis/private.h"

#include <string.h>

static const struct diagnosis_rule rules[] = {
    {KIND_LIMIT,
     "memory bandwidth",
     "algorithm, fusion, precision",
     {{MEMORY_BOUND}, {"memory_share", '>', 0.85}, {"memory_share", '<', 1.1}},
     "{memory_share} of the memory roof: these bytes cannot move much faster; only moving fewer of "
     "them helps (one pass, no workspace, fusion, a narrower type)"},
    {KIND_LIMIT,
     "compute",
     "algorithm, precision, tuning",
     {{COMPUTE_BOUND}, {"compute_share", '>', 0.85}, {"compute_share", '<', 1.1}},
     "{compute_share} of the compute roof: these operations cannot go much faster; only fewer of "
     "them, or another unit, help"},
    {KIND_LIMIT,
     "register spills",
     "compute, tuning",
     {{"local_share", '>', 0.05}},
     "{registers} registers a thread, {spill_bytes} bytes spilled: {local_share} of the sectors "
     "that pass L1 are local memory; smaller tiles, __launch_bounds__, constant indices"},
    {KIND_LIMIT,
     "launch-bound",
     "fusion, algorithm, parallelism",
     {{"launches", '>', 1.5}, {"between_share", '>', 0.3}, {"limit_share", '<', 0.5}},
     "{launches} launches, and {between_share} of a call's time lies between them: fewer launches"},
    {KIND_LIMIT,
     "launch-bound",
     "fusion, algorithm, parallelism",
     {{"call_us", '<', 8}, {"limit_share", '<', 0.4}},
     "a call takes {call_us}: launch, first loads and the last block weigh as much as the work"},
    {KIND_LIMIT,
     "uncoalesced loads",
     "memory, algorithm",
     {{"sectors_per_load", '>', 17}, {"load_share", '>', 0.2}, {"dram_share", '<', 0.85}},
     "{sectors_per_load} sectors a request in global loads (4 for 4-byte, 16 for 16-byte elements "
     "of neighbouring lanes): neighbouring threads load addresses far apart"},
    {KIND_LIMIT,
     "uncoalesced stores",
     "memory, algorithm",
     {{"sectors_per_store", '>', 17}, {"store_share", '>', 0.2}, {"dram_share", '<', 0.85}},
     "{sectors_per_store} sectors a request in global stores: neighbouring threads store far "
     "apart; through shared memory they could store neighbours"},
    {KIND_LIMIT,
     "tail effect",
     "parallelism, tuning, algorithm",
     {{"waves", '<', 0.75}, {"limit_share", '<', 0.6}, {"dram_share", '<', 0.7}},
     "{blocks} blocks are {waves} of a wave on {sm_count} multiprocessors: the grid does not fill "
     "the GPU; smaller tiles, or splitting the long axis"},
    {KIND_LIMIT,
     "tail effect",
     "parallelism, tuning",
     {{"waves", '>', 1}, {"waves", '<', 5}, {"gpu_busy", '<', 0.85}, {"limit_share", '<', 0.85}},
     "{waves} waves: the multiprocessors are busy {gpu_busy} of the time, and wait for the last "
     "blocks; other tile sizes, or a persistent grid"},
    {KIND_LIMIT,
     "cache misses",
     "memory, algorithm, tuning",
     {{"traffic", '>', 1.4}, {"dram_share", '>', 0.6}},
     "{dram_bytes} to and from DRAM, {traffic} times what the problem needs: second passes, "
     "workspaces, or tiles that do not stay in L2; block order, larger tiles, one pass"},
    {KIND_LIMIT,
     "memory bandwidth",
     "memory, algorithm, fusion",
     {{"dram_share", '>', 0.8}},
     "DRAM is {dram_share} busy: only fewer bytes help"},
    {KIND_LIMIT,
     "bank conflicts",
     "memory, tuning",
     {{"conflict_share", '>', 0.3}, {"shared_stalls", '>', 0.2}},
     "{conflict_share} of the wavefronts in shared memory are bank conflicts, and warps wait for "
     "it {shared_stalls} of their time: pad rows, or swizzle"},
    {KIND_LIMIT,
     "bank conflicts",
     "memory, tuning",
     {{"conflict_share", '>', 0.2}, {"l1_share", '>', 0.6}},
     "{conflict_share} of the wavefronts in shared memory are bank conflicts, with its pipe "
     "{l1_share} busy: pad rows, or swizzle"},
    {KIND_LIMIT,
     "idle tensor pipe",
     "compute, precision, algorithm",
     {{COMPUTE_BOUND}, {"compute_roof", '>', 150000}, {"pipe_tensor", '<', 0.02}},
     "no tensor-core instruction, and the problem's precision allows them ({compute_roof}): mma or "
     "wgmma"},
    {KIND_LIMIT,
     "idle tensor pipe",
     "asynchrony, memory, tuning",
     {{COMPUTE_BOUND}, {"pipe_tensor", '>', 0.03}, {"pipe_tensor", '<', 0.5}},
     "the tensor pipe is {pipe_tensor} busy: operands do not come fast enough; asynchronous "
     "copies, more stages, larger tiles"},
    {KIND_LIMIT,
     "compute",
     "algorithm, precision, tuning",
     {{"pipe_fma", '>', 0.8}},
     "the FMA pipe is {pipe_fma} busy"},
    {KIND_LIMIT,
     "compute",
     "algorithm, tuning",
     {{"pipe_tensor", '>', 0.8}},
     "the tensor pipe is {pipe_tensor} busy"},
    {KIND_LIMIT,
     "special functions",
     "compute, algorithm",
     {{"pipe_xu", '>', 0.7}},
     "the pipe of special functions and conversions is {pipe_xu} busy: fewer exp, div, sqrt; "
     "polynomials in part"},
    {KIND_LIMIT,
     "instruction-bound",
     "compute, memory, algorithm",
     {{"issue", '>', 0.75}},
     "{issue} of the issue slots are used: fewer instructions for the same result (wider loads, "
     "less index arithmetic, unrolling)"},
    {KIND_LIMIT,
     "shared-memory bandwidth",
     "memory, compute, tuning",
     {{"l1_share", '>', 0.75}},
     "the data pipe of L1 and shared memory is {l1_share} busy: larger register tiles, wider "
     "accesses"},
    {KIND_LIMIT,
     "L2 bandwidth",
     "memory, algorithm, tuning",
     {{"l2_share", '>', 0.75}},
     "L2 is {l2_share} busy: larger tiles, so that each byte is read fewer times; multicast"},
    {KIND_LIMIT,
     "divergence",
     "algorithm, compute",
     {{"active_threads", '<', 22}, {"issue", '>', 0.5}},
     "{active_threads} of 32 threads are active in an instruction: branches or ragged edges"},
    {KIND_LIMIT,
     "low occupancy",
     "tuning, parallelism, compute",
     {{MEMORY_BOUND}, {"occupancy", '<', 0.35}, {"dram_share", '<', 0.75}},
     "achieved occupancy {occupancy} of the warps, {occupancy_most} at most by registers, shared "
     "memory and block size: too few loads in flight"},
    {KIND_LIMIT,
     "barrier stalls",
     "asynchrony, parallelism, tuning",
     {{"stall_barrier", '>', 0.2}, {"lead_barrier", '>', 0}},
     "warps wait at __syncthreads {stall_barrier} of their time: balance, smaller blocks, fewer "
     "barriers, double buffering"},
    {KIND_LIMIT,
     "long-scoreboard stalls",
     "memory, asynchrony, parallelism",
     {{"stall_long", '>', 0.25}, {"lead_long", '>', 0}},
     "warps wait for global memory (long scoreboard) {stall_long} of their time, with DRAM "
     "{dram_share} busy: more independent loads in flight, prefetch, asynchronous copies"},
    {KIND_LIMIT,
     "short-scoreboard stalls",
     "memory, compute",
     {{"stall_short", '>', 0.2}, {"lead_short", '>', 0}},
     "warps wait for shared memory or special functions (short scoreboard) {stall_short} of their "
     "time: wider accesses, fewer exp and div"},
    {KIND_LIMIT,
     "mio-throttle stalls",
     "compute, memory, tuning",
     {{"stall_mio", '>', 0.2}, {"lead_mio", '>', 0}},
     "the queue of shared-memory instructions is full {stall_mio} of the warps' time (MIO "
     "throttle): wider accesses, larger register tiles, fewer shuffles"},
    {KIND_LIMIT,
     "lg-throttle stalls",
     "memory, compute",
     {{"stall_lg", '>', 0.2}, {"lead_lg", '>', 0}},
     "the queue of global-memory instructions is full {stall_lg} of the warps' time (LG throttle): "
     "16-byte accesses, fewer of them"},
    {KIND_LIMIT,
     "wgmma stalls",
     "asynchrony, tuning",
     {{"stall_gmma", '>', 0.3}, {"lead_gmma", '>', 0}},
     "warps wait for wgmma {stall_gmma} of their time: a deeper pipeline, two consumer groups"},
    {KIND_LIMIT,
     "math-pipe stalls",
     "algorithm, compute, tuning",
     {{"stall_math", '>', 0.25}, {"lead_math", '>', 0}},
     "warps wait for a busy arithmetic pipe {stall_math} of their time"},
    {KIND_LIMIT,
     "latency",
     "compute, parallelism, tuning",
     {{"stall_wait", '>', 0.25}, {"lead_wait", '>', 0}},
     "warps wait for the instruction before {stall_wait} of their time: several accumulators, "
     "unrolling, more warps"},
    {KIND_LIMIT,
     "instruction-cache misses",
     "compute, tuning",
     {{"stall_fetch", '>', 0.2}, {"lead_fetch", '>', 0}},
     "warps wait for instructions {stall_fetch} of their time: less unrolling, less code"},
    {KIND_LIMIT,
     "low occupancy",
     "tuning, parallelism, compute",
     {{"occupancy", '<', 0.2}, {"issue", '<', 0.4}},
     "achieved occupancy {occupancy} of the warps, {occupancy_most} at most; {issue} of the issue "
     "slots are used"},
    {KIND_EVIDENCE,
     "",
     "",
     {{"sectors_per_load", '>', 8.5}, {"sectors_per_load", '<', 17}, {"traffic", '>', 1.15}},
     "{sectors_per_load} sectors a request in global loads: right for 16-byte elements, "
     "uncoalesced for smaller ones"},
    {KIND_EVIDENCE, /* another clock than the one that timed it: CUPTI's */
     "",
     "",
     {{"between_share", '<', -0.3}, {"call_us", '>', 20}},
     "the kernels took longer when they were counted than the timed call says ({call_us}): look "
     "into it"},
    {KIND_EVIDENCE,
     "",
     "",
     {{"traffic", '>', 1.2}},
     "{dram_bytes} to and from DRAM, {traffic} times what the problem needs"},
    {KIND_EVIDENCE,
     "",
     "",
     {{"conflict_share", '>', 0.1}},
     "{conflict_share} of the wavefronts in shared memory are bank conflicts"},
    {KIND_LIMIT, /* without counters: what ptxas and the grid tell */
     "register spills",
     "compute, tuning",
     {{"spill_bytes", '>', 63}},
     "{spill_bytes} bytes of spills, {registers} registers a thread"},
    {KIND_LIMIT,
     "tail effect",
     "parallelism, tuning, algorithm",
     {{"waves", '<', 0.5}, {"limit_share", '<', 0.5}},
     "{blocks} blocks are {waves} of a wave on {sm_count} multiprocessors"},
    {KIND_LIMIT,
     "low occupancy",
     "tuning, parallelism, compute",
     {{"occupancy_most", '<', 0.26}, {"limit_share", '<', 0.6}},
     "registers, shared memory and block size allow {occupancy_most} of the warps"},
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
     "near the memory roof, and nothing else stands out"},
    {KIND_LAST,
     DIAGNOSIS_NONE,
     "memory, parallelism, asynchrony",
     {{MEMORY_BOUND}, {"memory_share", '<', 0.6}},
     "far below the memory roof, and no single reason stands out. Possible: too few loads in "
     "flight, phases that wait for one another"},
    {KIND_LAST,
     "compute",
     "compute, tuning, algorithm",
     {{COMPUTE_BOUND}, {"compute_share", '>', 0.6}},
     "near the compute roof, and nothing else stands out"},
    {KIND_LAST,
     DIAGNOSIS_NONE,
     "compute, asynchrony, tuning",
     {{COMPUTE_BOUND}, {"compute_share", '<', 0.6}},
     "far below the compute roof, and no single reason stands out"},
};

struct diagnosis_rules diagnosis_rules_gpu(void)
{
    return (struct diagnosis_rules){rules, sizeof rules / sizeof rules[0]};
}

/* ---- in short ---- */

enum { STALLS_SHOWN = 4, KERNELS_SHOWN = 8 };

static void say_extent(const struct value *list, struct buf *out)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (i == 0 || list->items[i]->integer != 1)
            buf_addf(out, "%s%lld", i > 0 ? " x " : "", (long long)list->items[i]->integer);
}

static void say_launch(const struct value *kernel, struct buf *out)
{
    double time_ns = value_real(kernel, "time_ns", -1), waves = value_real(kernel, "waves", -1);
    buf_addf(out, "- kernel %.80s: ", value_text(kernel, "entry", "?"));
    if (time_ns >= 0)
        buf_addf(out, "%.4g us, %.0f %% of the time; ", time_ns / 1e3,
                 100 * value_real(kernel, "time_share", 0));
    say_extent(value_get(kernel, "grid"), out);
    buf_addf(out, " blocks of %lld threads", (long long)value_int(kernel, "threads", 0));
    if (value_get(kernel, "registers") != NULL)
        buf_addf(out, ", %lld registers, %lld bytes shared",
                 (long long)value_int(kernel, "registers", 0),
                 (long long)value_int(kernel, "shared_bytes", 0));
    if (waves >= 0)
        buf_addf(out, ", %lld blocks a multiprocessor (limited by %.20s), %.3g waves",
                 (long long)value_int(kernel, "blocks_per_sm", 0),
                 value_text(kernel, "occupancy_limit", "?"), waves);
    buf_add_char(out, '\n');
}

/* The largest first; what is below a twentieth is not worth a word. */
static void say_stalls(const struct value *stalls, struct buf *out)
{
    double last = 2;
    if (stalls == NULL || stalls->kind != VALUE_MAP)
        return;
    for (int shown = 0; shown < STALLS_SHOWN; shown++) {
        size_t best = stalls->count;
        for (size_t i = 0; i < stalls->count; i++)
            if (stalls->items[i]->real < last &&
                (best == stalls->count || stalls->items[i]->real > stalls->items[best]->real))
                best = i;
        if (best == stalls->count || stalls->items[best]->real < 0.05)
            break;
        last = stalls->items[best]->real;
        buf_addf(out, "%s%.30s %.0f %%", shown > 0 ? ", " : "; warps' time: ", stalls->keys[best],
                 100 * last);
    }
}

void diagnosis_say_kernel(const struct metrics *metrics, struct buf *out)
{
    const struct value *kernels = value_get(metrics->profile, "kernels");
    const struct value *hot = value_get(metrics->profile, "hot_kernel");
    const struct value *profile = value_get(metrics->profile, "profile");
    const char *source = value_text(profile, "source", "");
    for (size_t i = 0;
         kernels != NULL && kernels->kind == VALUE_LIST && i < kernels->count && i < KERNELS_SHOWN;
         i++)
        say_launch(kernels->items[i], out);
    if (value_get(hot, "issue_share") != NULL) {
        metrics_say(metrics,
                    "- of peak: DRAM {dram_share}, L2 {l2_share}, L1 {l1_share}, FMA {pipe_fma}, "
                    "tensor {pipe_tensor}; issue slots {issue}; occupancy {occupancy} of "
                    "{occupancy_most}",
                    out);
        say_stalls(value_get(hot, "stalls"), out);
        buf_add_char(out, '\n');
    }
    if (*source != '\0' && strcmp(source, "counters") != 0)
        buf_addf(out, "- no hardware counters (%.200s): %s\n", value_text(profile, "why", "?"),
                 strcmp(source, "records") == 0 ? "kernels' times are CUPTI's records"
                                                : "the compiler's numbers and the grid alone");
}
