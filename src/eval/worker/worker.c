/* eval/worker: the process around the requests. */
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/worker/private.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

void request_begin(struct worker *worker, struct request *request, const struct task_type *type,
                   const char *id)
{
    request->worker = worker;
    request->id = id;
    task_start(worker->loop, &request->task, type, worker->input, id);
    list_append(&worker->requests, &request->link);
}

void requests_reap(struct worker *worker)
{
    list_each_safe (link, &worker->requests) {
        struct request *request = container_of(link, struct request, link);
        if (!request->task.finished)
            continue;
        list_remove(link);
        arena_free(request->arena);
        mem_free(request);
    }
}

bool slot_hold(struct slot *slot, struct slots *slots, struct task *owner, unsigned amount)
{
    if (slot->granted || list_linked(&slot->link))
        return slot->granted;
    return slots_acquire(slots, slot, owner, amount);
}

/* --- the lane's cores --- */

static size_t own_cores(int *cores, size_t most)
{
    cpu_set_t set;
    size_t count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (int core = 0; core < CPU_SETSIZE && count < most; core++)
        if (CPU_ISSET((size_t)core, &set))
            cores[count++] = core;
    return count;
}

static int choose_cores(struct worker *worker, struct err *err)
{
    struct lane_facts *lane = &worker->lane;
    enum { MOST = sizeof lane->cores / sizeof lane->cores[0] };
    int own[MOST];
    size_t count = own_cores(own, MOST);
    if (worker->options->cores == NULL) {
        memcpy(lane->cores, own, sizeof own);
        lane->core_count = count;
    } else if (!input_parse_cores(worker->options->cores, lane->cores, MOST, &lane->core_count)) {
        return err_set(err, ERR_USAGE, "--cores %s: expected numbers and ranges, as 0-3,6",
                       worker->options->cores);
    }
    for (size_t i = 0; i < lane->core_count; i++) {
        bool found = count == MOST;
        for (size_t k = 0; k < count; k++)
            found = found || own[k] == lane->cores[i];
        if (!found)
            return err_set(err, ERR_USAGE, "--cores: core %d is not ours to use", lane->cores[i]);
    }
    return lane->core_count > 0 ? 0 : err_set(err, ERR_ENVIRONMENT, "no cores to run on");
}

/* --- beginning and end --- */

static void clean_up(struct worker *worker)
{
    session_close(worker->session);
    problem_free(worker->problem);
    memory_forget(worker);
    arena_free(worker->arena);
    arena_free(worker->lane_arena);
    folder_close(worker);
}

int worker_main(const struct worker_options *options)
{
    struct worker worker = {.options = options, .lane = {.gpu_index = options->gpu_index}};
    struct err err = {0};
    timeline_end("worker.start", timeline_begin());
    list_init(&worker.requests);
    list_init(&worker.memory);
    if (choose_cores(&worker, &err) != 0 || folder_open(&worker, &err) != 0) {
        fprintf(stderr, "twagent worker: %s\n", err.message);
        clean_up(&worker);
        return err_exit_code(err.code);
    }
    slots_init(&worker.sessions, "sessions", READERS_MOST);
    slots_init(&worker.cores, "cores", (unsigned)worker.lane.core_count);
    slots_init(&worker.ahead, "ahead", AHEAD_MOST);
    slots_init(&worker.measure, "measure", 1);
    worker.loop = loop_new();
    input_start(&worker);
    loop_run(worker.loop);
    uint64_t begun = timeline_begin();
    clean_up(&worker);
    timeline_end("worker.close", begun);
    loop_free(worker.loop);
    return 0;
}
