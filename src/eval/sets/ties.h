/* eval/sets/ties: integers that are not the definition's, and may be right all the same. Inside
 * src/eval/sets. Worker's measuring thread. */
#pragma once

#include "eval/sets/sets.h"

struct ties {
    struct session *session;
    const struct set *set;
    size_t output, count;
    const double *exact;
    const void *got;
    unsigned char *bad; /* [count] what is not explained yet */
    size_t bad_count;
    bool index; /* its numbers are indices */
};

double ties_got(const struct ties *ties, size_t i);
void ties_explain(struct ties *ties, size_t i);

/* An input's axis, or the whole input as one, and the output whose numbers lie along it: of each
 * slice some `picks`; 0: all of the output's are of the one axis, as where a row of a table is
 * chosen. */
struct pointing {
    size_t input, outer, extent, inner, picks;
};

/* The output's place of a slice's pick. */
size_t pointing_place(const struct pointing *pointing, size_t outer, size_t pick, size_t inner);

/* The input is rotated along the axis, and may be turned around then. */
struct turn {
    size_t by;
    bool around;
    bool honest; /* the definition computes in its own precision */
};

/* --- ties_index.c --- */
/* Whether they are indices: on drawn numbers, where ties are few, the definition's move with what
 * they point at. */
bool ties_find_index(const struct ties *ties, struct pointing *pointing);
/* Explains slices where what the kernel's indices point at and what the definition's do can change
 * places, and the definition gives what it gave. */
void ties_exchange(struct ties *ties, const struct pointing *pointing);
/* answers[]: the definition's indices for a turned input, as indices of what it was before; NAN:
 * none. False: it does not take such an input. */
bool ties_turn(const struct ties *ties, const struct set *set, const struct pointing *pointing,
               const struct turn *turn, double *answers);
