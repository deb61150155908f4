/* agents/search/round: rounds with a model. Round 0 measures the starts; each later one asks once
 * an island for ideas on its best kernels, has each written `implementations` times, and meanwhile
 * the proposer tunes what is known already, in lanes that nobody needs while a model thinks. A
 * round is over when all of that has ended; then its candidates are taken, in the order of their
 * numbers:
 *
 *   base + 1 ...            what models write: idea i, implementation k is base + i * K + k + 1
 *   base + B * K + 1 ...    points tuned for free
 *   and then                what agents have evaluated, AGENT_EVALUATIONS_MOST for each attempt
 *
 *
 *   asking (ideas; asked once more where they cannot be read) -> working (attempts) -> over
 */
#include "agents/ideas/novelty.h"
#include "agents/llm/command.h"
#include "agents/search/private.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ASKING, WORKING, OVER, STATES };
static const char *const states[STATES] = {"asking", "working", "over"};
static const uint32_t moves[STATES] = {1u << WORKING | 1u << OVER, 1u << OVER, 0};

enum { BARREN_MOST = 3, SHRINK_MOST = 1 };

/* What one island is asked for. */
struct idea_request {
    struct ask ask;
    struct retrieval retrieval; /* what its prompt quotes */
    bool retrieving;
    struct buf system, prompt;
    const struct attempt *parents[PARENTS_MAX];
    size_t parent_count;
    char id[64];
    int island;
    int64_t first_idea, count; /* of this round's ideas: its share */
    unsigned shrink;
    int64_t max_tokens, step;
    uint64_t tried;        /* models that failed at this question; see struct draw */
    const char *complaint; /* of its last answer, or NULL */
    bool asked_again, over, failed;
    struct timer timer; /* until it is asked again, where nobody could answer for now */
    bool waits;
    unsigned waited;
    double since_ms; /* of the first of these */
};

struct model_round {
    struct task task;
    struct search *search;
    struct idea_request idea_requests[ISLANDS_MAX];
    size_t idea_request_count;
    struct arena *arena;    /* what its prompts are made of; gone with it */
    int64_t numbers, ideas; /* given out before this round */
    int64_t steps;          /* where the numbers of what agents evaluate begin; 0: there are none */
    struct chain chain;
};

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
    bool proven = completions_totals(search->completions).answers > 0 && search->round->barren == 0;
    bool patient =
        search->options.budget_ms > 0 || (proven && now - wanted->since_ms <= patience_ms);
    if (!patient || fault == FAULT_TOO_LONG || fault == FAULT_REFUSED)
        return false;
    uint64_t ms = (uint64_t)FIRST_MS << (wanted->waited < DOUBLINGS ? wanted->waited : DOUBLINGS);
    wanted->waited++;
    wanted->waits = true;
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
    if (!unread && count == 0)
        unread = err_set(&err, ERR_PROTOCOL, "all of them were tried: %s", buf_text(&repeats));
    wanted->over = true;
    search_round_answered(search);
    search_watch_provider(search, "");
    if (!unread) {
        spread(round, wanted, ideas, count);
        return;
    }
    log_event(LOG_WARN, "round.ideas", search->id, "%s", err.message);
    if (!wanted->asked_again) {
        wanted->asked_again = true;
        wanted->over = false;
        wanted->tried = 0;
        wanted->step++;
        wanted->complaint = arena_strdup(round->arena, err.message);
        idea_request_ask(round, wanted);
    }
}

static bool asking_ended(struct model_round *round)
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

/* A provider that fails every request of several rounds is not asked for ever. */
static void note_barren(struct model_round *round)
{
    struct search *search = round->search;
    bool barren = round->idea_request_count > 0;
    for (size_t i = 0; i < round->idea_request_count; i++)
        barren = barren && round->idea_requests[i].failed;
    search->round->barren = barren ? search->round->barren + 1 : 0;
    if (search->round->barren >= BARREN_MOST)
        search_stop_provider(search, round->idea_requests[0].ask.err.message);
}

