/* agents/llm/budget: what a run may spend on completions, as a hard cap kept by reservation: the
 * worst case is reserved, on disk, before a request is sent, and settled by its usage in the batch
 * that holds its answer. What was reserved when the program was killed is charged in full. Loop
 * thread only, but for budget_open(), which reads and commits. */
#pragma once

#include "agents/llm/model.h"
#include "store/store.h"

struct budget; /* opaque */

struct budget_caps {
    int64_t micro_dollars, tokens; /* 0: none */
};

struct budget_totals {
    int64_t micro_dollars, tokens;                 /* settled and charged */
    int64_t unknown_micro_dollars, unknown_tokens; /* of these, reserved for what was lost */
    int64_t doubt_micro_dollars, doubt_tokens;     /* beside them, that estimates may be short of */
    int64_t reserved_micro_dollars, reserved_tokens;
    int64_t settled, charged, released; /* requests by their end */
    bool unpriced; /* some model's price is not known: the sum is a lower end */
};

/* Reads the run's ledger (STORE_SPENDING, "r3-1", "r3-2", ...) and charges what a killed program
 * left reserved. ERR_USAGE where there is a dollar cap and a model of `models` has no price, with
 * the line of the configuration that names it. */
int budget_open(struct store *store, const char *run, const struct budget_caps *caps,
                const struct models *const *models, size_t models_count, struct budget **budget,
                struct err *err) MUST_USE;
void budget_free(struct budget *budget); /* NULL is fine */

struct spend { /* one request's reservation; zero-initialize; the asker's memory */
    char key[64];
    const struct model *model;
    const char *ask, *completion;  /* borrowed until it is closed */
    int64_t micro_dollars, tokens; /* reserved; what was charged, once it is closed */
    int64_t prompt_bytes, max_tokens;
    int64_t risk; /* its reservation counts so many times while others ask beside it */
    bool open;
};

enum budget_answer { BUDGET_OK, BUDGET_WAIT, BUDGET_OVER };

/* Puts the reservation into `batch`, to be on disk before the request is sent. `prompt_bytes`
 * bounds the prompt's tokens from above (no tokenizer has more tokens than bytes), `max_tokens` the
 * answer's; what this model's answers took beyond that so far is added. A provider may bill more
 * than it was allowed, so while it has not shown what it bills, or was seen to bill more, fewer
 * requests are out at once near the cap, in the end one: by one answer a bill can pass it.
 * BUDGET_WAIT: there is no room now, but what others have reserved may leave some; ask again when
 * one of them has ended. BUDGET_OVER: the cap is reached. */
enum budget_answer budget_reserve(struct budget *budget, const struct model *model, const char *ask,
                                  const char *completion_key, int64_t prompt_bytes,
                                  int64_t max_tokens, struct spend *spend,
                                  struct store_batch *batch);

/* The answer is there: charged by its usage, also where that is more than was reserved. Where the
 * usage is missing, negative, or more than any model can have read, by an estimate as for a stream
 * that broke; the rest of the reservation stays in doubt, and counts against the caps. */
void budget_settle(struct budget *budget, struct spend *spend, const struct completion *completion,
                   struct store_batch *batch);
/* The stream broke: the prompt was read and what came was written, so that much is charged, by the
 * usage as far as it was said, else by what this model's answers so far had in tokens a byte. */
void budget_cut(struct budget *budget, struct spend *spend, const struct completion *part,
                struct store_batch *batch);
/* Nothing of it came back: all of the reservation is charged, its outcome is not known. */
void budget_charge(struct budget *budget, struct spend *spend, struct store_batch *batch);
/* Nobody answered or a status other than 200 came: nothing was spent. */
void budget_release(struct budget *budget, struct spend *spend, struct store_batch *batch);

/* It is part of a batch of that name, whose answers a later process can take: there it stays
 * reserved until budget_take_up(), which is false where nothing is. */
void budget_keep(const struct spend *spend, const char *batch_name, struct store_batch *batch);
bool budget_take_up(struct budget *budget, const struct model *model, const char *ask,
                    const char *completion_key, struct spend *spend);

struct budget_totals budget_totals(const struct budget *budget);
/* Which cap was reached, in words; "" where none was. Borrowed. */
const char *budget_reason(const struct budget *budget);
bool budget_capped(const struct budget *budget); /* then each request needs a bound; NULL: no */
