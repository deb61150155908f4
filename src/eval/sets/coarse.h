/* eval/sets/coarse: what the definition gives where an input lacks its lowest bits, in all of its
 * numbers or in some terms of its sums. Inside src/eval. Worker's measuring thread. */
#pragma once

#include "eval/sets/sets.h"

/* Whether what the lowest bits of an input do is a question: float32, and no lower one allowed. */
bool session_low_bits_apply(const struct session *session);
/* An eighth of an input's numbers, along the dim that sums go over: side by side, or each eighth.
 */
enum { TERMS_PARTS = 8 };
struct terms {
    size_t count, run; /* indices of that dim; how many numbers lie together at each */
    size_t part;       /* which eighth */
    bool apart;
};
/* False: no sum goes over a dim of the input, or over few indices. */
bool session_terms(const struct session *session, const struct set *set, size_t input,
                   struct terms *terms);
/* 1: results[], [elements] doubles of the scratch, are what the definition gives where the input's
 * numbers (`terms` NULL: all) keep `bits` of their mantissa, or are 0 where `bits` is; 0: too few
 * are changed; -1: *err. */
int session_coarsen(struct session *session, const struct set *set, size_t input, int bits,
                    const struct terms *terms, void **results, struct err *err) MUST_USE;
/* 1: each element of the output is a plain sum of so many products as `set`'s shape says, at most:
 * additive, and that number where all inputs are 1; 0: not, or not known; -1: *err. */
int session_sums_products(struct session *session, const struct set *set, size_t output,
                          struct err *err) MUST_USE;
/* results[], of the outputs' types, are the definition's in the spec's precision. */
int session_compute_honest(struct session *session, const struct set *set, void **results,
                           struct err *err) MUST_USE;
