/* eval/sets/shake: what a definition gives where its inputs are moved a little. Inside
 * src/eval/sets. */
#pragma once

#include "eval/sets/sets.h"

struct shake {
    bool by_norm;          /* each number moves by `size` of its tensor's largest; else of itself */
    bool zeros;            /* by itself; but zeros, too, as if they were the tensor's largest */
    bool honest;           /* computed in the spec's precision, not exactly */
    double size;           /* up or down, by the key */
    const double *by_type; /* [DTYPES], times `size`, and half of it at the least; NULL: 1 */
    uint64_t key;
    size_t scratch; /* where results lie: session_scratch() from here on */
};

int session_shake(struct session *session, const struct set *set, const struct shake *shake,
                  void **results, struct err *err) MUST_USE;

/* --- ties.c --- */
/* Whether integers that are not what the definition gives are right all the same, since it would
 * give them, too, for inputs that are moved by their last bits, or for another one of two that
 * cannot be told apart. */
bool session_excuses_integers(struct session *session, const struct set *set, size_t output,
                              const void *got);
