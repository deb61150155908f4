/* agents/search/run/time: a budget of time, and what of it is kept back. Inside src/agents/search.
 */
#pragma once

#include "loop/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct search;
struct lane_request;
struct store_batch;

struct time {
    struct timer deadline;
    uint64_t deadline_at_ms;  /* that the timer is set to, from the process's start */
    double final_ms, full_ms; /* what a champion's measurement, another full one take; 0: unknown */
    double least_ms;          /* a champion's, without what it can leave out */
    double best_ns;           /* the fastest kernel, whose costs these are; 0: none */
    bool slower;              /* it is, than its baseline */
    int64_t kernels;          /* of this process */
    enum { PLAN_OPEN, PLAN_WHOLE, PLAN_LEAST, PLAN_NONE } plan; /* is there time for one? */
    int64_t measured; /* evaluations that this process has seen end */
    double
        first_busy_ms; /* of the lanes, when the first one had ended: it pays for what all share */
    double waits;      /* for other twagents, over what the lanes were busy */
};

void search_deadline_set(struct search *search);          /* of searching, by what is known now */
bool search_deadline_passed(const struct search *search); /* the time for searching is up */
void search_deadline_stop(struct search *search);
bool search_time_is_up(const struct search *search); /* the whole of it, what was kept back too */
void search_learn_cost(struct search *search, const struct lane_request *request); /* a verdict */
void search_learn_measured(struct search *search, double busy_ms, double waits);   /* so far */
/* By more than a twentieth of the budget, or 2 s. */
bool search_time_is_overrun(const struct search *search);
bool search_final_is_due(const struct search *search); /* or it has not all of its time */
/* What opening the problem took is kept; and said where a budget is too short for it. */
void search_put_opening(struct search *search, struct store_batch *batch);
void search_tell_opening(const struct search *search);
/* And so long that a last measurement waits no more: a sixth of the budget, or 10 s. */
bool search_time_is_long_up(const struct search *search);
bool search_affords_another(const struct search *search, double busy_ms); /* and then the final */
bool search_affords_run_off(const struct search *search); /* one more, and the final after it */
bool search_affords_final(const struct search *search);
bool search_affords_in_flight(const struct search *search); /* its end, and then the final */
double search_final_ms(const struct search *search);        /* that this takes; 0: not known */
int64_t search_measured(const struct search *search);
uint64_t search_within_ms(const struct search *search); /* what is left; 0: there is no budget */
/* For another candidate: what is left before the last measurement. */
uint64_t search_within_reserve_ms(const struct search *search);
