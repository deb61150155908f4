/* eval/worker/build: from a request's text to shared objects, and to the verdicts that need none.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/worker/evaluate.h"

#include <stdio.h>
#include <string.h>

enum { DIAGNOSTICS_MOST = 1 << 14 };

static int refuse(struct evaluate *evaluate, enum stage stage, const char *reason,
                  const char *details)
{
    struct evaluation *evaluation = &evaluate->evaluation;
    evaluation->verdict = VERDICT_FAILED;
    evaluation->stage = stage;
    evaluation->reason = arena_strdup(evaluate->request.arena, reason);
    evaluation->details = arena_strdup(evaluate->request.arena, details);
    return -1;
}

/* --- reading --- */

static void empty_evaluation(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    evaluate->evaluation = (struct evaluation){
        .verdict = VERDICT_FAILED,
        .stage = STAGE_PARSE,
        .reason = "",
        .details = "",
        .baseline = "",
        .identity = "",
        .tune = "{}",
        .metrics = "{}",
        .device = worker->lane.device != NULL ? worker->lane.device : "{}",
        .versions = session_versions(worker->session),
        .baselines = "{}",
    };
}

static int check_language(const struct evaluate *evaluate, struct err *err)
{
    const struct backend *backend = evaluate->request.worker->options->backend;
    const struct language *language = evaluate->candidate->language;
    if (target_has(backend->target, language))
        return 0;
    return err_set(err, ERR_USAGE,
                   "a source in %s does not run on the backend %s: give --backend %s",
                   language->name, backend->target->name, language_target(language)->name);
}

static enum effort read_effort(const char *text)
{
    if (strcmp(text, "search") == 0)
        return EFFORT_SEARCH;
    return strcmp(text, "final") == 0 ? EFFORT_FINAL : EFFORT_FULL;
}

static int read_rival(struct evaluate *evaluate, const struct value *rival, struct err *err)
{
    struct worker *worker = evaluate->request.worker;
    const struct value *source = value_get(rival, "source");
    if (rival == NULL)
        return 0;
    if (source == NULL || source->kind != VALUE_TEXT)
        return err_set(err, ERR_USAGE, "no source of the rival in the request");
    if (candidate_parse(worker->problem, value_text(rival, "name", "candidate.c"), source->text,
                        source->length, &evaluate->rival, err) != 0 ||
        tune_given(evaluate->rival, value_get(rival, "tune"), &worker->problem->shapes[0],
                   &worker->lane.facts, &evaluate->rival_tune, err) != 0)
        return err_wrap(err, "the rival");
    evaluate->rival_spec = (struct rival_kernel){evaluate->rival, &evaluate->rival_tune};
    evaluate->measure.rival = &evaluate->rival_spec;
    return 0;
}

int evaluate_read(struct evaluate *evaluate)
{
    const struct value *document = evaluate->document;
    const struct value *source = value_get(document, "source");
    struct worker *worker = evaluate->request.worker;
    struct err err = {0};
    empty_evaluation(evaluate);
    if (source == NULL || source->kind != VALUE_TEXT)
        return refuse(evaluate, STAGE_PARSE, "no source in the request", "");
    if (candidate_parse(worker->problem, value_text(document, "name", "candidate.c"), source->text,
                        source->length, &evaluate->candidate, &err) != 0 ||
        check_language(evaluate, &err) != 0 ||
        tune_given(evaluate->candidate, value_get(document, "tune"), &worker->problem->shapes[0],
                   &worker->lane.facts, &evaluate->tune, &err) != 0)
        return refuse(evaluate, STAGE_PARSE, err.message, err.message);
    evaluate->identity = candidate_identity(evaluate->candidate, &evaluate->tune);
    evaluate->profile = value_bool(document, "profile", false);
    evaluate->cachegrind = value_bool(document, "cachegrind", false);
    evaluate->measure = (struct measure_request){
        .candidate = evaluate->candidate,
        .tune = &evaluate->tune,
        .effort = read_effort(value_text(document, "effort", "full")),
        .profile = evaluate->profile,
        .best_ns = value_real(document, "best_ns", 0.0),
        .within_ms = (uint64_t)value_int(document, "within_ms", 0),
    };
    if (read_rival(evaluate, value_get(document, "rival"), &err) != 0)
        return refuse(evaluate, STAGE_PARSE, err.message, err.message);
    evaluate->sanitize =
        value_bool(document, "sanitize", false) || evaluate->measure.effort == EFFORT_FINAL;
    evaluation_begin(&evaluate->evaluation, evaluate->candidate, &evaluate->tune,
                     evaluate->request.arena);
    evaluate->evaluation.device = worker->lane.device != NULL ? worker->lane.device : "{}";
    evaluate->evaluation.versions = session_versions(worker->session);
    return 0;
}

/* --- building --- */

int evaluate_start_build(struct evaluate *evaluate, enum build_flavour flavour)
{
    static const char *const names[] = {"fast", "sanitized", "remarks", "portable"};
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    struct arena *arena = evaluate->request.arena;
    if (evaluate->folder == NULL)
        evaluate->folder = arena_printf(arena, "%s/build-%u", worker->folder, worker->builds++);
    const char *folder = arena_printf(arena, "%s/%s", evaluate->folder, names[flavour]);
    evaluate->flavour = flavour;
    evaluate->started_ns = clock_now_ns();
    evaluate->build = (struct build){0};
    if (file_make_dirs(folder, &evaluate->err) != 0 ||
        worker->options->backend->build(arena, &worker->lane, worker->problem, evaluate->candidate,
                                        &evaluate->tune, NULL, flavour, folder, &evaluate->build,
                                        &evaluate->err) != 0)
        return -1;
    evaluate->process = process_start(task->loop, task, &evaluate->build.spec, &evaluate->err);
    return evaluate->process != NULL ? 0 : -1;
}

