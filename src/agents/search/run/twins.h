/* agents/search/run/twins: the one place that knows the same candidate: one source with one set of
 * numbers is measured once. Inside src/agents/search.
 *
 * In a round the first one is measured, and its twins wait for its verdict, which is theirs too.
 * What is a twin is said when the round is over, by the numbers: whoever came first in time, the
 * lowest number is who it was, so that candidates which arrive in another order name the same ones.
 */
#pragma once

#include "base/hash.h"
#include "loop/slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct search;
struct attempt;
struct store_batch;

/* An identity that is being evaluated, or was in this round. Without a model there are no rounds
 * that end: each goes as it is taken. */
struct known {
    char identity[33];
    const struct attempt *first; /* whose evaluation it is */
    char *verdict;               /* the evaluation as JSON; NULL: not yet */
    struct slots slots;          /* one place: the first one's until it has its verdict */
};

struct settled { /* what is left of it when its round is over */
    struct hash mark;
    int64_t number;
};

struct twins {
    struct known **known; /* of the round that goes on */
    size_t known_count, known_capacity;
    struct settled *settled; /* of those before */
    size_t settled_count, settled_capacity;
    int64_t shown; /* numbers given out before the round: who of earlier rounds is known */
};

/* What a model wrote is an earlier round's candidate, or its parent's source with whatever numbers:
 * there is nothing to measure, and the idea was not tried. The record says of whom. */
bool twins_repeats(struct attempt *attempt, const struct attempt *parent);
enum twins_turn {
    TURN_MEASURE,
    TURN_WAIT, /* another one is being measured */
    TURN_TOLD  /* its verdict is this one's request */
};
enum twins_turn twins_turn(struct attempt *attempt);
void twins_tell(const struct attempt *attempt, const char *verdict); /* to those who wait */
void twins_recall(struct attempt *attempt); /* it has ended in an earlier process */
void twins_take(struct search *search, const struct attempt *attempt);
/* Of several that have ended, the lowest number is it: `drop` puts each other one into the batch,
 * which is NULL at first and in the end where there was none. */
typedef void twins_drop_one(struct attempt *first, struct attempt *other,
                            struct store_batch **batch);
struct store_batch *twins_drop(struct search *search, twins_drop_one *drop);
void twins_round(struct search *search);     /* it begins */
void twins_round_end(struct search *search); /* all of it was taken */
void twins_free(struct search *search);
