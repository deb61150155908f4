/* cli/find/find: what a person names, or an error that says what was looked for, where, and what
 * comes near. Main thread. Errors are ERR_USAGE. Texts in `arena`. */
#pragma once

#include "agents/record/record.h"
#include "base/arena.h"
#include "cli/options/settings.h"
#include "eval/problem/problem.h"
#include "facts/records.h"
#include "store/store.h"

/* A folder, a spec.yaml, a FILE.py as an absolute path, since a worker stands elsewhere; a shipped
 * problem's name as it is. With the size that was named (eval/problem/size.h), or the one that the
 * spec has for `backend` (may be NULL). */
int find_problem(struct arena *arena, const char *word, const char *backend, const char **problem,
                 struct err *err) MUST_USE;
/* The definition that a person means, among those of `runs`: by a path or a shipped problem's name
 * as it stands there now; by any other name the only one of that name; "scale#3f2a" where several
 * share one, as `list` shows them. ERR_USAGE: the spec is wrong, or the name is several's. */
int find_definition(struct arena *arena, const char *word, const struct run_record *runs,
                    size_t count, struct problem_key *key, struct err *err) MUST_USE;
/* "scale", or "scale#3f2a" where another definition of that name is among the runs. */
const char *find_shown_name(struct arena *arena, const struct run_record *run,
                            const struct run_record *runs, size_t count);
/* ERR_USAGE where the run's kernels were found for another definition than lies at `path` now. */
int find_same_definition(struct arena *arena, const struct run_record *run, const char *path,
                         struct err *err) MUST_USE;
/* The shipped problems' names, sorted, NULL at the end; NULL: they are not installed. */
const char *const *find_shipped(struct arena *arena, size_t *count);

/* For a run, an idea or a candidate that is not in the store (NULL: there is none yet). -1. */
int find_no_id(const struct settings *settings, struct store *store, struct arena *arena,
               const char *id, struct err *err);
/* "r3-c17", "r3-c17-final", "r3" (its best one), or a problem's name (the best one of it).
 * ERR_NOT_FOUND where a candidate's id is none's. */
int find_kernel(struct store *store, struct arena *arena, const char *id,
                struct candidate_record *candidate, struct run_record *run,
                struct err *err) MUST_USE;
/* For a problem without a kernel in the store (or NULL), as a person called it: one sentence. */
const char *find_no_kernel(const struct settings *settings, struct store *store,
                           struct arena *arena, const char *word);

/* "a, b and c"; "; did you mean "b"?" or "". */
const char *find_joined(struct arena *arena, const char *const *names, size_t count);
const char *find_near(struct arena *arena, const char *word, const char *const *names);
