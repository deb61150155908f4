/* agents/search/candidate/agent: a coding agent works on a candidate: its folder, what it has
 * evaluated on the run's lanes, and how that ends. Inside src/agents/search. */
#pragma once

#include "agents/llm/ask.h"

#include <stdbool.h>
#include <stdint.h>

struct search;
struct attempt;
struct arm;
struct model;
struct candidate_record;
struct agent; /* opaque; of one candidate */

/* Starts what it wants evaluated; NULL with the error. */
typedef struct attempt *agent_start(const struct attempt *of, struct task *round, int64_t number,
                                    const char *text, size_t length, struct err *err);
bool agent_is(const struct model *model); /* it is an agent */
/* "r1-c5 3 of 20 evaluated in 4:10; ...": those that work now. */
void agents_say(const struct search *search, struct buf *out);
bool agents_wanted(const struct search *search); /* one may be asked */
/* Its evaluations have the numbers from `first` on. */
struct agent *agent_new(struct attempt *attempt, const struct attempt *parent, struct task *round,
                        int64_t first, agent_start *start);
/* One that an earlier process had evaluated: it ends at once, or goes on where it stood. */
void agent_recall(struct agent *agent, const struct candidate_record *was);
const struct ask_site *agent_begin(struct attempt *attempt, const struct model *model);
/* At each wake of the candidate, whose timer and pool it uses; false: all is over, the folder gone,
 * and each evaluation at its end. */
bool agent_step(struct agent *agent, struct ask *ask);
/* What it ended with, by how it ended; NULL: nothing that is right. */
const struct arm *agent_result(const struct agent *agent, const char *how);
bool agent_busy(const struct agent *agent); /* NULL: no */
/* It was started in this process: it ends by itself or by its limits. NULL: no. */
bool agent_began(const struct agent *agent);
void agent_free(struct agent *agent); /* NULL is fine */
