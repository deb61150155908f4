#include "cli/print.h"

#include "base/arena.h"
#include "base/buf.h"
#include "report/report.h"

#include <string.h>

static void print_interval_time(const char *label, const struct interval *interval, FILE *out)
{
    char median[32], low[32], high[32];
    if (interval->samples == 0)
        return;
    fprintf(out, "  %-10s %s   (95%%: %s to %s; %zu samples)\n", label,
            report_time(interval->median, median), report_time(interval->low, low),
            report_time(interval->high, high), interval->samples);
}

/* One level of the profile: numbers and short texts; deeper objects are for --json. */
static void print_metrics(const char *text, FILE *out)
{
    struct arena *arena = arena_new();
    struct value *metrics = NULL;
    if (value_parse_json(arena, "metrics", text, strlen(text), &metrics, NULL) == 0 &&
        metrics->kind == VALUE_MAP && metrics->count > 0) {
        fprintf(out, "  profile\n");
        for (size_t i = 0; i < metrics->count; i++) {
            const struct value *item = metrics->items[i];
            if (item->kind == VALUE_INT)
                fprintf(out, "    %-24s %lld\n", metrics->keys[i], (long long)item->integer);
            else if (item->kind == VALUE_REAL)
                fprintf(out, "    %-24s %.4g\n", metrics->keys[i], item->real);
            else if (item->kind == VALUE_TEXT)
                fprintf(out, "    %-24s %s\n", metrics->keys[i], item->text);
        }
    }
    arena_free(arena);
}

static void print_details(const char *details, FILE *out)
{
    while (details && *details) {
        const char *end = strchrnul(details, '\n');
        fprintf(out, "    %.*s\n", (int)(end - details), details);
        details = *end ? end + 1 : end;
    }
}

void print_evaluation(const struct evaluation *evaluation, FILE *out)
{
    fprintf(out, "%s", verdict_name(evaluation->verdict));
    if (evaluation->verdict != VERDICT_KERNEL)
        fprintf(out, " at %s", stage_name(evaluation->stage));
    if (*evaluation->reason)
        fprintf(out, ": %s", evaluation->reason);
    fputc('\n', out);
    if (evaluation->verdict != VERDICT_KERNEL)
        print_details(evaluation->details, out);
    print_interval_time("time", &evaluation->time_ns, out);
    print_interval_time("hot", &evaluation->hot_ns, out);
    if (evaluation->baseline_ns.samples) {
        print_interval_time("baseline", &evaluation->baseline_ns, out);
        fprintf(out, "  %-10s %.3fx %s   (95%%: %.3f to %.3f; A/A spread %.2f %%): %s\n",
                "speed-up", evaluation->speedup.median, evaluation->baseline,
                evaluation->speedup.low, evaluation->speedup.high, 100 * evaluation->spread,
                evaluation->win ? "faster" : "no difference shown, or slower");
    }
    fprintf(out, "  %-10s %lld of %lld passed\n", "checks", (long long)evaluation->checks_passed,
            (long long)evaluation->checks_total);
    double total = 0;
    for (int i = 0; i < STAGES; i++)
        total += evaluation->stage_ms[i];
    fprintf(out, "  %-10s %.0f ms:", "spent", total);
    for (int i = 0; i < STAGES; i++)
        if (evaluation->stage_ms[i] >= 0.5)
            fprintf(out, " %s %.0f", stage_name((enum stage)i), evaluation->stage_ms[i]);
    fputc('\n', out);
    print_metrics(evaluation->metrics, out);
}

void print_evaluation_json(const struct evaluation *evaluation, FILE *out)
{
    struct buf text;
    struct json json;
    buf_init(&text, 64 << 20);
    json_init(&json, &text);
    evaluation_to_json(evaluation, &json);
    fprintf(out, "%s\n", buf_text(&text));
    buf_free(&text);
}
