/* agents/search/run/pool: candidates that have ended, and the kept kernels: who is the best, in
 * which order they stand. Inside src/agents/search. */
#pragma once

#include "agents/prompt/prompt.h"
#include "agents/search/run/select.h"

#include <stdbool.h>
#include <stddef.h>

struct search;
struct attempt;

struct attempt *search_ended(struct search *search, int64_t number); /* not yet taken; or NULL */
struct attempt *search_next_ended(struct search *search, int64_t after); /* the lowest; or NULL */
bool search_ranks(const struct attempt *attempt); /* not one dropped after a few samples */
void search_rank(struct search *search, struct attempt *attempt); /* it may be the best so far */
void search_name_best(struct search *search, struct attempt *attempt);
struct prompt_kernel search_kernel_words(const struct attempt *attempt); /* NULL is fine */
/* The one with the largest lower end of its speed-up; or NULL. */
const struct attempt *search_surest(const struct search *search);
/* The kept kernels as contenders, best first; mem_free() them. `island` < 0: of all. */
struct contender *search_contenders(const struct search *search, int island, size_t *count);
