/* agents/llm/completion: a request on its way to a provider, and what is made of what comes back: a
 * class of fault, whether the provider is alive, and what the answer may have cost. */
#include "agents/llm/completion_batch.h"

#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

enum {
    MALFORMED_MAX = 2,
    EMPTY_MAX = 1,
    FREE_MAX = 1,
    IMPATIENT_MAX = 3,
    ANSWER_BYTES_MAX = 16 << 20,
    SILENT_MS = 12 * 60 * 1000 /* loop/http's limits for the first byte and between two */
};

/* How long a provider may say nothing, though it pings: models think in silence. */
static uint64_t silent_ms(const struct completions *completions)
{
    uint64_t limit_ms = completions->first_byte_ms + completions->between_bytes_ms;
    return completions->first_byte_ms > 0 && completions->between_bytes_ms > 0 ? limit_ms
                                                                               : SILENT_MS;
}

/* From now until it is looked at whether it makes progress. */
static uint64_t looks_ms(const struct ask *ask)
{
    uint64_t silent = silent_ms(ask->completions), patience = ask_patience_ms(ask, ask->heard > 0);
    return ask->others != NULL && patience < silent ? patience : silent;
}

int ask_send(struct ask *ask, struct err *err)
{
    struct completions *completions = ask->completions;
    struct completion_request request = ask->request;
    if (ask->model->command)
        return ask_start_command(ask, err);
    const char *url;
    const char *const *headers;
    request.max_tokens = ask_max_tokens(ask);
    request.cache = ask->model->cache;
    BUF_LOCAL(body, 64 << 20);
    ask->model->codec->encode(ask->arena, &request, ask->model->base_url, model_key(ask->model),
                              &url, &headers, &body);
    const struct http_spec spec = {.method = "POST",
                                   .url = url,
                                   .headers = headers,
                                   .body = buf_text(&body),
                                   .body_length = body.length,
                                   .connect_ms = completions->connect_ms,
                                   .first_byte_ms = completions->first_byte_ms,
                                   .between_bytes_ms = completions->between_bytes_ms,
                                   .total_ms = completions->total_ms,
                                   .body_max = ANSWER_BYTES_MAX,
                                   .ca_file = completions->ca_file,
                                   .fresh = ask->free_retries > 0 || ask->timed_out ||
                                            ask->endpoint->prober == ask};
    ask->http = http_start(completions->http, &ask->task, &spec, err);
    if (ask->http == NULL)
        return -1;
    ask->state = answer_begin(ask->arena, ask->model->codec);
    ask->heard = 0;
    ask->heard_ns = clock_now_ns();
    ask->sent_ns = ask->heard_ns;
    timer_start(completions->loop, &ask->timer, &ask->task, looks_ms(ask));
    completions->totals.requests++;
    ask->tally->view.asked++;
    return 0;
}

/* Of an answer that will not be had: were there words of it? */
static enum spend_end what_is_left(const struct ask *ask)
{
    const char *text = ask->completion.text;
    return text != NULL && *text != '\0' ? SPEND_CUT : SPEND_LOST;
}

struct store_batch *ask_stop_sending(struct ask *ask)
{
    bool read = ask->http != NULL && http_connected(ask->http);
    int status = ask->http != NULL ? http_status(ask->http) : 0;
    http_free_request(ask->http);
    ask->http = NULL;
    if (ask->state != NULL) {
        enum fault ignored;
        struct err err;
        (void)answer_finish(ask->state, &ask->completion, &ignored, &err);
    }
    ask->state = NULL;
    bool costs = (read && (status == 0 || status == 200)) || ask->process;
    ask_free_command(ask);
    return ask_close_spend(ask, costs ? what_is_left(ask) : SPEND_RELEASED);
}

/* ---- reading ---- */

/* A page is a wrong address, or a portal's. What calls itself anything else may be an answer. */
static bool is_page(const struct ask *ask)
{
    return strstr(http_header(ask->http, "content-type"), "html") != NULL;
}

