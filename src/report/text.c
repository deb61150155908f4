/* report/text: the report for a terminal, the kernel's file, and the writing of all files. */
#include "report/report.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *report_kind(const struct report *report)
{
    if (report->best == NULL)
        return "No kernel was found to be measured.";
    return report->final
               ? "This is the final measurement: fresh processes, fresh seeds, all checks again, "
                 "samples until the interval is narrow. The search's own are below."
               : "This is the search's own measurement: the champion was not measured again.";
}

void report_refused(const struct report *report, struct buf *out)
{
    enum { SHOWN = 3 };
    size_t all = 0;
    for (size_t i = 0; i < report->refusal_count; i++)
        all += report->refusals[i].count;
    for (size_t i = 0; i < report->refusal_count && i < SHOWN; i++)
        buf_addf(out, "%s%zu of %zu: %s (twagent show %s)", i > 0 ? "; " : "",
                 report->refusals[i].count, all, report->refusals[i].why,
                 report->refusals[i].first);
    if (report->refusal_count > SHOWN)
        buf_addf(out, "; and %zu other reasons", report->refusal_count - SHOWN);
}

/* " (1.93 to 2.01)"; of one sample there is no interval. */
static const char *interval_words(double low, double high, char text[80])
{
    char least[32], most[32];
    text[0] = '\0';
    if (low > 0 && high > low)
        snprintf(text, 80, "%.30s to %.30s", words_ratio(low, low, high, least),
                 words_ratio(high, low, high, most));
    else if (low > 0)
        snprintf(text, 80, "one sample");
    return text;
}

static void text_baselines(const struct report *report, struct buf *out)
{
    const struct value *all = value_get(report->evaluation, "baselines");
    char time[32], middle[32], interval[80], name[160];
    if (!all || all->count == 0)
        return;
    double spread = value_real(report->evaluation, "spread", 0);
    buf_addf(out, "\n%s; a win is an interval above %.3fx, the A/A spread being %.2f %%\n",
             report->final ? "final measurement" : "measured by the search",
             1 + fmax(0.01, 3 * spread), 100 * spread);
    buf_addf(out, "against              its time     speed-up   95 %% interval\n");
    for (size_t i = 0; i < all->count; i++) {
        const struct value *speedup = value_get(all->items[i], "speedup");
        double low = value_real(speedup, "low", 0), high = value_real(speedup, "high", 0);
        buf_addf(out, "  %-18s %-12s %7sx   %s   %s\n",
                 words_baseline(all->keys[i], report->definition, name),
                 words_time_of(value_get(all->items[i], "ns"), time),
                 words_ratio(value_real(speedup, "median", 0), low, high, middle),
                 interval_words(low, high, interval),
                 words_finding(value_text(all->items[i], "finding", ""),
                               value_bool(all->items[i], "win", false),
                               value_real(speedup, "high", 0)));
    }
}

static int by_time(const void *a, const void *b)
{
    const struct report_candidate *x = *(const struct report_candidate *const *)a;
    const struct report_candidate *y = *(const struct report_candidate *const *)b;
    double of_x = x->time_ns > 0 ? x->time_ns : (double)INFINITY;
    double of_y = y->time_ns > 0 ? y->time_ns : (double)INFINITY;
    return of_x < of_y ? -1 : of_x > of_y;
}

static void put_candidate(const struct report_candidate *c, struct buf *out)
{
    char time[32], middle[32], interval[80];
    buf_addf(out, "%s %-9s %-11s %sx (%s)  %s\n", c->champion ? "*" : " ", c->id,
             words_time_by(c->time_ns, c->speedup, c->low, c->high, time),
             words_ratio(c->speedup, c->low, c->high, middle),
             interval_words(c->low, c->high, interval), c->source);
}

static void text_best(const struct report *report, struct buf *out)
{
    enum { SHOWN = 10 };
    if (report->count == 0)
        return;
    const struct report_candidate **order = mem_array(report->count, sizeof *order);
    for (size_t i = 0; i < report->count; i++)
        order[i] = &report->candidates[i];
    qsort(order, report->count, sizeof *order, by_time);
    buf_addf(out, "\nfastest of %zu evaluated, as the search measured them, * the champion%s\n",
             report->count, report->final ? " (the headline is the final measurement)" : "");
    for (size_t i = 0; i < report->count && i < SHOWN && order[i]->time_ns > 0; i++)
        put_candidate(order[i], out);
    mem_free(order);
}

static void text_islands(const struct report *report, struct buf *out)
{
    char middle[32], least[32], most[32];
    if (report->island_count > 0)
        buf_addf(out, "\nislands\n");
    for (size_t i = 0; i < report->island_count; i++) {
        const struct report_island *island = &report->islands[i];
        const struct kernel_row *best = island->best;
        buf_addf(out, "  %2lld  %zu kernels of %zu evaluated", (long long)island->number,
                 island->kernels, island->evaluated);
        if (best != NULL)
            buf_addf(out, "; best %s %sx (%s to %s)", best->id,
                     words_ratio(best->speedup, best->speedup_low, best->speedup_high, middle),
                     words_ratio(best->speedup_low, best->speedup_low, best->speedup_high, least),
                     words_ratio(best->speedup_high, best->speedup_low, best->speedup_high, most));
        buf_add_char(out, '\n');
    }
}

