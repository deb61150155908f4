/* eval/worker/evaluate: one candidate's way through the worker.
 *
 *   queued -> ahead -> compiling -> waiting -> checking -> timing -> extras -> finishing -> ended
 *               ^                      |  ^
 *               |                   looking
 *               |                      v
 *               ------------------- parked
 *
 * Answered from memory, does not parse, does not compile, is dropped: straight to ended.
 *
 * One point of many is compiled for the main shape first and looked at (look.c); what is worth more
 * goes on from parked: it is compiled once more, for all shapes, and checked and timed as any
 * other.
 *
 * checking, timing and finishing are one work item each on the pool. The grant of cores changes
 * between them: one while it checks, so that the next candidates' compilers have the others; all of
 * them while the host's clock times it, so that nothing of ours runs beside it. A device's own
 * clock does not mind compilers, which leave it a core for each end of a call. extras are the
 * builds that only a kernel needs: sanitized, and with the compiler's remarks. */
#include "eval/worker/evaluate.h"

#include "base/mem.h"
#include "eval/backend/ceilings.h"

#include <string.h>

static const char *const states[EVALUATE_STATES] = {
    [QUEUED] = "queued",       [AHEAD] = "ahead",     [COMPILING] = "compiling",
    [WAITING] = "waiting",     [LOOKING] = "looking", [PARKED] = "parked",
    [CHECKING] = "checking",   [TIMING] = "timing",   [EXTRAS] = "extras",
    [FINISHING] = "finishing", [ENDED] = "ended"};

static const uint32_t moves[EVALUATE_STATES] = {
    [QUEUED] = 1U << AHEAD | 1U << ENDED,
    [AHEAD] = 1U << COMPILING | 1U << PARKED | 1U << ENDED,
    [COMPILING] = 1U << WAITING | 1U << ENDED,
    [WAITING] = 1U << CHECKING | 1U << LOOKING | 1U << PARKED | 1U << ENDED,
    [LOOKING] = 1U << PARKED | 1U << ENDED,
    [PARKED] = 1U << AHEAD | 1U << WAITING | 1U << ENDED,
    [CHECKING] = 1U << TIMING | 1U << FINISHING,
    [TIMING] = 1U << EXTRAS | 1U << FINISHING,
    [EXTRAS] = 1U << FINISHING,
    [FINISHING] = 1U << ENDED};

/* --- ends --- */

static enum task_result end(struct evaluate *evaluate)
{
    slots_release(&evaluate->core_slot);
    slots_release(&evaluate->compiler_slot);
    slots_release(&evaluate->measure_slot);
    slots_release(&evaluate->ahead_slot);
    slots_release(&evaluate->session_slot);
    candidate_free(evaluate->candidate);
    candidate_free(evaluate->rival);
    evaluate_remove_builds(evaluate);
    turn_end(&evaluate->turn);
    evaluate_unpark(evaluate);
    evaluate->look_ns = 0.0; /* nobody waits for it any more */
    evaluate_unpark_all(evaluate->request.worker);
    task_move(&evaluate->request.task, ENDED);
    return TASK_DONE;
}

static enum task_result fail(struct evaluate *evaluate)
{
    answer_error(evaluate->request.id, &evaluate->err);
    return end(evaluate);
}

/* Whoever asked for several at once does not know yet how fast the first of them are. */
static void remember_best(const struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    const struct evaluation *evaluation = &evaluate->evaluation;
    double ns = evaluation->time_ns.median;
    if (evaluate->of_run && evaluation->verdict == VERDICT_KERNEL && !evaluation->dropped &&
        (worker->best_ns <= 0.0 || ns < worker->best_ns)) {
        worker->best_ns = ns;
        worker->best_look_ns = evaluation->look_ns;
    }
}

static void know_best(struct evaluate *evaluate)
{
    if (evaluate->of_run)
        evaluate->measure.best_ns = evaluate_best(evaluate);
}