/* A stream that does not keep max_tokens is cut where it has had them: else it would cost what
 * nobody reserved. */
static bool is_too_long(const struct ask *ask)
{
    enum { TOKEN_BYTES = 5, SLACK_BYTES = 4096 };
    int64_t most = ask_max_tokens(ask);
    return most > 0 && ask->state->streamed &&
           (int64_t)ask->state->text.length > most * TOKEN_BYTES + SLACK_BYTES;
}

/* Hands what has arrived to the codec; false ends the reading. */
static bool read_body(struct ask *ask, struct verdict *verdict)
{
    size_t length;
    if (http_status(ask->http) != 200)
        return true;
    if (is_page(ask)) {
        verdict->fault = FAULT_FATAL;
        verdict->money = SPEND_RELEASED; /* no provider speaks so */
        err_set(&verdict->err, ERR_PROTOCOL, "content-type is \"%.80s\"; is the base URL right?",
                http_header(ask->http, "content-type"));
        return false;
    }
    const char *body = http_body(ask->http, &length);
    int status = length > 0 ? answer_feed(ask->state, body, length, &verdict->err) : 0;
    http_consume(ask->http, length);
    if (status == 0 && is_too_long(ask)) {
        verdict->fault = FAULT_FATAL;
        err_set(&verdict->err, ERR_LIMIT,
                "%zu bytes came, and the %lld tokens of max_tokens are "
                "fewer: the server does not keep it",
                ask->state->text.length, (long long)ask_max_tokens(ask));
        return false;
    }
    if (status == 0)
        return true;
    if (verdict->err.code == ERR_LIMIT)
        verdict->fault = FAULT_FATAL; /* a bomb is as long the second time */
    return false;
}

/* While another could be asked a model is waited for only as long as its answers take. */
static bool is_straggling(struct ask *ask, uint64_t now, struct verdict *verdict)
{
    uint64_t patience_ms = ask_patience_ms(ask, ask->heard > 0);
    if ((now - ask->sent_ns) / 1000000 < patience_ms || !ask_has_others(ask))
        return false;
    ask->moved = true;
    verdict->fault = FAULT_RETRY;
    err_set(&verdict->err, ERR_TIMEOUT, "%s after %.0f s, while others could be asked",
            ask->heard > 0 ? "no end" : "not a word", (double)patience_ms / 1000);
    return true;
}

/* Signs of life are no progress. Looks at the clock only when the timer has fired. */
static bool is_stuck(struct ask *ask, struct verdict *verdict)
{
    uint64_t limit_ms = silent_ms(ask->completions), now = clock_now_ns();
    uint64_t heard = answer_heard(ask->state);
    if (heard != ask->heard) {
        if (ask->heard == 0)
            ask_note_word(ask, (now - ask->sent_ns) / 1000000);
        ask->heard = heard;
        ask->heard_ns = now;
    }
    if (ask->timer.armed)
        return false;
    if (is_straggling(ask, now, verdict))
        return true;
    uint64_t silent = (now - ask->heard_ns) / 1000000, looks = looks_ms(ask);
    if (silent < limit_ms) {
        uint64_t left = limit_ms - silent;
        timer_start(ask->task.loop, &ask->timer, &ask->task, looks < left ? looks : left);
        return false;
    }
    verdict->fault = FAULT_RETRY;
    err_set(&verdict->err, ERR_TIMEOUT, "progress limit of %.1f s: signs of life, but no word",
            (double)limit_ms / 1000);
    return true;
}

