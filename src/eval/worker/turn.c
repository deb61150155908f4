/* eval/worker/turn: only one worker of this machine times on a core at once, and while one times on
 * a device no other one's calls are there. Whoever waits asks
 * again now and then: rarely enough not to show in what the other one times. It holds a second lock
 * meanwhile, which everybody must have before the first: else who has just timed would always be
 * back before those who wait ask again. */
#include "base/clock.h"
#include "eval/worker/private.h"

#include <stdio.h>
#include <time.h>

/* Asking takes a core for some us, which a device's own clock does not see. */
enum { ASK_AGAIN_MS = 40, ASK_DEVICE_MS = 5, PATIENCE_S = 90 /* nobody times for so long */ };
enum { QUEUE_PATH = CORE_LOCK_PATH + 16 };
/* The first calls after others were there take longer (bench/results/cuda-starts.md): few of them.
 */
static const uint64_t breath_ns = 2000000000;
static const uint64_t patience_ns = PATIENCE_S * UINT64_C(1000000000);

static void queue_path(const struct lane_facts *lane, const char *folder, char path[QUEUE_PATH])
{
    char core[CORE_LOCK_PATH];
    core_lock_path(lane->cores[0], core);
    snprintf(path, QUEUE_PATH, folder != NULL ? "%s/power" : "%s/topology",
             folder != NULL ? folder : core);
}

/* Whoever lets others in for a while lets in those who look: of several last measurements that took
 * turns all would end when the last one does. */
static bool is_first(struct turn *turn, const char *folder)
{
    char path[QUEUE_PATH];
    if (folder == NULL || !turn->final || turn->first)
        return true;
    snprintf(path, sizeof path, "%s/vendor", folder);
    return turn->first = core_lock_try_path(&turn->last, path, false);
}

static bool take_both(struct turn *turn, const struct lane_facts *lane, const char *folder,
                      int *busy)
{
    char queue[QUEUE_PATH];
    queue_path(lane, folder, queue);
    *busy = lane->cores[0];
    if (!is_first(turn, folder))
        return false;
    turn->queued = turn->queued || core_lock_try_path(&turn->queue, queue, false);
    return turn->queued &&
           (folder != NULL ? core_lock_try_path(&turn->lock, folder, turn->shared)
                           : core_lock_try(&turn->lock, lane->cores, lane->core_count, busy));
}

/* Whoever waits has the queue. */
static bool is_wanted(struct turn *turn, const struct lane_facts *lane, const char *folder)
{
    char queue[QUEUE_PATH];
    queue_path(lane, folder, queue);
    bool wanted = !core_lock_try_path(&turn->queue, queue, false);
    core_lock_release(&turn->queue);
    return wanted;
}

static void leave_queue(struct turn *turn)
{
    core_lock_release(&turn->queue);
    turn->queued = false;
}

/* A device's, or NULL. Before the first probe nobody knows where it lies. */
static const char *folder_of(const struct worker *worker)
{
    const char *folder = worker->lane.lock_path;
    return folder != NULL ? folder : worker->options->backend->lock_folder;
}

bool turn_share(struct worker *worker, struct turn *turn, struct task *owner, const char *id)
{
    turn->shared = true;
    return folder_of(worker) == NULL || turn_take(worker, turn, owner, id);
}

bool turn_take(struct worker *worker, struct turn *turn, struct task *owner, const char *id)
{
    const struct lane_facts *lane = &worker->lane;
    const char *folder = folder_of(worker);
    int busy = 0;
    if (turn->taken)
        return true;
    if (turn->timer.armed)
        return false;
    uint64_t now = clock_now_ns();
    uint64_t wait_ns = turn->patience_ns > 0 ? turn->patience_ns : patience_ns;
    bool behind = turn->final && !turn->first; /* others, each of which comes to its end */
    bool patient = turn->since_ns == 0 || behind || now - turn->since_ns < wait_ns;
    char why[400], who[240];
    turn->taken = take_both(turn, lane, folder, &busy);
    if (behind && turn->first && turn->since_ns > 0)
        turn->since_ns = now;
    char place[24];
    if (folder != NULL)
        snprintf(place, sizeof place, "GPU %d", lane->gpu_index);
    else
        snprintf(place, sizeof place, "core %d", busy);
    if (!turn->taken && !patient) {
        snprintf(why, sizeof why, "%s was another twagent's for %.0f s: goes on beside it", place,
                 (double)wait_ns / 1e9);
        answer_waits(id, turn->shared ? STAGE_CHECK : STAGE_TIME, why);
        turn->taken = true;
    }
    if (turn->taken) {
        leave_queue(turn);
        turn->held_ns = now;
        return true;
    }
    if (turn->since_ns == 0) {
        core_lock_holder(busy, folder, who, sizeof who);
        snprintf(why, sizeof why, "another twagent times on %s%s%s", place, *who ? ": " : "", who);
        answer_waits(id, turn->shared ? STAGE_CHECK : STAGE_TIME, why);
        turn->since_ns = now;
    }
    timer_start(owner->loop, &turn->timer, owner, folder != NULL ? ASK_DEVICE_MS : ASK_AGAIN_MS);
    return false;
}

uint64_t turn_breathe(const struct worker *worker, struct turn *turn)
{
    const struct timespec rest = {.tv_nsec = ASK_DEVICE_MS * 1000000L};
    const char *folder = folder_of(worker);
    uint64_t begun = clock_now_ns();
    int busy;
    if (!turn->taken || folder == NULL || begun < turn->held_ns + breath_ns ||
        !is_wanted(turn, &worker->lane, folder))
        return 0;
    core_lock_release(&turn->lock);
    while (!take_both(turn, &worker->lane, folder, &busy) && clock_now_ns() - begun < patience_ns)
        nanosleep(&rest, NULL);
    leave_queue(turn);
    turn->held_ns = clock_now_ns();
    return turn->held_ns - begun;
}

void turn_end(struct turn *turn)
{
    timer_stop(&turn->timer);
    leave_queue(turn);
    core_lock_release(&turn->lock);
    core_lock_release(&turn->last);
    turn->taken = turn->shared = turn->final = turn->first = false;
    turn->since_ns = 0;
}