static enum task_result evaluate_answer(struct evaluate *evaluate)
{
    const struct worker *worker = evaluate->request.worker;
    evaluate->evaluation.unfit = worker->unfit != NULL ? worker->unfit : "";
    evaluate->evaluation.unconfined =
        worker->lane.unconfined != NULL ? worker->lane.unconfined : "";
    double least_ms, final_ms = session_final_ms(worker->session, &least_ms);
    answer_evaluation(evaluate->request.id, &evaluate->evaluation, final_ms, least_ms);
    remember_best(evaluate);
    if (evaluate->measure.candidate != NULL && evaluate->rival == NULL) /* it has an identity */
        memory_keep(evaluate->request.worker, evaluate->identity, evaluate->measure.effort,
                    &evaluate->evaluation);
    return end(evaluate);
}

static enum task_result cancelled(struct evaluate *evaluate)
{
    err_set(&evaluate->err, ERR_CANCELLED, "cancelled");
    return fail(evaluate);
}

/* --- the steps --- */

static bool answer_from_memory(struct evaluate *evaluate)
{
    const char *known =
        memory_find(evaluate->request.worker, evaluate->identity, evaluate->measure.effort);
    struct json json;
    struct buf line;
    if (known == NULL || evaluate->cachegrind || evaluate->rival != NULL) /* not asked for then */
        return false;
    worker_answer_begin(&json, &line, evaluate->request.id, "result");
    json_put_raw(&json, "evaluation", known);
    json_put_bool(&json, "remembered", true);
    worker_answer_send(&json, &line);
    return true;
}

static enum task_result step_queued(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (!slot_hold(&evaluate->session_slot, &worker->sessions, task, 1))
        return TASK_WAIT;
    if (worker->session == NULL) {
        err_set(&evaluate->err, ERR_USAGE, "no problem is open");
        return fail(evaluate);
    }
    if (evaluate_read(evaluate) != 0)
        return evaluate_answer(evaluate);
    if (answer_from_memory(evaluate))
        return end(evaluate);
    task_move(task, AHEAD);
    return TASK_AGAIN;
}

static bool hold_compiler(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    return worker->options->backend->device
               ? build_hold(&evaluate->build, &evaluate->compiler_slot, &worker->compilers, task)
               : slot_hold(&evaluate->core_slot, &worker->cores, task, 1);
}

static enum task_result step_ahead(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    enum build_flavour flavour = evaluate->narrow ? BUILD_MAIN : BUILD_FAST;
    if (evaluate->parked)
        return TASK_WAIT;
    if (evaluate->build.artifact == NULL &&
        ahead_compiles(worker, evaluate->identity, flavour)) { /* its cubins will be there */
        evaluate_park(evaluate);
        return TASK_WAIT;
    }
    if (!slot_hold(&evaluate->ahead_slot, &worker->ahead, task, 1))
        return TASK_WAIT;
    if (evaluate->build.artifact == NULL && evaluate_prepare_build(evaluate, flavour) != 0)
        return fail(evaluate);
    if (!hold_compiler(evaluate))
        return TASK_WAIT;
    if (evaluate_steps_back(evaluate))
        return TASK_AGAIN;
    answer_stage(evaluate->request.id, STAGE_COMPILE);
    task_move(task, COMPILING);
    if (evaluate_start_build(evaluate) != 0)
        return fail(evaluate);
    return TASK_WAIT;
}

static enum task_result step_compiling(struct evaluate *evaluate)
{
    bool compiled;
    if (process_outcome(evaluate->process) == PROCESS_RUNNING)
        return TASK_WAIT;
    compiled = evaluate_end_build(evaluate);
    slots_release(&evaluate->core_slot);
    slots_release(&evaluate->compiler_slot);
    if (evaluate->request.task.cancel_requested)
        return cancelled(evaluate);
    if (!compiled || evaluate_stops(evaluate, STAGE_COMPILE))
        return evaluate_answer(evaluate);
    task_move(&evaluate->request.task, WAITING);
    return TASK_AGAIN;
}

