/* agents/llm/completion: what is known of each model that was asked: what became of its requests,
 * why some failed, how long its answers take; and from that how long one is waited for while others
 * could be asked in its place. */
#include "agents/llm/completion_private.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* A model that never answered may be thinking; one that did is known. */
enum {
    PATIENCE_NEW_MS = 4 * 60 * 1000,
    PATIENCE_KNOWN_MS = 2 * 60 * 1000,
    PATIENCE_TIMES = 4,         /* its longest so far */
    ANSWER_MS = 10 * 60 * 1000, /* with words coming all the time */
    DOUBLINGS_MOST = 8
};

struct model_tally *completions_tally(struct completions *completions, const struct model *model)
{
    list_each (link, &completions->tallies) {
        struct model_tally *tally = container_of(link, struct model_tally, link);
        if (strcmp(tally->view.name, model->name) == 0)
            return tally;
    }
    struct model_tally *tally = MEM_NEW(struct model_tally);
    tally->view.name = tally->name = mem_strdup(model->name);
    tally->view.embeds = model->codec != NULL && model->codec->embeds;
    list_append(&completions->tallies, &tally->link);
    return tally;
}

void completions_free_tallies(struct completions *completions)
{
    for (struct link *link; (link = list_pop(&completions->tallies)) != NULL;) {
        struct model_tally *tally = container_of(link, struct model_tally, link);
        mem_free(tally->name);
        mem_free(tally);
    }
}

size_t completions_models(const struct completions *completions, struct model_view *views,
                          size_t most)
{
    size_t count = 0;
    list_each (link, &completions->tallies) {
        if (count < most)
            views[count] = container_of(link, struct model_tally, link)->view;
        count++;
    }
    return count;
}

/* ---- causes ---- */

/* Numbers in a reason change from one to the next: the same up to its first digit is the same, but
 * not where that is a status. */
static bool same_reason(const char *one, const char *other)
{
    const char *status = strstr(one, "HTTP "), *others = strstr(other, "HTTP ");
    if (status != NULL && others != NULL && strncmp(status, others, sizeof "HTTP 429" - 1) != 0)
        return false;
    size_t length = strcspn(one, "0123456789");
    return length == strcspn(other, "0123456789") && strncmp(one, other, length) == 0;
}

struct cause *cause_of(struct cause *causes, size_t *count, enum endpoint_state state,
                       const char *reason)
{
    struct cause *last = NULL;
    for (size_t i = 0; i < *count; i++) {
        if (causes[i].state == state && same_reason(causes[i].reason, reason))
            return &causes[i];
        last = causes[i].state == state ? &causes[i] : last;
    }
    if (*count == CAUSES_MOST)
        return last != NULL ? last : &causes[CAUSES_MOST - 1];
    struct cause *cause = &causes[(*count)++];
    *cause = (struct cause){.state = state, .since_wall_ms = clock_wall_ms()};
    snprintf(cause->reason, sizeof cause->reason, "%s", reason);
    return cause;
}

void ask_note_failure(struct ask *ask, const struct err *err)
{
    struct model_view *view = &ask->tally->view;
    struct cause *cause =
        cause_of(view->failures, &view->failure_count, ENDPOINT_READY, err->message);
    cause->times++;
    cause->until_wall_ms = clock_wall_ms();
    ask->noted = cause; /* what it cost is known once its reservation is closed */
}

void completions_note_nothing(const struct ask *ask, const char *reason)
{
    if (ask->from_store || ask->tally == NULL) /* the process that asked has said so */
        return;
    struct model_view *view = &ask->tally->view;
    struct cause *cause = cause_of(view->nothing, &view->nothing_count, ENDPOINT_READY, reason);
    cause->times++;
    cause->until_wall_ms = clock_wall_ms();
    cause->micro_dollars += ask->spend.micro_dollars;
}

/* ---- others ---- */

bool completions_avoided(struct completions *completions, const struct model *model)
{
    struct endpoint *endpoint =
        model->codec != NULL ? completions_find_endpoint(completions, model) : NULL;
    if (endpoint == NULL)
        return false;
    endpoint_update(endpoint);
    return endpoint_blocked(endpoint, model)->code != ERR_NONE ||
           endpoint_is_avoided(endpoint, NULL);
}

bool ask_has_others(const struct ask *ask)
{
    for (size_t i = 0; ask->others != NULL && i < ask->others->count; i++) {
        const struct model *other = &ask->others->items[i];
        bool itself = strcmp(other->name, ask->model->name) == 0;
        if (!itself && other->codec != NULL && !completions_avoided(ask->completions, other))
            return true;
    }
    return false;
}

/* One that could be asked already is nothing to wait for: who still waits has a better place. */
uint64_t ask_looks_ns(const struct ask *ask)
{
    uint64_t first = endpoint_retry_ns(ask->endpoint), now = clock_now_ns();
    for (size_t i = 0; ask->others != NULL && i < ask->others->count; i++) {
        const struct model *other = &ask->others->items[i];
        const struct endpoint *endpoint =
            other->codec != NULL ? completions_find_endpoint(ask->completions, other) : NULL;
        uint64_t retry_ns = endpoint != NULL && endpoint_blocked(endpoint, other)->code == ERR_NONE
                                ? endpoint_avoided_until_ns(endpoint)
                                : 0;
        if (retry_ns > now && (first == 0 || retry_ns < first))
            first = retry_ns;
    }
    return first;
}

/* ---- patience ---- */

static uint64_t longer(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

void ask_note_word(const struct ask *ask, uint64_t ms)
{
    ask->tally->word_ms = longer(ask->tally->word_ms, ms);
}

void ask_note_answer(const struct ask *ask)
{
    struct model_tally *tally = ask->tally;
    tally->view.answered++;
    uint64_t ms = (clock_now_ns() - ask->sent_ns) / 1000000;
    if (ask->heard == 0) /* it came at once */
        tally->word_ms = longer(tally->word_ms, ms);
    tally->answer_ms = longer(tally->answer_ms, ms);
    tally->silences = 0;
}

uint64_t ask_patience_ms(const struct ask *ask, bool heard)
{
    const struct model_tally *tally = ask->tally;
    if (heard)
        return longer(ANSWER_MS, PATIENCE_TIMES * tally->answer_ms);
    uint64_t ms = tally->view.answered > 0
                      ? longer(PATIENCE_KNOWN_MS, PATIENCE_TIMES * tally->word_ms)
                      : PATIENCE_NEW_MS;
    unsigned doublings =
        tally->silences > 1 ? tally->silences - 1 : 0; /* the first may be chance */
    return ms << (doublings < DOUBLINGS_MOST ? doublings : DOUBLINGS_MOST);
}
