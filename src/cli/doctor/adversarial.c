/* Runs tests/adversarial/BACKEND/manifest.yaml, then those of the backend's languages that have a
 * folder of their own: each file is evaluated as a candidate; the verdict must be the one that the
 * manifest names. One lane a problem, another one for its controls, which are opened once: the
 * cases are taken problem by problem.
 *
 *   NEXT (the next case, or a fresh lane where its problem is another) -> OPENING -> EVALUATING ->
 * NEXT
 */
#include "cli/doctor/adversarial.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/print/display.h"
#include "eval/lane/lane.h"
#include "loop/loop.h"
#include "loop/task.h"

#include <stdio.h>
#include <string.h>

enum { NEXT, OPENING, EVALUATING, STATES };
static const char *const states[STATES] = {"next", "opening", "evaluating"};
static const uint32_t moves[STATES] = {1u << OPENING | 1u << EVALUATING,
                                       1u << EVALUATING | 1u << NEXT, 1u << NEXT};

struct suite {
    struct task task;
    const struct settings *settings;
    const char *only;
    struct arena *arena;
    char *folder;
    const char *prefix; /* of file names as they are shown: "", "triton/" */
    struct value *cases;
    size_t at;
    const char *problem; /* that the lane has open */
    bool honest;         /* ... for controls, which nothing but a busy machine makes slow */
    struct lane *lanes[LANES_MAX];
    size_t lane_count;
    struct lane_request open, evaluate;
    size_t tries; /* of the case, before this one */
    struct buf source;
    size_t passed, failed;
    struct err err;
};

static const struct value *suite_case(const struct suite *suite)
{
    return suite->cases->items[suite->at];
}

static const char *shown_name(const struct suite *suite, const struct value *item)
{
    return arena_printf(suite->arena, "%s%s", suite->prefix, value_text(item, "file", ""));
}

/* Did the verdict hold? Says why not in `why`. */
static bool case_held(const struct suite *suite, const struct value *item, struct buf *why)
{
    const struct lane_request *request = &suite->evaluate;
    const struct evaluation *evaluation = &request->evaluation;
    const char *wanted = value_text(item, "verdict", "");
    if (request->err.code) {
        buf_addf(why, "the worker said: %s", request->err.message);
        return false;
    }
    bool kernel = evaluation->verdict == VERDICT_KERNEL;
    bool held = strcmp(wanted, "refused") == 0  ? !kernel
                : strcmp(wanted, "failed") == 0 ? evaluation->verdict == VERDICT_FAILED
                : strcmp(wanted, "no_win") == 0 ? !evaluation_wins(evaluation)
                                                : kernel;
    if (evaluation->ours)
        held = false;
    buf_addf(why, "%s%s%s%s", verdict_name(evaluation->verdict),
             evaluation_wins(evaluation) ? " (win)" : "", *evaluation->reason ? ": " : "",
             evaluation->reason);
    const char *secret = value_text(item, "secret", NULL);
    if (secret && (strstr(evaluation->reason, secret) || strstr(evaluation->details, secret))) {
        buf_addf(why, "; the record holds \"%s\"", secret);
        held = false;
    }
    const struct value *absent = value_get(item, "absent");
    for (size_t i = 0; absent && i < absent->count; i++)
        if (file_exists(absent->items[i]->text)) {
            buf_addf(why, "; %s is there", absent->items[i]->text);
            held = false;
        }
    return held;
}

static void case_report(struct suite *suite)
{
    const struct value *item = suite_case(suite);
    BUF_LOCAL(why, 4096);
    bool held = case_held(suite, item, &why);
    *(held ? &suite->passed : &suite->failed) += 1;
    printf("%s %-34s %s\n", held ? "ok  " : "FAIL", shown_name(suite, item), buf_text(&why));
    fflush(stdout);
    arena_free(suite->evaluate.arena);
    suite->evaluate = (struct lane_request){0};
}

static bool is_honest(const struct value *item)
{
    return strcmp(value_text(item, "verdict", ""), "kernel") == 0;
}

static bool shares_lane(const struct value *item, const struct value *other)
{
    return is_honest(item) == is_honest(other) &&
           strcmp(value_text(item, "problem", ""), value_text(other, "problem", "")) == 0;
}