/* The driver itself, or one of its children, of which it tells: by somebody, not by the source. */
static bool was_killed(const struct process *process)
{
    static const char *const words[] = {"Killed signal terminated program",  /* gcc */
                                        "terminated with signal 9",          /* collect2, of ld */
                                        "unable to execute command: Killed", /* clang */
                                        "cuda-compile: the compiler was killed"};
    size_t length;
    uint64_t dropped;
    const char *errors = process_errors(process, &length, &dropped);
    /* Limits of ours make the driver exit, not die. One that hangs without using up its CPU time
     * has not had any. */
    if (process_outcome(process) == PROCESS_SIGNALED || process_outcome(process) == PROCESS_TIMEOUT)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (memmem(errors, length, words[i], strlen(words[i])) != NULL)
            return process_outcome(process) == PROCESS_EXITED;
    return false;
}

/* True where the compiler ended well; else `text` says what it wrote, for the author's eyes. */
static bool take_process(struct evaluate *evaluate, struct buf *how, struct buf *text)
{
    struct process *process = evaluate->process;
    const struct backend *backend = evaluate->request.worker->options->backend;
    size_t length;
    uint64_t dropped;
    bool fine = process_outcome(process) == PROCESS_EXITED && process_status(process) == 0;
    if (!fine) {
        process_describe(process, how);
        const char *errors = process_errors(process, &length, &dropped);
        backend->diagnostics(evaluate->candidate, errors, length, text);
    }
    process_free(process);
    evaluate->process = NULL;
    evaluate->tried |= 1U << evaluate->flavour;
    return fine;
}

bool evaluate_end_build(struct evaluate *evaluate)
{
    struct buf how, text;
    buf_init(&how, 200);
    buf_init(&text, DIAGNOSTICS_MOST);
    enum process_outcome outcome = process_outcome(evaluate->process);
    bool killed = was_killed(evaluate->process);
    bool fine = take_process(evaluate, &how, &text);
    evaluate->evaluation.stage_ms[STAGE_COMPILE] =
        (double)(clock_now_ns() - evaluate->started_ns) / 1e6;
    timeline_put("compile", evaluate->started_ns, clock_now_ns() - evaluate->started_ns);
    if (fine) {
        evaluate->measure.artifact = evaluate->build.artifact;
    } else {
        char reason[300];
        snprintf(reason, sizeof reason,
                 outcome == PROCESS_TIMEOUT  ? "the compiler was %s, long before its CPU time "
                                               "was used up: this machine is too busy"
                 : killed                    ? "the compiler was killed"
                 : outcome == PROCESS_EXITED ? "does not compile"
                                             : "does not compile: %s",
                 buf_text(&how));
        (void)refuse(evaluate, STAGE_COMPILE, reason, killed ? reason : buf_text(&text));
        evaluate->evaluation.ours = killed;
    }
    buf_free(&how);
    buf_free(&text);
    return fine;
}

/* --- builds that only a kernel needs --- */

/* A win is a claim: a race that happened to come out right must not make it. */
static bool is_sanitized(const struct evaluate *evaluate)
{
    return evaluate->sanitize || (evaluate->measure.effort == EFFORT_FULL &&
                                  evaluate->evaluation.finding == FINDING_FASTER);
}

bool evaluate_next_extra(const struct evaluate *evaluate, enum build_flavour *flavour)
{
    if (is_sanitized(evaluate) && (evaluate->tried >> BUILD_SANITIZED & 1) == 0)
        *flavour = BUILD_SANITIZED;
    else if (evaluate->profile && (evaluate->tried >> BUILD_REMARKS & 1) == 0)
        *flavour = BUILD_REMARKS;
    else if (evaluate->cachegrind && (evaluate->tried >> BUILD_PORTABLE & 1) == 0)
        *flavour = BUILD_PORTABLE;
    else
        return false;
    return true;
}

void evaluate_end_extra(struct evaluate *evaluate)
{
    struct buf how, text;
    buf_init(&how, 200);
    buf_init(&text, DIAGNOSTICS_MOST);
    bool fine = take_process(evaluate, &how, &text);
    if (fine && evaluate->flavour == BUILD_SANITIZED)
        evaluate->measure.sanitized = evaluate->build.artifact;
    if (fine && evaluate->flavour == BUILD_REMARKS)
        evaluate->measure.remarks_log = evaluate->build.log;
    if (fine && evaluate->flavour == BUILD_PORTABLE)
        evaluate->measure.portable = evaluate->build.artifact;
    buf_free(&how);
    buf_free(&text);
}

void evaluate_remove_builds(struct evaluate *evaluate)
{
    struct err ignored;
    if (evaluate->folder != NULL && file_exists(evaluate->folder) &&
        file_remove_tree(evaluate->folder, &ignored) != 0)
        log_event(LOG_WARN, "worker.folder", evaluate->request.id, "%s", ignored.message);
}
