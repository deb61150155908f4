/* bench_children [CHILDREN [AT_ONCE [PROGRAM]]]: runs that many children, so many at a time by
 * loop/slots, and looks for what they leave behind. */
#include "base/clock.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/slots.h"
#include "loop/task.h"

#include "measure.h"

struct child {
    struct task task;
    struct slot slot;
    struct process *process;
};

static struct slots slots;
static const char *program = "/bin/true";
static long running, most_running, good;

static enum task_result start(struct child *child)
{
    const char *const argv[] = {program, NULL};
    struct process_spec spec = {.argv = argv, .timeout_ms = 60000};
    struct err err = {0};
    child->process = process_start(child->task.loop, &child->task, &spec, &err);
    if (child->process == NULL) {
        fprintf(stderr, "%s\n", err.message);
        slots_release(&child->slot);
        return TASK_DONE;
    }
    if (++running > most_running)
        most_running = running;
    return TASK_WAIT;
}

static enum task_result child_step(struct task *task)
{
    struct child *child = (struct child *)task;
    if (child->slot.slots == NULL && !slots_acquire(&slots, &child->slot, task, 1))
        return TASK_WAIT;
    if (!child->slot.granted)
        return TASK_WAIT;
    if (child->process == NULL)
        return start(child);
    if (process_outcome(child->process) == PROCESS_RUNNING)
        return TASK_WAIT;
    good +=
        process_outcome(child->process) == PROCESS_EXITED && process_status(child->process) == 0;
    running--;
    process_free(child->process);
    slots_release(&child->slot);
    return TASK_DONE;
}

static const char *const states[] = {"running"};
static const uint32_t moves[] = {0};
static const struct task_type child_type = {
    .name = "child", .states = states, .moves = moves, .state_count = 1, .step = child_step};

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 5000;
    unsigned at_once = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;
    program = argc > 3 ? argv[3] : program;
    struct loop *loop = loop_new();
    struct child *children = mem_array((size_t)count, sizeof *children);
    slots_init(&slots, "children", at_once);
    int before = open_descriptors();
    uint64_t started_ns = clock_now_ns();
    for (long i = 0; i < count; i++) {
        char id[40];
        snprintf(id, sizeof id, "c%ld", i);
        task_start(loop, &children[i].task, &child_type, NULL, id);
    }
    loop_run(loop);
    double wall = (double)(clock_now_ns() - started_ns) / 1e9;
    int after = open_descriptors(), left = children_left();
    loop_free(loop);
    mem_free(children);

    printf("children %ld\n", count);
    printf("exited_0 %ld\n", good);
    printf("at_once %ld\n", most_running);
    printf("seconds %.2f\n", wall);
    printf("children_per_second %.0f\n", (double)count / wall);
    printf("own_cpu_seconds %.2f\n", cpu_seconds());
    printf("zombies_left %d\n", left);
    printf("descriptors_before %d\n", before);
    printf("descriptors_after %d\n", after);
    printf("resident_mb_most %.1f\n", (double)status_kb("VmHWM:") / 1024);
    return good == count && left == 0 && before == after ? 0 : 1;
}