/* Those of a lane together, each as the manifest has them. */
static void group(struct value *cases)
{
    for (size_t i = 1; i < cases->count; i++) {
        size_t to = i;
        struct value *item = cases->items[i];
        while (to > 0 && !shares_lane(cases->items[to - 1], item))
            to--;
        if (to == 0)
            continue;
        memmove(cases->items + to + 1, cases->items + to, (i - to) * sizeof(struct value *));
        cases->items[to] = item;
    }
}

static int lane_for_case(struct suite *suite, const char *problem, bool honest)
{
    enum { HANGS_MS = 2000, BUSY_MS = 60000 };
    struct lane **lane = &suite->lanes[suite->lane_count];
    char *name = arena_printf(suite->arena, "%s/problems/%s", suite->folder, problem);
    struct lane_spec spec = settings_lane(suite->settings, name);
    spec.launcher = NULL;
    spec.call_timeout_ms = honest ? BUSY_MS : HANGS_MS;
    spec.time_budget_ms = 200;
    spec.walls = suite->settings->search.unconfined ? DEMAND_MAY : DEMAND_MUST;
    spec.roofline = suite->lane_count == 0;
    if (suite->lane_count == LANES_MAX)
        return err_set(&suite->err, ERR_LIMIT, "manifest.yaml: more than %d changes of problem",
                       LANES_MAX);
    if (suite->lane_count > 0)
        lane_close(suite->lanes[suite->lane_count - 1]);
    if (lane_open(suite->task.loop, &spec, lane, &suite->err))
        return -1;
    suite->lane_count++;
    suite->problem = problem;
    suite->honest = honest;
    arena_free(suite->open.arena);
    suite->open = (struct lane_request){.op = LANE_OPEN, .id = "open"};
    lane_submit(*lane, &suite->open, &suite->task);
    return 0;
}

/* What chance has a part in is asked as a search asks its champion. */
static const enum effort efforts[] = {EFFORT_FULL, EFFORT_FINAL, EFFORT_SEARCH};

static bool case_goes_on(const struct suite *suite)
{
    const struct lane_request *request = &suite->evaluate;
    return value_bool(suite_case(suite), "champion", false) && !request->err.code &&
           !request->evaluation.ours && request->evaluation.verdict == VERDICT_KERNEL &&
           suite->tries + 1 < sizeof efforts / sizeof efforts[0];
}

static enum task_result case_submit(struct suite *suite)
{
    const struct value *item = suite_case(suite);
    const char *file = value_text(item, "file", "");
    MEM_LOCAL char *path = file_join(suite->folder, file);
    buf_reset(&suite->source);
    int failed = file_read(path, &suite->source, &suite->err);
    if (failed)
        return TASK_DONE;
    bool sanitize = value_bool(item, "sanitize", false);
    suite->evaluate =
        (struct lane_request){.op = LANE_EVALUATE,
                              .id = file,
                              .name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file,
                              .source = buf_text(&suite->source),
                              .source_length = suite->source.length,
                              .effort = efforts[suite->tries],
                              .sanitize = sanitize};
    lane_submit(suite->lanes[suite->lane_count - 1], &suite->evaluate, &suite->task);
    task_move(&suite->task, EVALUATING);
    return TASK_WAIT;
}

/* In a build under a sanitizer a runner has the sanitizer's names, too. */
#if defined(__SANITIZE_ADDRESS__)
static const bool plain = false;
#else
static const bool plain = true;
#endif

/* Not asked for, or told only by a program that is not here. */
static bool is_left_out(struct suite *suite)
{
    const struct value *item = suite_case(suite);
    const char *file = shown_name(suite, item), *needs = value_text(item, "needs", "");
    if ((suite->only && !strstr(file, suite->only)) || (!plain && value_bool(item, "plain", false)))
        return true;
    const struct backend *backend = backends_find(suite->settings->search.backend);
    bool there = !*needs || (backend->tool && backend->tool(needs));
    if (!there)
        printf("skip %-34s %s is not installed\n", file, needs);
    return !there;
}

