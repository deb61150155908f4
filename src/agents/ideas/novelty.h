/* agents/ideas/novelty: has this been tried? Compares ideas by their words, so that a
 * near-duplicate is dropped before it costs a completion. Pure; any thread. */
#pragma once

#include "agents/ideas/attempt.h"
#include "agents/ideas/ideas.h"
#include "base/buf.h"

/* Of `ideas` [count] keeps, in their order, those that are near neither to an attempt of the
 * history nor to an earlier idea of the list; returns how many, moved to the front. `dropped` gets
 * a line for each other: what it is and what it repeats. The same texts always give the same
 * answer. */
size_t novelty_keep(struct idea *ideas, size_t count, const struct prompt_attempt *history,
                    size_t history_count, struct buf *dropped);

/* 0 (nothing in common) to 1 (the same words in another order). */
double novelty_likeness(const char *a, const char *b);
