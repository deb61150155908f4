/* Where the time goes, by loop: the loops that samples fell into, those of the same lines as one.
 */
#include "eval/cpu/mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 5, ELSEWHERE_SHOWN = 3 };

static const double least_share = 0.03;

static bool same_lines(const struct mix *a, const struct mix *b)
{
    if (strcmp(a->from, b->from) != 0)
        return false;
    if (a->first_line == 0 || b->first_line == 0)
        return a->first_line == b->first_line && strcmp(a->function, b->function) == 0;
    return a->first_line <= b->last_line && b->first_line <= a->last_line;
}

/* What is said of both is said of the one that takes longer. */
static void join(struct mix *to, const struct mix *from)
{
    struct mix longer = from->samples > to->samples ? *from : *to;
    longer.samples = to->samples + from->samples;
    longer.first_line = to->first_line < from->first_line ? to->first_line : from->first_line;
    longer.last_line = to->last_line > from->last_line ? to->last_line : from->last_line;
    *to = longer;
}

void phases_add(struct phases *phases, const struct mix *mix)
{
    for (size_t i = 0; i < phases->count; i++)
        if (same_lines(&phases->items[i], mix)) {
            join(&phases->items[i], mix);
            return;
        }
    if (phases->count < PHASES_MAX)
        phases->items[phases->count++] = *mix;
}

static int longest_first(const void *left, const void *right)
{
    const struct mix *a = left, *b = right;
    if (a->samples != b->samples)
        return a->samples > b->samples ? -1 : 1;
    return a->first_line < b->first_line ? -1 : a->first_line > b->first_line;
}

void mix_put_counts(const struct mix *mix, struct json *json)
{
    json_put_int(json, "instructions", (int64_t)(mix->last - mix->first + 1));
    json_put_int(json, "vector_bytes", mix->vector_bytes);
    json_put_int(json, "vector_fma", (int64_t)mix->fma);
    json_put_int(json, "vector_arithmetic", (int64_t)mix->arithmetic);
    json_put_int(json, "scalar_arithmetic", (int64_t)mix->scalar);
    json_put_int(json, "loads", (int64_t)mix->loads);
    json_put_int(json, "stores", (int64_t)mix->stores);
    json_put_int(json, "shuffles", (int64_t)mix->shuffles);
}

static void put_phase(const struct mix *mix, double all, struct json *json)
{
    json_object(json);
    json_put_real(json, "share", (double)mix->samples / all);
    json_put_text(json, "in", mix->from[0] != '\0' ? mix->from : mix->function);
    if (mix->first_line > 0) {
        json_put_int(json, "first_line", mix->first_line);
        json_put_int(json, "last_line", mix->last_line);
    }
    mix_put_counts(mix, json);
    json_object_end(json);
}

static void put_elsewhere(const struct samples *samples, struct json *json)
{
    double all = (double)samples->total;
    bool said[SAMPLES_LIBRARIES] = {false};
    json_put_array(json, "elsewhere");
    for (int shown = 0; shown < ELSEWHERE_SHOWN; shown++) {
        size_t best = SAMPLES_LIBRARIES;
        for (size_t i = 0; i < samples->library_count; i++)
            if (!said[i] && (best == SAMPLES_LIBRARIES ||
                             samples->libraries[i].count > samples->libraries[best].count))
                best = i;
        if (best == SAMPLES_LIBRARIES || (double)samples->libraries[best].count < least_share * all)
            break;
        said[best] = true;
        json_object(json);
        json_put_text(json, "name", samples->libraries[best].name);
        json_put_real(json, "share", (double)samples->libraries[best].count / all);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_why(const struct samples *samples, struct json *json)
{
    char why[160];
    snprintf(why, sizeof why,
             "perf_event_open: %s (kernel.perf_event_paranoid over 2, or a container forbids it)",
             strerror(samples->failed));
    json_put_object(json, "time");
    json_put_text(json, "why", why);
    json_object_end(json);
}

void phases_put(struct phases *phases, const struct samples *samples, struct json *json)
{
    if (samples != NULL && samples->failed != 0)
        put_why(samples, json);
    if (samples == NULL || samples->total < SAMPLES_FEW)
        return;
    double all = (double)samples->total;
    qsort(phases->items, phases->count, sizeof phases->items[0], longest_first);
    json_put_object(json, "time");
    json_put_int(json, "samples", (int64_t)samples->total);
    json_put_array(json, "phases");
    for (size_t i = 0; i < phases->count && i < SHOWN; i++)
        if ((double)phases->items[i].samples >= least_share * all)
            put_phase(&phases->items[i], all, json);
    json_array_end(json);
    put_elsewhere(samples, json);
    json_object_end(json);
}
