/* agents/proposer: which point of which start's tune space to measure next, from what has been
 * measured. It knows no problem and no clock: the same seed and the same tells give the same
 * proposals. One owner, any thread (next() computes for up to tens of milliseconds: loop/work).
 *
 * Every start is an arm. Its first look is the author's own choice, or the middle of the space;
 * after that a small Gaussian process over the logarithm of time, per start and with a share of the
 * doubt common to all, says for each point what to expect and how surely. The point with the
 * largest expected improvement over the best time of all starts is next, so that a start which
 * cannot win any more gets nothing. Points in flight count as if they came out as expected. */
#pragma once

#include "eval/candidate/candidate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROPOSER_STARTS_MAX = 64 };

struct proposer; /* opaque */

struct proposer_space { /* borrowed for the proposer's life */
    const char *name;
    size_t parameter_count;
    const struct tune_parameter *parameters;
    bool (*valid)(void *context, const struct names *tune); /* NULL: every point */
    void *context;
};

enum proposal_kind {
    PROPOSAL_FIRST,     /* a start's first look */
    PROPOSAL_SPREAD,    /* little is known yet: far from what was measured */
    PROPOSAL_MODEL,     /* largest expected improvement */
    PROPOSAL_NEIGHBOUR, /* the same, one step away from the best point of its start */
    PROPOSAL_RECALLED,  /* proposer_suggest() asked for it */
    PROPOSAL_CHANCE     /* drawn, as proposer_draw() says */
};

struct proposal {
    size_t start;
    struct names tune;
    enum proposal_kind kind;
    bool has_origin;     /* false for a first look */
    struct names origin; /* the best measured point of the start, for the words of the idea */
    double expected_ns;  /* 0: not known yet */
};

struct proposer *proposer_new(uint64_t seed);
void proposer_free(struct proposer *proposer); /* NULL is fine */

/* Adds a start, also in the middle of a search; returns its number, or -1 where it has no valid
 * point or there are too many starts. */
int proposer_add(struct proposer *proposer, const struct proposer_space *space);

/* A point that did well before, in another search: proposed ahead of others, in the order of
 * suggesting; but the first of every start, or where none is suggested its first look, before any
 * second one. What is no valid point is forgotten. */
void proposer_suggest(struct proposer *proposer, size_t start, const struct names *tune);

/* No honest kernel is faster than this (the roofline's floor); 0: not known. */
void proposer_set_floor(struct proposer *proposer, double floor_ns);

/* One point in `every` is drawn among those that are left: 0 none, 1 all. `evenly`: so that what
 * was measured says something of the whole space, and not of its best corner alone, the values and
 * pairs of values come first that were measured least, behind a start's first look and until it has
 * 64; else, and after them, each point is as likely as any other. */
void proposer_draw(struct proposer *proposer, unsigned every, bool evenly);

/* What the first look at a space of these parameters is, where that is a valid point. */
void proposer_choice(const struct tune_parameter *parameters, size_t count, struct names *tune);

/* Points of all starts; those of a space of more than 65536 are a sample. */
size_t proposer_points(const struct proposer *proposer);

/* False where every point has been proposed. What it returns is in flight until told. */
bool proposer_next(struct proposer *proposer, struct proposal *proposal);

/* What came of a point (proposed or not). `time_ns` <= 0 or NaN: it did not become a kernel. */
void proposer_tell(struct proposer *proposer, size_t start, const struct names *tune,
                   double time_ns);

/* A point in flight that will not be measured after all. */
void proposer_withdraw(struct proposer *proposer, size_t start, const struct names *tune);
