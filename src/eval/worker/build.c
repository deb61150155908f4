/* eval/worker/build: from a request's text to shared objects, and to the verdicts that need none.
 */
#include "eval/backend/build.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "eval/data/timeline.h"
#include "eval/worker/evaluate.h"

#include <stdio.h>
#include <string.h>

enum { DIAGNOSTICS_MOST = 1 << 14 };

static int refuse(struct evaluate *evaluate, enum stage stage, const char *reason,
                  const char *details)
{
    return evaluation_refuse(&evaluate->evaluation, evaluate->request.arena, stage, reason,
                             details);
}

/* --- reading --- */

/* A source, at a point of its tune space: the candidate's, or the rival's. */
static int read_source(const struct worker *worker, const struct value *document,
                       struct candidate **candidate, struct names *tune, struct err *err)
{
    const struct value *source = value_get(document, "source");
    if (source == NULL || source->kind != VALUE_TEXT)
        return err_set(err, ERR_USAGE, "no source in the request");
    return candidate_parse_for(worker->options->backend->target, worker->problem,
                               value_text(document, "name", "candidate.c"), source->text,
                               source->length, value_get(document, "tune"), &worker->lane.facts,
                               candidate, tune, err);
}

static int read_rival(struct evaluate *evaluate, const struct value *rival, struct err *err)
{
    if (rival == NULL)
        return 0;
    if (read_source(evaluate->request.worker, rival, &evaluate->rival, &evaluate->rival_tune,
                    err) != 0)
        return err_wrap(err, "the rival");
    evaluate->rival_spec = (struct rival_kernel){evaluate->rival, &evaluate->rival_tune};
    evaluate->measure.rival = &evaluate->rival_spec;
    return 0;
}

/* Nothing that is for timed kernels alone begins. */
static void read_until(struct evaluate *evaluate)
{
    const char *until = value_text(evaluate->document, "until", "");
    evaluate->until = strcmp(until, "compile") == 0 ? STAGE_COMPILE
                      : strcmp(until, "check") == 0 ? STAGE_CHECK
                                                    : STAGES;
    if (evaluate->until != STAGES)
        evaluate->measure.profile = evaluate->measure.sanitizes = evaluate->sanitize = false;
}

bool evaluate_stops(struct evaluate *evaluate, enum stage stage)
{
    static const char *const reasons[STAGES] = {
        [STAGE_COMPILE] = "compiles; not checked, as asked",
        [STAGE_CHECK] = "passed every check before the timing; not timed, as asked"};
    if (evaluate->until != stage || evaluate->evaluation.reason[0] != '\0')
        return false;
    evaluate->evaluation.verdict = VERDICT_DROPPED;
    evaluate->evaluation.dropped = true; /* nobody is told it later in place of a whole one */
    evaluate->evaluation.stage = stage;
    evaluate->evaluation.reason = reasons[stage];
    return true;
}

int evaluate_read(struct evaluate *evaluate)
{
    const struct value *document = evaluate->document;
    struct worker *worker = evaluate->request.worker;
    struct evaluation *evaluation = &evaluate->evaluation;
    const struct backend *backend = worker->options->backend;
    const char *device = worker->lane.device != NULL ? worker->lane.device : "{}";
    struct err err = {0};
    *evaluation = evaluation_empty();
    evaluation->device = device;
    evaluation->versions = session_versions(worker->session);
    if (read_source(worker, document, &evaluate->candidate, &evaluate->tune, &err) != 0)
        return refuse(evaluate, STAGE_PARSE, err.message, err.message);
    evaluate->identity = candidate_identity(evaluate->candidate, &evaluate->tune);
    evaluate->cachegrind = value_bool(document, "cachegrind", false);
    evaluate->of_run = value_bool(document, "of_run", false);
    evaluate->measure = (struct measure_request){
        .candidate = evaluate->candidate,
        .tune = &evaluate->tune,
        .effort = effort_find(value_text(document, "effort", "full")),
        .best_ns = value_real(document, "best_ns", 0.0),
        .within_ms = (uint64_t)value_int(document, "within_ms", 0),
    };
    evaluate->behind = value_real(document, "late", 0.0);
    evaluate->late = evaluate->of_run && evaluate->behind > 0.0 &&
                     evaluate->measure.effort == EFFORT_SEARCH && backend->narrows != NULL;
    /* One of many: what a profile says comes with the last measurement of the best. */
    evaluate->profile = value_bool(document, "profile", false) && !evaluate->late;
    evaluate->measure.profile = evaluate->profile;
    evaluate->narrow = evaluate->late && backend->narrows(evaluate->candidate);
    if (read_rival(evaluate, value_get(document, "rival"), &err) != 0)
        return refuse(evaluate, STAGE_PARSE, err.message, err.message);
    evaluate->sanitize =
        value_bool(document, "sanitize", false) || evaluate->measure.effort == EFFORT_FINAL;
    evaluate->measure.sanitizes = evaluate->sanitize || evaluate->measure.effort == EFFORT_FULL;
    read_until(evaluate);
    evaluation_begin(evaluation, evaluate->candidate, &evaluate->tune, evaluate->request.arena);
    evaluation->device = device;
    evaluation->versions = session_versions(worker->session);
    return 0;
}

