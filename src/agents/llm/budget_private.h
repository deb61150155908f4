/* agents/llm/budget: what its files share. Inside src/agents/llm/budget*.c. */
#pragma once

#include "agents/llm/budget.h"
#include "agents/llm/budget_shown.h"
#include "base/list.h"

enum {
    TOKENS_BELIEVED = 20 * 1000 * 1000 /* of one request; no model reads or writes as much */
};

struct budget {
    struct store *store;
    char run[40];
    struct budget_caps caps;
    struct budget_totals totals;
    int64_t risk_micro_dollars, risk_tokens; /* of what is reserved, times its risk */
    int64_t last;                            /* the last entry's number */
    char reason[160];
    struct list shown;
    struct list kept; /* struct kept: of batches that a process before this one made */
};

struct entry { /* texts borrowed */
    const char *state, *model, *ask, *completion;
    const char *batch; /* reserved: it is part of it, and a later process takes its answer; NULL */
    int64_t micro_dollars, tokens; /* what counts against the caps */
    int64_t reserved_micro_dollars, reserved_tokens;
    int64_t prompt_tokens, completion_tokens;   /* as the provider says; -1: it did not */
    int64_t cached_tokens, saved_micro_dollars; /* of the prompt's; what its cache spared */
    int64_t prompt_bytes, max_tokens, text_bytes;
    int64_t doubt_micro_dollars, doubt_tokens; /* that an estimate may be short of */
    bool priced;                               /* else its dollars are not known, and 0 here */
};

/* --- budget_ledger.c --- */
void budget_put_entry(struct store_batch *batch, const char *key, const struct entry *entry);
/* A usage that can be: some of both, but a text of fewer tokens than any tokenizer makes of it, or
 * more than any model takes, was never had. */
bool budget_believes(const struct entry *entry, bool embeds);
int64_t budget_least_tokens(int64_t bytes); /* of a text of so many */
void budget_count_entry(struct budget *budget, const struct entry *entry);
bool budget_is_priced(const struct model *model);
struct entry budget_entry_of(const struct spend *spend, const char *state,
                             const struct completion *completion);

static inline int64_t not_negative(int64_t number)
{
    return number > 0 ? number : 0;
}
