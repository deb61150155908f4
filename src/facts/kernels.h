/* facts/kernels: every candidate that was evaluated, over all runs, as rows of one table: what
 * history, stats, diff and export show. Any thread. Texts in `arena`; a text that is not known is
 * "", a number 0. */
#pragma once

#include "eval/data/evaluation.h"
#include "facts/records.h"

struct kernel_row {
    const char *id, *run, *problem;
    const char *problem_hash; /* of its definition; "": an earlier twagent's */
    const char *size;         /* the main shape in place of the spec's: "M=64,N=8" */
    const char *device;       /* "NVIDIA H100", "AMD EPYC, 2 cores" */
    const char *backend, *language;
    const char *parent, *attempt, *idea, *category, *why;
    const char *file;   /* "packed.c" */
    const char *source; /* its key in STORE_SOURCES */
    const char *code;   /* NULL unless asked for */
    const char *tune;   /* JSON object */
    const char *state, *verdict, *reason, *duplicate_of;
    const char *baseline; /* what speedup is against */
    const char *finding;  /* "faster", "slower", ...; "": this one was not compared by itself */
    const char *model;    /* who wrote it; "builtin" */
    const char *limiter;  /* agents/diagnosis' word; only with the evaluation */
    const char *versions; /* JSON object; only with the evaluation */
    bool outside;         /* no point of its tune space on that device: nothing was evaluated */
    bool correct, champion, verified; /* verified: the figures are of fresh processes and seeds */
    int64_t round, island, number, repairs, checks_passed, checks_total, micro_dollars;
    uint64_t decided_ms; /* wall clock of its verdict */
    double latency_ns, latency_low_ns, latency_high_ns, baseline_ns;
    double speedup, speedup_low, speedup_high;
    /* As the search measured it, against the baseline of all others of its run; a champion's last
     * measurement is against the fastest baseline. */
    struct searched {
        double ratio, low, high;
    } searched;
    double error_ratio;                 /* largest error as a share of what is allowed */
    double evaluation_ms;               /* a lane's time for it */
    double stage_ms[STAGES];            /* the same by stage */
    double flops_per_byte, flops_per_s; /* its place on the roofline; 0: not known */
};

struct kernel_query {
    const struct problem_key *problem; /* NULL: all */
    const char *run;                   /* NULL: all */
    const char *candidate;             /* NULL: all; with `run` */
    bool code, evaluation;             /* read these, too */
    bool search; /* a champion, too, as the search measured it, not at the end */
};

/* In order of their verdicts' numbers, run by run. ERR_NOT_FOUND: no such run. */
int kernels_read(struct store *store, struct arena *arena, const struct kernel_query *query,
                 struct kernel_row **rows, size_t *count, struct err *err) MUST_USE;

/* Rows that can be ranked against each other: definition, size, device and baseline are the same.
 */
bool kernels_alike(const struct kernel_row *one, const struct kernel_row *other);

/* One column of the table, for whoever writes it out: JSON lines, CSV, SQL. */
enum column_type { COLUMN_TEXT, COLUMN_BOOL, COLUMN_INT, COLUMN_MS, COLUMN_REAL, COLUMN_TIME };
struct column {
    const char *name;      /* "latency_ms" */
    enum column_type type; /* COLUMN_MS: nanoseconds in the row, written as milliseconds */
    size_t offset;
};
extern const struct column kernel_columns[];
extern const size_t kernel_column_count;

/* The row's value of a column. Numbers that are not known are NAN; COLUMN_INT and COLUMN_BOOL are
 * whole numbers, COLUMN_TIME "2026-11-22T13:23:36Z". Text: NULL where the value is a number. */
struct cell {
    const char *text;
    double number;
};
struct cell kernel_cell(const struct kernel_row *row, const struct column *column, char text[32]);

/* {"id": ..., ...}, null for what is not known; `code` only where it was read. */
void kernel_json(const struct kernel_row *row, struct json *json);
