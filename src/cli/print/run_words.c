#include "cli/print/run_words.h"

#include "base/buf.h"
#include "base/value.h"
#include "cli/print/run_options.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

static const struct value *parse(struct arena *arena, const char *text)
{
    struct value *root;
    return text && value_parse_json(arena, "record", text, strlen(text), &root, NULL) == 0 ? root
                                                                                           : NULL;
}

const char *run_words_speedup(struct arena *arena, double speedup, double low, double high,
                              const char *baseline)
{
    char middle[32], least[32], most[32];
    return arena_printf(arena, "%sx %s (95 %%: %s to %s)", words_ratio(speedup, low, high, middle),
                        baseline, words_ratio(low, low, high, least),
                        words_ratio(high, low, high, most));
}

const char *run_words_outcome(struct arena *arena, const struct run_record *run)
{
    char left_out[160], caveats[160];
    if (!*run->best)
        return "no kernel was found";
    if (*run->noise)
        return arena_printf(arena, "no champion: %s whether %s is faster than %s%s", run->finding,
                            run->best, run_record_baseline(run),
                            words_caveats(run->unfit, run->unconfined, caveats));
    return arena_printf(arena, "%s, %s%s%s%s",
                        run_words_speedup(arena, run->speedup, run->speedup_low, run->speedup_high,
                                          run_record_baseline(run)),
                        run->verified ? "verified: " : "not verified",
                        run->verified ? words_finding(run->finding, run->win, run->speedup_high)
                                      : "",
                        words_left_out(run->left_out, left_out),
                        words_caveats(run->unfit, run->unconfined, caveats));
}

/* ---- the ledger ---- */

static bool read_entry(void *context, const char *key, const char *text, size_t length)
{
    struct spending *all = context;
    struct arena *arena = arena_new(); /* a night's ledger is long, and little of it is kept */
    struct value *entry;
    if (value_parse_json(arena, key, text, length, &entry, NULL) == 0) {
        const char *state = value_text(entry, "state", "");
        int64_t tokens = value_int(entry, "tokens", 0),
                micro = value_int(entry, "micro_dollars", 0);
        all->requests++;
        if (strcmp(state, "reserved") == 0) {
            all->reserved_tokens += value_int(entry, "reserved_tokens", 0);
            all->reserved_micro_dollars += value_int(entry, "reserved_micro_dollars", 0);
        } else if (strcmp(state, "released") != 0) {
            all->answers++;
            all->tokens += tokens;
            all->micro_dollars += micro;
            if (strcmp(state, "unknown") == 0)
                all->lost++, all->lost_tokens += tokens, all->lost_micro_dollars += micro;
            all->cached_tokens += value_int(entry, "cached_tokens", 0);
            all->saved_micro_dollars += value_int(entry, "saved_micro_dollars", 0);
            all->doubted += value_int(entry, "doubt_tokens", 0) > 0;
            all->doubt_tokens += value_int(entry, "doubt_tokens", 0);
            all->doubt_micro_dollars += value_int(entry, "doubt_micro_dollars", 0);
            /* Ledgers of earlier versions do not say: what cost nothing had no price, mostly. */
            if (tokens > 0 && !value_bool(entry, "priced", micro > 0))
                all->unpriced = true;
        }
    }
    arena_free(arena);
    return true;
}

struct spending run_spending(struct store *store, struct arena *arena, const char *run)
{
    struct spending spending = {0};
    struct err ignored;
    if (store_scan(store, STORE_SPENDING, arena_printf(arena, "%s-", run), read_entry, &spending,
                   &ignored))
        return (struct spending){0};
    return spending;
}

/* ---- who is asked ---- */

static double weight_of(const char *item, size_t length)
{
    for (size_t i = length; i-- > 0;)
        if (item[i] == '@')
            return strtod(item + i + 1, NULL);
    return 1;
}

static size_t name_length(const char *item, size_t length)
{
    for (size_t i = length; i-- > 0;)
        if (item[i] == '@')
            return i;
    return length;
}

/* "a@2,b" -> "a 67 %, b 33 %"; one alone has no share. */
static void add_shares(const char *choice, struct buf *out)
{
    double total = 0;
    size_t count = 0;
    for (const char *item = choice; *item; count++) {
        size_t length = strcspn(item, ",");
        total += weight_of(item, length);
        item += length + (item[length] != '\0');
    }
    for (const char *item = choice; *item;) {
        size_t length = strcspn(item, ",");
        buf_addf(out, "%s%.*s", item == choice ? "" : ", ", (int)name_length(item, length), item);
        if (count > 1)
            buf_addf(out, " %.0f %%", total > 0 ? 100 * weight_of(item, length) / total : 0);
        item += length + (item[length] != '\0');
    }
}

const char *run_words_models(struct arena *arena, const struct run_record *run)
{
    const struct value *choice = parse(arena, run->choice);
    const char *both = value_text(choice, "model", "");
    const char *ideas = value_text(choice, "idea_model", ""), *code;
    code = value_text(choice, "code_model", "");
    if (!*ideas)
        ideas = both;
    if (!*code)
        code = both;
    if (!*ideas)
        return NULL;
    BUF_LOCAL(text, 1 << 16);
    if (strcmp(ideas, code) == 0) {
        add_shares(ideas, &text);
    } else {
        buf_add_text(&text, "ideas: ");
        add_shares(ideas, &text);
        buf_add_text(&text, "; code: ");
        add_shares(code, &text);
    }
    return buf_keep(&text, arena);
}

