/* agents/search/round: rounds with a model. Round 0 measures the starts; each later one asks once
 * an island for ideas on its best kernels, has each written `implementations` times, and meanwhile
 * the proposer tunes what is known already, in lanes that nobody needs while a model thinks. A
 * round is over when all of that has ended; then its candidates are taken, in the order of their
 * numbers:
 *
 *   base + 1 ...            what models write: idea i, implementation k is base + i * K + k + 1
 *   base + B * K + 1 ...    what agents have evaluated, AGENT_EVALUATIONS_MOST for each attempt
 *   and then                points tuned for free, as many as there is time for
 *
 *   asking (ideas; asked once more where they cannot be read) -> working (attempts) -> over
 */
#include "agents/search/round_private.h"

#include "agents/llm/command.h"
#include "base/mem.h"

#include <stdio.h>

enum { ASKING, WORKING, OVER, STATES };
static const char *const states[STATES] = {"asking", "working", "over"};
static const uint32_t moves[STATES] = {1u << WORKING | 1u << OVER, 1u << OVER, 0};

enum { BARREN_MOST = 3, FILL_AFTER_MS = 5000 };

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
        if (!round_wishes_ended(round))
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
    round->complaints = search->round->complaints;
    round->barren = search->round->barren > 0;
    round->arena = arena_new();
    round->numbers = search->numbers;
    round->ideas = search->idea_numbers;
    search->round->now = round;
    search->record.round = number;
    search_round_began(search);
    search->numbers += written;
    if (written > 0 && agents_wanted(search)) {
        round->steps = search->numbers + 1;
        search->numbers += written * AGENT_EVALUATIONS_MOST;
    }
    round->chain = (struct chain){.first = search->numbers + 1,
                                  .ideas_first = round->ideas + (number > 0 ? o->branching : 0) + 1,
                                  .limit = number > 0 ? tuning : (int64_t)search->arm_count,
                                  .window = number > 0 ? search_lanes_depth(search) : INT32_MAX,
                                  .tuning = number > 0};
    search->numbers += round->chain.limit;
    if (number > 0 && o->tuning < 0 && o->budget_evaluations == 0)
        round->chain.recalled = search_recall_tuned(search, round->chain.first);
    search->idea_numbers += (number > 0 ? o->branching : 0) + round->chain.limit;
    if (number > 0)
        log_event(LOG_INFO, "round.start", search->id, "round %lld of %lld", (long long)number,
                  (long long)o->rounds);
    snprintf(id, sizeof id, "%.20s-round%lld", search->id, (long long)number);
    task_start(search->task.loop, &round->task, &round_type, &search->task, id);
    if (number > 0)
        round_wishes_start(round);
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
    const struct chain *chain = &search->round->now->chain;
    if (chain->proposed > chain->limit) /* their numbers were given out one by one */
        search->idea_numbers += chain->proposed - chain->limit;
    search_take_all(search);
    if (search->record.round > 0)
        search_round_ended(search);
    search_round_taken(search, search->record.round);
    round_free(search);
}

/* ---- all rounds ---- */

/* Its own points are measured, and a model still thinks, or is waited for: the proposer goes on.
 * Not while people write the answers, and not out of a budget of evaluations, which the model's
 * candidates need. Where answers come at once nothing is filled, so that such a run's tree depends
 * on no clock; else how many there were is in the store, and a run that goes on has as many. */
static bool fills(struct search *search, const struct model_round *round)
{
    const struct search_options *o = &search->options;
    struct completions_totals totals = completions_totals(search->completions);
    bool asked = totals.waiting > totals.awaited || round_wishes_wait(round);
    return search->record.round > 0 && o->tuning < 0 && o->budget_evaluations == 0 && asked &&
           !round->task.finished && search_round_ms(search) >= FILL_AFTER_MS;
}

static bool tunes(struct search *search, struct model_round *round)
{
    bool wanted = fills(search, round), closed = round->task.finished;
    (void)chain_fill(&round->chain, wanted, closed);
    return chain_step(search, &round->chain) ||
           (chain_fill(&round->chain, wanted, closed) && chain_step(search, &round->chain));
}

bool search_rounds_step(struct search *search)
{
    if (search->twins_write.active)
        return true;
    if (search->round->now) {
        struct model_round *round = search->round->now;
        if (tunes(search, round) || !round->task.finished)
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
