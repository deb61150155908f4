/* agents/search/wish: what a round asks each island for, and what becomes of the answer: ideas,
 * which are spread over attempts, or another request. */
#include "agents/search/round_private.h"

#include "agents/ideas/novelty.h"
#include "agents/llm/command.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHRINK_MOST = 1 };

/* ---- parents ---- */

static const struct attempt *parent_of(struct search *search, const struct idea_request *wanted,
                                       const struct idea *idea)
{
    for (size_t i = 0; i < wanted->parent_count; i++)
        if (strcmp(wanted->parents[i]->record.id, idea->parent) == 0)
            return wanted->parents[i];
    const struct attempt *first = wanted->parent_count ? wanted->parents[0] : NULL;
    search->record.strange_parents += *idea->parent != '\0';
    if (first || *idea->parent)
        log_event(LOG_WARN, "round.parent", wanted->id,
                  "\"%s\" is to start from \"%s\", no parent here: from %s", idea->title,
                  idea->parent, first ? first->record.id : "the problem itself");
    return first;
}

/* ---- asking for ideas ---- */

static struct search_about about_of(const struct model_round *round,
                                    const struct idea_request *wanted)
{
    return (struct search_about){
        .arena = round->arena,
        .parent = wanted->parent_count > 0 ? wanted->parents[0] : NULL,
        .language = search_language(round->search, wanted->island,
                                    wanted->parent_count > 0 ? wanted->parents[0] : NULL),
        .first_idea = round->ideas + wanted->first_idea + 1,
        .ideas = wanted->count};
}

static void idea_request_prompt(struct model_round *round, struct idea_request *wanted,
                                const char *complaint)
{
    struct search *search = round->search;
    struct prompt_kernel kernels[PARENTS_MAX];
    bool all = search->options.strategy != STRATEGY_ISLANDS;
    size_t count;
    struct prompt_attempt *history = history_of(search, all ? -1 : wanted->island, &count);
    for (size_t i = 0; i < wanted->parent_count; i++)
        kernels[i] = search_kernel_words(wanted->parents[i]);
    const struct search_about about = about_of(round, wanted);
    struct prompt_context context = search_context_for(search, &wanted->retrieval, &about);
    buf_reset(&wanted->system);
    buf_reset(&wanted->prompt);
    prompt_system_for(search->prompts, PROMPT_IDEAS, &wanted->system);
    prompt_ideas(search->prompts, &context, kernels, wanted->parent_count, history, count,
                 wanted->count, wanted->shrink, &wanted->prompt);
    mem_free(history);
    if (complaint)
        buf_addf(&wanted->prompt, "\nYour last answer could not be used: %s\n", complaint);
}

/* As short as the model's room asks for; see writing.c. */
static struct completion_request idea_request_request(struct model_round *round,
                                                      struct idea_request *wanted,
                                                      const struct model *model,
                                                      const char *complaint)
{
    struct completion_request request;
    const struct search *search = round->search;
    struct err ignored;
    for (;; wanted->shrink++) {
        idea_request_prompt(round, wanted, complaint);
        request = (struct completion_request){.model = model->wire_name,
                                              .temperature = search_temperature(search, model),
                                              .system = buf_text(&wanted->system),
                                              .prompt = buf_text(&wanted->prompt),
                                              .shared = prompt_shared(buf_text(&wanted->prompt)),
                                              .max_tokens = wanted->max_tokens,
                                              .json = true,
                                              .schema = ideas_schema};
        if (ask_fit(model, &request, &ignored) == 0 || wanted->shrink >= SHRINK_ALL)
            return request;
    }
}

static struct draw draw_of(const struct model_round *round, const struct idea_request *wanted)
{
    return (struct draw){.idea = true,
                         .asker = wanted->id,
                         .purpose = "ideas",
                         .number = round->search->record.round * ISLANDS_MAX + wanted->island,
                         .step = wanted->step,
                         .tried = wanted->tried};
}

static void idea_request_ask(struct model_round *round, struct idea_request *wanted)
{
    struct search *search = round->search;
    const struct draw draw = draw_of(round, wanted);
    const struct model *model = search_pick_model(search, &draw);
    wanted->over = wanted->failed = !model;
    if (!model)
        return;
    ask_free(&wanted->ask);
    wanted->ask =
        (struct ask){.model = model,
                     .others = search_models(search, true),
                     .request = idea_request_request(round, wanted, model, wanted->complaint),
                     .purpose = draw.purpose,
                     .sample = search->record.round, /* each round gets its own answer */
                     .step = draw.step};
    ask_start(search->completions, &wanted->ask, &round->task, wanted->id);
}

