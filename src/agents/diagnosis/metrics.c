/* The numbers that rules speak of. A backend with others adds rows; what its profile does not hold
 * stays NaN, and no comparison with that is true. */
#include "agents/diagnosis/private.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum unit {
    UNIT_COUNT,
    UNIT_SHARE,
    UNIT_GIGA_FLOPS,
    UNIT_GIGA_BYTES,
    UNIT_TIMES,
    UNIT_MICROSECONDS,
    UNIT_BYTES
};

static double number_at(const struct value *document, const char *path)
{
    const struct value *value = value_at(document, path);
    bool known = value != NULL && (value->kind == VALUE_INT || value->kind == VALUE_REAL);
    return known && isfinite(value->real) ? value->real : NAN;
}

/* "facts.cores" is the machine's, any other path the profile's. */
static double of(const struct metrics *metrics, const char *path)
{
    return strncmp(path, "facts.", 6) == 0 ? number_at(metrics->facts, path + 6)
                                           : number_at(metrics->profile, path);
}

/* ---- derived ---- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static double call_us(const struct metrics *m)
{
    return ratio(of(m, "roofline.bytes"), of(m, "roofline.gbytes_per_s")) / 1e3;
}

/* 1 where memory limits, 0 where operations do. */
static double by_memory(const struct metrics *m)
{
    const char *limit = value_text(value_get(m->profile, "roofline"), "limit", "");
    return strcmp(limit, "memory") == 0 ? 1 : strcmp(limit, "compute") == 0 ? 0 : NAN;
}

static double scalar_share(const struct metrics *m)
{
    double scalar = of(m, "hot_loop.scalar_arithmetic");
    return ratio(scalar, scalar + of(m, "hot_loop.vector_arithmetic"));
}

static double operations(const struct metrics *m)
{
    return of(m, "hot_loop.scalar_arithmetic") + of(m, "hot_loop.vector_arithmetic");
}

static double loads_per_operation(const struct metrics *m)
{
    return ratio(of(m, "hot_loop.loads"), operations(m));
}

/* How much of one core's part of the roof the whole kernel gets. */
static double of_one_core(const struct metrics *m)
{
    return of(m, "roofline.share_of_limit") * of(m, "facts.cores");
}

/* The hot loop is in the function that is called, or where that was inlined, not in one that a
 * compiler made for threads.
 * NaN for a helper function, which may run on any thread. */
static double on_calling_thread(const struct metrics *m)
{
    const char *function = value_text(value_get(m->profile, "hot_loop"), "function", "");
    if (strstr(function, "omp") != NULL)
        return 0;
    bool called = strcmp(function, "kernel") == 0 || strcmp(function, "twagent_entry") == 0;
    return called ? 1 : NAN;
}

/* 0 where samples say that the hot loop has less than half of the time: then it limits nothing. */
static double loop_hot(const struct metrics *m)
{
    double share = of(m, "hot_loop.time_share");
    return isnan(share) || share >= 0.5;
}

/* Of a problem that has to compute: where only bytes count, moving them is the work. */
static double moving_share(const struct metrics *m)
{
    bool computes = of(m, "roofline.flops") > 0 && !(by_memory(m) > 0.5);
    return computes ? time_moving_share(value_get(m->profile, "time")) : NAN;
}

/* Of single numbers, all of them; those for vectors are another library's. */
static double libm_share(const struct metrics *m)
{
    return time_library_share(value_get(m->profile, "time"), "libm.so");
}

/* ---- of a GPU's longest kernel ---- */

#define HOT(metrics, key) of(metrics, "hot_kernel." key)

static double sectors(const struct metrics *m)
{
    double local = HOT(m, "local_sectors");
    return HOT(m, "load_sectors") + HOT(m, "store_sectors") + local;
}

static double local_share(const struct metrics *m)
{
    return ratio(HOT(m, "local_sectors"), sectors(m));
}

static double load_share(const struct metrics *m)
{
    return ratio(HOT(m, "load_sectors"), sectors(m));
}

