/* agents/budget: the ledger. One entry a request, "r3-17", in STORE_SPENDING:
 *
 *   reserved --> settled   (by its usage)
 *            --> charged   (whole: the answer was lost, its usage is not to be had, or the program
 *            |              was killed before it knew)
 *            --> released  (nothing was spent; the entry stays, with nothing in it)
 *
 * spent + reserved never exceeds a cap, so neither does what is spent in the end.
 */
#include "agents/budget.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/value.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES_MAX = 8 << 10 };

struct budget {
    struct store *store;
    char run[40];
    struct budget_caps caps;
    struct budget_totals totals;
    int64_t last; /* the last entry's number */
    bool over;
};

struct entry { /* texts borrowed */
    const char *state, *model, *ask, *completion;
    int64_t micro_dollars, tokens; /* what counts against the caps */
    int64_t reserved_micro_dollars, reserved_tokens;
    int64_t prompt_tokens, completion_tokens; /* as the provider says; -1: it did not */
    bool priced;                              /* else its dollars are not known, and 0 here */
};

/* ---- entries ---- */

static void put_entry(struct store_batch *batch, const char *key, const struct entry *entry)
{
    struct buf text;
    struct json json;
    buf_init(&text, ENTRY_BYTES_MAX);
    json_init(&json, &text);
    json_object(&json);
    json_put_text(&json, "state", entry->state);
    json_put_int(&json, "micro_dollars", entry->micro_dollars);
    json_put_int(&json, "tokens", entry->tokens);
    json_put_int(&json, "reserved_micro_dollars", entry->reserved_micro_dollars);
    json_put_int(&json, "reserved_tokens", entry->reserved_tokens);
    json_put_int(&json, "prompt_tokens", entry->prompt_tokens);
    json_put_int(&json, "completion_tokens", entry->completion_tokens);
    json_put_bool(&json, "priced", entry->priced);
    json_put_text(&json, "model", entry->model);
    json_put_text(&json, "ask", entry->ask);
    json_put_text(&json, "completion", entry->completion);
    json_put_int(&json, "ms", (int64_t)clock_wall_ms());
    json_object_end(&json);
    store_batch_put(batch, STORE_SPENDING, key, buf_text(&text), text.length);
    buf_free(&text);
}

static int64_t not_negative(int64_t number)
{
    return number > 0 ? number : 0;
}

/* ---- opening ---- */

struct reading {
    struct budget *budget;
    struct store_batch *batch; /* charges what a killed program left reserved */
    struct err *err;
    bool failed;
};

