/* queue/places: lanes, each with a worker for every problem that was asked for last, one of them at
 * work: while it times, nothing else of ours runs on its cores. Behind a launcher a lane has one
 * worker, which opens one problem after the other: each may hold a node for itself. A worker is
 * given two sources, so that the next is compiled while one is checked. Another problem has its
 * turn when there is nothing more of this one, or after TURN_MS.
 *
 * A source is given to a worker that has its problem open, never to one that may still wait for a
 * node; where a worker dies its sources wait again, for the first lane that is free. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "queue/private.h"

#include <stdio.h>
#include <string.h>

enum { REST_MS = 2000, REST_DOUBLED_MOST = 5 };

static bool is_elsewhere(const struct queue *queue)
{
    return queue->options->spec.launcher != NULL;
}

void places_for(struct queue *queue, const char *backend)
{
    struct lane_share shares[LANES_MAX] = {{.cores = NULL}};
    for (size_t i = 0; i < queue->place_count; i++)
        if (strcmp(queue->places[i].backend, backend) == 0)
            return;
    size_t count = queue->options->shares(queue->options->context, backend, shares);
    for (size_t i = 0; i < count && queue->place_count < QUEUE_PLACES; i++)
        queue->places[queue->place_count++] =
            (struct place){.backend = backend, .share = shares[i]};
}

double place_busy_ms(const struct place *place)
{
    double busy = place->gone_busy_ms;
    for (size_t i = 0; i < LANES_OPEN; i++)
        busy += place->lanes[i].lane ? lane_busy_ms(place->lanes[i].lane) : 0;
    return busy;
}

const char *place_state(const struct place *place)
{
    if (*place->why)
        return "fails";
    return !place->now ? "idle" : place->now->open.done ? "open" : "opens";
}

const char *place_host(const struct place *place)
{
    return place->now ? lane_host(place->now->lane) : "";
}

/* ---- workers ---- */

static void forget(struct place *place, struct place_lane *lane)
{
    place->gone_busy_ms += lane_busy_ms(lane->lane);
    lane_free(lane->lane);
    arena_free(lane->open.arena);
    mem_free(lane->problem);
    if (place->now == lane)
        place->now = NULL;
    *lane = (struct place_lane){.lane = NULL};
}

static void close_lane(struct place_lane *lane)
{
    if (lane->lane && !lane->closing)
        lane_close(lane->lane);
    lane->closing = lane->lane != NULL;
}

/* Again where it was open, or failed to; the lane starts another worker where it has none. */
static void open_problem(struct queue *queue, struct place_lane *lane, const char *problem)
{
    char *name = mem_strdup(problem);
    arena_free(lane->open.arena);
    mem_free(lane->problem);
    lane->problem = name;
    lane->open = (struct lane_request){.op = LANE_OPEN, .id = "open", .problem = name};
    lane_submit(lane->lane, &lane->open, &queue->task);
}

static int open_lane(struct queue *queue, const struct place *place, struct place_lane *lane,
                     const char *problem, struct err *err)
{
    struct lane_spec spec = queue->options->spec;
    spec.backend = place->backend;
    spec.cores = place->share.cores;
    spec.device = place->share.device;
    if (lane_open(queue->task.loop, &spec, &lane->lane, err))
        return -1;
    open_problem(queue, lane, problem);
    return 0;
}

/* The worker that has the problem, or a place for one, or, elsewhere, the only one; NULL: one has
 * to close first. */
static struct place_lane *lane_for(const struct queue *queue, struct place *place,
                                   const char *problem)
{
    struct place_lane *empty = NULL, *oldest = NULL;
    for (size_t i = 0; i < (is_elsewhere(queue) ? 1 : LANES_OPEN); i++) {
        struct place_lane *lane = &place->lanes[i];
        if (lane->lane && !lane->closing && strcmp(lane->problem, problem) == 0)
            return lane;
        if (lane->closing)
            return NULL; /* that one */
        if (!lane->lane)
            empty = lane;
        else if (!oldest || lane->used_ms < oldest->used_ms)
            oldest = lane;
    }
    if (is_elsewhere(queue))
        return empty ? empty : oldest;
    if (!empty)
        close_lane(oldest);
    return empty;
}

/* ---- jobs ---- */

static void finish(struct queue *queue, struct job *job, const struct err *err, double took_ms)
{
    record_result(queue, job, err);
    job_end(queue, job, took_ms);
    list_append(&queue->finished, &job->link);
}

