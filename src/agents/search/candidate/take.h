/* agents/search/candidate/take: what becomes of a candidate that has ended. Inside
 * src/agents/search. */
#pragma once

struct search;
struct attempt;

void search_count(struct search *search, struct attempt *attempt); /* at its end, in any order */
void search_take(struct search *search, struct attempt *attempt);  /* in the order of numbers */
void search_prune(struct search *search);    /* nobody may be writing: the pool is kept small */
void search_take_all(struct search *search); /* the end of a round; ties are put right */
