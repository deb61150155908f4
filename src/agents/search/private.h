/* agents/search/private: the parts of a run that its files share. Inside src/agents/search.
 *
 * The tree of a run (ideas, candidates, their order, every prompt) is a function of its seed, the
 * answers and the evaluations alone, never of when they arrived: results are *taken* (told to the
 * proposer, put into the history, into the pool) in the order of the candidates' numbers. So a run
 * that died goes on by being run again, with what the store has in place of asking and measuring.
 */
#ifndef AGENTS_SEARCH_PRIVATE_H
#define AGENTS_SEARCH_PRIVATE_H

#include "agents/search/parts_private.h"
#include "agents/search/pool.h"
#include "agents/search/writing.h"

struct search {
    struct task task;
    struct search_options options;
    struct store *store;
    struct store_writer *writer;
    struct arena *arena;
    struct problem *problem;
    struct names facts;
    struct lane_place lanes[LANES_MAX];
    size_t lane_count, lanes_open;
    struct lane_request final;
    struct slots lane_slots;
    struct proposer *proposer;
    struct arm arms[ARMS_MAX];
    size_t arm_count;
    struct arm *by_number[ARMS_MAX]; /* the proposer's numbers */
    struct list running, ended, kept;
    size_t in_flight;                            /* attempts that have not ended */
    int64_t numbers, idea_numbers, event_number; /* given out so far */
    int64_t evaluations; /* asked of the lanes, by earlier processes of the run too */
    struct chain chain;  /* without a model: the whole run */
    struct run_record record;
    struct run_record earlier; /* of a run that goes on: its verified champion, or none (best "") */
    char id[32];
    uint64_t started_ns;
    double earlier_ms; /* what earlier processes of this run took */
    struct timer deadline, patience;
    unsigned stops;
    /* what an earlier process left */
    struct candidate_record *recalled;
    size_t recalled_count;
    /* with a model */
    struct budget *budget;
    struct completions *completions;
    struct prompts *prompts;
    struct prompt_context context;
    struct model_round *round; /* the one under way */
    struct prompt_attempt *history;
    int *history_island;
    size_t history_count, history_capacity;
    size_t history_shown;  /* as it was when the round began: what its prompts say */
    int64_t numbers_shown; /* given out before it: who of earlier rounds is known */
    int64_t next_round;
    int barren_rounds;            /* in a row, whose requests all failed */
    char provider_waits[256];     /* why nobody answers for now, or "" */
    const char *provider_stopped; /* why no more can be asked, or NULL */
    const char *awaited;          /* "3 answers awaited": the run stops for a mailbox */
    struct known **known;         /* of the round that goes on */
    size_t known_count, known_capacity;
    struct settled *settled; /* of those before */
    size_t settled_count, settled_capacity;
    /* lessons: lessons.c */
    struct lesson_place place;
    const char *facts_text;      /* JSON object, as in the run's context */
    struct lesson_memory memory; /* of earlier runs */
    struct lesson *taught;       /* of this one's ideas, in the order of taking */
    size_t taught_count, taught_capacity;
    size_t taught_shown; /* as it was when the round began */
    bool went_on;        /* an earlier process of the run came past the preparing */
    struct library library;
    struct embedding embedding;
    /* ends */
    bool budget_reached, rounds_over, ceilings_beaten; /* the last: by a kernel, by 10 % */
    bool opened_late;                                  /* not at all: the time was over first */
    double final_ms,
        full_ms; /* what a champion's measurement, another full one take; 0: not known */
    uint64_t deadline_at_ms;         /* that the timer is set to, from the process's start */
    const char *budget_words;        /* which budget, where that is known; or NULL */
    const char *reached;             /* "target of 2x reached", or NULL */
    double floor_ns;                 /* by the ceilings, not by what a verdict needs */
    double best_low;                 /* as of the last round that was taken */
    int64_t best_since;              /* the round that brought it */
    int64_t stale_rounds;            /* in a row, that were answered and brought no new kernel */
    bool answered_round, new_kernel; /* of the round that goes on */
    double round_ms, rounds_timed, round_began_ms;
    /* pauses, room on the disk, the record as others see it: watch.c */
    struct timer tick, mailbox;
    struct work space_work;
    struct buf space_why;
    bool space_short, held, paused_by_person, mailbox_waits;
    uint64_t space_looked_ns, put_ns, tidied_ns;
    int64_t mailbox_answers;
    struct store_write put, twins;
    struct pause pauses[PAUSES_MAX];
    size_t pause_count;
    const struct value *asked_before; /* by earlier processes of the run: asked.c; or NULL */

