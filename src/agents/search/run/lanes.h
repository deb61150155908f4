/* agents/search/run/lanes: the workers of a run, and the ceilings that the first one measures.
 * Inside src/agents/search. */
#pragma once

#include "eval/lane/lane.h"
#include "loop/slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct search;
struct store_batch;

/* Candidates in one lane: measured, compiled, on its way. Where most end at a look, several are
 * compiled while one is measured; but the later of them are proposed without its time. */
enum { LANE_DEPTH = 3, LANE_DEPTH_LOOKS = 5 };

struct lane_place {
    struct lane *lane;
    struct lane_request open;
    unsigned load;
    struct lane_share share;
};

struct lanes {
    struct lane_place place[LANES_MAX];
    size_t count, open;
    unsigned depth; /* candidates in each */
    struct slots slots;
    bool late;   /* not opened at all: the time was over first */
    bool beaten; /* their ceilings, by a kernel, by 10 % */
};

int search_lanes_open(struct search *search);   /* starts the workers; search->err says why not */
bool search_lanes_ready(struct search *search); /* drives them; false: wait (or search->err) */
void search_lanes_late(struct search *search);  /* nobody waits for them any more */
bool search_lanes_were_late(const struct search *search);
const struct value *search_lanes_answer(const struct search *search); /* what the first one said */
int64_t search_lanes_depth(const struct search *search); /* candidates that they all hold */
/* As many as the backend can make use of, but `most`. Once opened. */
void search_lanes_deepen(struct search *search, unsigned most);
/* A place in them: true where it is there at once, else the task is woken. */
bool search_lanes_enter(struct search *search, struct slot *slot, struct task *task);
struct lane_place *search_lane_pick(struct search *search); /* the least busy, with one more */
void search_lane_leave(struct lane_place *place);           /* NULL is fine */
void search_lanes_hold(struct search *search, bool held);   /* nobody enters */
struct lane *search_lane_first(const struct search *search);
double search_lanes_busy(const struct search *search);
double search_lanes_wait(const struct search *search);
double search_lanes_busy_ms(const struct search *search); /* of all together */
double search_lanes_delay(const struct search *search);   /* what they waited, over that */
void search_lanes_close(struct search *search);
void search_lanes_free(struct search *search);
void search_ceilings_beaten(struct search *search); /* they are no ceilings */
/* Once they are measured; at the end of the run, for what was beaten. */
void search_put_ceilings(struct search *search, struct store_batch *batch);
void search_drop_ceilings(struct search *search, struct store_batch *batch);
