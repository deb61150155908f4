/* agents/llm/budget: the ledger's entries, read at the start and written with each move; the moves
 * are budget.c's. */
#include "agents/llm/budget_private.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES_MAX = 8 << 10 };

struct kept {
    struct link link;
    char *completion;
    struct spend spend;
};

/* ---- entries ---- */

void budget_put_entry(struct store_batch *batch, const char *key, const struct entry *entry)
{
    JSON_LOCAL(json, text, ENTRY_BYTES_MAX);
    json_object(&json);
    json_put_text(&json, "state", entry->state);
    json_put_int(&json, "micro_dollars", entry->micro_dollars);
    json_put_int(&json, "tokens", entry->tokens);
    json_put_int(&json, "reserved_micro_dollars", entry->reserved_micro_dollars);
    json_put_int(&json, "reserved_tokens", entry->reserved_tokens);
    json_put_int(&json, "prompt_tokens", entry->prompt_tokens);
    json_put_int(&json, "completion_tokens", entry->completion_tokens);
    json_put_int(&json, "cached_tokens", entry->cached_tokens);
    json_put_int(&json, "saved_micro_dollars", entry->saved_micro_dollars);
    json_put_int(&json, "prompt_bytes", entry->prompt_bytes);
    json_put_int(&json, "max_tokens", entry->max_tokens);
    json_put_int(&json, "text_bytes", entry->text_bytes);
    json_put_int(&json, "doubt_micro_dollars", entry->doubt_micro_dollars);
    json_put_int(&json, "doubt_tokens", entry->doubt_tokens);
    json_put_bool(&json, "priced", entry->priced);
    json_put_text(&json, "model", entry->model);
    json_put_text(&json, "ask", entry->ask);
    json_put_text(&json, "completion", entry->completion);
    if (entry->batch != NULL)
        json_put_text(&json, "batch", entry->batch);
    json_put_int(&json, "ms", (int64_t)clock_wall_ms());
    json_object_end(&json);
    store_batch_put(batch, STORE_SPENDING, key, buf_text(&text), text.length);
}

/* Tokenizers that are served have 3 to 5 bytes of code or prose a token; a text of which a token
 * had eight would be mostly blanks. */
int64_t budget_least_tokens(int64_t bytes)
{
    enum { TOKEN_BYTES_MOST = 8 };
    return (bytes + TOKEN_BYTES_MOST - 1) / TOKEN_BYTES_MOST;
}

bool budget_believes(const struct entry *entry, bool embeds)
{
    int64_t least = embeds ? 0 : budget_least_tokens(entry->text_bytes);
    return entry->prompt_tokens > 0 && entry->prompt_tokens <= TOKENS_BELIEVED &&
           entry->completion_tokens >= least && entry->completion_tokens <= TOKENS_BELIEVED;
}

bool budget_is_priced(const struct model *model)
{
    return model->codec == NULL || (model->prompt_price >= 0 && model->completion_price >= 0);
}

/* What `spend` becomes in the ledger. */
struct entry budget_entry_of(const struct spend *spend, const char *state,
                             const struct completion *completion)
{
    const char *text = completion != NULL && completion->text != NULL ? completion->text : "";
    return (struct entry){.state = state,
                          .model = spend->model->name,
                          .ask = spend->ask,
                          .completion = spend->completion,
                          .reserved_micro_dollars = spend->micro_dollars,
                          .reserved_tokens = spend->tokens,
                          .prompt_tokens = completion != NULL ? completion->prompt_tokens : -1,
                          .completion_tokens =
                              completion != NULL ? completion->completion_tokens : -1,
                          .prompt_bytes = spend->prompt_bytes,
                          .max_tokens = spend->max_tokens,
                          .text_bytes = (int64_t)strlen(text),
                          .priced = budget_is_priced(spend->model)};
}

/* ---- opening ---- */

struct reading {
    struct budget *budget;
    struct store_batch *batch; /* charges what a killed program left reserved */
    struct err *err;
    bool failed;
};

