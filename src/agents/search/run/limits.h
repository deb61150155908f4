/* agents/search/run/limits: when a run ends by itself, and an estimate of when that will be. Inside
 * src/agents/search. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct search;
struct ask;

struct limits {
    bool budget_reached;
    const char *budget_words;        /* which budget, where that is known; or NULL */
    const char *reached;             /* "target of 2x reached", or NULL */
    const char *provider_stopped;    /* why no more can be asked, or NULL */
    const char *awaited;             /* "3 answers awaited": the run stops for a mailbox */
    double best_low;                 /* as of the last round that was taken */
    int64_t best_since;              /* the round that brought it */
    int64_t stale_rounds;            /* in a row, that were answered and brought no new kernel */
    bool answered_round, new_kernel; /* of the round that goes on */
    double round_ms, rounds_timed, round_began_ms;
};

int64_t search_round_size(const struct search *search);
/* Points tuned for free in a round with a model. */
int64_t search_tuning_size(const struct search *search);
void search_cap_evaluations(struct search *search); /* it is reached */
/* Notes the cap where the ask failed at it; false: it failed otherwise. */
bool search_cap_spending(struct search *search, const struct ask *ask);
/* The budget of time, with what it was not enough for. */
void search_short_of_time(struct search *search, const char *words);
void search_cap_opening(struct search *search);   /* the time was over before there was a problem */
bool search_may_propose(struct search *search);   /* false: no more; says why in the search */
bool search_reached(const struct search *search); /* a target, the floor, patience */
/* Nobody is waited for any more: a stop, a budget, a mailbox. */
bool search_is_over(const struct search *search);
void search_stop_awaiting(struct search *search, const char *words); /* for a mailbox */
bool search_awaits(const struct search *search);
void search_stop_provider(struct search *search, const char *message);
bool search_provider_stopped(const struct search *search);
const char *search_stop_reason(const struct search *search); /* "" for none */
/* What a round with a model brought. */
void search_round_began(struct search *search);
double search_round_ms(const struct search *search); /* since it began */
void search_round_answered(struct search *search);
void search_round_kernel(struct search *search); /* a new one, by a model */
void search_round_ended(struct search *search);
/* After each round (or as many candidates of the proposer): target, floor, patience. */
void search_round_taken(struct search *search, int64_t round);
/* Of the rounds without a new kernel, those beyond what is no wonder: what is asked, of whom and
 * how is changed by this. */
int64_t search_staleness(const struct search *search);
double search_left_ms(const struct search *search); /* < 0: not known */
