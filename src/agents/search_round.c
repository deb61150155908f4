/* agents/search_round: rounds with a model. Each asks for `branching` ideas on the best kernels so
 * far, and has each written `implementations` times; it ends when all of them have. What a model is
 * thinking about leaves the lane free: there the proposer tunes what is known already.
 *
 *   asking (ideas; asked once more where they cannot be read) -> working (attempts) -> over
 */
#include "agents/search_private.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { ASKING, WORKING, OVER, STATES };
static const char *const states[STATES] = {"asking", "working", "over"};
static const uint32_t moves[STATES] = {1u << WORKING | 1u << OVER, 1u << OVER, 0};

enum { PARENTS_MAX = 8, HISTORY_SHOWN = 60 };

struct model_round {
    struct task task;
    struct search *search;
    struct ask ask;
    struct buf system, prompt;
    const struct attempt *parents[PARENTS_MAX];
    size_t parent_count;
    bool asked_again;
};

/* ---- what has been tried ---- */

void search_remember(struct search *search, const struct attempt *attempt)
{
    struct arena *arena = search->arena;
    const struct candidate_record *record = &attempt->record;
    if (search->history_count == search->history_capacity) {
        search->history_capacity = search->history_capacity ? 2 * search->history_capacity : 64;
        search->history =
            mem_resize(search->history, search->history_capacity * sizeof *search->history);
    }
    double over_parent = 0;
    list_each (link, &search->kept) {
        const struct attempt *parent = container_of(link, struct attempt, link);
        if (strcmp(parent->record.id, record->parent) == 0 && record->time_ns > 0)
            over_parent = parent->record.time_ns / record->time_ns;
    }
    search->history[search->history_count++] =
        (struct prompt_attempt){.id = arena_strdup(arena, record->id),
                                .title = arena_strdup(arena, attempt->idea.title),
                                .category = arena_strdup(arena, attempt->idea.category),
                                .state = arena_strdup(arena, record->state),
                                .reason = arena_strdup(arena, record->reason),
                                .speedup = record->speedup,
                                .over_parent = over_parent};
}

/* ---- one round ---- */

static void choose_parents(struct model_round *round)
{
    struct search *search = round->search;
    size_t count = 0, at = 0;
    list_each (link, &search->kept)
        count++;
    struct contender *all = mem_array(count + 1, sizeof *all);
    list_each (link, &search->kept) {
        struct attempt *kept = container_of(link, struct attempt, link);
        all[at++] = (struct contender){.speedup_low = kept->record.speedup_low,
                                       .time_ns = kept->record.time_ns,
                                       .number = kept->record.number,
                                       .item = kept};
    }
    select_sort(all, count);
    size_t chosen = select_count(count, search->options.select, search->options.beam);
    for (size_t i = 0; i < chosen && i < PARENTS_MAX; i++)
        round->parents[round->parent_count++] = all[i].item;
    mem_free(all);
}

static void round_ask(struct model_round *round, const char *complaint)
{
    struct search *search = round->search;
    struct prompt_kernel kernels[PARENTS_MAX];
    size_t skipped =
        search->history_count > HISTORY_SHOWN ? search->history_count - HISTORY_SHOWN : 0;
    for (size_t i = 0; i < round->parent_count; i++) {
        const struct attempt *parent = round->parents[i];
        kernels[i] = (struct prompt_kernel){.id = parent->record.id,
                                            .name = parent->arm->name,
                                            .source = parent->arm->text,
                                            .tune = parent->record.tune,
                                            .metrics = parent->request.evaluation.metrics,
                                            .time_ns = parent->record.time_ns,
                                            .speedup = parent->record.speedup,
                                            .speedup_low = parent->record.speedup_low,
                                            .speedup_high = parent->record.speedup_high};
    }
    prompt_system(search->prompts, &round->system);
    prompt_ideas(search->prompts, &search->context, kernels, round->parent_count,
                 search->history + skipped, search->history_count - skipped,
                 search->options.branching, 0, &round->prompt);
    if (complaint)
        buf_addf(&round->prompt, "\nYour last answer could not be read: %s\n", complaint);
    round->ask = (struct ask){.model = models_pick(search->options.idea_models, 0),
                              .request = {.system = buf_text(&round->system),
                                          .prompt = buf_text(&round->prompt),
                                          .json = true},
                              .purpose = "ideas",
                              .sample = complaint ? 1 : 0};
    char id[48];
    snprintf(id, sizeof id, "%.20s-round%lld", search->id, (long long)search->record.round);
    ask_start(search->completions, &round->ask, &round->task, id);
}

static const struct attempt *parent_of(const struct model_round *round, const struct idea *idea)
{
    for (size_t i = 0; i < round->parent_count; i++)
        if (strcmp(round->parents[i]->record.id, idea->parent) == 0)
            return round->parents[i];
    return round->parent_count ? round->parents[0] : NULL;
}

static void round_spread(struct model_round *round, const struct idea *ideas, size_t count)
{
    struct search *search = round->search;
    for (size_t i = 0; i < count; i++) {
        char id[48];
        snprintf(id, sizeof id, "%.20s-i%lld", search->id, (long long)++search->idea_number);
        for (int64_t k = 0; k < search->options.implementations; k++)
            attempt_start_writing(search, &round->task, &ideas[i], id, parent_of(round, &ideas[i]),
                                  k);
    }
}

