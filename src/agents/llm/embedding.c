#include "agents/llm/embedding.h"

#include "agents/llm/providers/embeddings.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

#include <string.h>

enum {
    PATIENCE_MS = 20000,     /* a prompt waits no longer for what it can do without */
    REST_MS = 5 * 60 * 1000, /* after a failure */
    PROMPT_BYTES_MAX = 1 << 16
};

void embedding_use(struct embedding *embedding, const struct model *model)
{
    embedding->model = *model;
    embedding->model.codec = &codec_embeddings;
    embedding->model.max_tokens = codec_embeddings.max_tokens;
    embedding->model.temperature = -1;
    embedding->patience_ms = PATIENCE_MS;
    for (size_t i = 0; i < EMBEDDING_LANES; i++)
        slots_init(&embedding->lanes[i], "embeddings", 1);
}

void embedding_say(struct embedding *embedding, const char *id, const char *why)
{
    log_event(embedding->said ? LOG_DEBUG : LOG_WARN, "prompt.embeddings", id,
              "passages go by words alone: %s", why);
    embedding->said = true;
}

static bool rests(const struct embedding *embedding)
{
    return clock_now_ns() < embedding->rests_until_ns ||
           completions_blocked(embedding->completions, &embedding->model)->code != ERR_NONE;
}

static bool over(struct embedding_ask *asking)
{
    timer_stop(&asking->patience);
    slots_release(&asking->slot);
    ask_free(&asking->ask);
    buf_free(&asking->prompt);
    return true;
}

static void send(struct embedding *embedding, struct embedding_ask *asking, struct task *owner)
{
    asking->sent = true;
    asking->ask = (struct ask){.model = &embedding->model,
                               .request = {.prompt = buf_text(&asking->prompt)},
                               .purpose = "embedding",
                               .impatient = true,
                               .step = asking->step};
    timer_start(owner->loop, &asking->patience, owner, embedding->patience_ms);
    ask_start(embedding->completions, &asking->ask, owner, asking->id);
}

/* True: it has its turn. */
static bool in_turn(struct embedding *embedding, struct embedding_ask *asking, struct task *owner)
{
    if (asking->slot.owner == NULL) {
        buf_init(&asking->prompt, PROMPT_BYTES_MAX);
        for (size_t i = 0; i < asking->count; i++)
            embeddings_add(&asking->prompt, asking->texts[i]);
        uint64_t mark = hash_bytes(buf_text(&asking->prompt), asking->prompt.length).low;
        (void)slots_acquire(&embedding->lanes[mark % EMBEDDING_LANES], &asking->slot, owner, 1);
    }
    return asking->slot.granted;
}

/* Time stands still while a person has paused the run. */
static void look_at_the_clock(struct embedding *embedding, struct embedding_ask *asking,
                              struct task *owner)
{
    if (!asking->patience.fired)
        return;
    asking->patience.fired = false;
    if (completions_held(embedding->completions)) {
        timer_start(owner->loop, &asking->patience, owner, embedding->patience_ms);
        return;
    }
    err_set(&asking->ask.err, ERR_TIMEOUT, "no answer within %.0f s",
            (double)embedding->patience_ms / 1000);
    task_cancel(&asking->ask.task);
}

static void take(struct embedding *embedding, struct embedding_ask *asking, struct arena *arena)
{
    const struct ask *ask = &asking->ask;
    struct err err = ask->err;
    if (err.code == ERR_NONE)
        asking->vectors =
            embeddings_read(arena, ask->completion.text, asking->count, &asking->dimensions);
    if (err.code == ERR_NONE && asking->vectors == NULL)
        err_set(&err, ERR_PROTOCOL, "the answer has not %zu vectors", asking->count);
    if (asking->vectors != NULL || err.code == ERR_CANCELLED)
        return;
    embedding->rests_until_ns = clock_now_ns() + (uint64_t)REST_MS * 1000000;
    err_wrap(&err, "%s", embedding->model.name);
    embedding_say(embedding, asking->id, err.message);
}

bool embedding_step(struct embedding *embedding, struct embedding_ask *asking, struct task *owner,
                    struct arena *arena, bool cancel)
{
    if (!asking->sent) {
        if (cancel || asking->count == 0 || rests(embedding))
            return over(asking);
        if (!in_turn(embedding, asking, owner))
            return false;
        send(embedding, asking, owner);
    }
    if (cancel)
        task_cancel(&asking->ask.task);
    look_at_the_clock(embedding, asking, owner);
    if (!asking->ask.task.finished)
        return false;
    take(embedding, asking, arena);
    return over(asking);
}
