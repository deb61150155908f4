/* eval/lane/private: what the files of lane share. Loop thread only. */
#pragma once

#include "base/json.h"
#include "eval/lane/lane.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/task.h"

struct submitted { /* a request on its way */
    struct link link;
    struct lane_request *request;
    char *wire_id; /* unique in the lane's life: two requests may have one id */
    char *line;    /* NULL once written */
};

struct lane {
    struct task task;
    struct loop *loop;
    struct arena *arena; /* of what follows from the spec */
    const char *const *argv;
    const char *const *env;
    struct lane_spec spec;   /* texts in the arena */
    struct process *process; /* NULL: starts with the next request */
    struct list submitted;
    char *reopen; /* the request that opens again what was open, for a worker started anew */
    unsigned counter;
    bool closing, input_closed;
    bool elsewhere;      /* behind a launcher: it can go without its end being seen */
    char host[64];       /* where the worker is, as it says; "": not known */
    uint64_t heard_ms;   /* when it said something; 0: not yet, as a job that waits for a node */
    uint64_t pinged_ms;  /* when it was asked, since then, whether it is there; 0: it was not */
    uint64_t silence_ms; /* after so much it is asked, and after as much again it is dead */
    struct timer watch;
    bool lost;             /* the worker did not open again what was open: nothing it says counts */
    struct timer patience; /* from the end of its input to TERM */
    uint64_t first_ns, busy_since_ns, busy_ns, waits_since_ns, waits_ns;
    unsigned evaluating, waiting;
};

/* --- wire.c: lines out, records in --- */
char *lane_encode(const struct lane *lane, const struct lane_request *request, const char *wire_id);
char *lane_encode_reopen(const struct lane *lane, const struct lane_request *open);
/* True where the record ended the request: its answer or its error is filled in. A stage is noted
 * and its owner woken. */
bool lane_decode(struct lane_request *request, struct arena *arena, const struct value *record);

/* --- launcher.c --- */
int lane_launcher(struct arena *arena, const char *text, const char **words, size_t most,
                  size_t *count, struct err *err) MUST_USE;

/* --- start.c: the command and the environment of the worker --- */
int lane_prepare(struct lane *lane, const struct lane_spec *spec, struct err *err) MUST_USE;