/* The network's word: nothing came, or not all. */
static void judge_network(const struct ask *ask, struct verdict *verdict)
{
    const struct err *network = http_error(ask->http);
    int status = http_status(ask->http);
    bool lost = network->code == ERR_NETWORK || network->code == ERR_TIMEOUT;
    verdict->err = *network;
    verdict->tls = http_error_is_tls(ask->http);
    verdict->stale = http_error_is_stale(ask->http);
    verdict->fault = lost && !verdict->tls ? FAULT_RETRY : FAULT_FATAL;
    /* A stream's head comes before its first token is paid for; but one that was silent for as long
     * as we wait may have been thinking, for nobody knows how much. */
    verdict->money = status == 200 && network->code == ERR_NETWORK ? SPEND_CUT : what_is_left(ask);
    bool silent = status == 0 && network->code == ERR_NETWORK;
    if (!http_connected(ask->http) || silent || (status != 0 && status != 200))
        verdict->money = SPEND_RELEASED;
}

static int64_t patience_of(const struct http_request *http)
{
    return retry_after(http_header(http, "retry-after-ms"), http_header(http, "retry-after"),
                       http_header(http, "date"), clock_wall_ms());
}

void ask_judge_status(const struct http_request *http, struct verdict *verdict)
{
    size_t length;
    const char *body = http_body(http, &length);
    BUF_LOCAL(reason, sizeof verdict->err.message - 1);
    verdict->fault = fault_classify(http_status(http), body, length, &reason);
    verdict->money = SPEND_RELEASED;
    verdict->alive = verdict->fault != FAULT_RETRY;
    verdict->after_ms = patience_of(http);
    if (verdict->after_ms < 0)
        verdict->after_ms = fault_patience_ms(body, length);
    err_set(&verdict->err, ERR_PROTOCOL, "%s", buf_text(&reason));
}

/* An error event inside a 200 is what its status would be. Before the first word it cost nothing.
 */
void ask_judge_answer(const struct ask *ask, enum fault fault, struct verdict *verdict)
{
    static const char says[] = "the provider says";
    bool error = strncmp(verdict->err.message, says, sizeof says - 1) == 0;
    bool begun = ask->completion.text != NULL && *ask->completion.text != '\0';
    if (verdict->fault == FAULT_NONE)
        verdict->fault = fault != FAULT_NONE ? fault : FAULT_RETRY;
    verdict->malformed = verdict->fault == FAULT_RETRY && !error;
    verdict->alive = verdict->fault != FAULT_RETRY || verdict->malformed;
    if (verdict->fault == FAULT_REFUSED || verdict->fault == FAULT_EMPTY)
        verdict->money = SPEND_SETTLED;
    else if (verdict->money != SPEND_RELEASED || begun || !error)
        verdict->money = error && !begun ? SPEND_RELEASED : begun ? SPEND_CUT : SPEND_LOST;
}

static void judge(struct ask *ask, bool readable, struct verdict *verdict)
{
    struct err ended = {ERR_NONE, ""};
    enum fault fault = FAULT_NONE;
    int finished = answer_finish(ask->state, &ask->completion, &fault, &ended);
    ask->state = NULL;
    if (readable) {
        verdict->after_ms = patience_of(ask->http);
        if (finished == 0 && http_status(ask->http) == 200)
            verdict->alive = true; /* whole, however the connection ended after it */
        else if (http_error(ask->http)->code != ERR_NONE)
            judge_network(ask, verdict);
        else if (http_status(ask->http) != 200)
            ask_judge_status(ask->http, verdict);
        else
            verdict->err = ended;
    }
    bool of_answer = http_error(ask->http)->code == ERR_NONE && http_status(ask->http) == 200;
    if (!readable && verdict->err.code == ERR_TIMEOUT)
        verdict->money = what_is_left(ask);
    if (!readable && (verdict->fault == FAULT_FATAL || verdict->err.code == ERR_TIMEOUT))
        return;
    if (!readable || (of_answer && finished != 0))
        ask_judge_answer(ask, fault, verdict);
}

/* ---- faults ---- */

/* Empty, or cut in its JSON: who does so again and again is there, but no help while others are. */
static bool is_useless(const struct ask *ask, const struct verdict *verdict)
{
    return (verdict->malformed || verdict->fault == FAULT_EMPTY) && ask_has_others(ask);
}