static double store_share(const struct metrics *m)
{
    return ratio(HOT(m, "store_sectors"), sectors(m));
}

static double launches(const struct metrics *m)
{
    const struct value *kernels = value_get(m->profile, "kernels");
    return kernels != NULL && kernels->kind == VALUE_LIST ? (double)kernels->count : NAN;
}

/* Of a call's time what no kernel of its own accounts for. */
static double between_share(const struct metrics *m)
{
    return 1 - ratio(of(m, "kernels_ns"), call_us(m) * 1e3);
}

static double shared_stalls(const struct metrics *m)
{
    return HOT(m, "stalls.short_scoreboard") + HOT(m, "stalls.mio_throttle");
}

/* By how much a reason to wait is ahead of all others; not_selected is none. */
static double lead(const struct metrics *m, const char *reason)
{
    const struct value *stalls = value_at(m->profile, "hot_kernel.stalls");
    double own = NAN, most = 0;
    for (size_t i = 0; stalls != NULL && stalls->kind == VALUE_MAP && i < stalls->count; i++) {
        double share = stalls->items[i]->real;
        if (strcmp(stalls->keys[i], reason) == 0)
            own = share;
        else if (strcmp(stalls->keys[i], "not_selected") != 0 && share > most)
            most = share;
    }
    return own - most;
}

/* Bytes that came through the last cache over bytes that must. */
static double traffic(const struct metrics *m)
{
    enum { LINE_BYTES = 64 };
    double dram = of(m, "dram_bytes"); /* a GPU's own count */
    double bytes = isnan(dram) ? of(m, "counters.cache_misses") * LINE_BYTES : dram;
    return ratio(bytes, of(m, "roofline.bytes"));
}

