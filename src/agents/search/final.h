/* agents/search/final: the champion's last measurement, after a run-off. Inside src/agents/search.
 */
#pragma once

#include "eval/lane/lane.h"

#include <stdbool.h>
#include <stddef.h>

struct search;
struct attempt;

enum {
    FINAL_TRIES = 3,
    RUN_OFF = 5 /* finalists, timed in turns with each other */
};

/* The finalists, the best first; each is timed in turns with the first one of then. */
struct run_off {
    struct attempt *ranked[RUN_OFF];
    size_t count, next, entered; /* entered: how many there were */
    bool begun, over, stored;    /* stored: what was measured last is on its way to the disk */
};

struct final {
    struct lane_request request;
    struct attempt *finalist;
    int tries;
    struct run_off run_off;
    bool waited;                /* for another twagent: then it may come to its end, late */
    bool out_of_time;           /* amid it, while another twagent timed on the cores */
    struct evaluation champion; /* texts in the request's arena */
    bool has_champion;
};

/* One step of the champion's last measurement; true when it has come to its end. */
bool search_final_step(struct search *search);
void search_final_watch(struct search *search);  /* before it: is there still time to wait? */
void search_final_cancel(struct search *search); /* what is being measured */
void search_final_free(struct search *search);
