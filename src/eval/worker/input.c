/* eval/worker/input: stdin, one request a line. A blocking read on the pool, and the loop's turn
 * for what came: nothing in src/loop reads a descriptor of our own.
 *
 *   reading -> (lines) -> reading ... -> draining, at the end of stdin or of what a line may hold:
 *                                        every request is cancelled, and the last one ends us
 */
#include "eval/worker/private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READING, DRAINING, STATES };

struct input {
    struct task task;
    struct worker *worker;
    struct work work;
    struct buf pending; /* the pool's while work.active, else ours */
    bool end;
};

static void read_some(void *argument)
{
    struct input *input = (struct input *)argument;
    char bytes[65536];
    ssize_t got;
    do {
        got = read(STDIN_FILENO, bytes, sizeof bytes);
    } while (got < 0 && errno == EINTR);
    if (got > 0)
        buf_add(&input->pending, bytes, (size_t)got);
    else
        input->end = true;
}

static void cancel(struct worker *worker, const char *id)
{
    list_each (link, &worker->requests) {
        struct request *request = container_of(link, struct request, link);
        if (id == NULL || strcmp(request->id, id) == 0)
            task_cancel(&request->task);
    }
}

/* Every line is answered: what cannot be read, with an error that names no request. */
static void take(struct worker *worker, const char *line, size_t length)
{
    struct arena *arena = arena_new();
    struct value *document;
    struct err err = {0};
    if (value_parse_json(arena, "request", line, length, &document, &err) != 0) {
        answer_error(NULL, &err);
        arena_free(arena);
        return;
    }
    const char *op = value_text(document, "op", ""), *id = value_text(document, "id", NULL);
    if (strcmp(op, "cancel") == 0 && id != NULL) {
        cancel(worker, id);
    } else if (strcmp(op, "ping") == 0 && id != NULL) {
        answer_ping(id);
    } else if (strcmp(op, "open") == 0 && id != NULL) {
        open_start(worker, arena, document);
        return;
    } else if (strcmp(op, "evaluate") == 0 && id != NULL) {
        evaluate_start(worker, arena, document);
        return;
    } else if (strcmp(op, "check_problem") == 0 && id != NULL) {
        check_start(worker, arena, document);
        return;
    } else {
        err_set(&err, ERR_PROTOCOL,
                "expected op: open, evaluate, check_problem, cancel or ping, and id");
        answer_error(id, &err);
    }
    arena_free(arena);
}

static void take_lines(struct input *input)
{
    const char *start = buf_text(&input->pending), *at = start, *newline;
    const char *end = start + input->pending.length;
    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        take(input->worker, at, (size_t)(newline - at));
        at = newline + 1;
    }
    buf_consume(&input->pending, (size_t)(at - start));
}

static enum task_result step(struct task *task)
{
    struct input *input = (struct input *)task;
    struct worker *worker = input->worker;
    requests_reap(worker);
    if (task->state == READING && !input->work.active) {
        if (input->work.done)
            take_lines(input);
        if (input->end || input->pending.dropped > 0) {
            cancel(worker, NULL); /* nobody is left to hear the answers */
            task_move(task, DRAINING);
        } else {
            input->work = (struct work){0};
            work_start(task->loop, &input->work, task, read_some, input);
        }
    }
    if (task->state == READING || !list_empty(&worker->requests))
        return TASK_WAIT;
    buf_free(&input->pending);
    return TASK_DONE;
}

void input_start(struct worker *worker)
{
    static const char *const states[STATES] = {"reading", "draining"};
    static const uint32_t moves[STATES] = {1U << DRAINING, 0};
    static const struct task_type type = {
        .name = "input", .states = states, .moves = moves, .state_count = STATES, .step = step};
    static struct input input; /* one a process */
    input = (struct input){.worker = worker};
    buf_init(&input.pending, REQUEST_MOST);
    worker->input = &input.task;
    task_start(worker->loop, &input.task, &type, NULL, "stdin");
}

/* "0-1,4" */
bool input_parse_cores(const char *text, int *cores, size_t most, size_t *count)
{
    *count = 0;
    while (*text != '\0') {
        char *end;
        if (!isdigit((unsigned char)*text))
            return false;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1]))
                return false;
            last = strtol(end + 1, &end, 10);
        }
        if (first > last || last > 4095 || (*end != ',' && *end != '\0'))
            return false;
        for (long core = first; core <= last && *count < most; core++)
            cores[(*count)++] = (int)core;
        text = *end == ',' ? end + 1 : end;
    }
    return *count > 0;
}