static const struct metric {
    const char *name;
    enum unit unit;
    const char *path; /* NULL: derived */
    double (*derived)(const struct metrics *metrics);
    const char *over; /* the path's number is divided by this one's */
    const char *lead; /* a reason to wait: lead() */
} table[] = {
    {"bytes", UNIT_COUNT, .path = "roofline.bytes"},
    {"bytes_per_s", UNIT_GIGA_BYTES, .path = "roofline.gbytes_per_s"},
    {"flops_per_s", UNIT_GIGA_FLOPS, .path = "roofline.gflops_per_s"},
    {"memory_roof", UNIT_GIGA_BYTES, .path = "roofline.gbytes_per_s",
     .over = "roofline.share_of_memory_roof"},
    {"compute_roof", UNIT_GIGA_FLOPS, .path = "roofline.gflops_per_s",
     .over = "roofline.share_of_compute_roof"},
    {"memory_share", UNIT_SHARE, .path = "roofline.share_of_memory_roof"},
    {"compute_share", UNIT_SHARE, .path = "roofline.share_of_compute_roof"},
    {"limit_share", UNIT_SHARE, .path = "roofline.share_of_limit"},
    {"by_memory", UNIT_COUNT, .derived = by_memory},
    {"call_us", UNIT_MICROSECONDS, .derived = call_us},
    {"cores", UNIT_COUNT, .path = "facts.cores"},
    {"of_one_core", UNIT_SHARE, .derived = of_one_core},
    {"on_calling_thread", UNIT_COUNT, .derived = on_calling_thread},
    {"instructions", UNIT_COUNT, .path = "hot_loop.instructions"},
    {"vector_bytes", UNIT_COUNT, .path = "hot_loop.vector_bytes"},
    {"vector_share", UNIT_SHARE, .path = "hot_loop.vector_bytes", .over = "facts.vector_bytes"},
    {"fma", UNIT_COUNT, .path = "hot_loop.vector_fma"},
    {"operations", UNIT_COUNT, .derived = operations},
    {"vector_operations", UNIT_COUNT, .path = "hot_loop.vector_arithmetic"},
    {"scalar_operations", UNIT_COUNT, .path = "hot_loop.scalar_arithmetic"},
    {"scalar_share", UNIT_SHARE, .derived = scalar_share},
    {"loads", UNIT_COUNT, .path = "hot_loop.loads"},
    {"stores", UNIT_COUNT, .path = "hot_loop.stores"},
    {"loads_per_operation", UNIT_TIMES, .derived = loads_per_operation},
    {"shuffles", UNIT_COUNT, .path = "hot_loop.shuffles"},
    {"shuffle_share", UNIT_SHARE, .path = "hot_loop.shuffles", .over = "hot_loop.instructions"},
    {"gathers", UNIT_COUNT, .path = "hot_loop.gathers"},
    {"spills", UNIT_COUNT, .path = "hot_loop.spills"},
    {"spill_share", UNIT_SHARE, .path = "hot_loop.spills", .over = "hot_loop.instructions"},
    {"ipc", UNIT_TIMES, .path = "counters.instructions_per_cycle"},
    {"traffic", UNIT_TIMES, .derived = traffic},
    {"loop_hot", UNIT_COUNT, .derived = loop_hot},
    {"moving_share", UNIT_SHARE, .derived = moving_share},
    {"libm_share", UNIT_SHARE, .derived = libm_share},
    /* a GPU's */
    {"dram_bytes", UNIT_BYTES, .path = "dram_bytes"},
    {"sm_count", UNIT_COUNT, .path = "facts.sm_count"},
    {"launches", UNIT_COUNT, .derived = launches},
    {"between_share", UNIT_SHARE, .derived = between_share},
    {"blocks", UNIT_COUNT, .path = "hot_kernel.blocks"},
    {"waves", UNIT_TIMES, .path = "hot_kernel.waves"},
    {"registers", UNIT_COUNT, .path = "hot_kernel.registers"},
    {"spill_bytes", UNIT_COUNT, .path = "hot_kernel.spill_bytes"},
    {"gpu_busy", UNIT_SHARE, .path = "hot_kernel.sm_busy_share"},
    {"issue", UNIT_SHARE, .path = "hot_kernel.issue_share"},
    {"occupancy", UNIT_SHARE, .path = "hot_kernel.occupancy"},
    {"occupancy_most", UNIT_SHARE, .path = "hot_kernel.occupancy_most"},
    {"dram_share", UNIT_SHARE, .path = "hot_kernel.dram_share"},
    {"l2_share", UNIT_SHARE, .path = "hot_kernel.l2_share"},
    {"l1_share", UNIT_SHARE, .path = "hot_kernel.l1_share"},
    {"sectors_per_load", UNIT_TIMES, .path = "hot_kernel.sectors_per_load"},
    {"sectors_per_store", UNIT_TIMES, .path = "hot_kernel.sectors_per_store"},
    {"load_share", UNIT_SHARE, .derived = load_share},
    {"store_share", UNIT_SHARE, .derived = store_share},
    {"local_share", UNIT_SHARE, .derived = local_share},
    {"conflict_share", UNIT_SHARE, .path = "hot_kernel.bank_conflict_share"},
    {"active_threads", UNIT_TIMES, .path = "hot_kernel.threads_per_instruction"},
    {"pipe_fma", UNIT_SHARE, .path = "hot_kernel.pipes.fma"},
    {"pipe_tensor", UNIT_SHARE, .path = "hot_kernel.pipes.tensor"},
    {"pipe_xu", UNIT_SHARE, .path = "hot_kernel.pipes.xu"},
    {"shared_stalls", UNIT_SHARE, .derived = shared_stalls},
    {"stall_long", UNIT_SHARE, .path = "hot_kernel.stalls.long_scoreboard"},
    {"stall_short", UNIT_SHARE, .path = "hot_kernel.stalls.short_scoreboard"},
    {"stall_barrier", UNIT_SHARE, .path = "hot_kernel.stalls.barrier"},
    {"stall_mio", UNIT_SHARE, .path = "hot_kernel.stalls.mio_throttle"},
    {"stall_lg", UNIT_SHARE, .path = "hot_kernel.stalls.lg_throttle"},
    {"stall_math", UNIT_SHARE, .path = "hot_kernel.stalls.math_pipe_throttle"},
    {"stall_wait", UNIT_SHARE, .path = "hot_kernel.stalls.wait"},
    {"stall_gmma", UNIT_SHARE, .path = "hot_kernel.stalls.gmma"},
    {"stall_fetch", UNIT_SHARE, .path = "hot_kernel.stalls.no_instruction"},
    {"lead_long", UNIT_SHARE, .lead = "long_scoreboard"},
    {"lead_short", UNIT_SHARE, .lead = "short_scoreboard"},
    {"lead_barrier", UNIT_SHARE, .lead = "barrier"},
    {"lead_mio", UNIT_SHARE, .lead = "mio_throttle"},
    {"lead_lg", UNIT_SHARE, .lead = "lg_throttle"},
    {"lead_math", UNIT_SHARE, .lead = "math_pipe_throttle"},
    {"lead_wait", UNIT_SHARE, .lead = "wait"},
    {"lead_gmma", UNIT_SHARE, .lead = "gmma"},
    {"lead_fetch", UNIT_SHARE, .lead = "no_instruction"},
};

