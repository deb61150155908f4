/* eval/measure/fitness_null: what a problem's tolerance must refuse: solutions that compute
 * nothing. Inside src/eval. Worker's measuring thread. */
#pragma once

#include "eval/measure/session_private.h"

enum { FITNESS_SETS = 4 }; /* of the pool, one of each distribution */

struct null_result {
    const char *name;
    size_t refused, tried; /* sets */
    bool elsewhere; /* of null_lower(): none of the main shape's, so smaller ones count, too */
};

size_t null_count(void);
/* One of them in place of one output, the others being right; sets whose outputs are not expected
 * yet are left out. */
void null_try(struct session *session, size_t which, size_t output, struct null_result *result);
bool null_refused(const struct null_result *result); /* on at least half of the sets */

/* The reference from inputs of the next lower precision, as set_derive() has judged it. False:
 * there is nothing to say, and `why` (or NULL) says why not. */
bool null_lower(struct session *session, struct null_result *result, const char **why);