static void run_check(void *argument)
{
    struct evaluate *evaluate = (struct evaluate *)argument;
    evaluate->status =
        session_check(evaluate->request.worker->session, &evaluate->measure,
                      evaluate->request.arena, &evaluate->evaluation, &evaluate->err);
}

/* A last measurement has the device for ten seconds, a look for 30 ms. */
static uint64_t breathe(void *argument)
{
    struct evaluate *evaluate = (struct evaluate *)argument;
    return turn_breathe(evaluate->request.worker, &evaluate->turn);
}

static void run_time(void *argument)
{
    struct evaluate *evaluate = (struct evaluate *)argument;
    struct worker *worker = evaluate->request.worker;
    evaluate->status = ceilings_measure(worker, &evaluate->err);
    if (worker->lane.device != NULL)
        evaluate->evaluation.device = worker->lane.device;
    if (evaluate->status == 0)
        evaluate->status = session_time(worker->session, &evaluate->err);
}

static void run_finish(void *argument)
{
    struct evaluate *evaluate = (struct evaluate *)argument;
    struct err err = {0};
    struct worker *worker = evaluate->request.worker;
    int status = session_finish(worker->session, &err);
    if (evaluate->status != 0)
        return; /* the first error is the one that tells */
    evaluate->status = status;
    evaluate->err = err;
    evaluate->evaluation.stage_ms[STAGE_CHECK] += evaluate->looked.stage_ms[STAGE_CHECK];
    evaluate->evaluation.look_ns = evaluate->look_ns;
    const struct evaluation *evaluation = &evaluate->evaluation;
    if (evaluation->verdict == VERDICT_KERNEL &&
        lane_beaten(&worker->lane, worker->problem, evaluation->time_ns.median))
        ceilings_doubt(&worker->lane);
}

static enum task_result step_waiting(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (!slot_hold(&evaluate->measure_slot, &worker->measure, task, 1) ||
        !slot_hold(&evaluate->core_slot, &worker->cores, task,
                   evaluate->late ? evaluate_look_cores(worker) : 1))
        return TASK_WAIT;
    if (evaluate_steps_back(evaluate))
        return TASK_AGAIN;
    if (!evaluate->late && !turn_share(worker, &evaluate->turn, task, evaluate->request.id))
        return TASK_WAIT;
    slots_release(&evaluate->ahead_slot);
    evaluate->measure.alone = worker->sessions.used == 1;
    evaluate->measure.breathe = breathe;
    evaluate->measure.breather = evaluate;
    if (answer_from_memory(evaluate)) /* its twin was in flight when this one came */
        return end(evaluate);
    if (evaluate->late) {
        task_move(task, LOOKING);
        return TASK_AGAIN;
    }
    know_best(evaluate);
    answer_stage(evaluate->request.id, STAGE_CHECK);
    task_move(task, CHECKING);
    session_uncancel(worker->session); /* that was another one's */
    work_start(task->loop, &evaluate->work, task, run_check, evaluate);
    return TASK_WAIT;
}

/* No verdict yet, and worth the extra builds. */
static bool is_passing(const struct evaluate *evaluate)
{
    return evaluate->status == 0 && evaluate->evaluation.reason[0] == '\0';
}