static enum task_result suite_next(struct suite *suite)
{
    while (suite->at < suite->cases->count && is_left_out(suite))
        suite->at++;
    if (suite->at == suite->cases->count) {
        if (suite->lane_count > 0)
            lane_close(suite->lanes[suite->lane_count - 1]);
        return TASK_DONE;
    }
    const char *problem = value_text(suite_case(suite), "problem", "");
    bool honest = is_honest(suite_case(suite));
    if (suite->problem && suite->honest == honest && strcmp(problem, suite->problem) == 0)
        return case_submit(suite);
    if (lane_for_case(suite, problem, honest))
        return TASK_DONE;
    task_move(&suite->task, OPENING);
    return TASK_WAIT;
}

static enum task_result suite_step(struct task *task)
{
    struct suite *suite = container_of(task, struct suite, task);
    switch (task->state) {
    case NEXT:
        return suite_next(suite);
    case OPENING:
        if (!suite->open.done)
            return TASK_WAIT;
        suite->err = suite->open.err;
        if (suite->err.code) {
            lane_close(suite->lanes[suite->lane_count - 1]);
            return TASK_DONE;
        }
        return case_submit(suite);
    default:
        if (!suite->evaluate.done)
            return TASK_WAIT;
        task_move(task, NEXT);
        if (case_goes_on(suite)) {
            arena_free(suite->evaluate.arena);
            suite->tries++;
            return TASK_AGAIN;
        }
        case_report(suite);
        suite->at++;
        suite->tries = 0;
        return TASK_AGAIN;
    }
}

static const struct task_type suite_type = {"adversarial", states, moves, STATES, suite_step, NULL};

static int suite_load(struct suite *suite, const char *of)
{
    char *name = arena_printf(suite->arena, "tests/adversarial/%s", of);
    mem_free(suite->folder);
    suite->folder = file_data_path(name);
    suite->at = 0;
    suite->problem = NULL;
    if (!suite->folder)
        return err_set(&suite->err, ERR_ENVIRONMENT, "the attacks (%s) are not installed", name);
    MEM_LOCAL char *path = file_join(suite->folder, "manifest.yaml");
    BUF_LOCAL(text, 1 << 20);
    int failed = file_read(path, &text, &suite->err) ||
                 value_parse_yaml(suite->arena, path, buf_text(&text), text.length, &suite->cases,
                                  &suite->err);
    if (!failed && suite->cases->kind != VALUE_LIST)
        failed = err_set(&suite->err, ERR_USAGE, "manifest.yaml: expected a list");
    if (!failed)
        group(suite->cases);
    return failed ? -1 : 0;
}

static void suite_run(struct suite *suite, const char *of, const char *prefix)
{
    suite->prefix = prefix;
    if (suite_load(suite, of) != 0)
        return;
    struct loop *loop = loop_new();
    task_start(loop, &suite->task, &suite_type, NULL, "adversarial");
    loop_run(loop);
    for (size_t i = 0; i < suite->lane_count; i++)
        lane_free(suite->lanes[i]);
    suite->lane_count = 0;
    loop_free(loop);
}

int adversarial_run(const struct settings *settings, const char *only)
{
    struct suite suite = {.settings = settings, .only = only, .arena = arena_new()};
    int code;
    buf_init(&suite.source, 1 << 20);
    display_tell_waits(stderr);
    suite_run(&suite, settings->search.backend, "");
    const struct target *target = backends_find(settings->search.backend)->target;
    for (size_t i = 1; target->languages[i] != NULL && suite.err.code == ERR_NONE; i++) {
        const char *name = target->languages[i]->name;
        MEM_LOCAL char *own =
            file_data_path(arena_printf(suite.arena, "tests/adversarial/%s", name));
        if (own)
            suite_run(&suite, name, arena_printf(suite.arena, "%s/", name));
    }
    if (suite.err.code) {
        code = command_fail(&suite.err);
    } else {
        printf("adversarial: %zu passed, %zu failed\n", suite.passed, suite.failed);
        code = suite.failed == 0 && suite.passed > 0 ? 0 : EXIT_NONE;
    }
    arena_free(suite.open.arena);
    mem_free(suite.folder);
    buf_free(&suite.source);
    arena_free(suite.arena);
    return code;
}
