/* agents/search: one run: rounds of ideas, candidates and evaluations, until a budget, a person or
 * the last round ends it. Loop thread only.
 *
 * The pool holds parents beside their children; each round keeps the best ceil(select x kept), at
 * least one, by the upper end of the time's interval, as the parents of the next. Each move of
 * a candidate is committed before the next step starts. Everything that happens is a log event. */
#pragma once

#include "agents/llm/budget.h"
#include "agents/search/run/options.h"
#include "base/err.h"
#include "eval/data/evaluation.h"
#include "loop/task.h"

#include <stdbool.h>
#include <stdint.h>

struct store;
struct search; /* opaque */

struct search_progress { /* a snapshot for the display and for the exit code */
    const char *run;     /* "r3" */
    const char *phase;   /* "preparing", "searching", "verifying the champion", "done" */
    int64_t round, rounds;
    int64_t proposed, in_flight, evaluated, kept, rejected, failed, dropped, outside;
    const char *best; /* candidate id, or "" */
    double best_speedup_low, best_speedup, best_speedup_high, best_time_ns, baseline_ns;
    const char *baseline;       /* in a person's words: "numpy", "naive" */
    const char *unfit;          /* what the problem's tolerance lets pass; "" or NULL: it is fit */
    const char *unconfined;     /* what is missing of the sandbox; "" or NULL: nothing */
    bool verified;              /* the champion passed its final measurement */
    bool win;                   /* and its interval says that it is faster */
    double elapsed_ms, left_ms; /* left by the budget or the rate so far; < 0: not known */
    double lane_busy;           /* share of wall time since the first evaluation */
    double lane_waits;          /* of the same, what went by waiting for another twagent */
    const char *stopped;        /* NULL, "budget", "interrupted", "failed: ..." */
    const char *paused;         /* why the run waits, for people; NULL: it does not */
    struct budget_totals spent;
    int64_t requests_in_flight, awaited; /* awaited: answers of mailboxes */
};

/* Starts the run as a task under `parent` (woken at the end). */
int search_start(struct loop *loop, struct task *parent, struct store *store,
                 const struct search_options *options, struct search **search,
                 struct err *err) MUST_USE;
void search_progress(const struct search *search, struct search_progress *progress);
const struct evaluation *search_champion(const struct search *search); /* NULL: none */
bool search_done(const struct search *search);
const struct err *search_error(const struct search *search); /* ERR_NONE, or why it failed */
/* First call: nothing new is started, what is being measured is finished, all within 10 s. Second
 * call: everything is stopped at once. What is committed stays. */
void search_stop(struct search *search);
/* Nothing new is asked or measured until it goes on; what is under way ends and is kept. */
void search_pause(struct search *search, bool paused);
void search_free(struct search *search); /* once done */

/* Puts a champion's last measurement into its run's record; texts in `arena`, `id` is borrowed. */
struct run_record;
void search_crown(struct arena *arena, const char *id, const struct evaluation *evaluation,
                  struct run_record *run);
