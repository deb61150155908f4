/* eval/lane/ask: what a lane says when it is opened, and to one request. */
#include "eval/lane/lane.h"

#include "base/json.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/task.h"

#include <string.h>

enum { ASKING, STATES, SIGNALS_MOST = 4 };

struct asking {
    struct task task;
    const struct lane_spec *spec;
    struct lane *lane;
    struct lane_request *open, *then;
    bool asked, stopped;
    const int *signals;
    struct signal_watch watches[SIGNALS_MOST];
};

static bool is_signalled(const struct asking *asking)
{
    for (int i = 0; i < SIGNALS_MOST; i++)
        if (asking->watches[i].count > 0)
            return true;
    return false;
}

static int begin(struct asking *asking)
{
    struct err ignored;
    for (int i = 0; asking->signals != NULL && asking->signals[i] != 0; i++)
        (void)!signal_watch_start(asking->task.loop, &asking->watches[i], &asking->task,
                                  asking->signals[i], &ignored);
    if (lane_open(asking->task.loop, asking->spec, &asking->lane, &asking->open->err) != 0)
        return -1;
    lane_submit(asking->lane, asking->open, &asking->task);
    return 0;
}

static enum task_result end(struct asking *asking)
{
    for (int i = 0; i < SIGNALS_MOST; i++)
        if (asking->watches[i].handle != NULL)
            signal_watch_stop(&asking->watches[i]);
    if (asking->lane != NULL)
        lane_close(asking->lane);
    return TASK_DONE;
}

static enum task_result asking_step(struct task *task)
{
    struct asking *asking = container_of(task, struct asking, task);
    if (asking->lane == NULL && begin(asking) != 0)
        return end(asking);
    if (is_signalled(asking) && !asking->stopped) {
        asking->stopped = true;
        lane_cancel(asking->lane, asking->asked ? asking->then : asking->open);
    }
    if (!asking->open->done)
        return TASK_WAIT;
    if (asking->then == NULL || asking->open->err.code != ERR_NONE)
        return end(asking);
    if (!asking->asked)
        lane_submit(asking->lane, asking->then, task);
    asking->asked = true;
    return asking->then->done ? end(asking) : TASK_WAIT;
}

void lane_ask(const struct lane_spec *spec, const char *name, struct lane_request *open,
              struct lane_request *then, const int *signals)
{
    static const char *const states[STATES] = {"asking"};
    static const uint32_t moves[STATES] = {0};
    static const struct task_type type = {"lane", states, moves, STATES, asking_step, NULL};
    struct asking asking = {.spec = spec, .open = open, .then = then, .signals = signals};
    struct loop *loop = loop_new();
    *open = (struct lane_request){.op = LANE_OPEN, .id = name};
    task_start(loop, &asking.task, &type, NULL, name);
    loop_run(loop);
    if (asking.lane != NULL)
        lane_free(asking.lane);
    loop_free(loop);
}

void lane_put_answer(struct json *json, const struct value *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        if (strcmp(answer->keys[i], "id") != 0 && strcmp(answer->keys[i], "event") != 0) {
            json_put_value(json, answer->keys[i], answer->items[i]);
        }
}
