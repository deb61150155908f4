#include "cli/search_settings.h"

#include <math.h>
#include <string.h>

enum kind { KIND_TEXT, KIND_INT, KIND_REAL, KIND_BOOL, KIND_DOLLARS, KIND_STRATEGY };

#define PAIR(kind, setting, option)                                                                \
    {                                                                                              \
        kind, offsetof(struct settings, setting), offsetof(struct search_options, option)          \
    }
#define SAME(kind, name) PAIR(kind, name, name)

static const struct pair {
    enum kind kind;
    size_t setting, option;
} pairs[] = {
    SAME(KIND_TEXT, backend),
    SAME(KIND_TEXT, python),
    SAME(KIND_TEXT, baseline),
    SAME(KIND_TEXT, cores),
    SAME(KIND_TEXT, devices),
    SAME(KIND_TEXT, launcher),
    SAME(KIND_TEXT, ca_file),
    SAME(KIND_INT, branching),
    SAME(KIND_INT, rounds),
    SAME(KIND_INT, implementations),
    SAME(KIND_INT, repairs),
    SAME(KIND_INT, beam),
    SAME(KIND_STRATEGY, strategy),
    SAME(KIND_INT, islands),
    SAME(KIND_INT, migration),
    SAME(KIND_INT, lanes),
    SAME(KIND_INT, tuning),
    SAME(KIND_INT, requests),
    SAME(KIND_REAL, select),
    SAME(KIND_INT, seed),
    PAIR(KIND_INT, budget_time_ms, budget_ms),
    SAME(KIND_INT, budget_evaluations),
    PAIR(KIND_DOLLARS, budget_usd, budget_micro_dollars),
    SAME(KIND_INT, budget_tokens),
    SAME(KIND_REAL, target),
    SAME(KIND_REAL, floor_share),
    SAME(KIND_INT, patience),
    PAIR(KIND_INT, mailbox_wait_ms, mailbox_ms),
    SAME(KIND_INT, disk_quota),
    SAME(KIND_INT, disk_floor),
    SAME(KIND_INT, first_byte_ms),
    SAME(KIND_INT, silence_ms),
    SAME(KIND_INT, answer_ms),
    SAME(KIND_INT, call_timeout_ms),
    SAME(KIND_INT, time_budget_ms),
    SAME(KIND_BOOL, unfit),
    SAME(KIND_BOOL, unconfined),
    SAME(KIND_BOOL, dry_run),
    SAME(KIND_BOOL, final),
    SAME(KIND_BOOL, lessons),
    SAME(KIND_INT, passage_tokens),
};

static enum strategy strategy_of(const char *text)
{
    return strcmp(text, "greedy") == 0    ? STRATEGY_GREEDY
           : strcmp(text, "islands") == 0 ? STRATEGY_ISLANDS
                                          : STRATEGY_BEAM;
}

/* A cap that is too small to be one micro-dollar is still a cap. */
static int64_t micro_dollars(double dollars)
{
    return dollars > 0 ? (int64_t)fmax(1, round(dollars * 1e6)) : 0;
}

static void apply(const struct pair *pair, const struct settings *settings,
                  struct search_options *options)
{
    const void *from = (const char *)settings + pair->setting;
    void *to = (char *)options + pair->option;
    switch (pair->kind) {
    case KIND_TEXT:
        memcpy(to, from, sizeof(const char *));
        break;
    case KIND_INT:
        memcpy(to, from, sizeof(int64_t));
        break;
    case KIND_REAL:
        memcpy(to, from, sizeof(double));
        break;
    case KIND_BOOL:
        memcpy(to, from, sizeof(bool));
        break;
    case KIND_DOLLARS:
        *(int64_t *)to = micro_dollars(*(const double *)from);
        break;
    case KIND_STRATEGY:
        *(enum strategy *)to = strategy_of(*(const char *const *)from);
        break;
    }
}

void search_settings_apply(const struct settings *settings, bool given,
                           struct search_options *options)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (!given || settings_given(settings, pairs[i].setting))
            apply(&pairs[i], settings, options);
}