/* The endpoint learns of it first; then whoever else waits for it. */
static void tell_endpoint(struct ask *ask, const struct verdict *verdict,
                          const struct retry_decision *decision)
{
    struct endpoint *endpoint = ask->endpoint;
    struct err reason = verdict->err;
    enum endpoint_state before = endpoint->state;
    ask_hide_key(ask->model, &reason);
    if (decision->park)
        endpoint_limit(endpoint, (uint64_t)verdict->after_ms, true, &reason);
    else if (verdict->fault == FAULT_LIMITED)
        endpoint_limit(endpoint,
                       decision->again         ? decision->delay_ms
                       : verdict->after_ms > 0 ? (uint64_t)verdict->after_ms
                                               : ask->completions->policy->base_ms,
                       false, &reason);
    else if (verdict->tls || verdict->fault == FAULT_QUOTA || verdict->fault == FAULT_KEY ||
             verdict->fault == FAULT_MODEL)
        endpoint_block(endpoint, ask->model, verdict->fault, &reason);
    else if (verdict->alive && !is_useless(ask, verdict))
        endpoint_succeeded(endpoint);
    else if (verdict->fault == FAULT_RETRY || verdict->fault == FAULT_EMPTY)
        endpoint_failed(endpoint, ask, (clock_now_ns() - ask->sent_ns) / 1000000, &reason);
    endpoint_leave(endpoint, ask);
    if (endpoint->state != before || endpoint->breaker_open ||
        endpoint_blocked(endpoint, ask->model)->code != ERR_NONE)
        completions_wake(ask->completions, NULL); /* those of other endpoints too: they may move */
}

/* Asked again after a while: the endpoint says when, or a back-off of its own does. */
static enum task_result again(struct ask *ask, const struct verdict *verdict, uint64_t delay_ms)
{
    struct err words = verdict->err;
    struct store_batch *batch = ask_close_spend(ask, verdict->money);
    ask_hide_key(ask->model, &words);
    ask->completions->totals.retries++;
    slots_release(&ask->slot);
    if (delay_ms == 0)
        return ask_settle(ask, batch, WAITING);
    log_event(LOG_INFO, "completion.retry", ask->task.id, "try %d in %.1f s: %s", ask->failures + 1,
              (double)delay_ms / 1000, words.message);
    timer_start(ask->task.loop, &ask->timer, &ask->task, delay_ms);
    enum task_result result = ask_settle(ask, batch, BACKING_OFF);
    return result == TASK_AGAIN ? TASK_WAIT : result;
}

static enum task_result give_up(struct ask *ask, const struct verdict *verdict)
{
    struct store_batch *batch = ask_close_spend(ask, verdict->money);
    ask->fault = verdict->fault;
    ask->err = verdict->err;
    ask_hide_key(ask->model, &ask->err);
    log_event(LOG_WARN, "completion.failed", ask->task.id, "%s: %s", ask->model->name,
              ask->err.message);
    ask_let_go(ask);
    return ask_settle(ask, batch, ENDED);
}