/* Timed, if only to end what is far behind: in its turn. */
static enum task_result step_looking(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (evaluate->work.active)
        return TASK_WAIT;
    if (!evaluate->work.done && task->cancel_requested)
        return cancelled(evaluate);
    if (!evaluate->work.done) {
        if (!turn_take(worker, &evaluate->turn, task, evaluate->request.id))
            return TASK_WAIT;
        answer_stage(evaluate->request.id, STAGE_CHECK);
        evaluate->to_beat_ns = evaluate_to_beat(evaluate);
        session_uncancel(worker->session);
        work_start(task->loop, &evaluate->work, task, evaluate_run_look, evaluate);
        return TASK_WAIT;
    }
    evaluate->work.done = false;
    turn_end(&evaluate->turn);
    slots_release(&evaluate->core_slot);
    slots_release(&evaluate->measure_slot);
    if (task->cancel_requested)
        return cancelled(evaluate);
    if (evaluate->status != 0)
        return fail(evaluate);
    if (!is_passing(evaluate))
        return evaluate_answer(evaluate);
    evaluate->look_ns = evaluate->seen_ns;
    answer_stage(evaluate->request.id, STAGE_COMPILE);
    task_move(task, PARKED);
    evaluate_unpark_all(worker); /* who waits for looks */
    return TASK_AGAIN;
}

static enum task_result step_parked(struct evaluate *evaluate)
{
    struct task *task = &evaluate->request.task;
    if (evaluate->parked)
        return TASK_WAIT;
    if (evaluate_is_behind(evaluate)) {
        evaluate_drop(evaluate);
        return evaluate_answer(evaluate);
    }
    if (evaluate_waits(evaluate)) {
        evaluate_park(evaluate);
        return TASK_WAIT;
    }
    if (evaluate->late || evaluate->measure.artifact == NULL)
        evaluate_begin_whole(evaluate);
    task_move(task, evaluate->measure.artifact != NULL ? WAITING : AHEAD);
    return TASK_AGAIN;
}

static enum task_result step_checking(struct evaluate *evaluate)
{
    struct task *task = &evaluate->request.task;
    if (evaluate->work.active)
        return TASK_WAIT;
    turn_end(&evaluate->turn);
    slots_release(&evaluate->core_slot);
    bool ends = evaluate_stops(evaluate, STAGE_CHECK) || !is_passing(evaluate);
    task_move(task, ends || task->cancel_requested ? FINISHING : TIMING);
    evaluate->work.done = false;
    return TASK_AGAIN;
}

/* Those of a final measurement are the host's, too: baselines on the CPU. */
static bool is_by_device(const struct evaluate *evaluate)
{
    const struct worker *worker = evaluate->request.worker;
    return evaluate->measure.effort != EFFORT_FINAL && !worker->owes_ceilings &&
           worker->cores.capacity > DEVICE_CORES && session_by_device(worker->session);
}

static bool hold_cores_to_time(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (is_by_device(evaluate))
        return slot_hold(&evaluate->core_slot, &worker->cores, task, DEVICE_CORES);
    return slot_hold(&evaluate->core_slot, &worker->cores, task, worker->cores.capacity) &&
           slot_hold(&evaluate->compiler_slot, &worker->compilers, task,
                     worker->compilers.capacity);
}

static enum task_result step_timing(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (evaluate->work.active)
        return TASK_WAIT;
    if (evaluate->work.done) {
        turn_end(&evaluate->turn);
        slots_release(&evaluate->core_slot);
        slots_release(&evaluate->compiler_slot);
        evaluate->work.done = false;
        bool extras = is_passing(evaluate) && !task->cancel_requested;
        task_move(task, extras ? EXTRAS : FINISHING);
        return TASK_AGAIN;
    }
    if (task->cancel_requested) { /* nothing has begun */
        turn_end(&evaluate->turn);
        slots_release(&evaluate->core_slot);
        slots_release(&evaluate->compiler_slot);
        task_move(task, FINISHING);
        return TASK_AGAIN;
    }
    evaluate->turn.final = evaluate->measure.effort == EFFORT_FINAL;
    if (!hold_cores_to_time(evaluate) ||
        !turn_take(worker, &evaluate->turn, task, evaluate->request.id))
        return TASK_WAIT;
    answer_stage(evaluate->request.id, STAGE_TIME);
    work_start(task->loop, &evaluate->work, task, run_time, evaluate);
    return TASK_WAIT;
}

