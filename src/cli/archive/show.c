/* twagent show ID, twagent best PROBLEM: one record with what belongs to it. */
#include "base/file.h"
#include "base/mem.h"
#include "cli/archive/bundle.h"
#include "cli/find/control.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "cli/print/run_options.h"
#include "cli/print/run_words.h"
#include "cli/tune/facts.h"
#include "eval/problem/problem.h"
#include "report/report.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

static int put_source(const struct settings *settings, const char *source, struct err *err)
{
    if (!source)
        return err_set(err, ERR_NOT_FOUND, "its source is not in the store");
    if (settings->output) {
        if (file_put(settings->output, source, strlen(source), err))
            return -1;
        printf("wrote %s\n", settings->output);
        return 0;
    }
    fputs(source, stdout);
    return 0;
}

/* The run's own words of its champion, of another kernel the search's. */
static const char *measured_words(struct arena *arena, const struct candidate_record *c,
                                  const struct run_record *run, const struct value *evaluation)
{
    if (strcmp(run->best, c->id) == 0)
        return run_words_outcome(arena, run);
    if (c->speedup <= 0)
        return *c->verdict && strcmp(c->verdict, "kernel") != 0 ? c->verdict : "not measured";
    return arena_printf(arena, "%s, as the search measured it",
                        run_words_speedup(arena, c->speedup, c->speedup_low, c->speedup_high,
                                          value_text(evaluation, "baseline", run->baseline)));
}

/* What was measured; of what came to no end its tune numbers alone. */
static const struct value *evaluation_or_tune(struct store *store, struct arena *arena,
                                              const struct candidate_record *c)
{
    const struct value *evaluation = history_evaluation(store, arena, c->id);
    struct value *alone = NULL;
    struct err ignored;
    const char *text = arena_printf(arena, "{\"tune\": %s}", *c->tune ? c->tune : "{}");
    if (!evaluation && value_parse_json(arena, "tune", text, strlen(text), &alone, &ignored))
        alone = NULL;
    return evaluation ? evaluation : alone;
}

/* The source as a file that compiles alone: with the tune numbers that were measured. */
static const char *whole_source(struct store *store, struct arena *arena,
                                const struct candidate_record *c)
{
    struct run_record run = {.problem = "", .baseline = "", .best = ""};
    struct err ignored;
    struct buf text;
    const struct value *evaluation = evaluation_or_tune(store, arena, c);
    if (history_run(store, arena, c->run, &run, &ignored))
        run.problem = c->name; /* its run's record is gone */
    const struct report report = {.problem = run.problem,
                                  .outcome = measured_words(arena, c, &run, evaluation),
                                  .best = c->id,
                                  .language = language_of_file(c->name),
                                  .source = history_source(store, arena, c),
                                  .evaluation = evaluation};
    if (!report.source)
        return NULL;
    buf_init(&text, 4 << 20);
    report_kernel(&report, &text);
    return buf_keep(&text, arena);
}

/* As the run's own words have it. */
static const char *baseline_words(struct store *store, struct arena *arena,
                                  const struct candidate_record *c, const char *baseline)
{
    struct run_record run;
    struct err ignored;
    if (history_run(store, arena, c->run, &run, &ignored))
        return baseline;
    run.baseline = baseline;
    return run_record_baseline(&run);
}

