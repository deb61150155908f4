/* report/report: what a finished run leaves for people: report.html (one file, nothing
 * fetched; its first screen needs no script), report.txt, kernel.c (.cc, .cu), evidence.json. A
 * view of plain values; whoever calls reads the store. Any thread; writes files. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/value.h"
#include "eval/problem/target.h"
#include "facts/kernels.h"
#include "tuning/tuning.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_candidate {
    const char *id, *parent, *idea, *source; /* source: short, "packed.c MR=8 NR=2" */
    const char *verdict, *reason;
    double time_ns, speedup, low, high; /* as the search measured it; 0 where it was not */
    bool champion;
};

struct report_answer { /* what a model was asked for a candidate, and what it said */
    const char *asker, *purpose, *model, *prompt, *answer;
    int64_t tokens;
};

struct report_refusal { /* what several were refused for */
    const char *why;    /* "wrong result, not written" */
    const char *first;  /* id of the first of them */
    size_t count;
};

struct report_pause {
    uint64_t since_ms, until_ms; /* wall clock; until 0: it was not over */
    const char *reason;
};

struct report_island {
    int64_t number;
    size_t evaluated, kernels;
    const struct kernel_row *best; /* by the lower end of its speed-up; NULL: no kernel */
};

struct report {
    const char *run, *problem, *description, *started; /* "r3", "matmul", ..., "2026-11-21 08:38" */
    const char *definition; /* what the person calls the reference: "numpy"; "" or NULL */
    const char *outcome;    /* one sentence: "1.97x faster than reference (95 %: 1.93 to 2.01)" */
    const char *against;    /* whom the search's numbers are against: "reference" */
    bool final;             /* `evaluation` is the champion's last measurement, not the search's */
    const char *dims;       /* "M 512, N 512, K 512" */
    const char *command;    /* the options that differ from the defaults */
    const char *again;      /* the command that begins one like it */
    const char *stopped;    /* what ended it: "budget", "target reached: ..."; NULL: its rounds */
    const char *models;     /* "ideas a 67 %, b 33 %; code a"; NULL: the built-in proposer */
    const char *spent; /* "312 requests, 1.2 M tokens, $1.23 of $5.00"; NULL: nothing was asked */
    int64_t micro_dollars;                 /* that the same is of */
    const struct report_refusal *refusals; /* the most frequent first */
    size_t refusal_count;
    const char *const *asked; /* a line for each model: what became of its requests, and why */
    size_t asked_count;
    const struct report_pause *pauses;
    size_t pause_count;
    double elapsed_ms;
    double lane_busy;                /* 0..1 */
    const char *best;                /* champion's id; NULL: none */
    const struct language *language; /* NULL: not known */
    const char *source;              /* of the champion, whole; NULL: none */
    const struct value *evaluation;  /* the champion's record, as `eval --json` prints it */
    const struct report_candidate *candidates; /* in order of their evaluation */
    size_t count;
    const struct kernel_row
        *rows; /* the same as facts, with sources: the page's tables and plots */
    size_t row_count;
    const struct report_island *islands; /* by number */
    size_t island_count;                 /* 0: there was one */
    const struct report_answer *answers; /* in order of who asked */
    size_t answer_count;
    const struct tuning *tuning; /* what a tune has found; NULL: it was none */
    const char *resume;          /* "twagent resume r3"; NULL: it came to its end */
};

/* How far the headline can be believed, in a word that is never a win's unless it is one. */
struct report_status {
    const char
        *word; /* "verified win", "verified: no win", "not verified", "too noisy to say", ... */
    const char *kind; /* of the badge: "win", "none", "warn" */
};
struct report_status report_status(const struct report *report);

void report_text(const struct report *report, struct buf *out);
void report_html(const struct report *report, struct buf *out);
void report_json(const struct report *report, struct buf *out); /* what the page draws from */
/* The champion as a candidate with its tune numbers fixed; one for the CPU compiles alone, too. */
void report_kernel(const struct report *report, struct buf *out);
const char *report_suffix(const struct report *report); /* of its file: ".c"; "" not known */
/* "3 of 4: wrong result, not written (twagent show r1-c2)", the most frequent kinds; "": none. */
void report_refused(const struct report *report, struct buf *out);
/* Which of the two measurements the headline is: a sentence. */
const char *report_kind(const struct report *report);
/* Progress as an inline SVG: the lower end of every kernel's interval a dot, the best so far a
 * line, the final measurement's interval a band. */
void report_chart(const struct report *report, struct buf *out);

/* A tune's findings: for 80 columns, and as one object. */
/* A line: the largest costs with their intervals, or why nothing is said. */
void report_impact_words(const struct tuning_kernel *kernel, struct buf *out);
void report_tuning_text(const struct tuning *tuning, struct buf *out);
void report_tuning_json(const struct tuning *tuning, struct json *json);

/* Writes all four into `folder` (made where it is missing). */
int report_write(const struct report *report, const char *folder, struct err *err) MUST_USE;
