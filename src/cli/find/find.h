/* cli/find/find: what a person names, or an error that says what was looked for, where, and what
 * comes near. Main thread. Errors are ERR_USAGE. Texts in `arena`. */
#pragma once

#include "agents/record/record.h"
#include "base/arena.h"
#include "cli/options/settings.h"
#include "store/store.h"

/* A folder, a spec.yaml, a FILE.py as an absolute path, since a worker stands elsewhere; a shipped
 * problem's name as it is. With the size that was named (eval/problem/size.h), or the one that the
 * spec has for `backend` (may be NULL). */
int find_problem(struct arena *arena, const char *word, const char *backend, const char **problem,
                 struct err *err) MUST_USE;
/* The name by which runs know what a person calls by a path: what its spec says. Else the word. */
const char *find_name(struct arena *arena, const char *word);
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
/* For a problem without a kernel in the store (or NULL): one sentence. */
const char *find_no_kernel(const struct settings *settings, struct store *store,
                           struct arena *arena, const char *problem);