/* First what its prompt quotes; idea_request_ask() once that is there. */
static void idea_request_begin(struct model_round *round, struct idea_request *wanted)
{
    const struct search_about about = about_of(round, wanted);
    snprintf(wanted->id, sizeof wanted->id, "%.20s-round%lld.%d", round->search->id,
             (long long)round->search->record.round, wanted->island);
    wanted->retrieving =
        search_retrieve(round->search, &wanted->retrieval, &round->task, wanted->id, &about);
    if (!wanted->retrieving)
        idea_request_ask(round, wanted);
}

static void idea_request_retrieved(struct model_round *round, struct idea_request *wanted)
{
    const struct search *search = round->search;
    wanted->retrieving = false;
    if (search_is_over(search))
        wanted->over = true;
    else
        idea_request_ask(round, wanted);
}

static void spread(struct model_round *round, struct idea_request *wanted, const struct idea *ideas,
                   size_t count)
{
    struct search *search = round->search;
    int64_t each = search->options.implementations;
    for (size_t i = 0; i < count; i++) {
        char id[48];
        int64_t place = wanted->first_idea + (int64_t)i;
        snprintf(id, sizeof id, "%.20s-i%" PRId64, search->id, round->ideas + place + 1);
        const struct attempt *parent = parent_of(search, wanted, &ideas[i]);
        for (int64_t k = 0; k < each; k++) {
            int64_t number = place * each + k;
            struct attempt *attempt =
                attempt_start_writing(search, &round->task, round->numbers + number + 1, &ideas[i],
                                      id, parent, wanted->island, k);
            if (round->steps > 0)
                attempt_operate(attempt, parent, &round->task,
                                round->steps + number * AGENT_EVALUATIONS_MOST);
        }
    }
}

/* Nobody answers anything of use: a page of somebody's maintenance, say. It is waited for as long
 * as the budget of time lasts; without one for two hours, if there was an answer before. */
static bool wait_for_better(struct model_round *round, struct idea_request *wanted)
{
    enum { FIRST_MS = 15 * 1000, MOST_MS = 2 * 60 * 1000, DOUBLINGS = 3 };
    const double patience_ms = 2 * 3600e3;
    struct search *search = round->search;
    enum fault fault = wanted->ask.fault;
    double now = search_elapsed_ms(search);
    if (wanted->waited == 0)
        wanted->since_ms = now;
    bool proven = completions_totals(search->completions).answers > 0 && !round->barren;
    bool patient =
        search->options.budget_ms > 0 || (proven && now - wanted->since_ms <= patience_ms);
    if (!patient || fault == FAULT_TOO_LONG || fault == FAULT_REFUSED)
        return false;
    uint64_t ms = (uint64_t)FIRST_MS << (wanted->waited < DOUBLINGS ? wanted->waited : DOUBLINGS);
    wanted->waited++;
    wanted->waits = true;
    if (fault == FAULT_FATAL && strstr(wanted->ask.err.message, "HTTP 4")) /* it is the words */
        wanted->complaint =
            arena_printf(round->arena, "%s (%u times)", wanted->ask.err.message, wanted->waited);
    wanted->over = false;
    char why[256];
    snprintf(why, sizeof why, "provider: %.200s", wanted->ask.err.message);
    search_watch_provider(search, why);
    timer_start(search->task.loop, &wanted->timer, &round->task, ms < MOST_MS ? ms : MOST_MS);
    return true;
}

static void idea_request_waited(struct model_round *round, struct idea_request *wanted)
{
    struct search *search = round->search;
    bool over = search_is_over(search);
    if (wanted->timer.armed && !over)
        return;
    timer_stop(&wanted->timer);
    wanted->waits = false;
    wanted->tried = 0;
    if (over)
        wanted->over = true;
    else
        idea_request_ask(round, wanted);
}

/* The next round's request says so: the same words would come to the same end. */
static void keep_complaint(struct model_round *round, const struct idea_request *wanted,
                           const char *message)
{
    round->complaints[wanted->island] =
        arena_printf(round->search->arena, "%s (in round %lld)", message,
                     (long long)round->search->record.round);
}