void budget_count_entry(struct budget *budget, const struct entry *entry)
{
    struct budget_totals *totals = &budget->totals;
    bool unknown = strcmp(entry->state, "unknown") == 0;
    totals->unpriced = totals->unpriced || !entry->priced;
    totals->micro_dollars += entry->micro_dollars;
    totals->tokens += entry->tokens;
    totals->unknown_micro_dollars += unknown ? entry->micro_dollars : 0;
    totals->unknown_tokens += unknown ? entry->tokens : 0;
    totals->settled += strcmp(entry->state, "settled") == 0;
    totals->charged += unknown || strcmp(entry->state, "charged") == 0;
    totals->released += strcmp(entry->state, "released") == 0;
    if (strcmp(entry->state, "settled") != 0)
        return;
    if (budget_believes(entry, false)) {
        budget_shown_learn(budget_shown_of(&budget->shown, entry->model),
                           &(struct usage){.prompt_bytes = entry->prompt_bytes,
                                           .max_tokens = entry->max_tokens,
                                           .text_bytes = entry->text_bytes,
                                           .prompt_tokens = entry->prompt_tokens,
                                           .completion_tokens = entry->completion_tokens});
        return;
    }
    totals->doubt_micro_dollars += entry->doubt_micro_dollars;
    totals->doubt_tokens += entry->doubt_tokens;
}

/* Its batch may still answer: it stays reserved. */
static void keep_entry(struct budget *budget, const char *key, const struct entry *entry)
{
    struct kept *kept = MEM_NEW(struct kept);
    kept->completion = mem_strdup(entry->completion);
    kept->spend = (struct spend){.micro_dollars = entry->reserved_micro_dollars,
                                 .tokens = entry->reserved_tokens,
                                 .prompt_bytes = entry->prompt_bytes,
                                 .max_tokens = entry->max_tokens,
                                 .risk = 1,
                                 .open = true};
    snprintf(kept->spend.key, sizeof kept->spend.key, "%s", key);
    budget->totals.reserved_micro_dollars += kept->spend.micro_dollars;
    budget->totals.reserved_tokens += kept->spend.tokens;
    budget->risk_micro_dollars += kept->spend.micro_dollars;
    budget->risk_tokens += kept->spend.tokens;
    list_append(&budget->kept, &kept->link);
}

static bool read_entry(void *context, const char *key, const char *text, size_t length)
{
    struct reading *reading = context;
    struct budget *budget = reading->budget;
    ARENA_LOCAL(arena);
    struct value *root;
    if (value_parse_json(arena, key, text, length, &root, reading->err) != 0) {
        reading->err->code = ERR_CORRUPT;
        reading->failed = true;
        return false;
    }
    struct entry entry = {.state = value_text(root, "state", ""),
                          .model = value_text(root, "model", ""),
                          .ask = value_text(root, "ask", ""),
                          .completion = value_text(root, "completion", ""),
                          .micro_dollars = not_negative(value_int(root, "micro_dollars", 0)),
                          .tokens = not_negative(value_int(root, "tokens", 0)),
                          .reserved_micro_dollars =
                              not_negative(value_int(root, "reserved_micro_dollars", 0)),
                          .reserved_tokens = not_negative(value_int(root, "reserved_tokens", 0)),
                          .prompt_tokens = value_int(root, "prompt_tokens", -1),
                          .completion_tokens = value_int(root, "completion_tokens", -1),
                          .prompt_bytes = not_negative(value_int(root, "prompt_bytes", 0)),
                          .max_tokens = not_negative(value_int(root, "max_tokens", 0)),
                          .text_bytes = not_negative(value_int(root, "text_bytes", 0)),
                          .doubt_micro_dollars = value_int(root, "doubt_micro_dollars", 0),
                          .doubt_tokens = value_int(root, "doubt_tokens", 0),
                          .priced = value_bool(root, "priced", true)};
    /* A ledger of before these were written. */
    if (value_get(root, "doubt_tokens") == NULL && !budget_believes(&entry, false)) {
        entry.doubt_micro_dollars =
            not_negative(entry.reserved_micro_dollars - entry.micro_dollars);
        entry.doubt_tokens = not_negative(entry.reserved_tokens - entry.tokens);
    }
    const char *dash = strrchr(key, '-');
    long long number = dash != NULL ? strtoll(dash + 1, NULL, 10) : 0;
    if (number > budget->last)
        budget->last = number;
    if (strcmp(entry.state, "reserved") == 0 && value_get(root, "batch") != NULL) {
        keep_entry(budget, key, &entry);
        return true;
    }
    if (strcmp(entry.state, "reserved") == 0) {
        entry.state = "unknown";
        entry.micro_dollars = entry.reserved_micro_dollars;
        entry.tokens = entry.reserved_tokens;
        budget_put_entry(reading->batch, key, &entry);
        log_event(LOG_INFO, "budget.unknown", entry.ask,
                  "%s was reserved when the program ended; its outcome is not known", key);
    }
    budget_count_entry(budget, &entry);
    return true;
}

