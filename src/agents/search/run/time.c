/* The champion's last measurement comes out of the same budget. What that will take the worker says
 * with each verdict, by what it has measured itself (eval/measure/session_cost.c); so much is kept
 * back. */
#include "agents/search/run/run.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The estimate is of the machine as it was: a busier one takes longer. */
static const double margin = 1.25;

static double left_ms(const struct search *search)
{
    return (double)search->options.budget_ms - search_elapsed_ms(search);
}

/* What takes so long alone waits for other twagents meanwhile, as what was measured so far did.
 * Not more than a quarter of the budget is kept back for that: it may be another one's last
 * measurement, which comes to its end. */
static double waiting_ms(const struct search *search, double ms)
{
    double all = (double)search->options.budget_ms - search->earlier_ms;
    return fmin(search->time.waits * ms, all / 4);
}

/* What would not fit is not kept back for. It is planned with the first kernel, and again with each
 * that is faster, whose last measurement takes another time. Of what has been kept back for an
 * earlier one half will do, as below. */
static void plan(struct search *search)
{
    const struct time *time = &search->time;
    double left = left_ms(search);
    bool kept = time->plan == PLAN_WHOLE || time->plan == PLAN_LEAST;
    if (left > margin * time->final_ms + waiting_ms(search, time->final_ms))
        search->time.plan = PLAN_WHOLE;
    else if (left > time->least_ms + waiting_ms(search, time->least_ms) ||
             (kept && search_affords_final(search)))
        search->time.plan = PLAN_LEAST;
    else
        search->time.plan = PLAN_NONE;
}

/* Of a full measurement. The first one pays for what all share; one that was dropped took less. */
static void learn_full(struct time *time, const struct evaluation *evaluation)
{
    double sum = 0;
    for (size_t i = 0; i < STAGES; i++)
        sum += evaluation->stage_ms[i];
    time->full_ms = time->kernels < 2 ? sum : fmax(time->full_ms, sum);
    time->kernels++;
}

/* The champion's last measurement will be of the fastest: what that of a slow one would take says
 * nothing of it. One that is about as fast says how busy the machine is now. */
void search_learn_cost(struct search *search, const struct lane_request *request)
{
    static const double alike = 1.25;
    const struct evaluation *evaluation = &request->evaluation;
    struct time *time = &search->time;
    double ns = evaluation->time_ns.median;
    if (request->err.code || evaluation->verdict != VERDICT_KERNEL || evaluation->dropped ||
        !(request->final_ms > 0))
        return;
    learn_full(time, evaluation);
    if (time->best_ns > 0 && !(ns <= alike * time->best_ns))
        return;
    bool better = !(time->best_ns > 0) || ns < time->best_ns;
    time->final_ms = request->final_ms;
    time->least_ms = fmin(request->final_least_ms, request->final_ms);
    if (!better)
        return;
    time->best_ns = ns;
    time->slower = evaluation->speedup.samples > 0 && evaluation->speedup.high < 1;
    if (search->options.budget_ms > 0)
        plan(search);
}

/* That a kernel is slower than its baseline need not be verified while a start has not had its
 * first look: that one may be the kernel that all this is for. */
static bool keeps_back(const struct search *search)
{
    int64_t starts = 0;
    for (size_t i = 0; i < search->arm_count; i++)
        starts += search->arms[i].number >= 0;
    bool early = search->time.slower && search->time.measured < starts;
    return search->options.final && search->time.plan != PLAN_NONE && !early;
}

void search_learn_measured(struct search *search, double busy_ms, double waits)
{
    if (search->time.measured++ == 0)
        search->time.first_busy_ms = busy_ms;
    search->time.waits = waits;
}

double search_final_ms(const struct search *search)
{
    return search->time.final_ms;
}

int64_t search_measured(const struct search *search)
{
    return search->time.measured;
}

/* Of the last measurement: what is planned for it. */
static double planned_ms(const struct search *search)
{
    return search->time.plan == PLAN_LEAST ? search->time.least_ms : search->time.final_ms;
}

/* Before anything is known a share of all; then the last measurement, where there is time for it
 * the run-off, and where there is plenty another try, which is seldom needed: what it leaves is
 * lost. */
static double reserve_ms(const struct search *search)
{
    enum { LEAST_MS = 12000, MOST_MS = 120000, RUN_OFFS = 5, CLOSING_MS = 500 };
    double all = (double)search->options.budget_ms - search->earlier_ms;
    if (!keeps_back(search))
        return 0;
    if (!(search->time.final_ms > 0))
        return fmin(fmin(fmax(all / 6, LEAST_MS), all / 3), MOST_MS);
    double final_ms = planned_ms(search);
    double one = margin * final_ms + waiting_ms(search, final_ms) + CLOSING_MS;
    double run_off = RUN_OFFS * margin * search->time.full_ms;
    return fmax(fmax(one, fmin(one + run_off, all / 6)), fmin(2 * one + run_off, all / 20));
}

/* Nothing is kept back for a champion that there cannot be: the first candidate has all the time.
 */
static uint64_t deadline_ms(const struct search *search)
{
    double left = (double)search->options.budget_ms - search->earlier_ms;
    if (search->options.budget_ms <= 0)
        return 0;
    if (search->time.measured > 0 || !list_empty(&search->kept))
        left -= reserve_ms(search);
    return left > 1 ? (uint64_t)left : 1;
}

