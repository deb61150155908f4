/* agents/llm/completion: what requests may cost. Whoever finds no room in the budget waits in a
 * queue of the whole engine, first come first served, and is woken when somebody's reservation is
 * closed.
 */
#include "agents/llm/completion_private.h"

#include "base/log.h"

#include <string.h>

enum {
    OVERHEAD_TOKENS = 512,     /* a provider's own words around a prompt (roles, tools) */
    ANSWER_TOKENS_MAX = 32768, /* of one answer, where there is a cap and nobody set a bound */
};

static int64_t prompt_bytes(const struct completion_request *request)
{
    size_t bytes = strlen(request->prompt);
    bytes += request->system != NULL ? strlen(request->system) : 0;
    bytes += request->schema != NULL ? strlen(request->schema) : 0;
    bytes += request->earlier != NULL ? strlen(request->earlier) : 0;
    return (int64_t)bytes + OVERHEAD_TOKENS;
}

/* A cap can only be kept where an answer has a bound. It is no part of the request's identity: the
 * same words under another budget are the same request. */
int64_t ask_max_tokens(const struct ask *ask)
{
    const struct model *model = ask->model;
    if (ask->request.max_tokens > 0)
        return ask->request.max_tokens;
    if (model->codec != NULL && model->codec->max_tokens > 0)
        return model->codec->max_tokens;
    if (!budget_capped(ask->completions->budget))
        return 0;
    int64_t left = ANSWER_TOKENS_MAX;
    if (model->context_tokens > 0) { /* a token has about four bytes, sometimes less */
        int64_t beside = model->context_tokens - prompt_bytes(&ask->request) / 2;
        int64_t least = model->context_tokens / 4;
        beside = beside < least ? least : beside;
        left = beside < left ? beside : left;
    }
    return left;
}

int ask_fit(const struct model *model, struct completion_request *request, struct err *err)
{
    enum { BYTES_A_TOKEN = 3 };
    int64_t context = model->context_tokens;
    int64_t answer = request->max_tokens > 0 ? request->max_tokens : model->max_tokens;
    if (context <= 0 || model->codec == NULL || model->codec->embeds)
        return 0;
    int64_t prompt = prompt_bytes(request) / BYTES_A_TOKEN + 1, least = context / 2;
    if (answer > 0 && answer < least)
        least = answer;
    if (prompt > context - least)
        return err_set(err, ERR_USAGE,
                       "a prompt of about %lld tokens, and at least %lld for its answer, do not go "
                       "into the %lld that %s has by its entry's `context` (%s); where it has "
                       "more, say so there",
                       (long long)prompt, (long long)least, (long long)context, model->name,
                       model->where != NULL ? model->where : "models.yaml");
    if (answer > context - prompt)
        request->max_tokens = context - prompt;
    return 0;
}

static void wake_next(struct completions *completions)
{
    if (list_empty(&completions->budget_queue))
        return;
    struct link *first = completions->budget_queue.head.next;
    task_wake(&container_of(first, struct ask, link)->task);
}

void ask_leave_budget(struct ask *ask)
{
    if (!list_linked(&ask->link))
        return;
    list_remove(&ask->link);
    task_complete(&ask->task);
    wake_next(ask->completions);
}

static enum ask_money wait_in_queue(struct ask *ask)
{
    if (!list_linked(&ask->link)) {
        task_expect(&ask->task);
        list_append(&ask->completions->budget_queue, &ask->link);
    }
    return ASK_WAITS;
}

enum ask_money ask_reserve(struct ask *ask, struct err *err)
{
    struct completions *completions = ask->completions;
    struct list *queue = &completions->budget_queue;
    if (ask->write.active)
        return ASK_WAITS;
    if (ask->spend.open && ask->write.err.code == ERR_NONE)
        return ASK_PAID;
    if (ask->spend.open) {
        *err = ask->write.err;
        store_batch_free(ask->write.batch);
        ask->write.batch = NULL;
        store_batch_free(ask_close_spend(ask, SPEND_RELEASED)); /* nothing of it is on disk */
        return ASK_BROKE;
    }
    if (!list_empty(queue) && queue->head.next != &ask->link)
        return wait_in_queue(ask);
    struct store_batch *batch = store_batch_new();
    int64_t most = ask_max_tokens(ask);
    switch (budget_reserve(completions->budget, ask->model, ask->task.id, ask->key,
                           prompt_bytes(&ask->request), most > 0 ? most : ANSWER_TOKENS_MAX,
                           &ask->spend, batch)) {
    case BUDGET_OK:
        ask_leave_budget(ask);
        store_write_take(completions->writer, &ask->write, &ask->task, batch);
        return ASK_WAITS;
    case BUDGET_WAIT:
        store_batch_free(batch);
        return wait_in_queue(ask);
    default:
        store_batch_free(batch);
        ask->over_budget = true;
        err_set(err, ERR_LIMIT, "the budget: %s", budget_reason(completions->budget));
        return ASK_BROKE;
    }
}

struct store_batch *ask_close_spend(struct ask *ask, enum spend_end how)
{
    struct completions *completions = ask->completions;
    if (how == SPEND_KEPT)
        ask->spend.open = false;
    if (!ask->spend.open)
        return NULL;
    struct store_batch *batch = store_batch_new();
    if (how == SPEND_SETTLED)
        budget_settle(completions->budget, &ask->spend, &ask->completion, batch);
    else if (how == SPEND_CUT)
        budget_cut(completions->budget, &ask->spend, &ask->completion, batch);
    else if (how == SPEND_LOST)
        budget_charge(completions->budget, &ask->spend, batch);
    else
        budget_release(completions->budget, &ask->spend, batch);
    ask->tally->view.micro_dollars += ask->spend.micro_dollars;
    if (ask->noted != NULL)
        ask->noted->micro_dollars += ask->spend.micro_dollars;
    ask->noted = NULL;
    wake_next(completions);
    return batch;
}

/* No tokenizer has so few tokens for so much text: what runs models at home (Ollama with its usual
 * num_ctx) leaves out the beginning of a long prompt, and answers without a word of it. */
void ask_look_at_usage(const struct ask *ask)
{
    enum { BYTES_A_TOKEN_MOST = 10, TOKENS_LEAST = 128 };
    int64_t bytes = prompt_bytes(&ask->request) - OVERHEAD_TOKENS;
    int64_t tokens = ask->completion.prompt_tokens;
    if (ask->tally->cuts || tokens < TOKENS_LEAST || bytes / tokens < BYTES_A_TOKEN_MOST)
        return;
    ask->tally->cuts = true;
    log_event(LOG_WARN, "completion.cut", ask->task.id,
              "%s read %lld tokens of a prompt of %lld bytes: its server cuts prompts; give its "
              "entry (%s) the `context` that the server has, or the server more",
              ask->model->name, (long long)tokens, (long long)bytes,
              ask->model->where != NULL ? ask->model->where : "models.yaml");
}
