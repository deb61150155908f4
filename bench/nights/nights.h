/* bench/nights: nights of outages in virtual time. The search, the completion engine, its endpoints
 * and its ledger are the real ones; behind loop/http.h stand three providers that keep to a script.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROVIDERS = 3, OUTAGES_MOST = 6 };

enum kind {
    FINE,
    SILENT,    /* connected, and never a byte */
    STALE,     /* the same, but for connections that are fresh */
    HANGS,     /* no connection, nor a refusal */
    REFUSES,   /* connections */
    RESETS,    /* before an answer's head */
    CUTS,      /* half an answer, then a reset */
    STATUS,    /* `code`, with `text` for a Retry-After */
    PAGES,     /* HTML with status 200 */
    THINKS,    /* `code` seconds before the first word */
    DRIPS,     /* a word a minute, for ever */
    PINGS,     /* signs of life, for ever */
    ERROR_529, /* as an event, after status 200 */
    EMPTY,     /* whole answers with nothing in them */
    GARBLES,   /* an event cut in its JSON */
    REPEATS,   /* the same code, whatever the idea */
    STALLS     /* half an answer, then silence */
};

struct outage {
    unsigned providers; /* a bit each */
    double from_min, to_min;
    enum kind kind;
    int code;
    const char *text;
};

struct bills {             /* how a provider's bill differs from what it was allowed */
    double reasoning;      /* tokens beside max_tokens, for each that is seen */
    int64_t prompt_tokens; /* of its own, with each prompt */
    bool silent;           /* no usage is said */
    bool odd;              /* usage that is no number */
    bool one;              /* usage of one token, whatever was written */
    bool costs;            /* tokens as they are seen, and beside them what is billed, in dollars */
    double known;          /* the model's entry: how much it reasons */
};

struct script {
    const char *name;
    struct outage outages[OUTAGES_MOST];
    const char *named[4]; /* what the summary must say */
    struct bills bills;
};

extern const struct script scripts[];
extern const size_t script_count;
const struct outage *script_now(const struct script *script, unsigned provider);

/* --- fake_http.c --- */
extern const struct script *script; /* the one that is played */
double fake_bill_dollars(void);     /* of all providers, by what they wrote */
double fake_dearest_dollars(void);  /* one answer's */