static enum task_result faulted(struct ask *ask, const struct verdict *verdict)
{
    struct completions *completions = ask->completions;
    struct err words = verdict->err;
    ask_hide_key(ask->model, &words);
    if (verdict->stale && ask->free_retries < FREE_MAX) {
        ask->free_retries++;
        endpoint_leave(ask->endpoint, ask);
        return again(ask, verdict, 0);
    }
    if (verdict->fault == FAULT_KEY && !ask->renewed && key_was_refused(ask->model)) {
        ask->renewed = true;
        endpoint_leave(ask->endpoint, ask);
        return again(ask, verdict, 0);
    }
    ask->failures++;
    ask->tally->view.failed++;
    ask_note_failure(ask, &words);
    /* A limit came before our patience: at the first byte, or in the middle of an answer. */
    if (verdict->err.code == ERR_TIMEOUT && ask_has_others(ask))
        ask->moved = true;
    if (ask->moved) {
        ask->tally->silences +=
            endpoint_silent(ask->endpoint, ask, (clock_now_ns() - ask->sent_ns) / 1000000, &words);
        ask->tally->view.moved++;
        endpoint_leave(ask->endpoint, ask);
        completions_wake(completions, NULL);
        return give_up(ask, verdict);
    }
    const struct command_model *command = ask->model->command;
    if (command && command->retries >= 0 && ask->failures > command->retries) {
        endpoint_leave(ask->endpoint, ask);
        return give_up(ask, verdict);
    }
    struct retry_decision decision =
        retry_decide(completions->policy, verdict->fault, ask->failures, verdict->after_ms,
                     &completions->random);
    if (!verdict->told)
        tell_endpoint(ask, verdict, &decision);
    endpoint_leave(ask->endpoint, ask);
    if (ask->impatient && (decision.park || ask->failures >= IMPATIENT_MAX))
        return give_up(ask, verdict);
    ask->timed_out = verdict->err.code == ERR_TIMEOUT;
    if (decision.park || (ask->endpoint->breaker_open && verdict->fault == FAULT_RETRY)) {
        ask->failures--; /* an outage is the endpoint's, and uses up nobody's tries */
        return again(ask, verdict, 0);
    }
    if (is_useless(ask, verdict))
        return give_up(ask, verdict);
    if (verdict->fault == FAULT_EMPTY && ask->empty++ < EMPTY_MAX)
        return again(ask, verdict, completions->policy->base_ms);
    if (verdict->malformed && ++ask->malformed > MALFORMED_MAX)
        return give_up(ask, verdict);
    if (!decision.again)
        return give_up(ask, verdict);
    return again(ask, verdict, decision.whole_key ? 0 : decision.delay_ms + 1);
}

/* A refusal is kept like an answer, so that the same words are never asked again. */
static enum task_result answered(struct ask *ask, const struct verdict *verdict)
{
    struct completions_totals *totals = &ask->completions->totals;
    const struct completion *answer = &ask->completion;
    bool refused = verdict->fault == FAULT_REFUSED;
    bool was_open = ask->endpoint->breaker_open;
    endpoint_succeeded(ask->endpoint);
    ask_let_go(ask);
    ask_look_at_usage(ask);
    if (was_open)
        completions_wake(ask->completions, NULL);
    ask_note_answer(ask);
    totals->answers++;
    totals->prompt_tokens += answer->prompt_tokens > 0 ? answer->prompt_tokens : 0;
    totals->completion_tokens += answer->completion_tokens > 0 ? answer->completion_tokens : 0;
    if (refused) {
        ask->completion.finish = "refused";
        ask->fault = FAULT_REFUSED;
        ask->err = verdict->err;
        ask_hide_key(ask->model, &ask->err);
        log_event(LOG_WARN, "completion.refused", ask->task.id, "%s: %s", ask->model->name,
                  ask->err.message);
    }
    struct store_batch *batch = ask_close_spend(ask, refused ? verdict->money : SPEND_SETTLED);
    return ask_store(ask, batch, refused ? ask->err.message : NULL);
}

enum task_result ask_judged(struct ask *ask, const struct verdict *verdict)
{
    if (verdict->fault == FAULT_NONE || verdict->fault == FAULT_REFUSED)
        return answered(ask, verdict);
    return faulted(ask, verdict);
}

enum task_result ask_step_sending(struct ask *ask)
{
    if (ask->process)
        return ask_step_command(ask);
    if (ask->batch)
        return ask_step_batched(ask);
    struct verdict verdict = {.after_ms = -1, .money = SPEND_CUT};
    bool readable = read_body(ask, &verdict);
    if (readable && !http_done(ask->http)) {
        if (!is_stuck(ask, &verdict))
            return TASK_WAIT;
        readable = false;
    }
    judge(ask, readable, &verdict);
    timer_stop(&ask->timer);
    http_free_request(ask->http);
    ask->http = NULL;
    return ask_judged(ask, &verdict);
}
