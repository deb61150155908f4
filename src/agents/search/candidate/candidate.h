/* agents/search/candidate: one candidate, from its idea to its place in the pool: who is asked,
 * what prompts say, how it is written, measured and taken. Inside src/agents/search. */
#pragma once

#include "agents/search/candidate/agent.h"
#include "agents/search/candidate/chain.h"
#include "agents/search/candidate/history.h"
#include "agents/search/candidate/lessons.h"
#include "agents/search/candidate/model.h"
#include "agents/search/candidate/passages.h"
#include "agents/search/candidate/recall.h"
#include "agents/search/candidate/take.h"
#include "agents/search/candidate/task_files.h"
#include "agents/search/candidate/writing.h"
#include "agents/search/run/run.h"

/* --- candidate.c, proposed.c, attempt.c --- */
extern const struct task_type attempt_type;
struct attempt *attempt_start(struct search *search, const struct chain *chain);
/* A model is to write candidate `number`: implementation `sample` of an idea; its round waits. */
struct attempt *attempt_start_writing(struct search *search, struct task *round, int64_t number,
                                      const struct idea *idea, const char *idea_id,
                                      const struct attempt *parent, int island, int64_t sample);
/* A coding agent may work on it; what that has evaluated has the numbers from `first` on, and comes
 * from the store where it is there. */
void attempt_operate(struct attempt *attempt, const struct attempt *parent, struct task *round,
                     int64_t first);
void attempt_identify(struct attempt *attempt); /* by its source and numbers */
void attempt_abandon(struct attempt *attempt);  /* stop it: cancels what it waits for */
void attempt_free(struct attempt *attempt);

/* --- parents.c --- */
size_t search_islands(const struct search *search);
/* By --language, one for each folder of starts; 0: the backend has it not. */
size_t search_languages(const struct search *search,
                        const struct language *chosen[TARGET_FOLDERS_MAX]);
/* What a model writes next, on an island and from a parent (or NULL); NULL: there is no choice. */
const struct language *search_language(const struct search *search, int island,
                                       const struct attempt *parent);
/* What an island's ideas of this round start from, best first; returns how many. */
size_t search_parents(const struct search *search, int island,
                      const struct attempt *parents[PARENTS_MAX]);

/* --- asked.c --- */
void search_recall_asked(struct search *search);
char *search_asked_text(const struct search *search); /* JSON; mem_free() it */
