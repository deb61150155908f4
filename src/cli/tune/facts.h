/* cli/tune/facts: what a tune has found, from the store: the facts that the terminal, --json and
 * the report show (tuning/tuning.h). Main thread. */
#pragma once

#include "agents/record/record.h"
#include "eval/problem/problem.h"
#include "store/store.h"
#include "tuning/tuning.h"

bool tune_is(const struct run_record *run); /* it was begun by `twagent tune` */

/* All of it in the arena. `problem`: its file is read, too, for the points that were not measured
 * and the sizes of the ladder. -1: the run's candidates cannot be read. */
int tune_facts(struct store *store, struct arena *arena, const struct run_record *run, bool problem,
               struct tuning *tuning, struct err *err) MUST_USE;

/* A candidate's ladder, as far as the store has it. */
void tune_ladder(struct store *store, struct arena *arena, const struct problem *problem,
                 const char *id, struct tuning_ladder *ladder);
