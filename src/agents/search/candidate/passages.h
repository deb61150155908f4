/* agents/search/candidate/passages: what prompts quote from manuals. Inside src/agents/search. */
#pragma once

#include "agents/prompt/prompt.h"
#include "agents/retrieve/retrieve.h"
#include "loop/work.h"

#include <stdbool.h>
#include <stdint.h>

struct search;
struct attempt;

/* The index of manuals; while `work` is active it is the pool thread's. */
struct passages {
    struct rag *rag; /* NULL: there is none */
    struct store *store;
    const char *folder;
    const struct model *embeds; /* whom the run would ask for vectors, or NULL */
    bool counts;
    struct work work;
    struct err err, no_vectors; /* no_vectors: why that one is not asked */
    struct embedding embedding;
};

/* What a prompt is about: ideas where `idea` is NULL. */
struct search_about {
    struct arena *arena;
    const struct attempt *parent; /* or NULL */
    const struct idea *idea;
    const struct language *language;   /* that it is to be written in; NULL: there is no choice */
    const char *failure, *diagnostics; /* of an idea's last source, or NULL */
    int64_t repairs, first_idea, ideas;
};

void search_library_open(struct search *search);
bool search_library_busy(const struct search *search); /* it is being opened */
void search_library_opened(struct search *search);
void search_library_close(struct search *search);
/* Starts looking for what a prompt quotes, a task under `owner`; false: it quotes nothing. */
bool search_retrieve(struct search *search, struct retrieval *retrieval, struct task *owner,
                     const char *id, const struct search_about *about);
struct prompt_context search_context_for(struct search *search, const struct retrieval *retrieval,
                                         const struct search_about *about);