/* One build after the other; one that fails costs its part of the record, not the verdict. */
static enum task_result step_extras(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (evaluate->process != NULL) {
        if (process_outcome(evaluate->process) == PROCESS_RUNNING)
            return TASK_WAIT;
        evaluate_end_extra(evaluate);
        slots_release(&evaluate->core_slot);
    }
    enum build_flavour flavour;
    if (task->cancel_requested || !evaluate_next_extra(evaluate, &flavour)) {
        task_move(task, FINISHING);
        return TASK_AGAIN;
    }
    if (!slot_hold(&evaluate->core_slot, &worker->cores, task, 1))
        return TASK_WAIT;
    if (evaluate_prepare_build(evaluate, flavour) != 0 || evaluate_start_build(evaluate) != 0)
        evaluate->tried |= 1U << flavour;
    return evaluate->process != NULL ? TASK_WAIT : TASK_AGAIN;
}

/* The session must be let go whatever has happened. */
static enum task_result step_finishing(struct evaluate *evaluate)
{
    struct worker *worker = evaluate->request.worker;
    struct task *task = &evaluate->request.task;
    if (evaluate->work.active)
        return TASK_WAIT;
    if (evaluate->work.done) {
        if (task->cancel_requested)
            return cancelled(evaluate);
        return evaluate->status == 0 ? evaluate_answer(evaluate) : fail(evaluate);
    }
    if (!slot_hold(&evaluate->core_slot, &worker->cores, task, 1))
        return TASK_WAIT;
    if (is_passing(evaluate) && !task->cancel_requested &&
        !turn_share(worker, &evaluate->turn, task, evaluate->request.id))
        return TASK_WAIT;
    if (is_passing(evaluate))
        answer_stage(evaluate->request.id,
                     evaluate->measure.sanitized != NULL ? STAGE_SANITIZE : STAGE_PROFILE);
    work_start(task->loop, &evaluate->work, task, run_finish, evaluate);
    return TASK_WAIT;
}

/* Cancelled: what runs is told to end, and its end is waited for as always. */
static bool cancel_here(struct evaluate *evaluate)
{
    struct task *task = &evaluate->request.task;
    if (task->state <= AHEAD || task->state == WAITING || task->state == PARKED)
        return true;
    if (evaluate->process != NULL && process_outcome(evaluate->process) == PROCESS_RUNNING)
        process_stop(evaluate->process);
    if (evaluate->work.active)
        session_cancel(evaluate->request.worker->session);
    return false;
}

static enum task_result step(struct task *task)
{
    struct evaluate *evaluate = (struct evaluate *)task;
    if (task->cancel_requested && cancel_here(evaluate))
        return cancelled(evaluate);
    switch ((enum evaluate_state)task->state) {
    case QUEUED:
        return step_queued(evaluate);
    case AHEAD:
        return step_ahead(evaluate);
    case COMPILING:
        return step_compiling(evaluate);
    case WAITING:
        return step_waiting(evaluate);
    case LOOKING:
        return step_looking(evaluate);
    case PARKED:
        return step_parked(evaluate);
    case CHECKING:
        return step_checking(evaluate);
    case TIMING:
        return step_timing(evaluate);
    case EXTRAS:
        return step_extras(evaluate);
    case FINISHING:
        return step_finishing(evaluate);
    case ENDED:
    case EVALUATE_STATES:
        break;
    }
    return TASK_DONE;
}

const struct task_type evaluate_type = {.name = "evaluate",
                                        .states = states,
                                        .moves = moves,
                                        .state_count = EVALUATE_STATES,
                                        .step = step};

void evaluate_start(struct worker *worker, struct arena *arena, const struct value *document)
{
    struct evaluate *evaluate = MEM_NEW(struct evaluate);
    evaluate->request.arena = arena;
    evaluate->document = document;
    request_begin(worker, &evaluate->request, &evaluate_type, value_text(document, "id", ""));
}
