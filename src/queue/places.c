/* queue/places: lanes, each with a worker for every problem that was asked for last, one of them at
 * work: while it times, nothing else of ours runs on its cores. A worker is given two sources, so
 * that the next is compiled while one is checked. Another problem has its turn when there is
 * nothing more of this one, or after TURN_MS. */
#include "base/clock.h"
#include "base/mem.h"
#include "queue/private.h"

#include <string.h>

void places_for(struct queue *queue, const char *backend)
{
    const char *devices[QUEUE_PLACES] = {NULL};
    for (size_t i = 0; i < queue->place_count; i++)
        if (strcmp(queue->places[i].backend, backend) == 0)
            return;
    size_t count = queue->options->places(queue->options->context, backend, devices);
    for (size_t i = 0; i < count && queue->place_count < QUEUE_PLACES; i++)
        queue->places[queue->place_count++] =
            (struct place){.backend = backend, .device = devices[i]};
}

double place_busy_ms(const struct place *place)
{
    double busy = place->gone_busy_ms;
    for (size_t i = 0; i < LANES_OPEN; i++)
        busy += place->lanes[i].lane ? lane_busy_ms(place->lanes[i].lane) : 0;
    return busy;
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

static int open_lane(struct queue *queue, struct place *place, struct place_lane *lane,
                     const char *problem, struct err *err)
{
    struct lane_spec spec = queue->options->spec;
    spec.backend = place->backend;
    spec.device = place->device;
    spec.problem = problem;
    if (lane_open(queue->task.loop, &spec, &lane->lane, err))
        return -1;
    lane->problem = mem_strdup(problem);
    lane->open = (struct lane_request){.op = LANE_OPEN, .id = "open"};
    lane_submit(lane->lane, &lane->open, &queue->task);
    return 0;
}

/* The worker that has the problem, or a place for one; NULL: one has to close first. */
static struct place_lane *lane_for(struct place *place, const char *problem)
{
    struct place_lane *empty = NULL, *oldest = NULL;
    for (size_t i = 0; i < LANES_OPEN; i++) {
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
static void refuse_all(struct queue *queue, struct place *place, const char *problem,
                       const struct err *err)
{
    for (struct job *job; (job = job_next(queue, place->backend, problem));) {
        job_begin(queue, job);
        finish(queue, job, err, 0);
    }
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

/* A worker that died, or a fault of ours, says nothing about the source. */
static bool try_again(struct queue *queue, struct job *job)
{
    const struct lane_request *request = &job->request;
    bool died = request->err.code == ERR_CHILD;
    bool ours = request->err.code == ERR_NONE && request->evaluation.ours;
    if ((!died && !ours) || ++job->tries >= TRIES || job->lane->closing)
        return false;
    arena_free(job->request.arena);
    job->request.arena = NULL;
    lane_submit(job->lane->lane, &job->request, &queue->task);
    return true;
}

static void end_job(struct queue *queue, struct place *place, struct job *job)
{
    uint64_t now = clock_now_ms();
    uint64_t from = job->began_ms > place->ended_ms ? job->began_ms : place->ended_ms;
    double took_ms = (double)(now - from);
    if (try_again(queue, job))
        return;
    job->lane->measuring--;
    if (job->request.err.code == ERR_CANCELLED) { /* the server ends: it waits in the store */
        job_end(queue, job, 0);
        job_free(job);
        return;
    }
    place->ended_ms = now;
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
    if (place->now && strcmp(place->now->problem, problem) == 0)
        return place->now->measuring < DEPTH;
    if (place->now && place->now->measuring > 0)
        return false;
    struct place_lane *lane = lane_for(place, problem);
    if (!lane)
        return false;
    if (!lane->lane && open_lane(queue, place, lane, problem, &err)) {
        refuse_all(queue, place, problem, &err);
        return false;
    }
    place->now = lane;
    place->turn_ms = clock_now_ms();
    return lane->open.done;
}

static void place_step(struct queue *queue, struct place *place)
{
    for (size_t i = 0; i < LANES_OPEN; i++)
        if (place->lanes[i].closing && lane_closed(place->lanes[i].lane))
            forget(place, &place->lanes[i]);
    end_jobs(queue, place);
    while (!queue->task.cancel_requested) {
        struct place_lane *now = place->now;
        if (now && !now->open.done)
            return;
        if (now && now->open.err.code) {
            MEM_LOCAL char *problem = mem_strdup(now->problem);
            close_lane(now);
            place->now = NULL;
            refuse_all(queue, place, problem, &now->open.err);
            continue;
        }
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
    bool closing = false;
    for (size_t i = 0; i < queue->place_count; i++) {
        place_step(queue, &queue->places[i]);
        for (size_t k = 0; k < LANES_OPEN; k++)
            closing = closing || queue->places[i].lanes[k].closing;
    }
    if (closing && !queue->timer.armed)
        timer_start(queue->task.loop, &queue->timer, &queue->task, 20);
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