static const struct metric *find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return &table[i];
    assert(0 && "a rule names a metric that is not in the table");
    return &table[0];
}

static double number_of(const struct metrics *metrics, const struct metric *metric)
{
    if (metric->lead != NULL)
        return lead(metrics, metric->lead);
    if (metric->path == NULL)
        return metric->derived(metrics);
    double number = of(metrics, metric->path);
    return metric->over != NULL ? ratio(number, of(metrics, metric->over)) : number;
}

double metric_number(const struct metrics *metrics, const char *name)
{
    return number_of(metrics, find(name, strlen(name)));
}

static const struct value *object(struct arena *arena, const char *text)
{
    struct value *root;
    struct err ignored;
    if (text == NULL || *text == '\0' ||
        value_parse_json(arena, "profile", text, strlen(text), &root, &ignored) != 0)
        return NULL;
    return root->kind == VALUE_MAP ? root : NULL;
}

struct metrics metrics_read(struct arena *arena, const char *profile, const char *facts)
{
    return (struct metrics){.profile = object(arena, profile), .facts = object(arena, facts)};
}

static void say_number(enum unit unit, double number, struct buf *out)
{
    if (isnan(number)) {
        buf_add_char(out, '?');
        return;
    }
    switch (unit) {
    case UNIT_COUNT:
        buf_addf(out, "%.0f", number);
        break;
    case UNIT_SHARE:
        buf_addf(out, "%.*f %%", number < 0.0095 ? 1 : 0, 100 * number);
        break;
    case UNIT_GIGA_FLOPS:
        buf_addf(out, number < 1e4 ? "%.4g Gflop/s" : "%.4g Tflop/s",
                 number < 1e4 ? number : number / 1e3);
        break;
    case UNIT_GIGA_BYTES:
        buf_addf(out, number < 1e3 ? "%.3g GB/s" : "%.3g TB/s",
                 number < 1e3 ? number : number / 1e3);
        break;
    case UNIT_TIMES:
        buf_addf(out, "%.2g", number);
        break;
    case UNIT_BYTES:
        buf_addf(out, number < 1e6 ? "%.3g KB" : "%.4g MB",
                 number < 1e6 ? number / 1e3 : number / 1e6);
        break;
    case UNIT_MICROSECONDS:
        buf_addf(out, "%.3g us", number);
        break;
    }
}

void metrics_say(const struct metrics *metrics, const char *text, struct buf *out)
{
    while (*text != '\0') {
        size_t plain = strcspn(text, "{");
        buf_add(out, text, plain);
        text += plain;
        if (*text == '\0')
            break;
        size_t length = strcspn(text + 1, "}");
        const struct metric *metric = find(text + 1, length);
        say_number(metric->unit, number_of(metrics, metric), out);
        text += length + 2;
    }
}
