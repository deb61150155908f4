/* Rules, first to last: the first one that limits and holds names the limiter; every one that holds
 * is evidence. A rule is data: what must hold of which numbers (diagnosis_metrics.c), and what that
 * means. A comparison with a number that is not known holds for no rule. */
#include "agents/diagnosis.h"

#include "agents/diagnosis_metrics.h"
#include "agents/diagnosis_remarks.h"

#include <math.h>

enum { TERMS_MAX = 4, EVIDENCE_MAX = 4096 };

enum kind {
    KIND_LIMIT,    /* names the limiter */
    KIND_EVIDENCE, /* is only said */
    KIND_LAST      /* names the limiter where nothing above did */
};

struct term {
    const char *metric;
    char is; /* '<' or '>' */
    double bound;
};

#define MEMORY_BOUND  "by_memory", '>', 0.5
#define COMPUTE_BOUND "by_memory", '<', 0.5
#define VECTORIZED    "scalar_share", '<', 0.5

static const struct rule {
    enum kind kind;
    const char *limiter, *categories;
    struct term terms[TERMS_MAX];
    const char *evidence;
} rules[] = {
    {KIND_LIMIT,
     "memory bandwidth",
     "algorithm, fusion, precision",
     {{MEMORY_BOUND}, {"memory_share", '>', 0.85}},
     "{memory_share} of the memory roof: these bytes cannot move much faster; only moving fewer of "
     "them helps (one pass, no workspace, no read before a write)"},
    {KIND_LIMIT,
     "compute",
     "algorithm, precision, tuning",
     {{COMPUTE_BOUND}, {"compute_share", '>', 0.85}},
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
     {{"cores", '>', 7.5}, {"on_calling_thread", '>', 0.5}, {"of_one_core", '<', 1.3}},
     "the hot loop runs on the calling thread alone, and there are {cores} cores"},
    {KIND_LIMIT,
     "not vectorized",
     "compute, memory, algorithm",
     {{"scalar_share", '>', 0.5}},
     "the hot loop has {scalar_operations} operations on single numbers and {vector_operations} on "
     "vectors: it is not vectorized"},
    {KIND_LIMIT,
     "not vectorized",
     "memory, compute",
     {{"operations", '<', 0.5}, {"vector_bytes", '<', 16.5}, {"stores", '>', 0.5}},
     "the hot loop moves single numbers ({loads} loads, {stores} stores), not vectors"},
    {KIND_LIMIT,
     "not vectorized",
     "compute, memory, algorithm",
     {{"missed", '>', 0.5}, {"limit_share", '<', 0.1}, {"of_one_core", '<', 0.3}},
     "far below every roof, with loops that the compiler did not vectorize"},
    {KIND_LIMIT,
     "parallelism",
     "parallelism",
     {{"cores", '>', 1.5},
      {"cores", '<', 7.5},
      {"on_calling_thread", '>', 0.5},
      {"of_one_core", '<', 1.3}},
     "the hot loop runs on the calling thread alone, and there are {cores} cores"},
    {KIND_LIMIT,
     "access pattern",
     "memory, algorithm",
     {{"gathers", '>', 0.5}},
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
     {{VECTORIZED}, {"spill_share", '>', 0.08}, {"spills", '>', 3.5}},
     "{spills} of {instructions} instructions of the hot loop move vectors to and from the stack: "
     "the register tile is too large, or values live too long"},
    {KIND_LIMIT,
     "narrow vectors",
     "compute",
     {{COMPUTE_BOUND}, {VECTORIZED}, {"vector_share", '<', 0.6}},
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
     {{COMPUTE_BOUND}, {"fma", '>', 0.5}, {"fma", '<', 7.5}, {"stores", '<', 0.5}},
     "{fma} multiply-adds in a loop without stores: each waits for the one before; eight or more "
     "independent accumulators keep the units busy"},
    {KIND_LIMIT,
     "latency",
     "compute, memory",
     {{MEMORY_BOUND},
      {"vector_operations", '<', 3.5},
      {"stores", '<', 0.5},
      {"memory_share", '<', 0.6}},
     "{vector_operations} vector operations in a loop without stores: each waits for the one "
     "before; several accumulators or several rows at once keep more loads in flight"},
    {KIND_LIMIT,
     "data movement",
     "memory, compute",
     {{COMPUTE_BOUND}, {VECTORIZED}, {"shuffle_share", '>', 0.25}},
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
     {{COMPUTE_BOUND}, {VECTORIZED}, {"loads_per_operation", '>', 0.85}},
     "{loads} loads for {operations} operations in the hot loop: a value is used about once after "
     "it was loaded; a larger register tile uses it more often"},
    {KIND_LIMIT,
     "latency",
     "memory, asynchrony",
     {{"ipc", '<', 1}},
     "{ipc} instructions a cycle: the cores wait, most likely for memory"},
    {KIND_LAST,
     "memory bandwidth",
     "memory, algorithm, fusion",
     {{MEMORY_BOUND}, {"memory_share", '>', 0.6}},
     "near the memory roof, and the hot loop shows no other limit: look at lines that are read "
     "before they are overwritten (non-temporal stores), at second passes, at page faults and TLB "
     "misses"},
    {KIND_LAST,
     "latency",
     "memory, parallelism, asynchrony",
     {{MEMORY_BOUND}, {"memory_share", '<', 0.6}},
     "far below the memory roof, and the hot loop shows no reason: too few requests in flight "
     "(prefetch further ahead, several streams, all cores), data passed over more than once, or "
     "threads that wait for one another"},
    {KIND_LAST,
     "compute",
     "compute, tuning, algorithm",
     {{COMPUTE_BOUND}, {"compute_share", '>', 0.6}},
     "the hot loop shows no limit: what is left is edges, packing, the loops around it, and "
     "waiting for "
     "the caches"},
    {KIND_LAST,
     "overhead",
     "memory, parallelism, algorithm",
     {{COMPUTE_BOUND}, {"compute_share", '<', 0.6}},
     "far below the roof, and the hot loop shows no reason: the time goes elsewhere "
     "(packing, blocks too large for their cache, edges, threads that wait for one another)"},
};