/* What cannot be opened has no verdict for any source. */
static void refuse_all(struct queue *queue, const struct place *place, const char *problem,
                       const struct err *err)
{
    for (struct job *job; (job = job_next(queue, place->backend, problem));) {
        job_begin(queue, job);
        finish(queue, job, err, 0);
    }
}

/* Each lane of the backend failed last, and so many times in all that nobody need wait for more:
 * a worker that says what its machine lacks will say so again, a job may start some minutes later.
 */
static bool given_up(const struct queue *queue, const struct place *place, unsigned opens,
                     const struct err *err)
{
    enum { LACKS = 2, ENDS = 8 };
    size_t lanes = 0, failing = 0;
    for (size_t i = 0; i < queue->place_count; i++) {
        bool like = strcmp(queue->places[i].backend, place->backend) == 0;
        lanes += like;
        failing += like && queue->places[i].failures > 0;
    }
    return failing == lanes && opens > (err->code == ERR_CHILD ? ENDS : LACKS) * lanes;
}

/* The problem is at fault, or this machine. Or a machine elsewhere: then another may open it, or a
 * node that comes later. */
static void cannot_open(struct queue *queue, struct place *place, const char *problem,
                        const struct err *err)
{
    struct job *job = job_next(queue, place->backend, problem);
    bool certain = err->code == ERR_USAGE || !is_elsewhere(queue);
    unsigned doubled = place->failures < REST_DOUBLED_MOST ? place->failures : REST_DOUBLED_MOST;
    if (!certain) {
        place->failures++;
        place->rests_to_ms = clock_now_ms() + ((uint64_t)REST_MS << doubled);
        snprintf(place->why, sizeof place->why, "%.*s", WHY_MOST - 1, err->message);
        log_event(LOG_WARN, "queue.open", problem, "%s", err->message);
    }
    if (certain || (job && given_up(queue, place, ++job->opens, err)))
        refuse_all(queue, place, problem, err);
}

static void begin_job(struct queue *queue, struct place *place, struct job *job)
{
    struct err err = {0};
    uint64_t now = clock_now_ms();
    job_begin(queue, job);
    if (record_read(queue, job, &err)) {
        finish(queue, job, &err, 0);
        return;
    }
    job->began_ms = now;
    job->lane = place->now;
    job->lane->measuring++;
    job->lane->used_ms = now;
    if (place->first_ms == 0)
        place->first_ms = now;
    lane_submit(job->lane->lane, &job->request, &queue->task);
}

/* A worker that died, or a fault of ours, says nothing about the source. Most likely it was the one
 * that was measured: who waited behind it pays a part. */
static bool try_again(struct queue *queue, struct job *job, double took_ms)
{
    enum { WAITED = 1, MEASURED = 3 };
    const struct lane_request *request = &job->request;
    struct place_lane *lane = job->lane;
    bool died = request->err.code == ERR_CHILD;
    bool ours = request->err.code == ERR_NONE && request->evaluation.ours;
    if ((!died && !ours) || lane->closing)
        return false;
    if (died && !lane->open.active)
        open_problem(queue, lane, lane->problem);
    job->deaths += ours || request->stage >= STAGE_CHECK ? MEASURED : WAITED;
    if (job->deaths > MEASURED * WORKER_DEATHS_MAX)
        return false;
    log_event(LOG_WARN, "queue.again", request->id, "%s",
              died ? request->err.message : request->evaluation.reason);
    lane->measuring--;
    job_again(queue, job, took_ms);
    return true;
}

static void end_job(struct queue *queue, struct place *place, struct job *job)
{
    uint64_t now = clock_now_ms();
    uint64_t from = job->began_ms > place->ended_ms ? job->began_ms : place->ended_ms;
    double took_ms = (double)(now - from);
    place->ended_ms = now;
    if (try_again(queue, job, took_ms))
        return;
    job->lane->measuring--;
    if (job->request.err.code == ERR_CANCELLED) { /* the server ends: it waits in the store */
        job_end(queue, job, 0);
        job_free(job);
        return;
    }
    queue->mean_ms += (took_ms - queue->mean_ms) / 16;
    finish(queue, job, &job->request.err, took_ms);
}

static void end_jobs(struct queue *queue, struct place *place)
{
    list_each_safe (link, &queue->measured) {
        struct job *job = container_of(link, struct job, link);
        if (job->lane >= place->lanes && job->lane < place->lanes + LANES_OPEN && job->request.done)
            end_job(queue, place, job);
    }
}