/* The folders of the mailboxes that are asked, "a, b"; NULL: none. */
static const char *mailboxes(struct arena *arena, const struct run_record *run)
{
    static const char *const keys[] = {"model", "idea_model", "code_model"};
    static const char prefix[] = "mailbox/";
    const struct value *choice = parse(arena, run->choice);
    bool all = strcmp(value_text(choice, "provider", ""), "mailbox") == 0;
    struct buf text;
    buf_init(&text, 1 << 16);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (const char *item = value_text(choice, keys[k], ""); *item;) {
            size_t length = strcspn(item, ","), skip = sizeof prefix - 1;
            bool named = strncmp(item, prefix, skip) == 0;
            const char *path = named ? item + skip : item;
            char *folder =
                arena_strndup(arena, path, name_length(path, length - (named ? skip : 0)));
            if ((named || all) && !strstr(buf_text(&text), folder))
                buf_addf(&text, "%s%s", text.length ? ", " : "", folder);
            item += length + (item[length] != '\0');
        }
    return text.length ? buf_keep(&text, arena) : (buf_free(&text), NULL);
}

/* ---- the rest ---- */

/* Requests that a kill or a silence took: what they cost nobody but the provider knows. */
static const char *lost_words(struct arena *arena, const struct spending *spending)
{
    char tokens[32], dollars[32], requests[48];
    return arena_printf(
        arena, " (%s%s%s tokens of it reserved for %s with an unknown outcome)",
        spending->lost_micro_dollars > 0 ? words_dollars(spending->lost_micro_dollars, dollars)
                                         : "",
        spending->lost_micro_dollars > 0 ? ", " : "", words_count(spending->lost_tokens, tokens),
        words_number(spending->lost, "request", requests));
}

/* An estimate has what was seen; a model that thinks unseen is billed for more. */
static const char *doubt_words(struct arena *arena, const struct spending *spending)
{
    char tokens[32], dollars[32], answers[48];
    words_count(spending->doubt_tokens, tokens);
    return arena_printf(
        arena, "; up to %s%s more: %s did not say what is billed, for reasoning or else",
        spending->doubt_micro_dollars > 0 ? words_dollars(spending->doubt_micro_dollars, dollars)
                                          : tokens,
        spending->doubt_micro_dollars > 0 ? "" : " tokens",
        words_number(spending->doubted, "answer", answers));
}

/* Prompts begin alike, and a provider's cache takes less for what it has kept. */
static const char *cached_words(struct arena *arena, const struct spending *spending)
{
    char tokens[32], dollars[32];
    int64_t saved = spending->saved_micro_dollars;
    words_count(spending->cached_tokens, tokens);
    if (saved == 0)
        return arena_printf(arena, " (%s of them cached)", tokens);
    return arena_printf(arena, " (%s of them cached, which %s %s)", tokens,
                        saved > 0 ? "saved" : "cost",
                        words_dollars(saved > 0 ? saved : -saved, dollars));
}

const char *run_words_spent(struct arena *arena, const struct run_record *run,
                            const struct spending *spending)
{
    const struct value *options = parse(arena, run->options);
    int64_t cap = value_int(options, "budget_micro_dollars", 0);
    int64_t most = value_int(options, "budget_tokens", 0);
    char dollars[64], tokens[32], limit[32], answers[48];
    if (spending->requests == 0)
        return NULL;
    words_spent(spending->micro_dollars, cap, spending->unpriced && cap == 0, dollars);
    words_count(spending->tokens, tokens);
    const char *lost = spending->lost > 0 ? lost_words(arena, spending) : "";
    const char *doubt = spending->doubted > 0 ? doubt_words(arena, spending) : "";
    const char *cached = spending->cached_tokens > 0 ? cached_words(arena, spending) : "";
    return arena_printf(arena, "%s, %s%s%s tokens%s, %s%s%s", dollars, tokens,
                        most > 0 ? " of " : "", most > 0 ? words_count(most, limit) : "", cached,
                        words_number(spending->answers - spending->lost, "answer", answers), lost,
                        doubt);
}

/* ---- what became of the requests ---- */

