/* eval/worker/ahead: what will be asked for first is compiled while the problem is opened, which
 * needs the device and few cores. A cubin stays on disk; whoever asks for the point then has it at
 * once. Only time is lost with what nobody asks for.
 *
 *   waiting (for cores) -> compiling -> ended
 */
#include "base/file.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/worker/evaluate.h"

#include <string.h>

enum { WAITS, COMPILES, IS_OVER, STATES };
enum { POINTS_MOST = 128, SEARCHED_MOST = 1 << 16 };

struct source { /* of all its points */
    struct candidate *candidate;
    unsigned users;
};

struct ahead {
    struct request request;
    struct source *source;
    struct names tune;
    struct hash identity;
    enum build_flavour flavour;
    struct slot session_slot, compiler_slot;
    struct build build;
    struct process *process;
    const char *folder;
    uint64_t started_ns;
};

static enum task_result end(struct ahead *ahead)
{
    struct worker *worker = ahead->request.worker;
    struct err ignored;
    slots_release(&ahead->compiler_slot);
    slots_release(&ahead->session_slot);
    process_free(ahead->process);
    if (ahead->folder != NULL && file_exists(ahead->folder))
        (void)(file_remove_tree(ahead->folder, &ignored) == 0);
    if (--ahead->source->users == 0) {
        candidate_free(ahead->source->candidate);
        mem_free(ahead->source);
    }
    task_move(&ahead->request.task, IS_OVER);
    evaluate_unpark_all(worker);
    return TASK_DONE;
}

static int begin(struct ahead *ahead, struct err *err)
{
    struct worker *worker = ahead->request.worker;
    struct arena *arena = ahead->request.arena;
    ahead->folder = arena_printf(arena, "%s/build-%u", worker->folder, worker->builds++);
    return file_make_dirs(ahead->folder, err) != 0 ||
                   worker->options->backend->build(
                       arena, &worker->lane, worker->problem, ahead->source->candidate,
                       &ahead->tune, NULL, ahead->flavour, ahead->folder, &ahead->build, err) != 0
               ? -1
               : 0;
}

static enum task_result step(struct task *task)
{
    struct ahead *ahead = (struct ahead *)task;
    struct slots *compilers = &ahead->request.worker->compilers;
    struct err ignored;
    if (task->state == COMPILES) {
        if (process_outcome(ahead->process) != PROCESS_RUNNING) {
            timeline_end("ahead", ahead->started_ns);
            return end(ahead);
        }
        if (task->cancel_requested)
            process_stop(ahead->process);
        return TASK_WAIT;
    }
    if (task->cancel_requested || (ahead->folder == NULL && begin(ahead, &ignored) != 0))
        return end(ahead);
    if (!build_hold(&ahead->build, &ahead->compiler_slot, compilers, task))
        return TASK_WAIT;
    ahead->started_ns = timeline_begin();
    ahead->process = process_start(task->loop, task, &ahead->build.spec, &ignored);
    if (ahead->process == NULL)
        return end(ahead);
    task_move(task, COMPILES);
    return TASK_WAIT;
}

static const struct task_type *type_of_ahead(void)
{
    static const char *const states[STATES] = {"waiting", "compiling", "ended"};
    static const uint32_t moves[STATES] = {1U << COMPILES | 1U << IS_OVER, 1U << IS_OVER, 0};
    static const struct task_type type = {
        .name = "ahead", .states = states, .moves = moves, .state_count = STATES, .step = step};
    return &type;
}

/* An `open` that comes next waits for it, as for every other request. */
static void add(struct worker *worker, struct source *source, const struct names *tune,
                enum build_flavour flavour)
{
    struct ahead *ahead = MEM_NEW(struct ahead);
    ahead->request.arena = arena_new();
    ahead->source = source;
    ahead->tune = *tune;
    ahead->identity = candidate_identity(source->candidate, tune);
    ahead->flavour = flavour;
    source->users++;
    request_begin(worker, &ahead->request, type_of_ahead(), "");
    (void)slots_acquire(&worker->sessions, &ahead->session_slot, &ahead->request.task, 1);
}

/* Every valid point for the main shape, where there are as few as a tune measures all of. */
static void add_space(struct worker *worker, struct source *source, const struct names *first)
{
    const struct candidate *candidate = source->candidate;
    uint64_t all = tune_points(candidate), points[POINTS_MOST];
    size_t count = 0;
    struct names tune;
    for (uint64_t i = 0; i < all && all <= SEARCHED_MOST; i++) {
        tune_at(candidate, i, &tune);
        if (i == tune_index(candidate, first) ||
            !tune_valid(candidate, &worker->problem->shapes[0], &worker->lane.facts, &tune))
            continue;
        if (count == POINTS_MOST)
            return;
        points[count++] = i;
    }
    for (size_t i = 0; i < count; i++) {
        tune_at(candidate, points[i], &tune);
        add(worker, source, &tune, BUILD_MAIN);
    }
}

void ahead_begin(struct worker *worker, const struct value *wanted)
{
    const struct backend *backend = worker->options->backend;
    const char *text = value_text(wanted, "source", NULL);
    struct source *source = MEM_NEW(struct source);
    struct names tune;
    struct err ignored = {0};
    source->users = 1; /* us */
    if (text != NULL &&
        candidate_parse_for(backend->target, worker->problem, value_text(wanted, "name", ""), text,
                            strlen(text), value_get(wanted, "tune"), &worker->lane.facts,
                            &source->candidate, &tune, &ignored) == 0) {
        bool late = value_bool(wanted, "space", false) && backend->narrows != NULL &&
                    backend->narrows(source->candidate);
        if (late)
            add(worker, source, &tune, BUILD_MAIN);
        add(worker, source, &tune, BUILD_FAST);
        if (late)
            add_space(worker, source, &tune);
    }
    if (--source->users == 0) {
        candidate_free(source->candidate);
        mem_free(source);
    }
}

void ahead_end(struct worker *worker)
{
    list_each (link, &worker->requests) {
        struct request *request = container_of(link, struct request, link);
        if (request->task.type == type_of_ahead() && request->task.state == WAITS)
            task_cancel(&request->task);
    }
}

bool ahead_compiles(const struct worker *worker, struct hash identity, enum build_flavour flavour)
{
    list_each (link, &worker->requests) {
        const struct request *request = container_of(link, struct request, link);
        if (request->task.type != type_of_ahead() || request->task.state != COMPILES)
            continue;
        const struct ahead *ahead = container_of(request, struct ahead, request);
        if (ahead->flavour == flavour && hash_compare(ahead->identity, identity) == 0)
            return true;
    }
    return false;
}
