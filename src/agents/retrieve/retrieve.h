/* agents/retrieve: which passages of the index stand in a prompt. Queries are built from the
 * problem, what holds the parent back, the idea's words, and for repairs the compiler's message;
 * what they find is joined, with variety, within a budget of tokens.
 *
 * What a prompt held is kept in STORE_PASSAGES before it is sent: under "r3-c17/implement" the ids,
 * under "p0123456789abcdef" each passage's text. A process that goes on with the run quotes the
 * same bytes, whatever became of the index. */
#pragma once

#include "agents/llm/embedding.h"
#include "agents/prompt/prompt.h"
#include "agents/retrieve/rag/rag.h"

enum { RETRIEVE_QUERIES = 4, RETRIEVE_MOST = 8 };

struct retrieve_about { /* texts borrowed, "" or NULL where there is none */
    const struct problem *problem;
    const char *backend;
    const char *definition;             /* of the operation, in whatever language */
    const char *limiter, *evidence;     /* of the parent: agents/diagnosis */
    const char *title, *category, *why; /* of the idea */
    const char *failure, *diagnostics;  /* of what is to be mended */
};

struct retrieve_plan {   /* texts in the arena */
    const char *purpose; /* "implement cpu memory": the kind of query that uses are counted by */
    const char *queries[RETRIEVE_QUERIES];
    double weights[RETRIEVE_QUERIES];
    const float *vectors; /* [count][dimensions], or NULL: by words alone */
    size_t dimensions, count;
};

/* Pure. */
void retrieve_plan(struct arena *arena, enum prompt_agent agent, const struct retrieve_about *about,
                   struct retrieve_plan *plan);

bool retrieve_is_for(const struct rag_passage *passage, const char *backend);
bool retrieve_guide_is_for(const char *file, const char *backend); /* one that ships */

/* Any thread. What the index has for that, the best first, in at most `tokens`; what is for
 * other backends is left out, and so is what has too few of a query's words. */
int retrieve_passages(struct rag *rag, const char *backend, const struct retrieve_plan *plan,
                      size_t tokens, struct arena *arena, struct rag_passage **items, size_t *count,
                      struct err *err) MUST_USE;

struct retrieval { /* a task; zero-initialize, fill the first part; stays put until finished */
    struct task task;
    struct rag *rag;
    struct store *store;
    struct store_writer *writer;
    size_t tokens;
    const char *backend, *key;   /* key: "r3-c17/implement", borrowed until finished */
    int64_t first_idea, ideas;   /* of a prompt for ideas: whose winning it may count as its own */
    struct retrieve_plan plan;   /* borrowed until finished */
    struct embedding *embedding; /* NULL: by words alone */
    int64_t step;                /* which of this asker's prompts */
    /* what it found, once task.finished; none where the index or the store failed */
    struct arena *arena; /* its memory, until retrieval_free() */
    struct prompt_passage *passages;
    size_t count;
    /* its own */
    struct embedding_ask *asking;
    struct work work;
    struct store_write write;
    struct store_batch *batch;
    bool recalled;
    struct err err;
};

/* One that is cancelled while it waits for vectors ends soon, with nothing found or recorded. */
void retrieval_start(struct loop *loop, struct retrieval *retrieval, struct task *parent,
                     const char *id);
void retrieval_free(struct retrieval *retrieval); /* only once finished or never started */

/* Counts, for every run that has not been counted yet, which passages stood in prompts that led to
 * a win, and which did not. Once a run, at most: a kill may lose a count, and never doubles one.
 * Blocks: a pool thread, while no run goes on. */
int retrieve_count_uses(struct store *store, struct rag *rag, struct err *err) MUST_USE;