static enum task_result round_asking(struct model_round *round)
{
    struct search *search = round->search;
    struct idea ideas[IDEAS_MAX];
    struct err err = {0};
    size_t count = 0, most = (size_t)search->options.branching;
    if (!round->ask.task.finished)
        return TASK_WAIT;
    if (search_stopping(search) || search->budget_reached) {
        task_move(&round->task, OVER);
        return TASK_DONE;
    }
    if (round->ask.err.code) {
        search->provider_stopped =
            arena_printf(search->arena, "provider: %s", round->ask.err.message);
        if (completions_totals(search->completions).answers == 0)
            search_fail(search, &round->ask.err);
        task_move(&round->task, OVER);
        return TASK_DONE;
    }
    if (ideas_parse(search->arena, round->ask.completion.text, ideas,
                    most < IDEAS_MAX ? most : IDEAS_MAX, &count, &err)) {
        log_event(LOG_WARN, "round.ideas", search->id, "%s", err.message);
        ask_free(&round->ask);
        if (round->asked_again) {
            task_move(&round->task, OVER);
            return TASK_DONE;
        }
        round->asked_again = true;
        buf_reset(&round->system);
        buf_reset(&round->prompt);
        round_ask(round, err.message);
        return TASK_WAIT;
    }
    round_spread(round, ideas, count);
    task_move(&round->task, WORKING);
    return TASK_WAIT;
}

static enum task_result round_step(struct task *task)
{
    struct model_round *round = container_of(task, struct model_round, task);
    if (task->state == ASKING)
        return round_asking(round);
    if (task->pending > 0)
        return TASK_WAIT;
    task_move(task, OVER);
    return TASK_DONE;
}

static const struct task_type round_type = {"round", states, moves, STATES, round_step, NULL};

static void round_start(struct search *search)
{
    struct model_round *round = MEM_NEW(struct model_round);
    char id[48];
    round->search = search;
    buf_init(&round->system, PROMPT_BYTES_MAX);
    buf_init(&round->prompt, PROMPT_BYTES_MAX);
    search->round = round;
    search->tuned = 0;
    search->record.round++;
    log_event(LOG_INFO, "round.start", search->id, "round %lld of %lld",
              (long long)search->record.round, (long long)search->options.rounds);
    choose_parents(round);
    snprintf(id, sizeof id, "%.20s-round%lld", search->id, (long long)search->record.round);
    task_start(search->task.loop, &round->task, &round_type, &search->task, id);
    round_ask(round, NULL);
}

static void round_free(struct search *search)
{
    struct model_round *round = search->round;
    if (!round)
        return;
    ask_free(&round->ask);
    buf_free(&round->system);
    buf_free(&round->prompt);
    mem_free(round);
    search->round = NULL;
}

/* ---- all rounds ---- */

bool search_model_rounds(struct search *search)
{
    if (search->round && !search->round->task.finished)
        return true;
    round_free(search);
    bool first_looks = search->record.round == 0 && search->in_flight > 0;
    if (first_looks) /* the starts are measured before anybody is asked about them */
        return true;
    if (search->rounds_over || search->provider_stopped || search->budget_reached ||
        search_stopping(search) || search->record.round >= search->options.rounds) {
        search->rounds_over = true;
        return false;
    }
    round_start(search);
    return true;
}

void search_model_stop(struct search *search)
{
    if (search->round && !search->round->task.finished && search->round->task.state == ASKING &&
        !search->round->ask.task.finished)
        task_cancel(&search->round->ask.task);
    /* A model may write for minutes: what has not come to the lane stays as the store has it. */
    list_each_safe (link, &search->running) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        if (attempt->writing && !attempt->submitted && !attempt->abandoned)
            attempt_abandon(attempt);
    }
}

static const char *text_of(struct arena *arena, const struct value *value)
{
    struct buf text;
    struct json json;
    if (!value)
        return "";
    buf_init(&text, 1 << 20);
    json_init(&json, &text);
    json_value(&json, value);
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_free(&text);
    return copy;
}

int search_model_open(struct search *search, struct err *err)
{
    const struct search_options *o = &search->options;
    const struct completions_spec spec = {
        .run = search->id, .seed = (uint64_t)o->seed, .ca_file = o->ca_file};
    struct buf reference;
    struct err ignored;
    if (prompts_load(search->arena, o->backend, &search->prompts, err))
        return -1;
    buf_init(&reference, 1 << 20);
    search->context = (struct prompt_context){
        .problem = search->problem,
        .reference = file_read(search->problem->reference_file, &reference, &ignored) == 0
                         ? arena_strdup(search->arena, buf_text(&reference))
                         : "",
        .device = text_of(search->arena, value_get(search->open.answer, "device")),
        .facts = text_of(search->arena, value_get(search->open.answer, "facts")),
        .baseline = o->baseline ? o->baseline : search->problem->baseline};
    buf_free(&reference);
    search->completions =
        completions_new(search->task.loop, search->store, search->writer, &spec, err);
    return search->completions ? 0 : -1;
}

void search_model_close(struct search *search)
{
    round_free(search);
    completions_free(search->completions);
    mem_free(search->history);
    search->completions = NULL;
    search->history = NULL;
}