static const char *cause_words(struct arena *arena, const char *name, const struct value *cause)
{
    int64_t times = value_int(cause, "times", 0);
    int64_t since = value_int(cause, "since_ms", 0), until = value_int(cause, "until_ms", 0);
    const char *state = value_text(cause, "state", "");
    bool failed = strcmp(state, "failed") == 0, nothing = strcmp(state, "nothing") == 0;
    int64_t micro_dollars = value_int(cause, "micro_dollars", 0);
    char number[48], length[32], from[32], to[32], dollars[64];
    words_clock((uint64_t)since, from);
    if (failed || nothing)
        return arena_printf(arena, "%s: %s%s, %s%s%s%s%s: %s", name,
                            words_number(times, nothing ? "answer" : "failure", number),
                            nothing ? " for nothing" : "", from, times > 1 ? " to " : "",
                            times > 1 ? words_clock((uint64_t)until, to) : "",
                            micro_dollars > 0 ? ", " : "",
                            micro_dollars > 0 ? words_dollars(micro_dollars, dollars) : "",
                            value_text(cause, "reason", ""));
    if (until == 0)
        return arena_printf(arena, "%s: %s since %s: %s", name, state, from,
                            value_text(cause, "reason", ""));
    return arena_printf(arena, "%s: %s %s, %s to %s, %s in all: %s", name, state,
                        words_number(times, "time", number), from, words_clock((uint64_t)until, to),
                        words_duration((double)value_int(cause, "total_ms", 0), length),
                        value_text(cause, "reason", ""));
}

/* ", 3 failed"; "" where there is none. */
static const char *some_words(struct arena *arena, int64_t count, const char *what)
{
    return count > 0 ? arena_printf(arena, ", %lld %s", (long long)count, what) : "";
}

size_t run_words_asked(struct arena *arena, const struct run_record *run, const char ***lines)
{
    const struct value *list = value_get(parse(arena, run->asked), "list");
    size_t count = 0, most = 0;
    char dollars[64];
    for (size_t i = 0; list && i < list->count; i++) {
        const struct value *causes = value_get(list->items[i], "causes");
        most += 1 + (causes ? causes->count : 0);
    }
    *lines = arena_array(arena, most + 2, sizeof **lines);
    for (size_t i = 0; list && i < list->count; i++) {
        const struct value *model = list->items[i], *causes = value_get(model, "causes");
        const char *name = value_text(model, "name", "");
        (*lines)[count++] = arena_printf(
            arena, "%s: %lld asked, %lld answered%s%s%s, %s", name,
            (long long)value_int(model, "asked", 0), (long long)value_int(model, "answered", 0),
            some_words(arena, value_int(model, "failed", 0), "failed"),
            some_words(arena, value_int(model, "cached", 0), "answered before"),
            some_words(arena, value_int(model, "moved", 0), "asked of others"),
            words_dollars(value_int(model, "micro_dollars", 0), dollars));
        for (size_t k = 0; causes && k < causes->count; k++)
            (*lines)[count++] = cause_words(arena, name, causes->items[k]);
    }
    if (run->strange_parents > 0)
        (*lines)[count++] = arena_printf(
            arena, "%lld of their ideas named an unknown parent, and started from the best instead",
            (long long)run->strange_parents);
    return count;
}

/* The search came to an end of its own: nothing was cut short. */
const char *run_words_end(struct arena *arena, const struct run_record *run)
{
    const char *boxes = strstr(run->stopped, "awaited") ? mailboxes(arena, run) : NULL;
    if (boxes)
        return arena_printf(arena, "%s: %s (the .md of each says how)", run->stopped, boxes);
    if (strcmp(run->stopped, "interrupted") == 0)
        return "interrupted by a person (Ctrl-C, twagent stop) or a signal";
    if (run->evaluated == 0 && strncmp(run->stopped, "budget: a time", 14) == 0)
        return arena_printf(
            arena,
            "%s, before one candidate was measured: the definition, the baselines "
            "and the compiler took it, and other programs their share; give it more",
            run->stopped);
    if (*run->stopped)
        return run->stopped;
    const struct value *options = parse(arena, run->options);
    bool tunes_starts = !run_words_models(arena, run) && !*value_text(options, "kernel", "");
    if (run->round >= value_int(options, "rounds", 0))
        return "all rounds done";
    return tunes_starts ? "nothing left to propose: the starts have no more numbers to tune (more: "
                          "--model NAME, or another start)"
                        : "nothing left to propose";
}

const char *run_words_resume(struct arena *arena, const struct run_record *run)
{
    if (!run_can_go_on(run))
        return NULL;
    bool budget = strncmp(run->stopped, "budget", 6) == 0;
    return arena_printf(arena, "twagent resume %s%s%s", run->id, budget ? " " : "",
                        budget ? run_options_larger(arena, run) : "");
}

const char *run_words_tune(struct arena *arena, const struct candidate_record *candidate,
                           const char *between)
{
    const struct value *tune = parse(arena, candidate->tune);
    BUF_LOCAL(text, 1 << 14);
    for (size_t i = 0; tune && tune->kind == VALUE_MAP && i < tune->count; i++)
        buf_addf(&text, "%s%s=%lld", i ? between : "", tune->keys[i],
                 (long long)tune->items[i]->integer);
    return buf_keep(&text, arena);
}

const char *run_words_source(struct arena *arena, const struct candidate_record *candidate)
{
    const char *tune = run_words_tune(arena, candidate, " ");
    return arena_printf(arena, "%s%s%s", candidate->name, *tune ? " " : "", tune);
}

bool run_can_go_on(const struct run_record *run)
{
    return !run_record_ended_itself(run);
}

bool run_paused_by_person(const struct run_record *run)
{
    return strstr(run->paused, "by a person") != NULL;
}
