/* agents/llm/providers/plain: reads an event without a JSON tree where it is an earlier event in
 * all but its words. The events of a stream mostly are, and a tree for each costs more than all
 * else that is done with it. Nothing is assumed of a format: an event is a pattern for later ones
 * only once a tree of it has shown that its one effect is to append that string. One owner, any
 * thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { PLAIN_HOLES = 2, PLAIN_TRIES_MAX = 8 };

struct plain {        /* zero-initialize */
    struct buf event; /* the pattern, as it came */
    struct {
        size_t begin, end; /* between the quotes */
        bool words;        /* else padding, which nobody reads */
    } holes[PLAIN_HOLES];  /* in order */
    size_t hole_count;
    bool proven;
    unsigned tries;
};

void plain_free(struct plain *plain);

/* Takes the event as a pattern that has yet to be proven; false where it can be none. */
bool plain_take(struct plain *plain, const char *event, size_t length);
/* The pattern with other words, for the proof: they must be what is appended, and all that is. */
void plain_fill(const struct plain *plain, const char *words, struct buf *event);

/* Appends the event's words and returns true, where it fits a proven pattern. */
bool plain_read(const struct plain *plain, const char *event, size_t length, struct buf *words);
