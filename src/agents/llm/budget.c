/* agents/llm/budget: the ledger. One entry a request, "r3-17", in STORE_SPENDING:
 *
 *   reserved --> settled   (by its usage; by an estimate, where none is said)
 *            --> charged   (its stream broke: by what came of it)
 *            --> unknown   (whole: nothing came of it, or the program was killed before it knew)
 *            --> released  (nothing was spent; the entry stays, with nothing in it)
 *
 * spent + reserved never exceeds a cap, so neither does what is spent in the end, where providers
 * bill what they were allowed. What those that bill more took is learnt, model by model. An answer
 * without a usage may have cost all that was reserved (a model thinks unseen): what its estimate
 * leaves of that is in doubt, and no room for others.
 */
#include "agents/llm/budget.h"

#include "agents/llm/budget_shown.h"
#include "agents/llm/command.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/value.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENTRY_BYTES_MAX = 8 << 10,
    TOKENS_BELIEVED = 20 * 1000 * 1000, /* of one request; no model reads or writes as much */
    RISK_UNPROVEN = 4,
    RISK_OVERRAN = 2
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
};

struct entry { /* texts borrowed */
    const char *state, *model, *ask, *completion;
    int64_t micro_dollars, tokens; /* what counts against the caps */
    int64_t reserved_micro_dollars, reserved_tokens;
    int64_t prompt_tokens, completion_tokens;   /* as the provider says; -1: it did not */
    int64_t cached_tokens, saved_micro_dollars; /* of the prompt's; what its cache spared */
    int64_t prompt_bytes, max_tokens, text_bytes;
    int64_t doubt_micro_dollars, doubt_tokens; /* that an estimate may be short of */
    bool priced;                               /* else its dollars are not known, and 0 here */
};

/* ---- entries ---- */

static void put_entry(struct store_batch *batch, const char *key, const struct entry *entry)
{
    BUF_LOCAL(text, ENTRY_BYTES_MAX);
    struct json json = {.out = &text};
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
    json_put_int(&json, "ms", (int64_t)clock_wall_ms());
    json_object_end(&json);
    store_batch_put(batch, STORE_SPENDING, key, buf_text(&text), text.length);
}

static int64_t not_negative(int64_t number)
{
    return number > 0 ? number : 0;
}

/* ---- usages ---- */

/* A usage that can be: some of both, but a text without any tokens, or more than any model takes,
 * was never had. */
static bool is_believable(const struct entry *entry, bool embeds)
{
    int64_t least = entry->text_bytes > 0 && !embeds ? 1 : 0;
    return entry->prompt_tokens > 0 && entry->prompt_tokens <= TOKENS_BELIEVED &&
           entry->completion_tokens >= least && entry->completion_tokens <= TOKENS_BELIEVED;
}

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* ---- opening ---- */

struct reading {
    struct budget *budget;
    struct store_batch *batch; /* charges what a killed program left reserved */
    struct err *err;
    bool failed;
};

static void count_entry(struct budget *budget, const struct entry *entry)
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
    if (is_believable(entry, false)) {
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
    if (value_get(root, "doubt_tokens") == NULL && !is_believable(&entry, false)) {
        entry.doubt_micro_dollars =
            not_negative(entry.reserved_micro_dollars - entry.micro_dollars);
        entry.doubt_tokens = not_negative(entry.reserved_tokens - entry.tokens);
    }
    const char *dash = strrchr(key, '-');
    long long number = dash != NULL ? strtoll(dash + 1, NULL, 10) : 0;
    if (number > budget->last)
        budget->last = number;
    if (strcmp(entry.state, "reserved") == 0) {
        entry.state = "unknown";
        entry.micro_dollars = entry.reserved_micro_dollars;
        entry.tokens = entry.reserved_tokens;
        put_entry(reading->batch, key, &entry);
        log_event(LOG_INFO, "budget.unknown", entry.ask,
                  "%s was reserved when the program ended; its outcome is not known", key);
    }
    count_entry(budget, &entry);
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

static bool is_embedding(const struct model *model)
{
    return model->codec != NULL && model->codec->embeds;
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
    list_init(&budget->shown);
    snprintf(budget->run, sizeof budget->run, "%s", run);
    if (check_prices(budget, models, models_count, err) != 0 || read_ledger(budget, err) != 0) {
        budget_free(budget);
        return -1;
    }
    *out = budget;
    return 0;
}

void budget_free(struct budget *budget)
{
    if (budget == NULL)
        return;
    budget_shown_free(&budget->shown);
    mem_free(budget);
}

/* ---- one request ---- */

struct room {
    int64_t cap, spent, at_risk; /* at_risk: what is reserved, times its risk */
    bool alone;                  /* nobody else asks now */
};

/* `spent` alone: what is left when everybody else has given back what they reserved. */
static enum budget_answer room_for(const struct room *room, int64_t wanted, int64_t risk)
{
    if (room->cap <= 0)
        return BUDGET_OK;
    if (wanted > room->cap - room->spent)
        return BUDGET_OVER;
    if (room->alone)
        return BUDGET_OK;
    int64_t left = room->cap - room->spent - room->at_risk;
    return left < 0 || wanted > left / risk ? BUDGET_WAIT : BUDGET_OK;
}

static int64_t risk_of(const struct shown *shown, const struct model *model)
{
    if (is_embedding(model))
        return 1;
    if (shown->answers == 0)
        return RISK_UNPROVEN;
    return shown->over_prompt > 0 || shown->over_completion > 0 ? RISK_OVERRAN : 1;
}

/* What `spend` becomes in the ledger. */
static struct entry entry_of(const struct spend *spend, const char *state,
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
                          .priced = is_priced(spend->model)};
}

