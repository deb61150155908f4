/* eval/lane/ask: what a lane says when it is opened, for who wants to know nothing else. */
#include "eval/lane/ask.h"

#include "loop/loop.h"
#include "loop/task.h"

enum { ASKING, STATES };

struct asking {
    struct task task;
    const struct lane_spec *spec;
    struct lane *lane;
    struct lane_request *open;
};

static enum task_result asking_step(struct task *task)
{
    struct asking *asking = container_of(task, struct asking, task);
    if (asking->lane == NULL) {
        if (lane_open(task->loop, asking->spec, &asking->lane, &asking->open->err) != 0)
            return TASK_DONE;
        lane_submit(asking->lane, asking->open, task);
    }
    if (!asking->open->done)
        return TASK_WAIT;
    lane_close(asking->lane);
    return TASK_DONE;
}

void lane_ask(const struct lane_spec *spec, const char *name, struct lane_request *open)
{
    static const char *const states[STATES] = {"asking"};
    static const uint32_t moves[STATES] = {0};
    static const struct task_type type = {"lane", states, moves, STATES, asking_step, NULL};
    struct asking asking = {.spec = spec, .open = open};
    struct loop *loop = loop_new();
    *open = (struct lane_request){.op = LANE_OPEN, .id = name};
    task_start(loop, &asking.task, &type, NULL, name);
    loop_run(loop);
    if (asking.lane != NULL)
        lane_free(asking.lane);
    loop_free(loop);
}