    bool written_start, written_end;
    bool prepared; /* the problem was opened: from here on there is a run to go on with */
    struct store_write write;
    struct attempt *best, *finalist; /* in ended or kept */
    int final_try;
    struct run_off run_off;
    bool out_of_time;           /* amid it, while another twagent timed on the cores */
    struct evaluation champion; /* texts in final.arena */
    bool has_champion, keeps_earlier;
    double first_busy_ms; /* of the lanes, when the first evaluation had ended: it pays for what
                           * all share */
    int64_t measured;     /* evaluations that this process has seen end */
    const char *phase;
    struct err err;
};

/* --- search.c --- */
extern const struct task_type search_type;
void search_fail(struct search *search,
                 const struct err *err); /* the run ends; first error counts */
bool search_stopping(const struct search *search);
bool search_has_model(const struct search *search);
void search_event(struct search *search, struct store_batch *batch, enum log_level level,
                  const char *kind, const char *subject, const char *format, ...) PRINTF_LIKE(6, 7);
void search_put_run(struct search *search, struct store_batch *batch);
const char *search_stop_reason(const struct search *search); /* "" for none */
double search_elapsed_ms(const struct search *search);       /* of the whole run, all processes */

/* --- limits.c: when a run ends --- */
int64_t search_round_size(const struct search *search);
int64_t search_attempts_most(const struct search *search);
void search_cap_evaluations(struct search *search); /* it is reached */
/* Notes the cap where the ask failed at it; false: it failed otherwise. */
bool search_cap_spending(struct search *search, const struct ask *ask);
bool search_may_propose(struct search *search); /* false: no more; says why in the search */
/* After each round (or as many candidates of the proposer): target, floor, patience. */
void search_round_taken(struct search *search, int64_t round);
/* Of the rounds without a new kernel, those beyond what is no wonder: what is asked, of whom and
 * how is changed by this. */
int64_t search_staleness(const struct search *search);
double search_left_ms(const struct search *search); /* < 0: not known */

/* --- time.c: a budget of time, and what of it is kept back --- */
double search_reserve_ms(const struct search *search); /* for the champion's last measurement */
void search_deadline_set(struct search *search);       /* of searching, by what is known now */
bool search_time_is_up(const struct search *search);   /* the whole of it, what was kept back too */
void search_learn_cost(struct search *search, const struct lane_request *request); /* a verdict */
bool search_affords_run_off(const struct search *search); /* one more, and the final after it */
bool search_affords_final(const struct search *search);
uint64_t search_within_ms(const struct search *search); /* what is left; 0: there is no budget */

/* --- chain.c --- */
/* True while something of it is under way or not yet taken. */
bool chain_step(struct search *search, struct chain *chain);

/* --- take.c --- */
void search_count(struct search *search, struct attempt *attempt);   /* at its end, in any order */
void search_take(struct search *search, struct attempt *attempt);    /* in the order of numbers */
struct attempt *search_ended(struct search *search, int64_t number); /* not yet taken; or NULL */
void search_prune(struct search *search);    /* nobody may be writing: the pool is kept small */
void search_take_all(struct search *search); /* the end of a round; ties are put right */

/* --- history.c: what is over --- */
void search_remember(struct search *search, const struct attempt *attempt); /* for the prompts */
void search_forget(struct search *search);     /* between rounds: what is too much of that */
const char *search_constant(const char *text); /* a state, a verdict or a category as a constant */
struct known *search_known(struct search *search, const char *identity); /* NULL: nobody */
/* The candidate of an earlier round that was it; 0: nobody. */
int64_t search_known_before(const struct search *search, const char *identity);
void search_know(struct search *search, struct attempt *attempt);
void search_settle(struct search *search, const struct attempt *attempt);   /* as it is taken */
void search_know_all(struct search *search);                                /* the round is over */
void search_know_one(struct search *search, const struct attempt *attempt); /* no rounds: taken */
void search_history_free(struct search *search);

/* --- candidate.c, attempt.c --- */
extern const struct task_type attempt_type;
struct attempt *attempt_start(struct search *search, const struct chain *chain);
/* A model is to write candidate `number`: implementation `sample` of an idea; its round waits. */
struct attempt *attempt_start_writing(struct search *search, struct task *round, int64_t number,
                                      const struct idea *idea, const char *idea_id,
                                      const struct attempt *parent, int island, int64_t sample);
void attempt_abandon(struct attempt *attempt); /* stop it: cancels what it waits for */
void attempt_free(struct attempt *attempt);
enum attempt_state {
    PROPOSED,
    WRITING,
    COMPILING,
    CHECKING,
    TIMING,
    PROFILING,
    KEPT,
    REJECTED,
    FAILED,
    ATTEMPT_STATES
};
static inline bool attempt_is_kernel(const struct attempt *attempt)
{
    return attempt->task.state == KEPT;
}
void attempt_identify(struct attempt *attempt);