static enum task_result round_step(struct task *task)
{
    struct model_round *round = container_of(task, struct model_round, task);
    if (task->state == ASKING) {
        if (!asking_ended(round))
            return TASK_WAIT;
        note_barren(round);
        task_move(task, WORKING);
    }
    if (task->pending > 0)
        return TASK_WAIT;
    task_move(task, OVER);
    return TASK_DONE;
}

static const struct task_type round_type = {"round", states, moves, STATES, round_step, NULL};

/* ---- one round ---- */

static void wishes_start(struct model_round *round)
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
        wanted->parent_count = search_parents(search, wanted->island, wanted->parents);
        idea_request_begin(round, wanted);
    }
}

static void round_start(struct search *search, int64_t number)
{
    const struct search_options *o = &search->options;
    struct model_round *round = MEM_NEW(struct model_round);
    char id[48];
    int64_t written = number > 0 ? search_round_size(search) : 0;
    int64_t tuning = search_tuning_size(search);
    history_round(search);
    twins_round(search);
    search_lessons_round(search);
    round->search = search;
    round->arena = arena_new();
    round->numbers = search->numbers;
    round->ideas = search->idea_numbers;
    search->round->now = round;
    search->record.round = number;
    search_round_began(search);
    round->chain = (struct chain){.first = round->numbers + written + 1,
                                  .ideas_first = round->ideas + (number > 0 ? o->branching : 0) + 1,
                                  .limit = number > 0 ? tuning : (int64_t)search->arm_count,
                                  .window = number > 0 ? search_lanes_depth(search) : INT32_MAX,
                                  .tuning = number > 0};
    search->numbers += written + round->chain.limit;
    if (written > 0 && agents_wanted(search)) {
        round->steps = search->numbers + 1;
        search->numbers += written * AGENT_EVALUATIONS_MOST;
    }
    search->idea_numbers += (number > 0 ? o->branching : 0) + round->chain.limit;
    if (number > 0)
        log_event(LOG_INFO, "round.start", search->id, "round %lld of %lld", (long long)number,
                  (long long)o->rounds);
    snprintf(id, sizeof id, "%.20s-round%lld", search->id, (long long)number);
    task_start(search->task.loop, &round->task, &round_type, &search->task, id);
    if (number > 0)
        wishes_start(round);
}

static void round_free(struct search *search)
{
    struct model_round *round = search->round->now;
    if (!round)
        return;
    for (size_t i = 0; i < round->idea_request_count; i++) {
        ask_free(&round->idea_requests[i].ask);
        retrieval_free(&round->idea_requests[i].retrieval);
        buf_free(&round->idea_requests[i].system);
        buf_free(&round->idea_requests[i].prompt);
    }
    arena_free(round->arena);
    mem_free(round);
    search->round->now = NULL;
}

static void round_end(struct search *search)
{
    search_take_all(search);
    if (search->record.round > 0)
        search_round_ended(search);
    search_round_taken(search, search->record.round);
    round_free(search);
}

/* ---- all rounds ---- */

bool search_rounds_step(struct search *search)
{
    if (search->twins_write.active)
        return true;
    if (search->round->now) {
        bool tuning = chain_step(search, &search->round->now->chain);
        if (tuning || !search->round->now->task.finished)
            return true;
        round_end(search);
        search->round->next++;
        if (search->twins_write.active)
            return true;
    }
    if (search->round->over || search_provider_stopped(search) || !search_may_propose(search) ||
        search->round->next > search->options.rounds) {
        search->round->over = true;
        return false;
    }
    round_start(search, search->round->next);
    return true;
}

void search_rounds_stop(struct search *search)
{
    struct model_round *round = search->round->now;
    for (size_t i = 0; round && i < round->idea_request_count; i++) {
        struct idea_request *wanted = &round->idea_requests[i];
        if (wanted->retrieving)
            task_cancel(&wanted->retrieval.task);
        if (wanted->waits)
            task_wake(&round->task);
        if (wanted->ask.arena && !wanted->ask.task.finished)
            task_cancel(&wanted->ask.task);
    }
    /* What has not come to the lane stays as the store has it. */
    list_each_safe (link, &search->running) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        if (writing_is_left(attempt))
            attempt_abandon(attempt);
    }
}

void search_rounds_close(struct search *search)
{
    round_free(search);
}
