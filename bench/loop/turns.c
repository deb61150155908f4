/* bench_turns [STEPS [TASKS]]: tasks in a ring, each waking the next, all ready at once: what a
 * step costs. */
#include "base/clock.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/task.h"

#include "measure.h"

struct runner {
    struct task task;
    struct runner *next;
    long left;
};

static enum task_result runner_step(struct task *task)
{
    struct runner *runner = (struct runner *)task;
    task_wake(&runner->next->task);
    return --runner->left > 0 ? TASK_AGAIN : TASK_DONE;
}

static const char *const states[] = {"running"};
static const uint32_t moves[] = {0};
static const struct task_type runner_type = {
    .name = "runner", .states = states, .moves = moves, .state_count = 1, .step = runner_step};

int main(int argc, char **argv)
{
    long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
    struct loop *loop = loop_new();
    struct runner *runners = mem_array((size_t)count, sizeof *runners);
    for (long i = 0; i < count; i++) {
        task_start(loop, &runners[i].task, &runner_type, NULL, "runner");
        runners[i].next = &runners[(i + 1) % count];
        runners[i].left = steps / count;
    }
    uint64_t started_ns = clock_now_ns();
    loop_run(loop);
    double wall = (double)(clock_now_ns() - started_ns) / 1e9;
    loop_free(loop);
    mem_free(runners);
    printf("steps %ld\n", steps / count * count);
    printf("tasks %ld\n", count);
    printf("seconds %.3f\n", wall);
    printf("ns_per_step %.0f\n", wall * 1e9 / (double)(steps / count * count));
    return 0;
}
