/* eval/worker/private: what the files of the worker share. Loop thread, unless said otherwise. */
#pragma once

#include "eval/measure/session.h"
#include "eval/worker/core_lock.h"
#include "eval/worker/worker.h"
#include "loop/loop.h"
#include "loop/slots.h"
#include "loop/task.h"
#include "loop/work.h"

enum { REQUEST_MOST = 16 << 20, ANSWER_MOST = 8 << 20, READERS_MOST = 1024 };
/* Compilers beside what is measured; where a device's own clock times, as many as there are cores
 * but for those that a call of a device keeps busy. */
enum { AHEAD_LEAST = 2, AHEAD_MOST = 16, DEVICE_CORES = 2 };

/* Waiting for another twagent's turn on the same cores; an owner's own, zero-initialized. */
struct turn {
    struct core_lock lock, queue, last;
    struct timer timer;
    uint64_t since_ns;    /* 0: has not waited */
    uint64_t patience_ns; /* 0: the usual */
    uint64_t held_ns;     /* since when, alone or since others were let in */
    bool queued, taken, shared;
    bool final; /* of a last measurement: on a device one comes to its end before the next begins */
    bool first; /* it is that one */
};

struct worker {
    struct loop *loop;
    struct task *input; /* parent of every request */
    const struct worker_options *options;
    char *folder; /* for builds */
    bool own_folder;
    int folder_lock;
    unsigned builds;      /* names the folders of builds */
    struct list requests; /* struct request, unfinished */
    struct list memory;   /* struct remembered */
    /* An open takes all of `sessions`, every other request one: so requests are answered with the
     * problem that was opened before them, and an open waits for those in flight. */
    struct slots sessions;
    struct slots cores;     /* compilers and checks one each, timing all of them: evaluate.c */
    struct slots compilers; /* of a device's lane: cores that those have, in place of `cores` */
    struct slots ahead; /* evaluations between the start of their compiler and their measurement */
    struct slots measure;     /* 1: the session is one candidate's at a time */
    struct arena *arena;      /* of what is open */
    struct arena *lane_arena; /* of the lane's texts */
    struct lane_facts lane;
    struct problem *problem;
    struct session *session; /* NULL: nothing is open */
    const char *unfit;       /* what the problem's tolerance lets pass; NULL: fit, or not asked */
    bool owes_ceilings;      /* they are to be measured with the first turn */
    double best_ns;          /* of a run's kernels in this session; 0: none yet */
    double best_look_ns;     /* of that one's look; 0: there was none */
};

/* One request: a task of its own. Each op embeds it first, frees what it holds at its end, and is
 * itself freed, with the arena, by its parent. */
struct request {
    struct task task;
    struct worker *worker;
    const char *id; /* in the arena */
    struct arena *arena;
    struct link link;
};

/* --- worker.c --- */
void request_begin(struct worker *worker, struct request *request, const struct task_type *type,
                   const char *id);
void requests_reap(struct worker *worker); /* frees those that are finished */
/* Asks once, then says whether it is granted. */
bool slot_hold(struct slot *slot, struct slots *slots, struct task *owner, unsigned amount);

/* --- turn.c --- */
/* True once the lane's cores are this worker's to time on, or have been another's for so long that
 * there is something wrong with that one; false: `owner` is woken when it is worth asking again. */
bool turn_take(struct worker *worker, struct turn *turn, struct task *owner, const char *id);
/* The same for what a device does while nothing is timed: beside others who do so, too, and not
 * beside who times. True at once on the host's cores, where those belong to the lane. */
bool turn_share(struct worker *worker, struct turn *turn, struct task *owner, const char *id);
/* Any thread, of who has it and times on a device: where others wait, and it was not theirs for a
 * while, they come first. How long that took, in ns. Blocks. */
uint64_t turn_breathe(const struct worker *worker, struct turn *turn);
void turn_end(struct turn *turn); /* also before it was taken */

/* --- ceilings.c --- */
/* Those of `known` (or NULL) hold before what is remembered. True: nothing is left to measure. */
bool ceilings_take(struct worker *worker, const struct value *known);
/* On the pool, with the lane to ourselves: where they are owed, and nothing otherwise. */
int ceilings_measure(struct worker *worker, struct err *err) MUST_USE;
/* The same beside what else goes on, where a device's own clock measures: any thread; then kept by
 * the loop's, where nothing else uses the lane. `loaded`: others were here before. */
int ceilings_probe(const struct worker *worker, bool loaded, struct lane_facts *fresh,
                   struct err *err) MUST_USE;
void ceilings_keep(struct worker *worker, const struct lane_facts *fresh);

/* --- ahead.c: while a problem is opened --- */
void ahead_begin(struct worker *worker, const struct value *wanted); /* the request's "ahead" */
void ahead_end(struct worker *worker); /* what has not begun will not */
bool ahead_compiles(const struct worker *worker, struct hash identity, enum build_flavour flavour);

/* --- answer.c: one JSON record a line on stdout --- */
void answer_error(const char *id, const struct err *err);
void answer_ping(const char *id);
void answer_stage(const char *id, enum stage stage);
void answer_waits(const char *id, enum stage stage,
                  const char *why); /* a stage that cannot begin */
/* final_ms, least_ms: session_final_ms(). */
void answer_evaluation(const char *id, const struct evaluation *evaluation, double final_ms,
                       double least_ms);
void worker_answer_begin(struct json *json, struct buf *line, const char *id, const char *event);
void worker_answer_send(struct json *json,
                        struct buf *line); /* closes the record and frees the line */

/* --- input.c: requests from stdin; ends with it --- */
void input_start(struct worker *worker);
bool input_parse_cores(const char *text, int *cores, size_t most, size_t *count);

/* --- the ops; each takes the request's document, whose arena it then owns --- */
void open_start(struct worker *worker, struct arena *arena, const struct value *document);
void check_start(struct worker *worker, struct arena *arena, const struct value *document);
void evaluate_start(struct worker *worker, struct arena *arena, const struct value *document);

/* --- memory.c: what was measured in this session already --- */
const char *memory_find(const struct worker *worker, struct hash identity, enum effort effort);
void memory_keep(struct worker *worker, struct hash identity, enum effort effort,
                 const struct evaluation *evaluation);
void memory_forget(struct worker *worker);
