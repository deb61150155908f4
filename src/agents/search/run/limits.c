#include "agents/search/run/run.h"

#include "agents/llm/ask.h"

#include <string.h>

/* An idea of the built-in proposer leaves nothing to implement in several ways, so a round of it
 * has `branching x implementations` ideas. */
int64_t search_round_size(const struct search *search)
{
    return search->options.branching * search->options.implementations;
}

int64_t search_tuning_size(const struct search *search)
{
    return search->options.tuning >= 0 ? search->options.tuning : search_round_size(search);
}

static int64_t attempts_most(const struct search *search)
{
    const struct search_options *o = &search->options;
    int64_t most = search_round_size(search) * o->rounds;
    if (search_writes(search))
        most += (int64_t)search->arm_count + search_tuning_size(search) * o->rounds;
    if (o->budget_evaluations > 0 && o->budget_evaluations < most)
        most = o->budget_evaluations;
    return o->dry_run ? 1 : most;
}

/* Evaluations that are asked of the lanes, and those that will be. */
static int64_t promised(const struct search *search)
{
    int64_t count = search->evaluations;
    list_each (link, &search->running) {
        const struct attempt *attempt = container_of(link, struct attempt, link);
        count += !attempt->writing && attempt->record.evaluations == 0;
    }
    return count;
}

/* Why is said where it is known, and the first reason stands. */
static void reach_budget(struct search *search, const char *words)
{
    search->limits.budget_reached = true;
    if (!search->limits.budget_words)
        search->limits.budget_words = words;
}

void search_cap_evaluations(struct search *search)
{
    long long most = search->options.budget_evaluations;
    reach_budget(search, arena_printf(search->arena, "budget: %lld evaluation%s", most,
                                      most == 1 ? "" : "s"));
}

static void reach_time(struct search *search)
{
    long long s = search->options.budget_ms / 1000;
    if (!search->limits.budget_reached && search_final_ms(search) > 0)
        log_event(LOG_DEBUG, "run.time", search->id,
                  "%.1f s are left, the last measurement takes about %.1f s",
                  ((double)search->options.budget_ms - search_elapsed_ms(search)) / 1e3,
                  search_final_ms(search) / 1e3);
    reach_budget(
        search, s >= 3600
                    ? arena_printf(search->arena, "budget: a time of %lld:%02lld:%02lld", s / 3600,
                                   s / 60 % 60, s % 60)
                    : arena_printf(search->arena, "budget: a time of %lld:%02lld", s / 60, s % 60));
}

void search_short_of_time(struct search *search, const char *words)
{
    search->limits.budget_words = NULL; /* whichever ended the search: this is what was short */
    reach_time(search);
    search->limits.budget_words =
        arena_printf(search->arena, "%s, %s", search->limits.budget_words, words);
}

bool search_cap_spending(struct search *search, const struct ask *ask)
{
    if (!ask->over_budget)
        return false;
    reach_budget(search, arena_printf(search->arena, "budget: %s", budget_reason(search->budget)));
    return true;
}

void search_cap_opening(struct search *search)
{
    reach_budget(search, "budget: the time was over before the problem was open");
    log_event(LOG_WARN, "run.time", search->id, "%s", search->limits.budget_words);
}

bool search_may_propose(struct search *search)
{
    const struct search_options *o = &search->options;
    if (search_is_over(search) || search->limits.reached)
        return false;
    if (o->budget_evaluations > 0 && promised(search) >= o->budget_evaluations)
        search_cap_evaluations(search);
    else if (search_deadline_passed(search) ||
             !search_affords_another(search, search_lanes_busy_ms(search)))
        reach_time(search);
    return !search->limits.budget_reached;
}

/* A kernel that beats the floor by more than this says that the floor is wrong: a ceiling measured
 * on a busy machine is too low, and a search that ended there would end after its first round. */
static const double FLOOR_DOUBTED = 1.1;

/* Of what is known to be possible: bytes and operations at this machine's measured rates. */
static bool floor_reached(const struct search *search, const struct attempt *best)
{
    if (search->options.floor_share <= 0 || search->floor_ns <= 0 || best->record.time_ns <= 0 ||
        search->floor_under_load)
        return false;
    double share = search->floor_ns / best->record.time_ns;
    return share >= search->options.floor_share && share <= FLOOR_DOUBTED;
}

enum { STALE_CHANGE = 4, STALE_END = 20 };

/* An outage is no lack of progress: rounds that nobody answered do not count. */
static void note_progress(struct search *search, bool better)
{
    if (search->limits.new_kernel || better)
        search->limits.stale_rounds = 0;
    else if (search->limits.answered_round)
        search->limits.stale_rounds++;
    if (search->limits.stale_rounds == STALE_CHANGE)
        log_event(LOG_INFO, "round.stale", search->id,
                  "%d rounds without a new kernel: other parents, models, temperatures",
                  STALE_CHANGE);
}