static int read_ledger(struct budget *budget, struct err *err)
{
    struct reading reading = {.budget = budget, .batch = store_batch_new(), .err = err};
    char prefix[48];
    snprintf(prefix, sizeof prefix, "%s-", budget->run);
    int status =
        store_scan(budget->store, STORE_SPENDING, prefix, read_entry, &reading, err) != 0 ||
                reading.failed
            ? -1
            : 0;
    if (status == 0 && !store_batch_empty(reading.batch))
        status = store_commit(budget->store, reading.batch, err);
    store_batch_free(reading.batch);
    return status != 0 ? err_wrap(err, "the ledger of %s", budget->run) : 0;
}

static int check_prices(struct budget *budget, const struct models *const *models, size_t count,
                        struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; models[i] != NULL && k < models[i]->count; k++) {
            const struct model *model = &models[i]->items[k];
            if (budget_is_priced(model))
                continue;
            if (budget->caps.micro_dollars > 0)
                return err_set(err, ERR_USAGE,
                               "a budget in dollars needs prices, and %s has none: give its entry "
                               "prices (%s), or use a budget in tokens",
                               model->name, model->where != NULL ? model->where : "models.yaml");
            budget->totals.unpriced = true;
        }
    }
    return 0;
}

int budget_open(struct store *store, const char *run, const struct budget_caps *caps,
                const struct models *const *models, size_t models_count, struct budget **out,
                struct err *err)
{
    struct budget *budget = MEM_NEW(struct budget);
    budget->store = store;
    budget->caps = *caps;
    list_init(&budget->shown);
    list_init(&budget->kept);
    snprintf(budget->run, sizeof budget->run, "%s", run);
    if (check_prices(budget, models, models_count, err) != 0 || read_ledger(budget, err) != 0) {
        budget_free(budget);
        return -1;
    }
    *out = budget;
    return 0;
}

static void free_kept(struct kept *kept)
{
    mem_free(kept->completion);
    mem_free(kept);
}

void budget_free(struct budget *budget)
{
    if (budget == NULL)
        return;
    for (struct link *link; (link = list_pop(&budget->kept)) != NULL;)
        free_kept(container_of(link, struct kept, link));
    budget_shown_free(&budget->shown);
    mem_free(budget);
}

/* ---- of batches ---- */

void budget_keep(const struct spend *spend, const char *batch_name, struct store_batch *batch)
{
    struct entry entry = budget_entry_of(spend, "reserved", NULL);
    entry.batch = batch_name;
    budget_put_entry(batch, spend->key, &entry);
}

bool budget_take_up(struct budget *budget, const struct model *model, const char *ask,
                    const char *completion_key, struct spend *spend)
{
    list_each (link, &budget->kept) {
        struct kept *kept = container_of(link, struct kept, link);
        if (strcmp(kept->completion, completion_key) != 0)
            continue;
        *spend = kept->spend;
        spend->model = model;
        spend->ask = ask;
        spend->completion = completion_key;
        list_remove(&kept->link);
        free_kept(kept);
        return true;
    }
    return false;
}
