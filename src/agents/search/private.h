/* agents/search/private: a run from its beginning to its end, and its rounds. Inside
 * src/agents/search. */
#pragma once

#include "agents/search/candidate/candidate.h"
#include "agents/search/final.h"
#include "agents/search/round.h"
#include "agents/search/search.h"
#include "agents/search/values.h"

/* --- search.c, outside.c --- */
extern const struct task_type search_type;
void search_put_run(struct search *search, struct store_batch *batch);

/* --- start.c --- */
int search_load(struct search *search, struct err *err) MUST_USE;   /* the problem and its starts */
int search_opened(struct search *search, struct err *err) MUST_USE; /* facts, floor */