/* --- building --- */

bool build_hold(const struct build *build, struct slot *slot, struct slots *compilers,
                struct task *task)
{
    unsigned width = build->width < 1 ? 1 : build->width;
    return slot_hold(slot, compilers, task,
                     width > compilers->capacity ? compilers->capacity : width);
}

int evaluate_prepare_build(struct evaluate *evaluate, enum build_flavour flavour)
{
    static const char *const names[] = {"fast", "sanitized", "remarks", "portable", "main"};
    struct worker *worker = evaluate->request.worker;
    struct arena *arena = evaluate->request.arena;
    if (evaluate->folder == NULL)
        evaluate->folder = arena_printf(arena, "%s/build-%u", worker->folder, worker->builds++);
    const char *folder = arena_printf(arena, "%s/%s", evaluate->folder, names[flavour]);
    evaluate->flavour = flavour;
    evaluate->build = (struct build){0};
    return file_make_dirs(folder, &evaluate->err) != 0 ||
                   worker->options->backend->build(
                       arena, &worker->lane, worker->problem, evaluate->candidate, &evaluate->tune,
                       NULL, flavour, folder, &evaluate->build, &evaluate->err) != 0
               ? -1
               : 0;
}

int evaluate_start_build(struct evaluate *evaluate)
{
    struct task *task = &evaluate->request.task;
    evaluate->started_ns = clock_now_ns();
    evaluate->process = process_start(task->loop, task, &evaluate->build.spec, &evaluate->err);
    return evaluate->process != NULL ? 0 : -1;
}

/* By somebody, not by the source. */
static bool was_killed(const struct process *process)
{
    size_t length;
    uint64_t dropped;
    const char *errors = process_errors(process, &length, &dropped);
    /* Limits of ours make the driver exit, not die. One that hangs without using up its CPU time
     * has not had any. */
    if (process_outcome(process) == PROCESS_SIGNALED || process_outcome(process) == PROCESS_TIMEOUT)
        return true;
    return process_outcome(process) == PROCESS_EXITED && build_child_killed(errors, length);
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
    BUF_LOCAL(how, 200);
    BUF_LOCAL(text, DIAGNOSTICS_MOST);
    enum process_outcome outcome = process_outcome(evaluate->process);
    bool killed = was_killed(evaluate->process);
    bool fine = take_process(evaluate, &how, &text);
    evaluate->evaluation.stage_ms[STAGE_COMPILE] +=
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
    BUF_LOCAL(how, 200);
    BUF_LOCAL(text, DIAGNOSTICS_MOST);
    bool fine = take_process(evaluate, &how, &text);
    if (fine && evaluate->flavour == BUILD_SANITIZED)
        evaluate->measure.sanitized = evaluate->build.artifact;
    if (fine && evaluate->flavour == BUILD_REMARKS)
        evaluate->measure.remarks_log = evaluate->build.log;
    if (fine && evaluate->flavour == BUILD_PORTABLE)
        evaluate->measure.portable = evaluate->build.artifact;
}

void evaluate_remove_builds(struct evaluate *evaluate)
{
    struct err ignored;
    if (evaluate->folder != NULL && file_exists(evaluate->folder) &&
        file_remove_tree(evaluate->folder, &ignored) != 0)
        log_event(LOG_WARN, "worker.folder", evaluate->request.id, "%s", ignored.message);
}
