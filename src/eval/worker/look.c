/* eval/worker/look: one point of many is looked at first, at the main shape; where that takes less
 * it is compiled for that one alone, with one core. What is behind a kernel of the run ends there.
 * What is behind another one that was looked at waits for that one's verdict: whatever looks
 * fastest goes first, and is a kernel or nothing only by the checks that every kernel passes. */
#include "eval/worker/evaluate.h"

void evaluate_run_look(void *argument)
{
    struct evaluate *evaluate = (struct evaluate *)argument;
    struct session *session = evaluate->request.worker->session;
    struct measure_request request = evaluate->measure;
    struct err err = {0};
    request.best_ns = evaluate->to_beat_ns;
    request.behind = evaluate->behind;
    request.profile = request.sanitizes = false;
    evaluate->status = session_look(session, &request, evaluate->request.arena,
                                    &evaluate->evaluation, &evaluate->seen_ns, &evaluate->err);
    int status = session_finish(session, &err);
    if (evaluate->status == 0 && status != 0) {
        evaluate->status = status;
        evaluate->err = err;
    }
    evaluate->looked = evaluate->evaluation;
}

/* NULL: another kind of request. One that has ended has no look_ns any more. */
static struct evaluate *evaluate_of(struct request *request)
{
    return request->task.type == &evaluate_type ? container_of(request, struct evaluate, request)
                                                : NULL;
}

double evaluate_best(const struct evaluate *evaluate)
{
    double best = evaluate->measure.best_ns, known = evaluate->request.worker->best_ns;
    return known > 0.0 && (best <= 0.0 || known < best) ? known : best;
}

/* A runner's first calls may take longer than its later ones: a look is held against that of the
 * best, where it had one; where it looked faster than it is, against what it is. */
static double best_look(const struct evaluate *evaluate)
{
    const struct worker *worker = evaluate->request.worker;
    double best = evaluate_best(evaluate);
    bool looked = worker->best_look_ns > best && worker->best_ns <= best;
    return looked ? worker->best_look_ns : best;
}

double evaluate_to_beat(const struct evaluate *evaluate)
{
    double best = best_look(evaluate);
    list_each (link, &evaluate->request.worker->requests) {
        const struct evaluate *other = evaluate_of(container_of(link, struct request, link));
        if (other != NULL && other->look_ns > 0.0 && (best <= 0.0 || other->look_ns < best))
            best = other->look_ns;
    }
    return best;
}

bool evaluate_is_behind(const struct evaluate *evaluate)
{
    return session_look_behind(evaluate->look_ns, best_look(evaluate), evaluate->behind);
}

bool evaluate_waits(const struct evaluate *evaluate)
{
    bool ready = !evaluate->late && evaluate->measure.artifact != NULL;
    list_each (link, &evaluate->request.worker->requests) {
        const struct evaluate *other = evaluate_of(container_of(link, struct request, link));
        if (other != NULL &&
            session_look_behind(evaluate->look_ns, other->look_ns, evaluate->behind))
            return true;
        if (ready && other != NULL && other->late && other->request.task.state == WAITING)
            return true; /* a look takes a hundredth of what this one is about to */
    }
    return false;
}

/* Another one has shown meanwhile that it looks far faster: what this one wants of the machine is
 * that one's first. */
bool evaluate_steps_back(struct evaluate *evaluate)
{
    if (evaluate->late || !(evaluate->look_ns > 0.0) ||
        !(evaluate_is_behind(evaluate) || evaluate_waits(evaluate)))
        return false;
    slots_release(&evaluate->core_slot);
    slots_release(&evaluate->compiler_slot);
    slots_release(&evaluate->measure_slot);
    slots_release(&evaluate->ahead_slot);
    turn_end(&evaluate->turn);
    task_move(&evaluate->request.task, PARKED);
    return true;
}

void evaluate_drop(struct evaluate *evaluate)
{
    double compile_ms = evaluate->evaluation.stage_ms[STAGE_COMPILE];
    evaluate->evaluation = evaluate->looked;
    evaluate->evaluation.stage_ms[STAGE_COMPILE] = compile_ms;
    evaluation_drop(&evaluate->evaluation, evaluate->request.arena, evaluate->look_ns,
                    best_look(evaluate));
}

/* Nothing of the look stays but what it took. */
void evaluate_begin_whole(struct evaluate *evaluate)
{
    struct evaluation *evaluation = &evaluate->evaluation;
    const struct evaluation *looked = &evaluate->looked;
    double compile_ms = evaluation->stage_ms[STAGE_COMPILE];
    evaluation_begin(evaluation, evaluate->candidate, &evaluate->tune, evaluate->request.arena);
    evaluation->device = looked->device;
    evaluation->versions = looked->versions;
    evaluation->stage_ms[STAGE_COMPILE] = compile_ms;
    if (evaluate->narrow) {
        evaluate->build = (struct build){0};
        evaluate->measure.artifact = NULL;
    }
    evaluate->late = evaluate->narrow = false;
}

/* Of the timing of a device's call. */
unsigned evaluate_look_cores(const struct worker *worker)
{
    unsigned cores = worker->cores.capacity;
    return cores > DEVICE_CORES ? DEVICE_CORES : cores;
}

/* A task that waits for nothing is a mistake: it waits for the others. */
void evaluate_park(struct evaluate *evaluate)
{
    evaluate->parked = true;
    task_expect(&evaluate->request.task);
}

void evaluate_unpark(struct evaluate *evaluate)
{
    if (evaluate->parked)
        task_complete(&evaluate->request.task);
    evaluate->parked = false;
}

void evaluate_unpark_all(struct worker *worker)
{
    list_each (link, &worker->requests) {
        struct evaluate *evaluate = evaluate_of(container_of(link, struct request, link));
        if (evaluate != NULL)
            evaluate_unpark(evaluate);
    }
}
