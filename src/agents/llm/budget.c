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
#include "agents/llm/budget_private.h"

#include "agents/llm/command.h"
#include "base/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { RISK_UNPROVEN = 4, RISK_OVERRAN = 2 };

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static bool is_embedding(const struct model *model)
{
    return model->codec != NULL && model->codec->embeds;
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
    totals->unpriced = totals->unpriced || !budget_is_priced(model);
    const struct entry entry = budget_entry_of(spend, "reserved", NULL);
    budget_put_entry(batch, spend->key, &entry);
    return BUDGET_OK;
}

static void close_spend(struct budget *budget, struct spend *spend, const struct entry *entry,
                        struct store_batch *batch)
{
    struct budget_totals *totals = &budget->totals;
    assert(spend->open);
    budget_put_entry(batch, spend->key, entry);
    totals->reserved_micro_dollars -= spend->micro_dollars;
    totals->reserved_tokens -= spend->tokens;
    budget->risk_micro_dollars -= spend->micro_dollars * spend->risk;
    budget->risk_tokens -= spend->tokens * spend->risk;
    budget_count_entry(budget, entry);
    spend->micro_dollars = entry->micro_dollars;
    spend->tokens = entry->tokens;
    spend->open = false;
}

/* By the usage as far as it was said, else by what this model's answers so far had in tokens a
 * byte, of the prompt and of what came. */
static void estimate(struct budget *budget, const struct spend *spend, struct entry *entry)
{
    const struct shown *shown = budget_shown_of(&budget->shown, spend->model->name);
    bool said = entry->prompt_tokens > 0 && entry->prompt_tokens <= TOKENS_BELIEVED &&
                entry->prompt_tokens >= budget_least_tokens(entry->prompt_bytes) / 2;
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
    struct entry entry = budget_entry_of(spend, "settled", completion);
    if (budget_believes(&entry, is_embedding(spend->model))) {
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
    struct entry entry = budget_entry_of(spend, "charged", part);
    estimate(budget, spend, &entry);
    close_spend(budget, spend, &entry, batch);
}

void budget_charge(struct budget *budget, struct spend *spend, struct store_batch *batch)
{
    struct entry entry = budget_entry_of(spend, "unknown", NULL);
    entry.micro_dollars = spend->micro_dollars;
    entry.tokens = spend->tokens;
    close_spend(budget, spend, &entry, batch);
}

void budget_release(struct budget *budget, struct spend *spend, struct store_batch *batch)
{
    const struct entry entry = budget_entry_of(spend, "released", NULL);
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