int64_t search_staleness(const struct search *search)
{
    int64_t beyond = search->limits.stale_rounds - STALE_CHANGE + 1;
    return beyond > 0 ? beyond : 0;
}

void search_round_taken(struct search *search, int64_t round)
{
    const struct search_options *o = &search->options;
    const struct attempt *best = search_surest(search);
    note_progress(search, best && best->record.speedup_low > search->limits.best_low);
    if (!best && search->limits.stale_rounds < STALE_END)
        return;
    if (best && best->record.speedup_low > search->limits.best_low) {
        search->limits.best_low = best->record.speedup_low;
        search->limits.best_since = round;
    }
    if (search->limits.reached)
        return;
    if (search->limits.stale_rounds >= STALE_END)
        search->limits.reached =
            arena_printf(search->arena, "no progress: %d rounds without a new kernel", STALE_END);
    else if (o->target > 0 && search->limits.best_low >= o->target)
        search->limits.reached =
            arena_printf(search->arena, "target reached: at least %.3gx", o->target);
    else if (floor_reached(search, best))
        search->limits.reached =
            arena_printf(search->arena,
                         "floor reached: %.0f %% of its time is what the definition's bytes "
                         "and operations take at this machine's rates",
                         100 * search->floor_ns / best->record.time_ns);
    else if (o->patience > 0 && round - search->limits.best_since >= o->patience)
        search->limits.reached =
            arena_printf(search->arena, "patience: nothing better for %lld %s",
                         (long long)o->patience, o->kernel ? "evaluations" : "rounds");
    if (search->limits.reached)
        log_event(LOG_INFO, "run.reached", search->id, "%s", search->limits.reached);
}

double search_left_ms(const struct search *search)
{
    double elapsed = search_elapsed_ms(search), by_rate = -1, by_budget = -1;
    int64_t rounds = search->options.rounds - search->record.round + 1;
    if (search->task.state != 1)
        return -1;
    if (search_writes(search) && search->limits.rounds_timed > 0)
        by_rate = search->limits.round_ms / search->limits.rounds_timed *
                  (double)(rounds > 0 ? rounds : 0);
    else if (!search_writes(search) && search_measured(search) > 1)
        by_rate = (elapsed - search->earlier_ms) / (double)search_measured(search) *
                  (double)(attempts_most(search) - search->record.evaluated);
    if (search->options.budget_ms > 0)
        by_budget = (double)search->options.budget_ms - elapsed;
    if (search->options.budget_ms > 0 && (by_rate < 0 || by_budget < by_rate))
        return by_budget > 0 ? by_budget : 0;
    return by_rate;
}

/* ---- other ends ---- */

bool search_reached(const struct search *search)
{
    return search->limits.reached != NULL;
}

bool search_is_over(const struct search *search)
{
    return search_stopping(search) || search->limits.budget_reached || search->limits.awaited;
}

void search_stop_awaiting(struct search *search, const char *words)
{
    search->limits.awaited = arena_strdup(search->arena, words);
}

bool search_awaits(const struct search *search)
{
    return search->limits.awaited != NULL;
}

void search_stop_provider(struct search *search, const char *message)
{
    if (!search->limits.provider_stopped)
        search->limits.provider_stopped = arena_printf(search->arena, "provider: %s", message);
}

bool search_provider_stopped(const struct search *search)
{
    return search->limits.provider_stopped != NULL;
}

const char *search_stop_reason(const struct search *search)
{
    return search->err.code                  ? search->err.message
           : search->stops                   ? "interrupted"
           : search->limits.awaited          ? search->limits.awaited
           : search->limits.provider_stopped ? search->limits.provider_stopped
           : search->limits.budget_words     ? search->limits.budget_words
           : search->limits.reached          ? search->limits.reached
                                             : "";
}

/* ---- what a round brought ---- */

void search_round_began(struct search *search)
{
    search->limits.answered_round = search->limits.new_kernel = false;
    search->limits.round_began_ms = search_elapsed_ms(search);
}

double search_round_ms(const struct search *search)
{
    return search_elapsed_ms(search) - search->limits.round_began_ms;
}

void search_round_answered(struct search *search)
{
    search->limits.answered_round = true;
}

void search_round_kernel(struct search *search)
{
    search->limits.new_kernel = true;
}

void search_round_ended(struct search *search)
{
    search->limits.round_ms += search_elapsed_ms(search) - search->limits.round_began_ms;
    search->limits.rounds_timed++;
}