void search_deadline_set(struct search *search)
{
    uint64_t at = deadline_ms(search), gone = (clock_now_ns() - search->started_ns) / 1000000;
    if (at == 0 || at == search->time.deadline_at_ms)
        return;
    search->time.deadline_at_ms = at;
    timer_stop(&search->time.deadline);
    search->time.deadline.fired = false;
    timer_start(search->task.loop, &search->time.deadline, &search->task,
                at > gone ? at - gone : 1);
}

bool search_deadline_passed(const struct search *search)
{
    return search->time.deadline.fired;
}

void search_deadline_stop(struct search *search)
{
    timer_stop(&search->time.deadline);
}

bool search_time_is_up(const struct search *search)
{
    return search->options.budget_ms > 0 && left_ms(search) < 0;
}

/* What was begun has had the time that is allowed for an estimate's error. */
bool search_time_is_overrun(const struct search *search)
{
    enum { LEAST_MS = 2000 };
    double budget_ms = (double)search->options.budget_ms;
    return budget_ms > 0 && left_ms(search) < -fmax(budget_ms / 20, LEAST_MS);
}

bool search_final_is_due(const struct search *search)
{
    return search->options.budget_ms > 0 && search->options.final &&
           left_ms(search) < planned_ms(search) + waiting_ms(search, planned_ms(search));
}

bool search_time_is_long_up(const struct search *search)
{
    enum { MOST_MS = 10000 };
    double budget_ms = (double)search->options.budget_ms;
    return budget_ms > 0 && left_ms(search) < -fmin(budget_ms / 6, MOST_MS);
}

/* A run-off and a champion's measurement cost about as much as a dozen evaluations, where the
 * worker does not say what they take; where it does, another evaluation must end before. What one
 * costs is what the lanes were busy for a verdict: that a model thought for minutes, or could not
 * be asked for an hour, says nothing of it. */
bool search_affords_another(const struct search *search, double busy_ms)
{
    enum { FINAL_EVALUATIONS = 12 };
    if (search->options.budget_ms <= 0 || search->time.measured < 3 || !keeps_back(search))
        return true;
    double mean = (busy_ms - search->time.first_busy_ms) / (double)(search->time.measured - 1);
    double next = mean + waiting_ms(search, mean);
    double end = search->time.final_ms > 0 ? reserve_ms(search) + next : FINAL_EVALUATIONS * mean;
    return search_elapsed_ms(search) + end <= (double)search->options.budget_ms;
}

bool search_affords_run_off(const struct search *search)
{
    double both = planned_ms(search) + search->time.full_ms;
    return search->options.budget_ms <= 0 ||
           left_ms(search) > margin * both + waiting_ms(search, both);
}

/* Half of the estimate will do: it is none of this one. */
bool search_affords_final(const struct search *search)
{
    return search->options.budget_ms <= 0 || left_ms(search) > search->time.least_ms / 2;
}

bool search_affords_in_flight(const struct search *search)
{
    double both = planned_ms(search) + search->time.full_ms;
    if (search->options.budget_ms <= 0 || !keeps_back(search))
        return true;
    return left_ms(search) > both + waiting_ms(search, both);
}

uint64_t search_within_ms(const struct search *search)
{
    double left = left_ms(search);
    return search->options.budget_ms <= 0 ? 0 : left > 1 ? (uint64_t)left : 1;
}

uint64_t search_within_reserve_ms(const struct search *search)
{
    double left = left_ms(search) - (search->time.final_ms > 0 ? reserve_ms(search) : 0);
    return search->options.budget_ms <= 0 ? 0 : left > 1 ? (uint64_t)left : 1;
}

/* ---- what opening took ---- */

static const char *opening_key(const struct search *search)
{
    return arena_printf(search->arena, "opening/%s/%s", search->options.backend,
                        search->record.problem_hash);
}

void search_put_opening(struct search *search, struct store_batch *batch)
{
    char text[32];
    int length =
        snprintf(text, sizeof text, "%.0f", search_elapsed_ms(search) - search->earlier_ms);
    store_batch_put(batch, STORE_FACTS, opening_key(search), text, (size_t)length);
}

/* Before the time goes: a first verdict takes about as long again, and the last measurement more.
 * That alone, with its sanitizer and builds, takes what no problem goes below. */
void search_tell_opening(const struct search *search)
{
    enum { TIMES = 3, LEAST_S = 10 };
    struct err ignored;
    BUF_LOCAL(text, 64);
    double budget_s = (double)search->options.budget_ms / 1e3;
    bool known = store_get(search->store, STORE_FACTS, opening_key(search), &text, &ignored) == 0;
    double took_s = known ? strtod(buf_text(&text), NULL) / 1e3 : 0;
    double wanted_s = TIMES * took_s + LEAST_S;
    if (budget_s <= 0)
        return;
    if (took_s > budget_s / 2)
        log_event(LOG_WARN, "run.short", search->id,
                  "a budget of %.0f s is too short: opening %s alone took %.0f s here the last "
                  "time; --budget-time %.0fs would have a verified kernel",
                  budget_s, search->record.problem, took_s, wanted_s);
    else if (budget_s < LEAST_S && search->options.final)
        log_event(LOG_WARN, "run.short", search->id,
                  "a budget of %.0f s is too short for a verified kernel as a rule: give it "
                  "--budget-time %.0fs at least",
                  budget_s, wanted_s);
}