static void say_over(struct budget *budget, bool dollars)
{
    const struct budget_totals *totals = &budget->totals;
    bool doubt = (dollars ? totals->doubt_micro_dollars : totals->doubt_tokens) > 0;
    double cap = (double)budget->caps.micro_dollars / 1e6;
    BUF_LOCAL(words, sizeof budget->reason - 1);
    if (dollars)
        buf_addf(&words, "another request could pass $%.*f", cap < 0.01 ? 4 : 2, cap);
    else
        buf_addf(&words, "another request could pass %lld tokens", (long long)budget->caps.tokens);
    if (doubt && dollars)
        buf_addf(&words, ", with $%.*f in doubt for answers that said no usage", cap < 0.01 ? 4 : 2,
                 (double)totals->doubt_micro_dollars / 1e6);
    else if (doubt)
        buf_addf(&words, ", with %lld in doubt for answers that said no usage",
                 (long long)totals->doubt_tokens);
    snprintf(budget->reason, sizeof budget->reason, "%s", buf_text(&words));
}

enum budget_answer budget_reserve(struct budget *budget, const struct model *model, const char *ask,
                                  const char *completion_key, int64_t prompt_bytes,
                                  int64_t max_tokens, struct spend *spend,
                                  struct store_batch *batch)
{
    struct budget_totals *totals = &budget->totals;
    const struct shown *shown = budget_shown_of(&budget->shown, model->name);
    assert(!spend->open);
    int64_t prompt = not_negative(prompt_bytes) + shown->over_prompt;
    int64_t completion = not_negative(max_tokens) + shown->over_completion;
    int64_t tokens = prompt + completion;
    int64_t micro_dollars = not_negative(model_cost_most(model, prompt, completion));
    int64_t risk = risk_of(shown, model);
    bool alone = totals->reserved_tokens == 0;
    const struct room of_dollars = {budget->caps.micro_dollars,
                                    totals->micro_dollars + totals->doubt_micro_dollars,
                                    budget->risk_micro_dollars, alone};
    const struct room of_tokens = {budget->caps.tokens, totals->tokens + totals->doubt_tokens,
                                   budget->risk_tokens, alone};
    enum budget_answer dollars = room_for(&of_dollars, micro_dollars, risk);
    enum budget_answer answer = room_for(&of_tokens, tokens, risk);
    answer = dollars > answer ? dollars : answer;
    if (answer == BUDGET_OVER)
        say_over(budget, dollars == BUDGET_OVER);
    if (answer != BUDGET_OK)
        return answer;
    *spend = (struct spend){.model = model,
                            .ask = ask,
                            .completion = completion_key,
                            .micro_dollars = micro_dollars,
                            .tokens = tokens,
                            .prompt_bytes = not_negative(prompt_bytes),
                            .max_tokens = not_negative(max_tokens),
                            .risk = risk,
                            .open = true};
    snprintf(spend->key, sizeof spend->key, "%s-%lld", budget->run, (long long)++budget->last);
    totals->reserved_micro_dollars += micro_dollars;
    totals->reserved_tokens += tokens;
    budget->risk_micro_dollars += micro_dollars * risk;
    budget->risk_tokens += tokens * risk;
    totals->unpriced = totals->unpriced || !is_priced(model);
    const struct entry entry = entry_of(spend, "reserved", NULL);
    put_entry(batch, spend->key, &entry);
    return BUDGET_OK;
}

static void close_spend(struct budget *budget, struct spend *spend, const struct entry *entry,
                        struct store_batch *batch)
{
    struct budget_totals *totals = &budget->totals;
    assert(spend->open);
    put_entry(batch, spend->key, entry);
    totals->reserved_micro_dollars -= spend->micro_dollars;
    totals->reserved_tokens -= spend->tokens;
    budget->risk_micro_dollars -= spend->micro_dollars * spend->risk;
    budget->risk_tokens -= spend->tokens * spend->risk;
    count_entry(budget, entry);
    spend->micro_dollars = entry->micro_dollars;
    spend->tokens = entry->tokens;
    spend->open = false;
}

