#include "cli/run/result.h"

#include "cli/report/fill.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "cli/print/run_options.h"
#include "cli/print/run_words.h"
#include "eval/problem/problem.h"
#include "report/report.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is printed ---- */

static void print_baselines(const struct report *report, FILE *out)
{
    const struct value *all = value_get(report->evaluation, "baselines");
    char time[32], middle[32], least[32], most[32], name[160];
    for (size_t i = 0; all && i < all->count; i++) {
        const struct value *speedup = value_get(all->items[i], "speedup");
        bool win = value_bool(all->items[i], "win", false);
        double low = value_real(speedup, "low", 0), high = value_real(speedup, "high", 0);
        fprintf(out, "%s  %s %sx (95 %%: %s to %s; it takes %s)%s%s\n",
                i ? "           " : "  against  ",
                words_baseline(all->keys[i], report->definition, name),
                words_ratio(value_real(speedup, "median", 0), low, high, middle),
                words_ratio(low, low, high, least), words_ratio(high, low, high, most),
                words_time_of(value_get(all->items[i], "ns"), time), win ? "" : "  ",
                win ? ""
                    : words_finding(value_text(all->items[i], "finding", ""), false,
                                    value_real(speedup, "high", 0)));
    }
}

static void print_asking(const struct report *report, FILE *out)
{
    char when[96];
    if (report->models)
        fprintf(out, "  models     %s\n", report->models);
    if (report->spent)
        fprintf(out, "  spent      %s\n", report->spent);
    for (size_t i = 0; i < report->asked_count; i++)
        fprintf(out, "  %s %s\n", i ? "          " : "asked     ", report->asked[i]);
    for (size_t i = 0; i < report->pause_count; i++)
        fprintf(out, "  %s %s: %s\n", i ? "          " : "paused    ",
                words_pause(report->pauses[i].since_ms, report->pauses[i].until_ms, when),
                report->pauses[i].reason);
    fprintf(out, "  ended      %s\n", report->stopped);
}

static void print_text(const struct run_record *run, const struct report *report,
                       const char *folder, const char *resume, FILE *out)
{
    char time[32], outcomes[160], lane[80];
    fprintf(out, "%s %s: %s\n", run->id, run->problem, report->outcome);
    if (report->best)
        for (size_t i = 0; i < report->count; i++)
            if (report->candidates[i].champion)
                fprintf(out, "  kernel     %s  %s  %s\n", run->best,
                        words_time_by(run->time_ns, run->speedup, run->speedup_low,
                                      run->speedup_high, time),
                        report->candidates[i].source);
    print_baselines(report, out);
    double spread = value_real(report->evaluation, "spread", 0);
    if (*run->noise)
        fprintf(out, "  noise      %s\n", run->noise);
    else if (run->verified && !run->win && run->speedup_low > 1)
        fprintf(
            out,
            "  noise      the kernel against itself strays by %.1f %% here, so that a win needs an "
            "interval above %.3fx\n",
            100 * spread, 1 + fmax(0.01, 3 * spread));
    const struct value *checks = value_get(report->evaluation, "checks");
    char package[96];
    if (checks)
        fprintf(out, "  checked    %lld of %lld checks passed%s%s\n",
                (long long)value_int(checks, "passed", 0), (long long)value_int(checks, "total", 0),
                run->verified ? ", again in fresh processes with fresh seeds" : "",
                words_package(value_get(report->evaluation, "metrics"), package));
    fprintf(
        out, "  search     %lld evaluated in %s: %s; %s\n", (long long)run->evaluated,
        words_duration(run->elapsed_ms, time),
        words_outcomes(run->kept, run->rejected, run->failed, run->dropped, run->outside, outcomes),
        words_lane(run->lane_busy, run->lane_waits, lane));
    BUF_LOCAL(refused, 4096);
    report_refused(report, &refused);
    if (refused.length > 0)
        fprintf(out, "  refused    %s\n", buf_text(&refused));
    print_asking(report, out);
    fprintf(out, "  report     %s/report.html (and report.txt%s)\n", folder,
            report->source ? ", kernel, evidence.json" : "");
    if (resume)
        fprintf(out, "  go on      %s\n", resume);
    if (report->tuning) {
        BUF_LOCAL(text, 8 << 20);
        report_tuning_text(report->tuning, &text);
        fputs(buf_text(&text), out);
    }
}

static void print_json(const struct run_record *run, const struct report *report,
                       const char *folder, const char *resume, FILE *out)
{
    struct buf text, record;
    buf_init(&text, 64 << 20);
    buf_init(&record, 1 << 20);
    run_record_encode(run, &record);
    struct json json = {.out = &text};
    json_object(&json);
    json_put_raw(&json, "run", buf_text(&record));
    json_put_value(&json, "champion", report->evaluation);
    if (report->tuning) {
        json_key(&json, "tuning");
        report_tuning_json(report->tuning, &json);
    }
    json_put_text(&json, "report", folder);
    struct words words;
    print_text(run, report, folder, resume, words_begin(&words));
    words_end(&words, &json);
    json_object_end(&json);
    fprintf(out, "%s\n", buf_text(&text));
    buf_free(&record);
    buf_free(&text);
}

static int exit_code(const struct run_record *run)
{
    if (strstr(run->stopped, "awaited"))
        return EXIT_STOPPED;
    if (run->win && run->verified)
        return EXIT_WIN;
    return run_can_go_on(run) ? EXIT_STOPPED : EXIT_NONE;
}

int run_result(const struct settings *settings, struct store *store, const struct search *search,
               const char *folder)
{
    struct arena *arena = arena_new();
    struct search_progress progress;
    struct run_record run;
    struct report report;
    struct err err = {0};
    int code;
    search_progress(search, &progress);
    const char *where = settings->report
                            ? settings->report
                            : arena_printf(arena, "%s/reports/%s", folder, progress.run);
    if (history_run(store, arena, progress.run, &run, &err)) {
        code = command_fail(&err);
    } else {
        report_fill(store, arena, &run, true, &report);
        if (report_write(&report, where, &err))
            fprintf(stderr, "twagent: the report could not be written: %s\n", err.message);
        if (settings->json) {
            print_json(&run, &report, where, run_words_resume(arena, &run), stdout);
        } else {
            struct words words;
            print_text(&run, &report, where, run_words_resume(arena, &run), words_begin(&words));
            words_print(&words);
        }
        code = exit_code(&run);
        if (report.tuning && code == EXIT_WIN && settings->search.stable &&
            !report.tuning->ladder.stable)
            code = EXIT_NONE;
    }
    arena_free(arena);
    return code;
}

void run_result_hint(const struct search *search, FILE *out)
{
    struct search_progress progress;
    search_progress(search, &progress);
    if (progress.evaluated == 0)
        return;
    fprintf(out, "what was found is kept; go on with: twagent resume %s\n", progress.run);
}