static int print_record(const struct settings *settings, struct store *store, struct arena *arena,
                        const struct candidate_record *c)
{
    const struct value *value = history_evaluation(store, arena, c->id);
    struct evaluation evaluation;
    struct idea_record idea = {.title = "", .why = "", .category = ""};
    char time[32], ratio[32];
    struct err ignored;
    if (settings->json) {
        struct buf text;
        struct json json;
        buf_init(&text, 64 << 20);
        candidate_record_encode(c, &text);
        printf("{\"candidate\": %s, \"evaluation\": ", buf_text(&text));
        buf_reset(&text);
        json_init(&json, &text);
        if (value)
            json_value(&json, value);
        else
            json_null(&json);
        printf("%s}\n", buf_text(&text));
        buf_free(&text);
        return 0;
    }
    struct words words;
    FILE *out = words_begin(&words);
    fprintf(out, "%s  %s  %s\n", c->id, c->state, run_words_source(arena, c));
    if (history_idea(store, arena, c->idea, &idea, &ignored) == 0)
        fprintf(out, "  idea       %s (%s: %s)\n", idea.title, idea.category, idea.why);
    if (*c->parent)
        fprintf(out, "  parent     %s\n", c->parent);
    if (*c->attempt)
        fprintf(out, "  agent      the one that worked on %s had it evaluated\n", c->attempt);
    if (*c->agent)
        fprintf(out, "  agent      %s\n", c->agent);
    if (*c->duplicate_of)
        fprintf(out, "  same as    %s\n", c->duplicate_of);
    if (value && history_is_final(store, arena, c->id))
        fprintf(out,
                "  measured   again at the end: fresh processes, fresh seeds (in the search: %s, "
                "%sx %s)\n",
                words_time_by(c->time_ns, c->speedup, c->speedup_low, c->speedup_high, time),
                words_ratio(c->speedup, c->speedup_low, c->speedup_high, ratio),
                baseline_words(store, arena, c,
                               value_text(history_measured(store, arena, c->id), "baseline", "")));
    if (value && evaluation_from_value(arena, value, &evaluation, &ignored) == 0) {
        evaluation.baseline = baseline_words(store, arena, c, evaluation.baseline);
        print_evaluation_of(&evaluation, c->name, out);
    } else if (*c->reason)
        fprintf(out, "  %s: %s\n", c->verdict, c->reason);
    fprintf(out, "  source     twagent show %s --source\n", c->id);
    words_print(&words);
    return 0;
}

static int show_candidate(const struct settings *settings, struct store *store, struct arena *arena,
                          const char *id, struct err *err)
{
    struct candidate_record candidate;
    if (history_candidate(store, arena, id, &candidate, err))
        return -1;
    if (settings->bundle)
        return bundle_write(settings, store, arena, &candidate, err);
    if (settings->source || settings->output)
        return put_source(settings, whole_source(store, arena, &candidate), err);
    return print_record(settings, store, arena, &candidate);
}

static int print_line(struct buf *text)
{
    puts(buf_text(text));
    buf_free(text);
    return 0;
}

static int show_idea(const struct settings *settings, struct store *store, struct arena *arena,
                     const char *id, struct err *err)
{
    struct idea_record idea;
    if (history_idea(store, arena, id, &idea, err))
        return -1;
    if (settings->json) {
        struct buf text;
        buf_init(&text, 1 << 20);
        idea_record_encode(&idea, &text);
        return print_line(&text);
    }
    struct words words;
    fprintf(words_begin(&words), "%s  %s\n  category   %s\n  why        %s\n  parent     %s\n",
            idea.id, idea.title, idea.category, idea.why,
            *idea.parent ? idea.parent : "none: a start");
    words_print(&words);
    return 0;
}

static void print_options(struct arena *arena, const struct run_record *run, FILE *out)
{
    size_t count;
    const char *const *lines = run_options(arena, run, &count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "  %-10s %s\n", i ? "" : "options", lines[i]);
    fprintf(out, "  %-10s %s\n", count ? "" : "options",
            count ? "all others as by default" : "all as by default");
}

