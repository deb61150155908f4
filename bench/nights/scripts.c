/* The nights: who is away when, and what the summary must say of it. */
#include "nights.h"

#include "../night/night.h"

#define A      1u
#define B      2u
#define C      4u
#define ALL    7u
#define ALWAYS 0, 1e9

const struct script scripts[] = {
    {.name = "undisturbed"},
    {.name = "one silent",
     .outages = {{B, ALWAYS, SILENT, 0, NULL}},
     .named = {"b: breaker open", "not a word"}},
    {.name = "one silent from the second hour on",
     .outages = {{B, 60, 1e9, SILENT, 0, NULL}},
     .named = {"b: breaker open", "not a word"}},
    {.name = "two silent",
     .outages = {{A | B, ALWAYS, SILENT, 0, NULL}},
     .named = {"a: breaker open", "b: breaker open", "not a word"}},
    {.name = "one parked until tomorrow",
     .outages = {{B, 10, 1e9, STATUS, 429, "inf"}},
     .named = {"b: parked since", "429"}},
    {.name = "all down for 70 minutes of the first two hours",
     .outages = {{ALL, 20, 90, REFUSES, 0, NULL}},
     .named = {"a: breaker open", "b: breaker open", "c: breaker open", "refused"}},
    {.name = "all say 503 for 70 minutes",
     .outages = {{ALL, 20, 90, STATUS, 503, ""}},
     .named = {"a: breaker open", "503"}},
    {.name = "all silent for 70 minutes",
     .outages = {{ALL, 100, 170, SILENT, 0, NULL}},
     .named = {"first-byte"}},
    {.name = "all ask for an hour's patience",
     .outages = {{ALL, 100, 160, STATUS, 429, "3600"}},
     .named = {"a: parked", "b: parked", "c: parked"}},
    {.name = "answers of 3 minutes", .outages = {{ALL, ALWAYS, THINKS, 150, ""}}},
    {.name = "one thinks for 3 minutes", .outages = {{B, ALWAYS, THINKS, 180, ""}}},
    {.name = "a connection that is never answered again",
     .outages = {{A, 30, 1e9, STALE, 0, NULL}},
     .named = {"a: breaker open", "not a word"}},
    {.name = "one takes no connections",
     .outages = {{B, ALWAYS, REFUSES, 0, NULL}},
     .named = {"b: breaker open", "refused"}},
    {.name = "connections to one hang",
     .outages = {{B, ALWAYS, HANGS, 0, NULL}},
     .named = {"b: breaker open", "connect"}},
    {.name = "one resets before it answers, for 3 hours",
     .outages = {{C, 60, 240, RESETS, 0, NULL}},
     .named = {"c: breaker open", "reset"}},
    {.name = "one breaks every stream, for 2 hours",
     .outages = {{C, 60, 180, CUTS, 0, NULL}},
     .named = {"c: breaker open", "reset"}},
    {.name = "one has its quota spent, another's key is refused",
     .outages = {{A, 60, 1e9, STATUS, 402, ""}, {B, 90, 1e9, STATUS, 401, ""}},
     .named = {"a: blocked since", "b: blocked since"}},
    {.name = "one says a word a minute",
     .outages = {{B, ALWAYS, DRIPS, 0, NULL}},
     .named = {"b: breaker open", "no end"}},
    {.name = "one only pings",
     .outages = {{B, ALWAYS, PINGS, 0, NULL}},
     .named = {"b: breaker open"}},
    {.name = "one limits every request for 100 s",
     .outages = {{B, ALWAYS, STATUS, 429, "100"}},
     .named = {"b: limited"}},
    {.name = "each away for 2 hours, in turn",
     .outages = {{A, 60, 180, REFUSES, 0, NULL},
                 {B, 180, 300, STATUS, 529, ""},
                 {C, 300, 420, SILENT, 0, NULL}},
     .named = {"a: breaker open", "b: breaker open", "c: breaker open"}},
    {.name = "one's errors come as events",
     .outages = {{A, ALWAYS, ERROR_529, 0, NULL}},
     .named = {"a: breaker open", "overloaded"}},
    {.name = "one answers nothing, one half a document",
     .outages = {{A, ALWAYS, EMPTY, 0, NULL}, {B, ALWAYS, GARBLES, 0, NULL}},
     .named = {"a: ", "empty", "b: "}},
    {.name = "one shows a page for 70 minutes",
     .outages = {{B, 20, 90, PAGES, 0, NULL}},
     .named = {"b: ", "content-type"}},
    {.name = "all show a page for 70 minutes",
     .outages = {{ALL, 20, 90, PAGES, 0, NULL}},
     .named = {"content-type"}},
    {.name = "all show a page for the first 70 minutes",
     .outages = {{ALL, 0, 70, PAGES, 0, NULL}},
     .named = {"content-type"}},
    {.name = "all answer nothing for the first half hour",
     .outages = {{ALL, 0, 30, EMPTY, 0, NULL}},
     .named = {"empty"}},
    {.name = "all refuse every request for the first hour",
     .outages = {{ALL, 0, 60, STATUS, 400, ""}},
     .named = {"HTTP 400"}},
    {.name = "one stalls in the middle of each answer",
     .outages = {{B, ALWAYS, STALLS, 0, NULL}},
     .named = {"b: breaker open", "between-bytes limit"}},
    /* how busy the lane is: lanes.py */
    {.name = "lane: all down for 3 minutes in the first 30",
     .outages = {{ALL, 10, 13, REFUSES, 0, NULL}}},
    {.name = "repeat: one kernel for ever", .outages = {{ALL, ALWAYS, REPEATS, 0, NULL}}},
    /* money: a cap, and bills that differ from what is said */
    {.name = "bill: as it is said"},
    {.name = "bill: reasoning outside of max_tokens", .bills = {.reasoning = 12}},
    {.name = "bill: larger prompts", .bills = {.prompt_tokens = 60000}},
    {.name = "bill: streams that break", .outages = {{ALL, ALWAYS, CUTS, 0, NULL}}},
    {.name = "bill: every second stream breaks", .outages = {{A | B, ALWAYS, CUTS, 0, NULL}}},
    {.name = "bill: reasoning and larger prompts",
     .bills = {.reasoning = 6, .prompt_tokens = 20000}},
    {.name = "bill: no usage is said", .bills = {.silent = true}},
    {.name = "bill: usage that is no number", .bills = {.odd = true}},
    {.name = "bill: usage of one token", .bills = {.one = true}},
    {.name = "bill: reasoning, of which nothing is said",
     .bills = {.silent = true, .reasoning = 1.5}},
    {.name = "bill: reasoning, of which the entry alone says how much",
     .bills = {.silent = true, .reasoning = 1.5, .known = 1.5}},
    {.name = "bill: reasoning, in the cost that is said, and not in the tokens",
     .bills = {.costs = true, .reasoning = 12}},
};
const size_t script_count = sizeof scripts / sizeof scripts[0];

const struct outage *script_now(const struct script *one, unsigned provider)
{
    static const struct outage fine = {.kind = FINE, .text = ""};
    double minute = virtual_ms() / 60000;
    for (size_t i = 0; i < OUTAGES_MOST; i++) {
        const struct outage *outage = &one->outages[i];
        if ((outage->providers >> provider & 1) && minute >= outage->from_min &&
            minute < outage->to_min)
            return outage;
    }
    return &fine;
}