static void text_pauses(const struct report *report, struct buf *out)
{
    char when[96];
    for (size_t i = 0; i < report->pause_count; i++)
        buf_addf(out, "%s%s: %s\n", i ? "          " : "paused    ",
                 words_pause(report->pauses[i].since_ms, report->pauses[i].until_ms, when),
                 report->pauses[i].reason);
}

/* What the numbers of a GPU's profile are from, and what was not done to the kernel. */
static void text_metrics(const struct report *report, struct buf *out)
{
    const struct value *metrics = value_get(report->evaluation, "metrics");
    const struct value *profile = value_get(metrics, "profile");
    const struct value *notes = value_get(metrics, "notes");
    const char *source = value_text(profile, "source", "");
    char words[320];
    if (*words_error(metrics, words))
        buf_addf(out, "error     %s\n", words);
    if (*words_reached(metrics, words))
        buf_addf(out, "checked   up to %s\n", words);
    if (strcmp(source, "counters") == 0)
        buf_addf(out, "profile   hardware counters, %lld passes\n",
                 (long long)value_int(profile, "passes", 0));
    else if (*source)
        buf_addf(out, "profile   %s, no hardware counters: %s\n",
                 strcmp(source, "records") == 0 ? "CUPTI's records" : "resources alone",
                 value_text(profile, "why", "not known why"));
    char clocks[WORDS_CLOCKS];
    if (*words_clocks(profile, clocks))
        buf_addf(out, "clocks    %s\n", clocks);
    for (size_t i = 0; notes && notes->kind == VALUE_LIST && i < notes->count; i++)
        if (notes->items[i]->kind == VALUE_TEXT)
            buf_addf(out, "%s%s\n", i ? "          " : "note      ", notes->items[i]->text);
}

/* The problem may be a stranger's: none of its lines stands where one of ours could. */
static void text_description(const char *text, struct buf *out)
{
    MEM_LOCAL char *own = mem_strdup(text);
    const char *label = "problem   ";
    for (char *rest = own, *line; (line = strsep(&rest, "\n")) != NULL; label = "          ") {
        err_one_line(line);
        buf_addf(out, "%s%s\n", label, line);
    }
}

void report_text(const struct report *report, struct buf *out)
{
    const struct value *checks = value_get(report->evaluation, "checks");
    char median[32], took[32];
    buf_addf(out, "%s %s: %s\n%s\n\n", report->run, report->problem, report->outcome,
             report_kind(report));
    text_description(report->description, out);
    buf_addf(out, "dims      %s\nstarted   %s, took %s, lane busy %.0f %%\nended     %s\n",
             report->dims, report->started, words_duration(report->elapsed_ms, took),
             100 * report->lane_busy, report->stopped ? report->stopped : "all rounds done");
    if (report->refusal_count > 0)
        buf_add_text(out, "refused   ");
    report_refused(report, out);
    if (report->refusal_count > 0)
        buf_add_char(out, '\n');
    if (report->models)
        buf_addf(out, "models    %s\n", report->models);
    if (report->spent)
        buf_addf(out, "spent     %s\n", report->spent);
    for (size_t i = 0; i < report->asked_count; i++)
        buf_addf(out, "%s%s\n", i ? "          " : "asked     ", report->asked[i]);
    text_pauses(report, out);
    if (report->command && *report->command)
        buf_addf(out, "options   %s\n", report->command);
    if (report->best)
        buf_addf(out, "kernel    %s, %s (%s)\n", report->best,
                 words_time_of(value_get(report->evaluation, "time_ns"), median),
                 report->final ? "final measurement" : "the search's measurement");
    if (checks)
        buf_addf(out, "checks    %lld of %lld passed\n", (long long)value_int(checks, "passed", 0),
                 (long long)value_int(checks, "total", 0));
    if (*value_text(report->evaluation, "noise", ""))
        buf_addf(out, "noise     %s\n", value_text(report->evaluation, "noise", ""));
    text_metrics(report, out);
    text_baselines(report, out);
    text_best(report, out);
    text_islands(report, out);
    if (report->tuning) {
        buf_add_char(out, '\n');
        report_tuning_text(report->tuning, out);
    }
    if (report->best)
        buf_addf(out, "\ntake it   twagent show %s --source -o kernel%s\n", report->best,
                 report_suffix(report));
    if (report->resume)
        buf_addf(out, "%sgo on     %s\n", report->best ? "" : "\n", report->resume);
}

static int write_one(const char *folder, const char *name, const struct buf *text, struct err *err)
{
    char *path = file_join(folder, name);
    int failed = file_write(path, buf_text(text), text->length, err);
    mem_free(path);
    return failed;
}

int report_write(const struct report *report, const char *folder, struct err *err)
{
    struct buf text;
    struct json json;
    buf_init(&text, 64 << 20);
    int failed = file_make_dirs(folder, err);
    report_html(report, &text);
    failed = failed || write_one(folder, "report.html", &text, err);
    buf_reset(&text);
    report_text(report, &text);
    failed = failed || write_one(folder, "report.txt", &text, err);
    if (report->source) {
        buf_reset(&text);
        report_kernel(report, &text);
        char file[32];
        snprintf(file, sizeof file, "kernel%s", report_suffix(report));
        failed = failed || write_one(folder, file, &text, err);
    }
    if (report->evaluation) {
        buf_reset(&text);
        json_init(&json, &text);
        json_value(&json, report->evaluation);
        buf_add_char(&text, '\n');
        failed = failed || write_one(folder, "evidence.json", &text, err);
    }
    buf_free(&text);
    return failed ? -1 : 0;
}
