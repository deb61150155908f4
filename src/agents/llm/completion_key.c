/* agents/llm/completion: a key that a command prints is had anew, beside whatever goes on. */
#include "agents/llm/completion_private.h"

#include "base/clock.h"
#include "base/log.h"

static const uint64_t again_ns = UINT64_C(30) * 1000000000, fresh_ns = UINT64_C(5) * 1000000000;

struct renewal {
    struct task task;
    struct completions *completions;
    struct key_command *command;
    struct work work;
    char *key;
    struct err err;
};

static void renew(void *argument)
{
    struct renewal *renewal = argument;
    renewal->key = key_command_run(renewal->command, &renewal->err);
}

static enum task_result step(struct task *task)
{
    struct renewal *renewal = container_of(task, struct renewal, task);
    struct key_command *command = renewal->command;
    if (!renewal->work.active && !renewal->work.done)
        work_start(task->loop, &renewal->work, task, renew, renewal);
    if (!renewal->work.done)
        return TASK_WAIT;
    command->running = false;
    if (renewal->key != NULL) {
        log_event(LOG_INFO, "key.renewed", command->words[0], "after %.0f s",
                  (double)(clock_now_ns() - command->got_ns) / 1e9);
        key_command_take(command, renewal->key);
    } else {
        log_event(LOG_WARN, "key.failed", command->words[0], "%s", renewal->err.message);
    }
    completions_wake(renewal->completions, NULL);
    return TASK_DONE;
}

static const char *const states[] = {"renewing"};
static const uint32_t moves[] = {0};
static const struct task_type renewal_type = {"key", states, moves, 1, step, NULL};

bool key_is_ready(struct completions *completions, const struct model *model)
{
    struct key_command *command = model->key_command;
    uint64_t now = clock_now_ns();
    if (command == NULL)
        return true;
    if (command->running)
        return false;
    bool fresh = now - command->got_ns < fresh_ns; /* used at least once, however short its life */
    bool old =
        command->refused || (!fresh && now - command->got_ns >= command->lifetime_ms * 1000000);
    bool failed = command->tried_ns > command->got_ns && now - command->tried_ns < again_ns;
    if (!old || failed)
        return true;
    struct renewal *renewal = ARENA_NEW(command->arena, struct renewal);
    *renewal = (struct renewal){.completions = completions, .command = command};
    command->running = true;
    command->tried_ns = now;
    task_start(completions->loop, &renewal->task, &renewal_type, NULL, "key");
    return false;
}
