/* The engine: goes through one device's rules; a comparison with a number that is not known holds
 * for no rule. */
#include "agents/diagnosis/private.h"

#include <math.h>
#include <string.h>

enum { EVIDENCE_MAX = 4096 };

static bool holds(const struct diagnosis_rule *rule, const struct metrics *metrics)
{
    for (size_t i = 0; i < DIAGNOSIS_TERMS_MAX && rule->terms[i].metric != NULL; i++) {
        const struct diagnosis_term *term = &rule->terms[i];
        double number = metric_number(metrics, term->metric);
        if (isnan(number) || (term->is == '<' ? number >= term->bound : number <= term->bound))
            return false;
    }
    return true;
}

static void say(const struct diagnosis_rule *rule, const struct metrics *metrics, struct buf *out)
{
    buf_add_text(out, "- ");
    metrics_say(metrics, rule->evidence, out);
    buf_add_char(out, '\n');
}

static const char *place_of(struct arena *arena, const struct metrics *metrics)
{
    double by_memory = metric_number(metrics, "by_memory");
    bool memory = !isnan(metric_number(metrics, "memory_share"));
    bool compute = !isnan(metric_number(metrics, "compute_share"));
    BUF_LOCAL(out, 400);
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
    return buf_keep(&out, arena);
}

static void say_hot_loop(const struct metrics *metrics, struct buf *out)
{
    const struct value *loop = value_get(metrics->profile, "hot_loop");
    if (loop == NULL || loop->kind != VALUE_MAP)
        return;
    const char *function = value_text(loop, "function", "?");
    bool inlined = strcmp(function, "twagent_entry") == 0; /* ours, which calls the kernel */
    buf_addf(out, "- hot loop in %.80s: ", inlined ? "kernel" : function);
    metrics_say(metrics,
                "{instructions} instructions, {vector_operations} operations on vectors of "
                "{vector_bytes} bytes ({fma} multiply-adds), {scalar_operations} on single "
                "numbers, {loads} loads, {stores} stores\n",
                out);
}

struct diagnosis diagnosis_of(struct arena *arena, const char *profile, const char *facts)
{
    struct metrics metrics = metrics_read(arena, profile, facts);
    const struct diagnosis_rule *limit = NULL;
    bool gpu = value_get(metrics.profile, "hot_kernel") != NULL;
    struct diagnosis_rules table = gpu ? diagnosis_rules_gpu() : diagnosis_rules_cpu();
    const struct diagnosis_rule *rules = table.rules;
    BUF_LOCAL(evidence, EVIDENCE_MAX);
    for (size_t i = 0; i < table.count && limit == NULL; i++)
        if (rules[i].kind != KIND_EVIDENCE && holds(&rules[i], &metrics))
            limit = &rules[i];
    if (limit != NULL)
        say(limit, &metrics, &evidence);
    time_say(value_get(metrics.profile, "time"), &evidence);
    for (size_t i = 0; i < table.count; i++)
        if (&rules[i] != limit && rules[i].kind != KIND_LAST && holds(&rules[i], &metrics))
            say(&rules[i], &metrics, &evidence);
    remarks_say(value_get(metrics.profile, "remarks"), &evidence);
    say_hot_loop(&metrics, &evidence);
    if (gpu)
        diagnosis_say_kernel(&metrics, &evidence);
    const char *code = value_text(value_get(metrics.profile, "hot_loop"), "code", "");
    bool sampled = value_at(metrics.profile, "time.samples") != NULL;
    const char *none = sampled ? DIAGNOSIS_NONE : DIAGNOSIS_UNKNOWN;
    struct diagnosis diagnosis = {.limiter = limit != NULL ? limit->limiter : none,
                                  .categories = limit != NULL ? limit->categories : "",
                                  .place = place_of(arena, &metrics),
                                  .code = arena_strdup(arena, code),
                                  .evidence = arena_strdup(arena, buf_text(&evidence))};
    return diagnosis;
}