/* --- lessons.c --- */
void search_lessons_open(struct search *search, struct store_batch *batch); /* once prepared */
void search_lesson_parent(struct attempt *attempt, const struct attempt *parent); /* NULL: none */
void search_lesson_put(struct attempt *attempt, bool kernel, struct store_batch *batch);
void search_lesson_remove(struct attempt *attempt, struct store_batch *batch); /* it is a twin */
void search_lesson_take(struct attempt *attempt);  /* in the order of numbers */
void search_lessons_forget(struct search *search); /* between rounds */
void search_lessons_close(struct search *search);

/* --- passages.c --- */
void search_library_open(struct search *search); /* search->library.work until it is */
void search_library_opened(struct search *search);
void search_library_close(struct search *search);
/* Starts looking for what a prompt quotes, a task under `owner`; false: it quotes nothing. */
/* Of a profile, with nothing else of it left in the arena; "" where there is none. */
struct diagnosis search_diagnose(const struct search *search, struct arena *arena,
                                 const char *metrics);
bool search_retrieve(struct search *search, struct retrieval *retrieval, struct task *owner,
                     const char *id, const struct search_about *about);
struct prompt_context search_context_for(struct search *search, const struct retrieval *retrieval,
                                         const struct search_about *about);

/* --- recall.c: a run that goes on --- */
int search_recall(struct search *search, struct err *err) MUST_USE; /* records of options.resume */
void search_recall_candidate(struct attempt *attempt); /* its record, where there is one */
enum recall { RECALL_NOTHING, RECALL_ENDED, RECALL_WRITING, RECALL_WRITTEN };
/* Puts a recalled attempt where its record says that it stood. */
enum recall search_recall_state(struct attempt *attempt, int *state);

/* --- parents.c --- */
size_t search_islands(const struct search *search);
/* What an island's ideas of this round start from, best first; returns how many. */
size_t search_parents(const struct search *search, int island,
                      const struct attempt *parents[PARENTS_MAX]);

/* --- round.c: rounds of ideas from a model --- */
bool search_rounds_step(struct search *search); /* starts what is due; false when all is over */
void search_rounds_stop(struct search *search);
void search_rounds_close(struct search *search);

/* --- model.c: who is asked, and what every prompt says --- */
/* Before anything of the run is written: a cap that cannot be kept is refused. */
int search_budget_open(struct search *search, struct err *err) MUST_USE;
int search_model_open(struct search *search, struct err *err) MUST_USE;
void search_model_close(struct search *search);
struct draw { /* whom to ask */
    bool idea;
    const char *asker, *purpose;
    int64_t number, step;
    uint64_t tried; /* of those that can be drawn, a bit each: they have failed at it */
};
/* By weight, among those that can be asked now; by whom it was answered where a run goes on. NULL
 * (and provider_stopped) where nobody can be asked any more. */
const struct model *search_pick_model(struct search *search, const struct draw *draw);
/* Notes that this one failed; true: there is another who can be asked now. */
bool search_pick_another(struct search *search, struct draw *draw, const struct model *model);
/* The model's, and more where its answers repeat what is known. */
double search_temperature(const struct search *search, const struct model *model);
const struct models *search_models(const struct search *search, bool idea);

/* --- lanes.c --- */
int search_lanes_open(struct search *search);   /* starts the workers; search->err says why not */
bool search_lanes_ready(struct search *search); /* drives them; false: wait (or search->err) */
struct lane_place *search_lane_pick(struct search *search); /* the least busy */
double search_lanes_busy(const struct search *search);
double search_lanes_wait(const struct search *search);
double search_lanes_busy_ms(const struct search *search); /* of all together */
void search_lanes_close(struct search *search);
void search_put_ceilings(struct search *search, struct store_batch *batch);

/* --- start.c: arms, facts, words --- */
int search_load(struct search *search, struct err *err) MUST_USE;   /* the problem and its starts */
int search_arm_add(struct search *search, struct arm *arm);         /* its number, or -1 */
int search_opened(struct search *search, struct err *err) MUST_USE; /* facts, floor */
void search_idea_words(struct search *search, const struct proposal *proposal,
                       struct attempt *attempt);

/* --- watch.c --- */
/* At each step of the run; with what its record is to be written now, NULL: not yet. */
struct store_write *search_watch(struct search *search);
void search_watch_end(struct search *search);
void search_recall_pauses(struct search *search);       /* of earlier processes, from the record */
const char *search_pauses_text(struct search *search);  /* JSON, in the arena */
const char *search_paused(const struct search *search); /* NULL: it goes on */

/* --- asked.c --- */
void search_recall_asked(struct search *search);
char *search_asked_text(const struct search *search); /* JSON; mem_free() it */

/* --- final.c --- */
/* One step of the champion's last measurement; true when it has come to its end. */
bool search_final_step(struct search *search);
void search_final_watch(struct search *search); /* before it: is there still time to wait? */

#endif
