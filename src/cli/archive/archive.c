/* twagent history PROBLEM, twagent stats [PROBLEM]: what all runs together have found. */
#include "cli/archive/archive.h"

#include "base/json.h"
#include "base/utf8.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "facts/summary.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

int archive_read(const struct settings *settings, struct arena *arena,
                 const struct kernel_query *asked, const char *word, struct kernel_row **rows,
                 size_t *count, struct err *err)
{
    struct store *store = NULL;
    struct run_record *runs;
    struct problem_key key;
    struct kernel_query named = *asked, *query = &named;
    size_t run_count;
    *count = 0;
    int failed = history_open(settings, &store, err);
    if (!failed && word != NULL) {
        named.problem = &key;
        failed = history_runs(store, arena, &runs, &run_count, err) ||
                 find_definition(arena, word, runs, run_count, &key, err);
    }
    if (!failed)
        failed = kernels_read(store, arena, query, rows, count, err);
    if (failed && query->candidate != NULL && err->code == ERR_NOT_FOUND)
        find_no_id(settings, store, arena, query->candidate, err);
    else if (!failed && *count == 0 && query->candidate != NULL)
        failed = find_no_id(settings, store, arena, query->candidate, err);
    else if (!failed && *count == 0 && word != NULL)
        failed = err_set(err, ERR_NOT_FOUND, "%s", find_no_kernel(settings, store, arena, word));
    else if ((failed && err->code == ERR_NOT_FOUND) || (!failed && *count == 0))
        failed = err_set(err, ERR_NOT_FOUND, "no kernels yet; begin with: twagent run conv2d");
    store_close(store);
    return failed ? -1 : 0;
}

void archive_visible(const char *text, size_t most, struct buf *out)
{
    size_t left = strlen(text);
    if (most > 0)
        left = strcspn(text, "\n") < most ? strcspn(text, "\n") : most;
    while (left > 0) {
        uint32_t hidden;
        size_t length = utf8_shown(text, left, &hidden);
        if (length == 0)
            buf_addf(out, "\\x%02x", (unsigned char)*text);
        else if (hidden && hidden != '\n' && hidden != '\t')
            buf_addf(out, length == 1 ? "\\x%02x" : "\\u%04x", hidden);
        else
            buf_add(out, text, length);
        length = length != 0 ? length : 1;
        text += length;
        left -= length;
    }
}

/* ---- history ---- */

static void print_step(const struct step *step, struct buf *out)
{
    const struct kernel_row *row = step->row;
    char when[32], time[32], ratio[32], low[32], high[32], speedup[64];
    snprintf(speedup, sizeof speedup, "%.12sx (%.12s to %.12s)",
             words_ratio(row->speedup, row->speedup_low, row->speedup_high, ratio),
             words_ratio(row->speedup_low, row->speedup_low, row->speedup_high, low),
             words_ratio(row->speedup_high, row->speedup_low, row->speedup_high, high));
    buf_addf(
        out, "  %s  %-8s %9s  %-23s %s  ", words_date(row->decided_ms, when), row->id,
        words_time_by(row->latency_ns, row->speedup, row->speedup_low, row->speedup_high, time),
        speedup,
        row->verified ? "verified"
        : step->clear ? ""
                      : "within noise");
    archive_visible(row->model, 40, out);
    buf_add_text(out, "  ");
    archive_visible(*row->idea ? row->idea : row->file, 60, out);
    buf_add_text(out, "\n");
}

