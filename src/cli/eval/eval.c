/* twagent eval PROBLEM FILE...: candidates through everything, once each.
 *
 *   OPENING (worker started, problem opened) -> EVALUATING (one by one) -> CLOSING
 */
#include "cli/eval/eval.h"
#include "agents/search/search.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cache/use.h"
#include "cli/eval/sweep.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/print/display.h"
#include "cli/print/print.h"
#include "eval/lane/lane.h"
#include "eval/problem/torch.h"
#include "loop/loop.h"
#include "loop/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPENING, EVALUATING, CLOSING, STATES };
static const char *const states[STATES] = {"opening", "evaluating", "closing"};
enum { RECORD_MOST = 1 << 20 };
static const uint32_t moves[STATES] = {1u << EVALUATING | 1u << CLOSING, 1u << CLOSING, 0};

struct eval {
    struct task task;
    const struct settings *settings;
    const struct eval_kernel *kernels, *kernel; /* all, and the one at hand */
    size_t count, told;
    bool named; /* one of several was printed */
    struct arena *arena;
    struct timer limit;
    struct lane *lane;
    struct lane_request open, evaluate;
    struct sweep *sweep; /* NULL: one evaluation */
    enum stage shown;
    struct cache_ask ask;
    bool reported;
    int code;
    struct err err;
};

static int eval_report(struct eval *eval);