/* No answer: with a shorter prompt, from another model, or none from this island. */
static void no_answer(struct model_round *round, struct idea_request *wanted)
{
    struct search *search = round->search;
    const struct ask *ask = &wanted->ask;
    bool shorter = ask->fault == FAULT_TOO_LONG && wanted->shrink < SHRINK_MOST;
    wanted->over = true;
    if (ask->err.code == ERR_CANCELLED)
        return;
    if (search_cap_spending(search, ask))
        return;
    if (shorter)
        wanted->shrink++;
    struct draw draw = draw_of(round, wanted);
    bool another = !shorter && (ask->moved || (ask->fault != FAULT_REFUSED &&
                                               search_pick_another(search, &draw, ask->model)));
    wanted->tried = draw.tried;
    if (shorter || another || completions_blocked(search->completions, ask->model)->code) {
        idea_request_ask(round, wanted); /* says itself where nobody is left */
        return;
    }
    log_event(LOG_WARN, "round.ideas", search->id, "%s", ask->err.message);
    if (wait_for_better(round, wanted))
        return;
    wanted->failed = true;
    if (ask->fault == FAULT_REFUSED)
        completions_note_nothing(ask, ask->err.message);
    keep_complaint(round, wanted, ask->err.message);
    search_watch_provider(search, "");
}

static void take_ideas(struct model_round *round, struct idea_request *wanted)
{
    struct search *search = round->search;
    struct idea ideas[IDEAS_MAX];
    struct err err = {0};
    size_t tried;
    const struct prompt_attempt *history = history_shown(search, &tried);
    size_t count = 0, most = (size_t)wanted->count < IDEAS_MAX ? (size_t)wanted->count : IDEAS_MAX;
    BUF_LOCAL(repeats, 1 << 14);
    bool cut = strcmp(wanted->ask.completion.finish, "length") == 0;
    if (cut)
        wanted->max_tokens = 2 * wanted->ask.request.max_tokens;
    int unread = ideas_parse(round->arena, wanted->ask.completion.text, ideas, most, &count, &err);
    if (!unread)
        count = novelty_keep(ideas, count, history, tried, &repeats);
    if (repeats.length > 0)
        log_event(LOG_INFO, "round.repeats", search->id, "%s", buf_text(&repeats));
    bool known = !unread && count == 0;
    if (known)
        unread = err_set(&err, ERR_PROTOCOL, "all of them were tried: %s", buf_text(&repeats));
    wanted->over = true;
    search_round_answered(search);
    search_watch_provider(search, "");
    if (!unread) {
        spread(round, wanted, ideas, count);
        return;
    }
    log_event(LOG_WARN, "round.ideas", search->id, "%s", err.message);
    completions_note_nothing(&wanted->ask, known ? "all ideas were tried before" : err.message);
    if (wanted->asked_again)
        keep_complaint(round, wanted, err.message);
    if (!wanted->asked_again) {
        wanted->asked_again = true;
        wanted->over = false;
        wanted->tried = 0;
        wanted->step++;
        wanted->complaint = arena_strdup(round->arena, err.message);
        idea_request_ask(round, wanted);
    }
}

bool round_wishes_ended(struct model_round *round)
{
    struct search *search = round->search;
    bool ended = true;
    for (size_t i = 0; i < round->idea_request_count; i++) {
        struct idea_request *wanted = &round->idea_requests[i];
        if (wanted->retrieving && wanted->retrieval.task.finished)
            idea_request_retrieved(round, wanted);
        if (wanted->waits) {
            idea_request_waited(round, wanted);
        } else if (!wanted->retrieving && !wanted->over && wanted->ask.task.finished) {
            if (search_is_over(search))
                wanted->over = true;
            else if (wanted->ask.err.code)
                no_answer(round, wanted);
            else
                take_ideas(round, wanted);
        }
        ended = ended && wanted->over;
    }
    return ended;
}

bool round_wishes_wait(const struct model_round *round)
{
    for (size_t i = 0; i < round->idea_request_count; i++)
        if (round->idea_requests[i].waits)
            return true;
    return false;
}

void round_wishes_start(struct model_round *round)
{
    struct search *search = round->search;
    size_t islands = search_islands(search);
    int64_t ideas = search->options.branching, given = 0;
    for (size_t i = 0; i < islands; i++) {
        struct idea_request *wanted = &round->idea_requests[round->idea_request_count++];
        wanted->island = (int)i;
        wanted->first_idea = given;
        wanted->count = ideas / (int64_t)islands + ((int64_t)i < ideas % (int64_t)islands);
        given += wanted->count;
        buf_init(&wanted->system, PROMPT_BYTES_MAX);
        buf_init(&wanted->prompt, PROMPT_BYTES_MAX);
        wanted->complaint = round->complaints[i];
        round->complaints[i] = NULL;
        wanted->parent_count = search_parents(search, wanted->island, wanted->parents);
        idea_request_begin(round, wanted);
    }
}
