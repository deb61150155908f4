/* agents/search/run: a run, as the files of its rooms share it, and what it may use. Inside
 * src/agents/search.
 *
 * The tree of a run (ideas, candidates, their order, every prompt) is a function of its seed, the
 * answers and the evaluations alone, never of when they arrived: results are *taken* (told to the
 * proposer, put into the history, into the pool) in the order of the candidates' numbers. So a run
 * that died goes on by being run again, with what the store has in place of asking and measuring.
 *
 * A part with a struct of its own is touched by its own file alone; tests/tools/layers looks, and
 * for circles between the files.
 */
#pragma once

#include "agents/llm/budget.h"
#include "agents/search/run/attempt.h"
#include "agents/search/run/lanes.h"
#include "agents/search/run/limits.h"
#include "agents/search/run/options.h"
#include "agents/search/run/pool.h"
#include "agents/search/run/time.h"
#include "agents/search/run/twins.h"
#include "agents/search/run/watch.h"
#include "base/log.h"
#include "store/store.h"

enum {
    ARMS_MAX = PROPOSER_STARTS_MAX,
    PARENTS_MAX = 8,
    ISLANDS_MAX = 16,
    POOL_MAX = 96 /* kept kernels that a run remembers; those beyond are on the disk */
};

struct search {
    struct task task;
    struct search_options options;
    struct store *store;
    struct store_writer *writer;
    struct arena *arena;
    struct problem *problem;
    struct names facts;
    double floor_ns; /* of the definition's work, by the ceilings; algebra may need less */
    struct prompt_work work;
    bool floor_under_load; /* the ceilings were measured on a busy machine: it is too far up */
    char id[32];
    struct err err;
    unsigned stops;
    uint64_t started_ns;
    double earlier_ms;         /* what earlier processes of this run took */
    bool went_on;              /* one of them came past the preparing */
    struct run_record earlier; /* its verified champion, or none (best "") */
    struct run_record record;
    const struct value *asked_before; /* by earlier processes of the run: asked.c; or NULL */
    /* given out so far, and asked of the lanes, by earlier processes of the run too */
    int64_t numbers, idea_numbers, event_number, evaluations;
    struct list running, ended, kept;
    size_t in_flight;     /* attempts that have not ended */
    struct attempt *best; /* in ended or kept */
    struct proposer *proposer;
    struct arm arms[ARMS_MAX];
    size_t arm_count;
    struct arm *by_number[ARMS_MAX]; /* the proposer's numbers */
    /* with a model */
    struct budget *budget;
    struct completions *completions;
    struct prompts *prompts;
    struct prompt_context context;
    /* the parts */
    struct lanes lanes;
    struct limits limits;
    struct time time;
    struct twins twins;
    struct watch watch;
    /* those of the rooms above, made by life.c */
    struct final *final;
    struct history *history;
    struct lessons *lessons;
    struct passages *passages;
    struct recall *recall;
    struct round *round;
    struct values *values;
    /* search.c */
    struct chain *builtin;  /* without a model: the whole run */
    int64_t builtin_rounds; /* of it, that were taken */
    struct timer patience;
    struct store_write write, put, twins_write; /* put: the record, while the run goes on */
    bool written_start, written_end, keeps_earlier;
    bool prepared; /* the problem was opened: from here on there is a run to go on with */
    const char *phase;
};

/* --- core.c --- */
void search_fail(struct search *search, const struct err *err); /* it ends; first error counts */
bool search_stopping(const struct search *search);
bool search_has_model(const struct search *search);
bool search_writes(const struct search *search); /* its models write code: no tune */
void search_event(struct search *search, struct store_batch *batch, enum log_level level,
                  const char *kind, const char *subject, const char *format, ...) PRINTF_LIKE(6, 7);
double search_elapsed_ms(const struct search *search); /* of the whole run, all processes */
const char *search_constant(const char *text); /* a state, a verdict or a category as a constant */