static void show(const struct eval *eval, const char *what, const char *goes_on)
{
    if (!eval->settings->quiet && !eval->settings->json && print_draws(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%s", what, goes_on);
}

static void show_stage(struct eval *eval)
{
    if (eval->shown == eval->evaluate.stage)
        return;
    eval->shown = eval->evaluate.stage;
    show(eval, stage_name(eval->shown), " ...");
}

static void tell(struct eval *eval)
{
    int code = eval_report(eval);
    eval->code = code > eval->code ? code : eval->code;
    eval->told++;
    eval->reported = true;
}

/* The next that has no answer yet. */
static enum task_result ask_next(struct eval *eval)
{
    for (; eval->told < eval->count; tell(eval)) {
        const struct eval_kernel *kernel = eval->kernel = &eval->kernels[eval->told];
        eval->ask = (struct cache_ask){.known = false};
        if (kernel->cached)
            cache_ask_eval(eval->settings, eval->arena, kernel->problem, kernel->name,
                           kernel->source, kernel->tune, eval->open.answer, &eval->ask);
        arena_free(eval->evaluate.arena);
        eval->evaluate =
            (struct lane_request){.op = LANE_EVALUATE,
                                  .id = "eval",
                                  .name = kernel->name,
                                  .source = kernel->source,
                                  .source_length = kernel->length,
                                  .tune = kernel->tune,
                                  .rival_name = kernel->rival_name,
                                  .rival_source = kernel->rival_source,
                                  .rival_tune = kernel->rival_tune,
                                  .rival_length = kernel->rival_length,
                                  .effort = effort_find(eval->settings->effort),
                                  .until = kernel->print ? NULL : eval->settings->until,
                                  .profile = eval->settings->profile,
                                  .sanitize = eval->settings->sanitize,
                                  .cachegrind = eval->settings->cachegrind};
        if (!eval->ask.known) {
            lane_submit(eval->lane, &eval->evaluate, &eval->task);
            return TASK_WAIT;
        }
        eval->evaluate.evaluation = eval->ask.entry.evaluation;
    }
    task_move(&eval->task, CLOSING);
    return TASK_AGAIN;
}

static enum task_result eval_open(struct eval *eval)
{
    if (!eval->lane) {
        struct lane_spec spec = settings_lane(eval->settings, eval->kernel->problem);
        spec.baseline = eval->settings->search.baseline;
        spec.roofline = true;
        spec.later = true;
        spec.fitness = eval->settings->search.unfit ? DEMAND_MAY : DEMAND_MUST;
        spec.walls = eval->settings->search.unconfined ? DEMAND_MAY : DEMAND_MUST;
        spec.ahead_name = eval->kernel->name;
        spec.ahead = eval->kernel->tune ? NULL : eval->kernel->source;
        spec.sanitizes = !eval->sweep && (eval->settings->sanitize ||
                                          effort_find(eval->settings->effort) != EFFORT_SEARCH);
        if (lane_open(eval->task.loop, &spec, &eval->lane, &eval->err)) {
            timer_stop(&eval->limit);
            return TASK_DONE;
        }
        eval->open.op = LANE_OPEN;
        eval->open.id = "open";
        lane_submit(eval->lane, &eval->open, &eval->task);
        show(eval, "opening the problem",
             " ..."); /* a PyTorch file's takes a quarter of a minute */
    }
    if (!eval->open.done)
        return TASK_WAIT;
    if (eval->open.err.code) {
        eval->err = eval->open.err;
        task_move(&eval->task, CLOSING);
        return TASK_AGAIN;
    }
    if (eval->sweep) {
        int failed = sweep_choose(eval->sweep, value_get(eval->open.answer, "facts"), &eval->err);
        task_move(&eval->task, failed ? CLOSING : EVALUATING);
        return TASK_AGAIN;
    }
    task_move(&eval->task, EVALUATING);
    return ask_next(eval);
}

static enum task_result eval_step(struct task *task)
{
    struct eval *eval = container_of(task, struct eval, task);
    if (eval->limit.fired && task->state != CLOSING) {
        err_set(&eval->err, ERR_TIMEOUT, "no verdict within %llu minutes",
                (unsigned long long)eval->kernel->within_ms / 60000);
        task_move(task, CLOSING);
    }
    switch (task->state) {
    case OPENING:
        return eval_open(eval);
    case EVALUATING:
        if (eval->sweep) {
            if (sweep_step(eval->sweep, eval->lane, task, &eval->err))
                return TASK_WAIT;
            task_move(task, CLOSING);
            return TASK_AGAIN;
        }
        show_stage(eval);
        if (!eval->evaluate.done)
            return TASK_WAIT;
        eval->err = eval->evaluate.err;
        tell(eval); /* before what takes its time to end */
        if (!eval->err.code) {
            cache_keep(eval->settings, &eval->ask, &eval->evaluate.evaluation);
            return ask_next(eval);
        }
        task_move(task, CLOSING);
        return TASK_AGAIN;
    default:
        timer_stop(&eval->limit);
        lane_close(eval->lane);
        return TASK_DONE;
    }
}

static const struct task_type eval_type = {"eval", states, moves, STATES, eval_step, NULL};

/* One line: how the cache simulator sees it. */
static void print_cachegrind(const char *text)
{
    static const char *const keys[] = {"instructions", "l1_data_misses", "last_level_data_misses",
                                       "branch_mispredictions"};
    static const char *const words[] = {"instructions", "first-level misses", "last-level misses",
                                        "branches mispredicted"};
    ARENA_LOCAL(arena);
    struct value *metrics = NULL;
    if (value_parse_json(arena, "metrics", text, strlen(text), &metrics, NULL) == 0) {
        const struct value *counts = value_get(metrics, "cachegrind");
        const struct value *shape = value_get(metrics, "cachegrind_shape");
        for (size_t i = 0; counts && i < sizeof keys / sizeof keys[0]; i++)
            printf("%s%.0f %s", i ? ", " : "  cachegrind ", value_real(counts, keys[i], 0),
                   words[i]);
        for (size_t i = 0; counts && shape && i < shape->count; i++)
            printf("%s%s=%lld", i ? ", " : " at ", shape->keys[i],
                   (long long)value_int(shape, shape->keys[i], 0));
        if (counts)
            putchar('\n');
    }
}

/* The record, with when it is from as its first member. */
static void print_cached_json(const struct eval *eval)
{
    BUF_LOCAL(head, RECORD_MOST);
    BUF_LOCAL(record, RECORD_MOST);
    struct json json = {.out = &head}, rest = {.out = &record};
    json_object(&json);
    cache_put(&eval->ask.entry, &json);
    evaluation_to_json(&eval->ask.entry.evaluation, &rest);
    printf("%s,%s\n", buf_text(&head), buf_text(&record) + 1);
}

/* The reference, or the other kernel, by the name that a person has for it. */
static struct evaluation as_told(const struct eval *eval)
{
    struct evaluation told = eval->evaluate.evaluation;
    struct problem *problem = NULL;
    struct err ignored;
    if (eval->kernel->rival && told.baseline && strcmp(told.baseline, "rival") == 0)
        told.baseline = eval->kernel->rival;
    if (told.baseline && strcmp(told.baseline, "reference") == 0 &&
        problem_load_with(eval->kernel->problem, eval->settings->search.python, &problem,
                          &ignored) == 0 &&
        *problem_definition(problem))
        told.baseline = arena_strdup(eval->arena, problem_definition(problem));
    problem_free(problem);
    return told;
}

/* With a person's words beside the facts, for who hands them on. */
static void print_json(const struct evaluation *evaluation, const struct evaluation *told,
                       const char *name)
{
    BUF_LOCAL(facts, 64 << 20);
    BUF_LOCAL(words, 4 << 20);
    struct json json = {.out = &facts}, beside = {.out = &words};
    evaluation_to_json(evaluation, &json);
    json_object(&beside);
    print_put_words(told, name, &beside);
    json_object_end(&beside);
    printf("%.*s,%s\n", (int)facts.length - 1, buf_text(&facts), buf_text(&words) + 1);
}

static void print_text(const struct evaluation *told, const char *name)
{
    struct words words;
    print_evaluation_of(told, name, words_begin(&words));
    words_print(&words);
}

/* One of several: {"1 a.c": {...}, "2 b.c": {...}}, or a line above each one's. */
static void print_which(struct eval *eval)
{
    JSON_LOCAL(json, text, 1 << 12);
    const char *name = arena_printf(eval->arena, "%zu %s", eval->told + 1, eval->kernel->name);
    json_text(&json, name);
    if (eval->settings->json)
        printf("%s%s:", eval->named ? "," : "{", buf_text(&text));
    else
        printf("%s%s\n", eval->named ? "\n" : "", name);
    eval->named = true;
}

static int eval_report(struct eval *eval)
{
    show(eval, "", "");
    if (eval->err.code)
        return command_fail(&eval->err);
    if (eval->sweep)
        return sweep_kernels(eval->sweep) > 0 ? EXIT_WIN : EXIT_NONE;
    const struct evaluation *evaluation = &eval->evaluate.evaluation;
    const struct evaluation told = as_told(eval);
    if (eval->count > 1)
        print_which(eval);
    if (eval->ask.known && !eval->settings->json)
        cache_say(&eval->ask.entry);
    if (eval->kernel->print)
        eval->kernel->print(eval->kernel->context, evaluation,
                            value_get(eval->open.answer, "facts"), eval->settings->json);
    else if (eval->ask.known && eval->settings->json)
        print_cached_json(eval);
    else if (eval->settings->json)
        print_json(evaluation, &told, eval->kernel->name);
    else
        print_text(&told, eval->kernel->name);
    if (!eval->settings->json)
        print_cachegrind(evaluation->metrics);
    fflush(stdout);
    if (evaluation->ours)
        return EXIT_ENVIRONMENT;
    bool passed = evaluation->verdict == VERDICT_KERNEL ||
                  (eval->settings->until && evaluation->verdict == VERDICT_DROPPED);
    return passed ? EXIT_WIN : EXIT_NONE;
}

/* What is known of a candidate without a verdict; why there is none. */
static int report_known(struct eval *eval, const struct buf *words, const struct buf *json)
{
    if (eval->count > 1 && words->length > 0)
        print_which(eval);
    if (words->length > 0 && eval->settings->json)
        printf("%s\n", buf_text(json));
    else
        printf("%s", buf_text(words));
    fflush(stdout); /* before what stderr says */
    return command_fail(&eval->err);
}

/* No lane could be opened: a machine without the device may still compile for one. */
static int without_lane(struct eval *eval, struct arena *arena)
{
    const struct backend *backend = backends_find(eval->settings->search.backend);
    const struct err failed = eval->err;
    struct problem *problem = NULL;
    struct value *tune = NULL;
    if (eval->sweep || failed.code != ERR_ENVIRONMENT || !backend->compile_only)
        return eval_report(eval);
    const struct eval_kernel *kernel = eval->kernel;
    if (problem_load_with(kernel->problem, eval->settings->search.python, &problem, &eval->err) ||
        (kernel->tune &&
         value_parse_json(arena, "tune", kernel->tune, strlen(kernel->tune), &tune, &eval->err))) {
        problem_free(problem);
        return command_fail(&eval->err);
    }
    const struct compile_only asked = {.problem = problem,
                                       .name = kernel->name,
                                       .source = kernel->source,
                                       .length = kernel->length,
                                       .tune = tune};
    BUF_LOCAL(words, RECORD_MOST);
    JSON_LOCAL(json, text, RECORD_MOST);
    json_object(&json);
    json_key(&json, "verdict");
    json_null(&json);
    int found =
        backend->compile_only(&asked, arena, &eval->evaluate.evaluation, &words, &json, &eval->err);
    json_object_end(&json);
    if (found != 0)
        eval->err = found > 0 ? failed : (struct err){0};
    int code = found != 0 ? eval_report(eval) : report_known(eval, &words, &text);
    problem_free(problem);
    return code;
}

struct settings eval_settings_for(const struct settings *settings, const char *file)
{
    struct settings chosen = *settings;
    const struct language *language = language_of_file(file);
    if (language && !settings_given(settings, offsetof(struct settings, search.backend)))
        chosen.search.backend = language_target(language)->name;
    return chosen;
}

static int without_lanes(struct eval *eval, struct arena *arena)
{
    const struct err failed = eval->err;
    int worst = without_lane(eval, arena);
    bool known = failed.code == ERR_ENVIRONMENT &&
                 backends_find(eval->settings->search.backend)->compile_only != NULL;
    for (eval->told++; known && eval->told < eval->count; eval->told++) {
        eval->kernel = &eval->kernels[eval->told];
        eval->err = failed;
        int code = without_lane(eval, arena);
        worst = code > worst ? code : worst;
    }
    return worst;
}

int eval_kernels(const struct settings *given, const struct eval_kernel *kernel, size_t count)
{
    ARENA_LOCAL(arena);
    const struct settings settings = eval_settings_for(given, kernel->name);
    struct eval eval = {.settings = &settings,
                        .kernels = kernel,
                        .kernel = kernel,
                        .count = count,
                        .arena = arena,
                        .shown = STAGES};
    if (settings.verbose)
        log_add_sink(log_sink_lines, stderr, LOG_DEBUG);
    else
        display_tell_waits(stderr);
    if (settings.sweep >= 0 && sweep_new(&settings, kernel->problem, kernel->name, kernel->source,
                                         kernel->length, &eval.sweep, &eval.err))
        return command_fail(&eval.err);
    struct loop *loop = loop_new();
    task_start(loop, &eval.task, &eval_type, NULL, "eval");
    if (kernel->within_ms > 0)
        timer_start(loop, &eval.limit, &eval.task, kernel->within_ms);
    loop_run(loop);
    int code = eval.reported ? eval.code : without_lanes(&eval, arena);
    if (eval.named && settings.json)
        printf("}\n");
    if (eval.lane)
        lane_free(eval.lane);
    arena_free(eval.open.arena);
    arena_free(eval.evaluate.arena);
    sweep_free(eval.sweep);
    loop_free(loop);
    return code;
}

int eval_kernel(const struct settings *given, const struct eval_kernel *kernel)
{
    return eval_kernels(given, kernel, 1);
}
