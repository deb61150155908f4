/* cli/tune/ladder: a tune's winner at other sizes of its problem, each in a worker of its own, as
 * `eval` measures it. Main thread. */
#pragma once

#include "agents/record/record.h"
#include "cli/options/settings.h"
#include "eval/problem/problem.h"
#include "store/store.h"

enum { LADDER_MAX = 5, LADDER_TRIES = 5 /* candidates, with --stable */ };

/* "M=128,N=128,K=128": a quarter and a half of the problem's main shape, one more than the half,
 * one less than the whole, the whole; smallest first. Dims that the problem's own shapes never vary
 * stay as they are; what its `where` refuses is left out. */
size_t ladder_sizes(struct arena *arena, const struct problem *problem,
                    const char *sizes[LADDER_MAX]);
/* Where the store has what was measured there. */
const char *ladder_key(struct arena *arena, const char *candidate, const char *size);

/* Measures the champion, or with --stable one after the other of the best until one is stable,
 * which becomes the champion. What the store has already is not measured again; a signal or the
 * run's budget of time ends it: what was measured stays. */
void ladder_climb(const struct settings *settings, struct store *store, const char *run);