static void print_run(struct store *store, struct arena *arena, const struct run_record *run,
                      pid_t owner, FILE *out)
{
    const struct spending spending = run_spending(store, arena, run->id);
    const char *models = run_words_models(arena, run);
    const char *spent = run_words_spent(arena, run, &spending);
    bool says_running = strcmp(run->state, "running") == 0;
    bool running = says_running && owner == run->pid;
    struct report_pause *pauses;
    size_t pause_count;
    char time[32], when[96], outcomes[160];
    history_pauses(arena, run, &pauses, &pause_count);
    fprintf(out, "%s  %s  %s%s%s\n", run->id, run->problem,
            says_running && !running ? "died" : run->state, says_running ? "" : ": ",
            says_running ? "" : run_words_end(arena, run));
    fprintf(out, "  models     %s\n", models ? models : "none: the built-in proposer");
    if (spent)
        fprintf(out, "  spent      %s\n", spent);
    fprintf(out, "  evaluated  %lld in %s: %s\n", (long long)run->evaluated,
            words_duration(run->elapsed_ms, time),
            words_outcomes(run->kept, run->rejected, run->failed, run->dropped, run->outside,
                           outcomes));
    const char **asked;
    size_t asked_count = run_words_asked(arena, run, &asked);
    for (size_t i = 0; i < asked_count; i++)
        fprintf(out, "  %s %s\n", i ? "          " : "asked     ", asked[i]);
    for (size_t i = 0; i < pause_count; i++)
        fprintf(out, "  paused     %s: %s\n",
                words_pause(pauses[i].since_ms, pauses[i].until_ms, when), pauses[i].reason);
    print_options(arena, run, out);
    if (*run->best)
        fprintf(
            out, "  best       %s  %s  %s\n", run->best,
            words_time_by(run->time_ns, run->speedup, run->speedup_low, run->speedup_high, time),
            run_words_outcome(arena, run));
    if (*run->noise)
        fprintf(out, "  noise      %s\n", run->noise);
    if (!running && run_can_go_on(run))
        fprintf(out, "  go on      %s\n", run_words_resume(arena, run));
}

static int show_run(const struct settings *settings, struct store *store, struct arena *arena,
                    const char *id, struct err *err)
{
    struct run_record run;
    if (history_run(store, arena, id, &run, err))
        return -1;
    if (settings->json) {
        struct buf text;
        buf_init(&text, 1 << 20);
        run_record_encode(&run, &text);
        return print_line(&text);
    }
    char *folder = control_folder(settings);
    struct words words;
    FILE *out = words_begin(&words);
    print_run(store, arena, &run, control_owner(folder), out);
    mem_free(folder);
    fprintf(out, "  candidates twagent list candidates %s\n", run.id);
    words_print(&words);
    struct tuning tuning;
    if (!tune_is(&run))
        return 0;
    if (tune_facts(store, arena, &run, true, &tuning, err))
        return -1;
    BUF_LOCAL(text, 8 << 20);
    report_tuning_text(&tuning, &text);
    fputs(buf_text(&text), stdout);
    return 0;
}

int command_show(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct arena *arena = arena_new();
    struct store *store = NULL;
    struct err err = {0};
    const char *id = arguments[0];
    (void)count;
    int failed = history_open(settings, &store, &err);
    if (!failed)
        failed = strstr(id, "-c")   ? show_candidate(settings, store, arena, id, &err)
                 : strstr(id, "-i") ? show_idea(settings, store, arena, id, &err)
                                    : show_run(settings, store, arena, id, &err);
    if (failed && err.code == ERR_NOT_FOUND)
        failed = find_no_id(settings, store, arena, id, &err);
    store_close(store);
    arena_free(arena);
    return failed ? command_fail(&err) : 0;
}

int command_best(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct arena *arena = arena_new();
    struct store *store = NULL;
    struct err err = {0};
    struct run_record *runs = NULL;
    size_t run_count = 0;
    int code = 0;
    (void)count;
    int failed =
        history_open(settings, &store, &err) || history_runs(store, arena, &runs, &run_count, &err);
    if (failed && (err.code != ERR_NOT_FOUND || store)) {
        code = command_fail(&err);
    } else {
        struct problem_key key;
        const struct run_record *best = NULL;
        failed = find_definition(arena, arguments[0], runs, run_count, &key, &err);
        if (!failed)
            best = history_best(runs, run_count, &key);
        if (failed) {
            code = command_fail(&err);
        } else if (!best) {
            fprintf(stderr, "twagent: %s\n", find_no_kernel(settings, store, arena, arguments[0]));
            code = EXIT_NONE;
        } else if (show_candidate(settings, store, arena, best->best, &err)) {
            code = command_fail(&err);
        }
    }
    store_close(store);
    arena_free(arena);
    return code;
}
