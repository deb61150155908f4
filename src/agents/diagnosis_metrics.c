/* The numbers that rules speak of. A backend with others adds rows; what its profile does not hold
 * stays NaN, and no comparison with that is true. */
#include "agents/diagnosis_metrics.h"

#include "agents/diagnosis_remarks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum unit {
    UNIT_COUNT,
    UNIT_SHARE,
    UNIT_GIGA_FLOPS,
    UNIT_GIGA_BYTES,
    UNIT_TIMES,
    UNIT_MICROSECONDS
};

static double number_at(const struct value *document, const char *path)
{
    const struct value *value = value_at(document, path);
    bool known = value != NULL && (value->kind == VALUE_INT || value->kind == VALUE_REAL);
    return known && isfinite(value->real) ? value->real : NAN;
}

static double of(const struct metrics *metrics, const char *path)
{
    return number_at(metrics->profile, path);
}

/* ---- derived ---- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static double compute_roof(const struct metrics *m)
{
    return ratio(of(m, "roofline.gflops_per_s"), of(m, "roofline.share_of_compute_roof"));
}

static double memory_roof(const struct metrics *m)
{
    return ratio(of(m, "roofline.gbytes_per_s"), of(m, "roofline.share_of_memory_roof"));
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

static double vector_share(const struct metrics *m)
{
    return ratio(of(m, "hot_loop.vector_bytes"), number_at(m->facts, "vector_bytes"));
}

static double spill_share(const struct metrics *m)
{
    return ratio(of(m, "hot_loop.spills"), of(m, "hot_loop.instructions"));
}

static double shuffle_share(const struct metrics *m)
{
    return ratio(of(m, "hot_loop.shuffles"), of(m, "hot_loop.instructions"));
}

static double loads_per_operation(const struct metrics *m)
{
    return ratio(of(m, "hot_loop.loads"), operations(m));
}

static double cores(const struct metrics *m)
{
    return number_at(m->facts, "cores");
}

/* How much of one core's part of the roof the whole kernel gets. */
static double of_one_core(const struct metrics *m)
{
    return of(m, "roofline.share_of_limit") * cores(m);
}

/* The hot loop is in the function that is called, not in one that a compiler made for threads.
 * NaN for a helper function, which may run on any thread. */
static double on_calling_thread(const struct metrics *m)
{
    const char *function = value_text(value_get(m->profile, "hot_loop"), "function", "");
    if (strstr(function, "omp") != NULL)
        return 0;
    return strcmp(function, "kernel") == 0 ? 1 : NAN;
}

static double missed(const struct metrics *m)
{
    const struct value *remarks = value_get(m->profile, "remarks");
    return remarks != NULL ? (double)remarks_missed(remarks) : NAN;
}

/* Bytes that came through the last cache over bytes that must. */
static double traffic(const struct metrics *m)
{
    enum { LINE_BYTES = 64 };
    return ratio(of(m, "counters.cache_misses") * LINE_BYTES, of(m, "roofline.bytes"));
}

static const struct metric {
    const char *name;
    enum unit unit;
    const char *path; /* in the profile; NULL: derived */
    double (*derived)(const struct metrics *metrics);
} table[] = {
    {"bytes", UNIT_COUNT, "roofline.bytes", NULL},
    {"bytes_per_s", UNIT_GIGA_BYTES, "roofline.gbytes_per_s", NULL},
    {"flops_per_s", UNIT_GIGA_FLOPS, "roofline.gflops_per_s", NULL},
    {"memory_roof", UNIT_GIGA_BYTES, NULL, memory_roof},
    {"compute_roof", UNIT_GIGA_FLOPS, NULL, compute_roof},
    {"memory_share", UNIT_SHARE, "roofline.share_of_memory_roof", NULL},
    {"compute_share", UNIT_SHARE, "roofline.share_of_compute_roof", NULL},
    {"limit_share", UNIT_SHARE, "roofline.share_of_limit", NULL},
    {"by_memory", UNIT_COUNT, NULL, by_memory},
    {"call_us", UNIT_MICROSECONDS, NULL, call_us},
    {"cores", UNIT_COUNT, NULL, cores},
    {"of_one_core", UNIT_SHARE, NULL, of_one_core},
    {"on_calling_thread", UNIT_COUNT, NULL, on_calling_thread},
    {"instructions", UNIT_COUNT, "hot_loop.instructions", NULL},
    {"vector_bytes", UNIT_COUNT, "hot_loop.vector_bytes", NULL},
    {"vector_share", UNIT_SHARE, NULL, vector_share},
    {"fma", UNIT_COUNT, "hot_loop.vector_fma", NULL},
    {"operations", UNIT_COUNT, NULL, operations},
    {"vector_operations", UNIT_COUNT, "hot_loop.vector_arithmetic", NULL},
    {"scalar_operations", UNIT_COUNT, "hot_loop.scalar_arithmetic", NULL},
    {"scalar_share", UNIT_SHARE, NULL, scalar_share},
    {"loads", UNIT_COUNT, "hot_loop.loads", NULL},
    {"stores", UNIT_COUNT, "hot_loop.stores", NULL},
    {"loads_per_operation", UNIT_TIMES, NULL, loads_per_operation},
    {"shuffles", UNIT_COUNT, "hot_loop.shuffles", NULL},
    {"shuffle_share", UNIT_SHARE, NULL, shuffle_share},
    {"gathers", UNIT_COUNT, "hot_loop.gathers", NULL},
    {"spills", UNIT_COUNT, "hot_loop.spills", NULL},
    {"spill_share", UNIT_SHARE, NULL, spill_share},
    {"missed", UNIT_COUNT, NULL, missed},
    {"ipc", UNIT_TIMES, "counters.instructions_per_cycle", NULL},
    {"traffic", UNIT_TIMES, NULL, traffic},
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
    return metric->path != NULL ? of(metrics, metric->path) : metric->derived(metrics);
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
        buf_addf(out, "%.4g Gflop/s", number);
        break;
    case UNIT_GIGA_BYTES:
        buf_addf(out, "%.3g GB/s", number);
        break;
    case UNIT_TIMES:
        buf_addf(out, "%.2g", number);
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
