/* agents/llm/budget_shown: what the answers of each model have shown of what it bills: tokens a
 * byte, and how far beyond what it was allowed. Loop thread only; for agents/llm/budget alone. */
#pragma once

#include "base/list.h"

#include <stdint.h>

struct shown {
    struct link link;
    char *model;
    int64_t answers;                      /* with a usage to believe */
    int64_t over_prompt, over_completion; /* the most that one took beyond its reservation */
    double prompt_tokens, prompt_bytes;   /* sums */
    double completion_tokens, completion_bytes;
};

struct usage { /* of one answer */
    int64_t prompt_bytes, max_tokens, text_bytes;
    int64_t prompt_tokens, completion_tokens; /* as the provider says */
};

struct shown *budget_shown_of(struct list *all, const char *model); /* a new one, where none is */
void budget_shown_learn(struct shown *shown, const struct usage *usage);
void budget_shown_free(struct list *all);

/* Tokens in so many bytes; before the model has shown any, a token for four bytes. */
int64_t budget_shown_prompt(const struct shown *shown, int64_t bytes);
int64_t budget_shown_completion(const struct shown *shown, int64_t bytes);