static bool read_entry(void *context, const char *key, const char *text, size_t length)
{
    struct reading *reading = context;
    struct budget *budget = reading->budget;
    struct budget_totals *totals = &budget->totals;
    struct arena *arena = arena_new();
    struct value *root;
    if (value_parse_json(arena, key, text, length, &root, reading->err) != 0) {
        reading->err->code = ERR_CORRUPT;
        reading->failed = true;
        arena_free(arena);
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
                          .priced = value_bool(root, "priced", true)};
    const char *dash = strrchr(key, '-');
    long long number = dash != NULL ? strtoll(dash + 1, NULL, 10) : 0;
    if (number > budget->last)
        budget->last = number;
    if (strcmp(entry.state, "reserved") == 0) {
        entry.state = "charged";
        entry.micro_dollars = entry.reserved_micro_dollars;
        entry.tokens = entry.reserved_tokens;
        put_entry(reading->batch, key, &entry);
        log_event(LOG_INFO, "budget.charged", entry.ask, "%s was reserved when the program ended",
                  key);
    }
    totals->unpriced = totals->unpriced || !entry.priced;
    totals->micro_dollars += entry.micro_dollars;
    totals->tokens += entry.tokens;
    totals->settled += strcmp(entry.state, "settled") == 0;
    totals->charged += strcmp(entry.state, "charged") == 0;
    totals->released += strcmp(entry.state, "released") == 0;
    arena_free(arena);
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

static bool is_priced(const struct model *model)
{
    return model->codec == NULL || (model->prompt_price >= 0 && model->completion_price >= 0);
}

static int check_prices(struct budget *budget, const struct models *const *models, size_t count,
                        struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; models[i] != NULL && k < models[i]->count; k++) {
            const struct model *model = &models[i]->items[k];
            if (is_priced(model))
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
    snprintf(budget->run, sizeof budget->run, "%s", run);
    if (check_prices(budget, models, models_count, err) != 0 || read_ledger(budget, err) != 0) {
        mem_free(budget);
        return -1;
    }
    *out = budget;
    return 0;
}

void budget_free(struct budget *budget)
{
    mem_free(budget);
}

/* ---- one request ---- */

static int64_t cost_of(const struct model *model, int64_t prompt_tokens, int64_t completion_tokens)
{
    return not_negative(model_cost(model, prompt_tokens, completion_tokens));
}

/* `spent` alone: what is left when everybody else has given back what they reserved. */
static enum budget_answer room(int64_t cap, int64_t spent, int64_t reserved, int64_t wanted)
{
    if (cap <= 0)
        return BUDGET_OK;
    if (wanted > cap - spent)
        return BUDGET_OVER;
    return wanted > cap - spent - reserved ? BUDGET_WAIT : BUDGET_OK;
}

static void put_spend(const struct spend *spend, const char *state, int64_t micro_dollars,
                      int64_t tokens, const struct completion *completion,
                      struct store_batch *batch)
{
    const struct entry entry = {
        .state = state,
        .model = spend->model->name,
        .ask = spend->ask,
        .completion = spend->completion,
        .micro_dollars = micro_dollars,
        .tokens = tokens,
        .reserved_micro_dollars = spend->micro_dollars,
        .reserved_tokens = spend->tokens,
        .prompt_tokens = completion != NULL ? completion->prompt_tokens : -1,
        .completion_tokens = completion != NULL ? completion->completion_tokens : -1,
        .priced = is_priced(spend->model)};
    put_entry(batch, spend->key, &entry);
}

enum budget_answer budget_reserve(struct budget *budget, const struct model *model, const char *ask,
                                  const char *completion_key, int64_t prompt_bytes,
                                  int64_t max_tokens, struct spend *spend,
                                  struct store_batch *batch)
{
    struct budget_totals *totals = &budget->totals;
    assert(!spend->open);
    int64_t tokens = not_negative(prompt_bytes) + not_negative(max_tokens);
    int64_t micro_dollars = cost_of(model, prompt_bytes, max_tokens);
    enum budget_answer dollars = room(budget->caps.micro_dollars, totals->micro_dollars,
                                      totals->reserved_micro_dollars, micro_dollars);
    enum budget_answer of_tokens =
        room(budget->caps.tokens, totals->tokens, totals->reserved_tokens, tokens);
    enum budget_answer answer = dollars > of_tokens ? dollars : of_tokens;
    budget->over = answer == BUDGET_OVER;
    if (answer != BUDGET_OK)
        return answer;
    *spend = (struct spend){.model = model,
                            .ask = ask,
                            .completion = completion_key,
                            .micro_dollars = micro_dollars,
                            .tokens = tokens,
                            .prompt_tokens = not_negative(prompt_bytes),
                            .open = true};
    snprintf(spend->key, sizeof spend->key, "%s-%lld", budget->run, (long long)++budget->last);
    totals->reserved_micro_dollars += micro_dollars;
    totals->reserved_tokens += tokens;
    totals->unpriced = totals->unpriced || !is_priced(model);
    put_spend(spend, "reserved", 0, 0, NULL, batch);
    return BUDGET_OK;
}

static void close_spend(struct budget *budget, struct spend *spend, int64_t micro_dollars,
                        int64_t tokens)
{
    struct budget_totals *totals = &budget->totals;
    assert(spend->open);
    totals->reserved_micro_dollars -= spend->micro_dollars;
    totals->reserved_tokens -= spend->tokens;
    totals->micro_dollars += micro_dollars;
    totals->tokens += tokens;
    spend->micro_dollars = micro_dollars;
    spend->tokens = tokens;
    spend->open = false;
}

/* A usage that nobody can have had: more than was sent or allowed, or nothing for a text. */
static bool is_plausible(const struct spend *spend, const struct completion *completion)
{
    bool silent = completion->text == NULL || *completion->text == '\0' ||
                  (spend->model->codec != NULL && spend->model->codec->wordless);
    return completion->prompt_tokens > 0 && completion->prompt_tokens <= spend->prompt_tokens &&
           completion->completion_tokens >= (silent ? 0 : 1) &&
           completion->completion_tokens <= spend->tokens - spend->prompt_tokens;
}

void budget_settle(struct budget *budget, struct spend *spend, const struct completion *completion,
                   struct store_batch *batch)
{
    int64_t micro_dollars = spend->micro_dollars, tokens = spend->tokens;
    if (is_plausible(spend, completion)) {
        micro_dollars =
            cost_of(spend->model, completion->prompt_tokens, completion->completion_tokens);
        tokens = completion->prompt_tokens + completion->completion_tokens;
    } else {
        log_event(LOG_WARN, "budget.usage", spend->ask,
                  "%s: no usage to believe (%lld and %lld tokens): the reservation is charged",
                  spend->model->name, (long long)completion->prompt_tokens,
                  (long long)completion->completion_tokens);
    }
    put_spend(spend, "settled", micro_dollars, tokens, completion, batch);
    close_spend(budget, spend, micro_dollars, tokens);
    budget->totals.settled++;
}

void budget_charge(struct budget *budget, struct spend *spend, struct store_batch *batch)
{
    put_spend(spend, "charged", spend->micro_dollars, spend->tokens, NULL, batch);
    close_spend(budget, spend, spend->micro_dollars, spend->tokens);
    budget->totals.charged++;
}

void budget_release(struct budget *budget, struct spend *spend, struct store_batch *batch)
{
    put_spend(spend, "released", 0, 0, NULL, batch);
    close_spend(budget, spend, 0, 0);
    budget->totals.released++;
}

/* ---- reading ---- */

struct budget_totals budget_totals(const struct budget *budget)
{
    return budget->totals;
}

bool budget_over(const struct budget *budget)
{
    return budget->over;
}

bool budget_capped(const struct budget *budget)
{
    return budget != NULL && (budget->caps.micro_dollars > 0 || budget->caps.tokens > 0);
}