/* Opens what the next one needs; true: one can begin there now. */
static bool turn_to(struct queue *queue, struct place *place, const char *problem)
{
    struct err err = {0};
    bool same = place->now && strcmp(place->now->problem, problem) == 0;
    if (same && lane_is_up(place->now->lane))
        return place->now->measuring < DEPTH;
    if (place->now && place->now->measuring > 0)
        return false;
    struct place_lane *lane = lane_for(queue, place, problem);
    if (!lane)
        return false;
    if (!lane->lane && open_lane(queue, place, lane, problem, &err)) {
        cannot_open(queue, place, problem, &err);
        return false;
    }
    if (strcmp(lane->problem, problem) != 0 || !lane_is_up(lane->lane))
        if (!lane->open.active)
            open_problem(queue, lane, problem);
    place->now = lane;
    place->turn_ms = clock_now_ms();
    return lane->open.done;
}

/* A speed-up is of the machine that it was measured on: a launcher, or --devices, that mixes kinds
 * is told of, once for each that comes. */
static void note_machine(struct queue *queue, struct place *place)
{
    const struct value *device = value_get(place->now->open.answer, "device");
    const char *machine = value_text(device, "gpu", value_text(device, "cpu", ""));
    if (strncmp(place->machine, machine, NAME_MOST - 1) == 0)
        return;
    snprintf(place->machine, sizeof place->machine, "%s", machine);
    for (size_t i = 0; i < queue->place_count; i++) {
        const struct place *other = &queue->places[i];
        if (strcmp(other->backend, place->backend) == 0 && *other->machine &&
            strcmp(other->machine, place->machine) != 0) {
            log_event(LOG_WARN, "queue.unlike", place->backend,
                      "one lane is on \"%s\", another on \"%s\": a result's device says which; "
                      "what is faster on one may not be on the other",
                      other->machine, place->machine);
            return;
        }
    }
}

/* The lane's problem is open, or it has none; false: it is being opened. */
static bool is_opened(struct queue *queue, struct place *place)
{
    struct place_lane *now = place->now;
    if (!now)
        return true;
    if (!now->open.done || lane_open_again(now->lane, &now->open, &queue->task))
        return false;
    if (now->open.err.code) {
        const struct err err = now->open.err;
        MEM_LOCAL char *problem = mem_strdup(now->problem);
        place->now = NULL;
        *now->problem = '\0';
        if (!is_elsewhere(queue) || err.code != ERR_USAGE) /* else it has its node still */
            close_lane(now);
        cannot_open(queue, place, problem, &err);
        return true;
    }
    place->failures = 0;
    *place->why = '\0';
    note_machine(queue, place);
    return true;
}

static void place_step(struct queue *queue, struct place *place)
{
    for (size_t i = 0; i < LANES_OPEN; i++)
        if (place->lanes[i].closing && lane_closed(place->lanes[i].lane))
            forget(place, &place->lanes[i]);
    end_jobs(queue, place);
    while (!queue->task.cancel_requested && is_opened(queue, place)) {
        const struct place_lane *now = place->now;
        if (clock_now_ms() < place->rests_to_ms)
            return;
        bool keeps = now && clock_now_ms() - place->turn_ms < TURN_MS;
        struct job *job = keeps ? job_next(queue, place->backend, now->problem) : NULL;
        if (!job)
            job = job_next(queue, place->backend, NULL);
        if (!job || !turn_to(queue, place, job->problem))
            return;
        begin_job(queue, place, job);
    }
}

void places_step(struct queue *queue)
{
    enum { CLOSES_MS = 20, RESTS_MS = 200 };
    bool closing = false, resting = false;
    for (size_t i = 0; i < queue->place_count; i++) {
        struct place *place = &queue->places[i];
        place_step(queue, place);
        resting = resting || clock_now_ms() < place->rests_to_ms;
        for (size_t k = 0; k < LANES_OPEN; k++)
            closing = closing || place->lanes[k].closing;
    }
    if ((closing || (resting && queue->waiting > 0)) && !queue->timer.armed)
        timer_start(queue->task.loop, &queue->timer, &queue->task, closing ? CLOSES_MS : RESTS_MS);
}

bool places_close(struct queue *queue)
{
    bool closed = true;
    for (size_t i = 0; i < queue->place_count; i++)
        for (size_t k = 0; k < LANES_OPEN; k++)
            close_lane(&queue->places[i].lanes[k]);
    places_step(queue);
    for (size_t i = 0; i < queue->place_count; i++)
        for (size_t k = 0; k < LANES_OPEN; k++)
            closed = closed && !queue->places[i].lanes[k].lane;
    return closed;
}