static void print_group(struct arena *arena, const struct kernel_row *const *rows, size_t count,
                        struct buf *out)
{
    struct step *steps;
    size_t step_count, kernels = 0, evaluated = 0;
    char text[48];
    for (size_t i = 0; i < count; i++) {
        bool twin = *rows[i]->duplicate_of && !rows[i]->champion;
        evaluated += !twin;
        kernels += rows[i]->correct && !twin;
    }
    archive_visible(rows[0]->problem, 80, out);
    if (*rows[0]->size != '\0') {
        buf_add_text(out, " ");
        archive_visible(rows[0]->size, 80, out);
    }
    buf_add_text(out, " on ");
    archive_visible(*rows[0]->device ? rows[0]->device : rows[0]->backend, 80, out);
    buf_add_text(out, ", against ");
    archive_visible(rows[0]->baseline, 40, out);
    buf_addf(out, ": %s of %zu evaluated\n", words_number((int64_t)kernels, "kernel", text),
             evaluated);
    summary_steps(arena, rows, count, &steps, &step_count);
    for (size_t i = 0; i < step_count; i++)
        print_step(&steps[i], out);
}

static void history_json(struct arena *arena, const struct kernel_row *const *rows, size_t count,
                         struct json *json)
{
    struct step *steps;
    size_t step_count;
    summary_steps(arena, rows, count, &steps, &step_count);
    json_object(json);
    json_put_text(json, "problem", rows[0]->problem);
    json_put_text(json, "size", rows[0]->size);
    json_put_text(json, "device", rows[0]->device);
    json_put_text(json, "baseline", rows[0]->baseline);
    json_put_int(json, "evaluated", (int64_t)count);
    json_put_array(json, "steps");
    for (size_t i = 0; i < step_count; i++) {
        json_object(json);
        json_put_bool(json, "clear", steps[i].clear);
        json_key(json, "kernel");
        kernel_json(steps[i].row, json);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

/* Each group of rows that are alike, in order of its first one. */
static void each_group(struct arena *arena, const struct kernel_row *rows, size_t count,
                       struct json *json, struct buf *out)
{
    const struct kernel_row **group = arena_array(arena, count + 1, sizeof *group);
    bool *taken = arena_array(arena, count + 1, sizeof *taken);
    if (json != NULL)
        json_array(json);
    for (size_t i = 0; i < count; i++) {
        size_t members = 0;
        for (size_t k = i; k < count && !taken[i]; k++)
            if (!taken[k] && kernels_alike(&rows[i], &rows[k]))
                group[members++] = &rows[k];
        for (size_t k = i; k < count && members > 0; k++)
            taken[k] = taken[k] || kernels_alike(&rows[i], &rows[k]);
        if (members > 0 && json != NULL)
            history_json(arena, group, members, json);
        else if (members > 0)
            print_group(arena, group, members, out);
    }
    if (json != NULL)
        json_array_end(json);
}

typedef void view_of(struct arena *arena, const struct kernel_row *rows, size_t count,
                     struct json *json, struct buf *out);

/* One value of JSON, or lines with what is said after them. */
static int show(const struct settings *settings, const char *problem, view_of *view,
                const char *after)
{
    ARENA_LOCAL(arena);
    const struct kernel_query all = {.problem = NULL};
    struct kernel_row *rows = NULL;
    size_t count = 0;
    struct err err = {0};
    JSON_LOCAL(json, text, (size_t)256 << 20);
    if (archive_read(settings, arena, &all, problem, &rows, &count, &err))
        return command_fail(&err);
    view(arena, rows, count, settings->json ? &json : NULL, &text);
    buf_add_text(&text, settings->json ? "\n" : after);
    print_lines(buf_text(&text), settings->json);
    return 0;
}

int command_history(const struct settings *settings, const char *const *arguments, size_t count)
{
    (void)count;
    return show(settings, arguments[0], each_group, "");
}

/* ---- stats ---- */

static const struct {
    enum summary_by by;
    const char *title, *key;
} summaries[] = {{SUMMARY_ALL, "in all", "all"},
                 {SUMMARY_MODEL, "by model", "models"},
                 {SUMMARY_CATEGORY, "by kind of idea", "categories"},
                 {SUMMARY_LANGUAGE, "by language", "languages"},
                 {SUMMARY_REASON, "refused", "refused"}};
enum { SUMMARIES = sizeof summaries / sizeof summaries[0], REASONS_SHOWN = 12 };

static void print_summary(const struct summary *summary, bool refused, struct buf *out)
{
    char gain[80] = "-", money[32], middle[32], low[32], high[32];
    const struct interval *interval = &summary->gain;
    struct buf name;
    if (refused) {
        buf_addf(out, "  %6zu  ", summary->evaluated);
        archive_visible(summary->name, 80, out);
        buf_add_text(out, "\n");
        return;
    }
    if (interval->samples >= 6)
        snprintf(gain, sizeof gain, "%.10sx (%.10s to %.10s)",
                 words_ratio(interval->median, interval->low, interval->high, middle),
                 words_ratio(interval->low, interval->low, interval->high, low),
                 words_ratio(interval->high, interval->low, interval->high, high));
    buf_init(&name, 256);
    archive_visible(summary->name, 20, &name);
    buf_addf(out, "  %-14s %9zu %7zu %6zu %4zu %7s  %s\n", buf_text(&name), summary->evaluated,
             summary->kernels, summary->better, summary->wins,
             summary->micro_dollars > 0 ? words_dollars(summary->micro_dollars, money) : "", gain);
    buf_free(&name);
}

static void summary_json(const struct summary *summary, struct json *json)
{
    json_object(json);
    json_put_text(json, "name", summary->name);
    json_put_int(json, "evaluated", (int64_t)summary->evaluated);
    json_put_int(json, "kernels", (int64_t)summary->kernels);
    json_put_int(json, "rejected", (int64_t)summary->rejected);
    json_put_int(json, "failed", (int64_t)summary->failed);
    json_put_int(json, "dropped", (int64_t)summary->dropped);
    json_put_int(json, "better_than_parent", (int64_t)summary->better);
    json_put_int(json, "wins", (int64_t)summary->wins);
    json_put_int(json, "micro_dollars", summary->micro_dollars);
    json_key(json, "gain_over_parent");
    if (summary->gain.samples == 0) {
        json_null(json);
    } else {
        json_object(json);
        json_put_real(json, "median", summary->gain.median);
        json_put_real(json, "low", summary->gain.low);
        json_put_real(json, "high", summary->gain.high);
        json_put_int(json, "samples", (int64_t)summary->gain.samples);
        json_object_end(json);
    }
    json_object_end(json);
}

static void stats_view(struct arena *arena, const struct kernel_row *rows, size_t count,
                       struct json *json, struct buf *out)
{
    if (json != NULL)
        json_object(json);
    for (size_t i = 0; i < SUMMARIES; i++) {
        struct summary *groups;
        size_t group_count;
        bool refused = summaries[i].by == SUMMARY_REASON;
        summary_make(arena, rows, count, summaries[i].by, &groups, &group_count);
        if (json != NULL) {
            json_put_array(json, summaries[i].key);
        } else if (i == 0) {
            buf_addf(out, "  %-14s %9s %7s %6s %4s %7s  %s\n", "", "evaluated", "kernels", "better",
                     "wins", "cost", "gain over its parent");
        } else if (group_count > 0) {
            buf_addf(out, "%s\n", summaries[i].title);
        }
        for (size_t k = 0; k < group_count; k++)
            if (json != NULL)
                summary_json(&groups[k], json);
            else if (!refused || k < REASONS_SHOWN)
                print_summary(&groups[k], refused, out);
        if (json != NULL)
            json_array_end(json);
        else if (refused && group_count > REASONS_SHOWN)
            buf_addf(out, "  and %zu more reasons: --json\n", group_count - REASONS_SHOWN);
    }
    if (json != NULL)
        json_object_end(json);
}

int command_stats(const struct settings *settings, const char *const *arguments, size_t count)
{
    return show(settings, count != 0 ? arguments[0] : NULL, stats_view,
                "better: its whole interval is above its parent's; wins: verified at "
                "the end of a run; gain: median with 95 % interval, from 6 on\n");
}
