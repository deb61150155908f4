/* agents/llm/completion.h and agents/llm/ask.h, answered after a drawn latency: ideas of random
 * words, or a kernel that no other is like. Keeps to the number of requests in flight, as the
 * engine does. */
#include "night.h"

#include "agents/ideas/ideas.h"
#include "agents/llm/ask.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { WAITING, ASKED, ENDED, STATES };

struct completions {
    struct loop *loop;
    struct slots slots;
    unsigned capacity;
    struct err none;
    struct completions_totals totals;
};

struct completions *completions_new(struct loop *loop, struct store *store,
                                    struct store_writer *writer,
                                    const struct completions_spec *spec, struct err *err)
{
    (void)store;
    (void)writer;
    (void)err;
    struct completions *completions = MEM_NEW(struct completions);
    completions->loop = loop;
    completions->capacity = spec->in_flight > 0 ? spec->in_flight : 8;
    slots_init(&completions->slots, "requests", completions->capacity);
    return completions;
}

void completions_free(struct completions *completions)
{
    mem_free(completions);
}

bool completions_held(const struct completions *completions)
{
    (void)completions;
    return false;
}

int ask_fit(const struct model *model, struct completion_request *request, struct err *err)
{
    (void)model, (void)request, (void)err; /* all goes in */
    return 0;
}

void completions_hold(struct completions *completions, bool held)
{
    slots_resize(&completions->slots, held ? 0 : completions->capacity);
}

size_t completions_endpoints(const struct completions *completions, struct endpoint_view *views,
                             size_t most)
{
    (void)completions;
    (void)views;
    (void)most;
    return 0;
}

size_t completions_models(const struct completions *completions, struct model_view *views,
                          size_t most)
{
    (void)completions, (void)views, (void)most;
    return 0;
}

void completions_note_nothing(const struct ask *ask, const char *reason)
{
    (void)ask, (void)reason;
}

size_t completions_causes(const struct completions *completions, const char *model_name,
                          struct cause causes[CAUSES_MOST])
{
    (void)completions, (void)model_name, (void)causes;
    return 0;
}

bool completions_avoided(struct completions *completions, const struct model *model)
{
    (void)completions, (void)model;
    return false;
}

const struct err *completions_blocked(const struct completions *completions,
                                      const struct model *model)
{
    (void)model;
    return &completions->none;
}

struct completions_totals completions_totals(const struct completions *completions)
{
    return completions->totals;
}

/* --- what is answered --- */

static void put_words(struct buf *out, uint64_t hash, int count)
{
    for (int i = 0; i < count; i++) { /* near-duplicates of tried ideas would be dropped */
        char number[24];
        snprintf(number, sizeof number, "%d", i);
        buf_addf(out, "%sw%06x", i > 0 ? " " : "",
                 (unsigned)(night_hash("word", number, (int64_t)hash) & 0xffffff));
    }
}

static void put_ideas(struct buf *out, uint64_t hash)
{
    buf_add_text(out, "{\"ideas\": [");
    for (int i = 0; i < 64; i++) { /* as many as anybody may ask for */
        buf_addf(out, "%s{\"title\": \"", i > 0 ? ", " : "");
        put_words(out, hash + (uint64_t)i, 6);
        buf_add_text(out, "\", \"category\": \"memory\", \"why\": \"");
        put_words(out, hash + (uint64_t)i + 1000, 8);
        buf_add_text(out, "\", \"expected\": 1.2, \"parent\": \"\"}");
    }
    buf_add_text(out, "]}");
}

static void put_code(struct buf *out, uint64_t hash)
{
    buf_addf(
        out,
        "```c\n/*---\ntune: {KB: [32, 64, 128], UNROLL: [1, 2, 4]}\n---*/\n/* %016llx */\n"
        "void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)"
        "\n{\n    for (int64_t i = 0; i < M * N; i++)\n        C[i] = 0;\n}\n```\n",
        (unsigned long long)hash);
}

/* --- an ask --- */

static void answer(struct ask *ask, uint64_t hash)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    if (strcmp(ask->purpose, "ideas") == 0)
        put_ideas(&text, hash);
    else
        put_code(&text, hash);
    ask->completion = (struct completion){.text = arena_strdup(ask->arena, buf_text(&text)),
                                          .prompt_tokens = 1000,
                                          .completion_tokens = 1000,
                                          .finish = "stop",
                                          .model = "night"};
    buf_free(&text);
}

static enum task_result end(struct ask *ask)
{
    timer_stop(&ask->timer);
    slots_release(&ask->slot);
    task_move(&ask->task, ENDED);
    return TASK_DONE;
}

static enum task_result ask_step(struct task *task)
{
    struct ask *ask = (struct ask *)task;
    struct completions *completions = ask->completions;
    uint64_t hash = night_hash(ask->purpose, task->id, ask->step);
    if (task->cancel_requested) {
        err_set(&ask->err, ERR_CANCELLED, "cancelled");
        return end(ask);
    }
    if (task->state == WAITING) {
        if (!ask->slot.granted && (list_linked(&ask->slot.link) ||
                                   !slots_acquire(&completions->slots, &ask->slot, task, 1)))
            return TASK_WAIT;
        bool ideas = strcmp(ask->purpose, "ideas") == 0;
        uint64_t ms = night_draw(ideas ? latencies.ideas_s : latencies.code_s, hash);
        printf("ask %s %s %lld %.1f %llu\n", task->id, ask->purpose, (long long)ask->step,
               virtual_ms(), (unsigned long long)ms);
        completions->totals.requests++;
        timer_start(task->loop, &ask->timer, task, ms);
        task_move(task, ASKED);
        return TASK_WAIT;
    }
    if (!ask->timer.fired)
        return TASK_WAIT;
    answer(ask, hash);
    completions->totals.answers++;
    return end(ask);
}

void ask_start(struct completions *completions, struct ask *ask, struct task *parent,
               const char *id)
{
    static const char *const states[STATES] = {"waiting", "asked", "ended"};
    static const uint32_t moves[STATES] = {1u << ASKED | 1u << ENDED, 1u << ENDED, 0};
    static const struct task_type type = {
        .name = "ask", .states = states, .moves = moves, .state_count = STATES, .step = ask_step};
    ask->completions = completions;
    ask->arena = arena_new();
    task_start(completions->loop, &ask->task, &type, parent, id);
}

void ask_free(struct ask *ask)
{
    assert(ask->arena == NULL || ask->task.finished);
    arena_free(ask->arena);
    ask->arena = NULL;
}