/* By the usage as far as it was said, else by what this model's answers so far had in tokens a
 * byte, of the prompt and of what came. */
static void estimate(struct budget *budget, const struct spend *spend, struct entry *entry)
{
    const struct shown *shown = budget_shown_of(&budget->shown, spend->model->name);
    bool said = entry->prompt_tokens > 0 && entry->prompt_tokens <= TOKENS_BELIEVED;
    int64_t prompt = said ? entry->prompt_tokens : budget_shown_prompt(shown, entry->prompt_bytes);
    int64_t written = budget_shown_completion(shown, entry->text_bytes);
    if (shown->answers == 0) /* else what was thought is in what was shown */
        written += (int64_t)((double)written * spend->model->reasoning);
    if (entry->completion_tokens <= TOKENS_BELIEVED)
        written = larger(written, entry->completion_tokens);
    entry->micro_dollars = not_negative(model_cost(spend->model, prompt, written));
    entry->tokens = prompt + written;
}

/* What the provider says that it bills is paid: where that is more, the rest was written unseen. */
static void take_bill(const struct spend *spend, int64_t billed_micro, struct entry *entry)
{
    double price = spend->model->completion_price;
    int64_t more = billed_micro - entry->micro_dollars;
    double unseen = price > 0 && more > 0 ? (double)more / price : 0;
    bool less = spend->model->command && spend->model->command->bill; /* its price is the most */
    if (billed_micro <= 0 || (more <= 0 && !less) || unseen > TOKENS_BELIEVED ||
        is_embedding(spend->model))
        return;
    entry->priced = true; /* also where the entry of the model says no price */
    entry->micro_dollars = billed_micro;
    entry->tokens += (int64_t)unseen;
    if (entry->completion_tokens >= 0)
        entry->completion_tokens += (int64_t)unseen;
}

void budget_settle(struct budget *budget, struct spend *spend, const struct completion *completion,
                   struct store_batch *batch)
{
    struct entry entry = entry_of(spend, "settled", completion);
    if (is_believable(&entry, is_embedding(spend->model))) {
        entry.cached_tokens = completion->cached_tokens;
        entry.saved_micro_dollars = model_cache_saved(spend->model, completion);
        entry.micro_dollars =
            not_negative(model_cost(spend->model, entry.prompt_tokens, entry.completion_tokens) -
                         entry.saved_micro_dollars);
        entry.tokens = entry.prompt_tokens + entry.completion_tokens;
        take_bill(spend, completion->billed_micro, &entry);
        if (entry.tokens > spend->tokens)
            log_event(LOG_WARN, "budget.overrun", spend->ask,
                      "%s: %lld and %lld tokens are billed, though %lld were allowed; later "
                      "reservations rise",
                      spend->model->name, (long long)entry.prompt_tokens,
                      (long long)entry.completion_tokens, (long long)spend->tokens);
    } else {
        estimate(budget, spend, &entry);
        take_bill(spend, completion->billed_micro, &entry);
        if (completion->billed_micro <= 0) {
            entry.doubt_micro_dollars = not_negative(spend->micro_dollars - entry.micro_dollars);
            entry.doubt_tokens = not_negative(spend->tokens - entry.tokens);
        }
        log_event(
            LOG_WARN, "budget.usage", spend->ask,
            "%s: no usage to believe (%lld and %lld tokens): %lld tokens by its text, of %lld "
            "reserved",
            spend->model->name, (long long)completion->prompt_tokens,
            (long long)completion->completion_tokens, (long long)entry.tokens,
            (long long)spend->tokens);
    }
    close_spend(budget, spend, &entry, batch);
}

void budget_cut(struct budget *budget, struct spend *spend, const struct completion *part,
                struct store_batch *batch)
{
    struct entry entry = entry_of(spend, "charged", part);
    estimate(budget, spend, &entry);
    close_spend(budget, spend, &entry, batch);
}

void budget_charge(struct budget *budget, struct spend *spend, struct store_batch *batch)
{
    struct entry entry = entry_of(spend, "unknown", NULL);
    entry.micro_dollars = spend->micro_dollars;
    entry.tokens = spend->tokens;
    close_spend(budget, spend, &entry, batch);
}

void budget_release(struct budget *budget, struct spend *spend, struct store_batch *batch)
{
    const struct entry entry = entry_of(spend, "released", NULL);
    close_spend(budget, spend, &entry, batch);
}

/* ---- reading ---- */

struct budget_totals budget_totals(const struct budget *budget)
{
    return budget->totals;
}

const char *budget_reason(const struct budget *budget)
{
    return budget->reason;
}

bool budget_capped(const struct budget *budget)
{
    return budget != NULL && (budget->caps.micro_dollars > 0 || budget->caps.tokens > 0);
}