enum { RULES = sizeof rules / sizeof rules[0] };

static bool holds(const struct rule *rule, const struct metrics *metrics)
{
    for (size_t i = 0; i < TERMS_MAX && rule->terms[i].metric != NULL; i++) {
        const struct term *term = &rule->terms[i];
        double number = metric_number(metrics, term->metric);
        if (isnan(number) || (term->is == '<' ? number >= term->bound : number <= term->bound))
            return false;
    }
    return true;
}

static void say(const struct rule *rule, const struct metrics *metrics, struct buf *out)
{
    buf_add_text(out, "- ");
    metrics_say(metrics, rule->evidence, out);
    buf_add_char(out, '\n');
}

static const char *place_of(struct arena *arena, const struct metrics *metrics)
{
    struct buf out;
    double by_memory = metric_number(metrics, "by_memory");
    bool memory = !isnan(metric_number(metrics, "memory_share"));
    bool compute = !isnan(metric_number(metrics, "compute_share"));
    buf_init(&out, 400);
    static const char of_memory[] =
        "{memory_share} of the memory roof ({bytes_per_s} of {memory_roof})";
    static const char of_compute[] =
        "{compute_share} of the compute roof ({flops_per_s} of {compute_roof})";
    if (by_memory > 0.5 && memory)
        metrics_say(metrics, of_memory, &out);
    else if (by_memory < 0.5 && compute)
        metrics_say(metrics, of_compute, &out);
    if (by_memory > 0.5 && memory && compute)
        metrics_say(metrics, "; {compute_share} of the compute roof", &out);
    else if (by_memory < 0.5 && compute && memory)
        metrics_say(metrics, "; {memory_share} of the memory roof", &out);
    const char *place = arena_strdup(arena, buf_text(&out));
    buf_free(&out);
    return place;
}

static void say_hot_loop(const struct metrics *metrics, struct buf *out)
{
    const struct value *loop = value_get(metrics->profile, "hot_loop");
    if (loop == NULL || loop->kind != VALUE_MAP)
        return;
    buf_addf(out, "- hot loop in %.80s: ", value_text(loop, "function", "?"));
    metrics_say(metrics,
                "{instructions} instructions, {vector_operations} operations on vectors of "
                "{vector_bytes} bytes ({fma} multiply-adds), {scalar_operations} on single "
                "numbers, {loads} loads, {stores} stores\n",
                out);
}

struct diagnosis diagnosis_of(struct arena *arena, const char *profile, const char *facts)
{
    struct metrics metrics = metrics_read(arena, profile, facts);
    const struct rule *limit = NULL;
    struct buf evidence;
    buf_init(&evidence, EVIDENCE_MAX);
    for (size_t i = 0; i < RULES && limit == NULL; i++)
        if (rules[i].kind != KIND_EVIDENCE && holds(&rules[i], &metrics))
            limit = &rules[i];
    if (limit != NULL)
        say(limit, &metrics, &evidence);
    for (size_t i = 0; i < RULES; i++)
        if (&rules[i] != limit && rules[i].kind != KIND_LAST && holds(&rules[i], &metrics))
            say(&rules[i], &metrics, &evidence);
    remarks_say(value_get(metrics.profile, "remarks"), &evidence);
    say_hot_loop(&metrics, &evidence);
    struct diagnosis diagnosis = {.limiter = limit != NULL ? limit->limiter : "unknown",
                                  .categories = limit != NULL ? limit->categories : "",
                                  .place = place_of(arena, &metrics),
                                  .evidence = arena_strdup(arena, buf_text(&evidence))};
    buf_free(&evidence);
    return diagnosis;
}
