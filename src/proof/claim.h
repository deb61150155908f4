/* proof/claim: whether a figure of then holds, by what was measured now. Plain values; any thread.
 */
#pragma once

#include "base/arena.h"
#include "eval/data/evaluation.h"

enum claim_answer {
    CLAIM_HOLDS,    /* right, and the intervals overlap */
    CLAIM_DIFFERS,  /* right, and they do not */
    CLAIM_UNKNOWN,  /* right, and nothing can be said of the figure: too noisy, none was taken */
    CLAIM_NOT_RIGHT /* no kernel here */
};

struct claim_check {
    enum claim_answer answer;
    bool elsewhere;      /* another processor or GPU, or another number of cores */
    const char *why;     /* one sentence */
    const char *differs; /* what is not as it was then: "cpu A, now B; gcc 12, now 13"; or "" */
};

const char *claim_answer_name(enum claim_answer answer); /* "holds", "differs", ... */

/* Texts in `arena`, printable whatever the records hold. */
struct claim_check claim_compare(struct arena *arena, const struct evaluation *then,
                                 const struct evaluation *now);
/* "AMD EPYC, 2 cores". */
const char *claim_machine(struct arena *arena, const struct evaluation *evaluation);
/* {"answer", "why", "elsewhere", "differs", "then": {...}, "now": {...}}: the members alone. */
void claim_put(const struct claim_check *check, const struct evaluation *then,
               const struct evaluation *now, struct json *json);
