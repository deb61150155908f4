/* facts/records: reading what runs have left: one record, or all of a run. Any thread. */
#pragma once

#include "agents/record/record.h"
#include "store/store.h"

/* Records by id; ERR_NOT_FOUND says which id. Texts in `arena`. */
int history_run(struct store *store, struct arena *arena, const char *id, struct run_record *run,
                struct err *err) MUST_USE;
int history_candidate(struct store *store, struct arena *arena, const char *id,
                      struct candidate_record *candidate, struct err *err) MUST_USE;
int history_idea(struct store *store, struct arena *arena, const char *id, struct idea_record *idea,
                 struct err *err) MUST_USE;

/* All of a run's candidates (or all runs), in order; *items is in the arena. */
int history_candidates(struct store *store, struct arena *arena, const char *run,
                       struct candidate_record **items, size_t *count, struct err *err) MUST_USE;
int history_runs(struct store *store, struct arena *arena, struct run_record **items, size_t *count,
                 struct err *err) MUST_USE;

/* A candidate's evaluation as a tree: the champion's last one where there is one; NULL: none. */
const struct value *history_evaluation(struct store *store, struct arena *arena, const char *id);
/* What lies in STORE_EVALUATIONS under the key itself; NULL: nothing. */
const struct value *history_measured(struct store *store, struct arena *arena, const char *key);
/* Whether that is the last one, of a champion, and not the search's. */
bool history_is_final(struct store *store, struct arena *arena, const char *id);
/* Its source, or NULL. */
const char *history_source(struct store *store, struct arena *arena,
                           const struct candidate_record *candidate);

/* Which problem's: several may have one name, and an edited one is another one. */
struct problem_key {
    const char *name; /* NULL: whatever its name */
    const char *hash; /* of its definition, as a run's record has it; NULL: any of that name */
};
bool problem_key_is(const struct problem_key *key, const char *name, const char *hash);

/* The best run for a problem: verified wins first, by the lower end of the interval. NULL: none. */
const struct run_record *history_best(const struct run_record *runs, size_t count,
                                      const struct problem_key *problem);
