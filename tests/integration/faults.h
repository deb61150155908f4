/* The fault table, row by row and format by format: a fake provider that plays a script, the real
 * engine, codecs, budget and store against it. faults_rows.c holds the table, faults_more.c the
 * rows that need more than a script, faults.c judges, faults_engine.c runs one, faults_server.c
 * starts servers. */
#pragma once

#include "agents/llm/ask.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define KEY          "sk-hush-0123456789abcdef"

enum {
    OPENAI = 1,
    ANTHROPIC = 2,
    GEMINI = 4,
    RESPONSES = 8,
    ALL = 15,
    ASKS_MOST = 32,
    SCRIPT_MOST = 8
};

struct row {
    const char *name;
    unsigned formats;
    const char *script[SCRIPT_MOST];
    int requests; /* that the provider saw, so that retries do not multiply */
    enum err_code code;
    enum fault fault;
    int charged;             /* reservations that were charged, in full or by what came */
    int least_micro_dollars; /* what the ledger has at least */
    bool blocked;            /* the model can never be asked again in this process */
    const char *event;       /* of this kind must have been logged */
    bool until_event;        /* and once it was, what still waits is cancelled */
    const char *words;       /* in the message */
    const char *finish;      /* NULL: "stop" */
    bool silent;             /* leap_in_stream() while it is */
    int64_t at_least_ms;     /* that it took */
    long size;               /* of the answer; 0: 200 */
    const char *key;         /* NULL: the right one */
    void (*check)(const struct ask *ask);
};

extern const struct row fault_rows[]; /* faults_rows.c */
extern const size_t fault_row_count;

/* --- faults_server.c --- */
struct server {
    pid_t pid;
    int port;
};
struct server server_start(const char *const *argv); /* waits for its "port N" */
struct server provider_start(const char *const *script, long size);
void server_stop(const struct server *server, int signal_number);

struct counts {
    int64_t chats, models, keys, answered, connections, requests;
};
struct counts counts_get(int port);

/* --- faults_engine.c: one run of the engine in this process --- */
struct trial { /* what is asked, and how; zero: one request with the usual limits */
    unsigned format;
    const char *url, *key, *ca_file, *folder; /* folder: of the store; NULL: one of its own */
    const char *model;
    size_t asks;
    unsigned in_flight;
    bool one_by_one;
    int tries, break_after;
    uint64_t connect_ms;
    const char *until_event;
    void (*tick)(struct trial *trial, int number); /* every few milliseconds */
    /* what came of it */
    struct ask ask[ASKS_MOST];
    int64_t ended_ms[ASKS_MOST]; /* since the start */
    struct completions_totals totals;
    struct budget_totals spent;
    struct err blocked;
    struct buf log;
    size_t stored;
    int ticks;
    bool hung, leaked, events_seen;
};
void trial_run(struct trial *trial);
void trial_free(struct trial *trial);
bool trial_logged(const struct trial *trial, const char *kind);
const struct codec *codec_of(unsigned format);
const char *base_url(unsigned format, int port); /* for the fake; borrowed until the next call */
extern const char *work_folder;
/* How far a trial's monotonic clock is ahead. No row waits for a limit of the engine, or has a
 * small one, which a machine that pauses would break: limits are the usual ones, and the clock
 * leaps. */
extern uint64_t slept_ns;

/* --- the row at hand --- */
#define EXPECT(truth, ...)                                                                         \
    do {                                                                                           \
        if (!(truth))                                                                              \
            row_fail(__VA_ARGS__);                                                                 \
    } while (0)
void row_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void row_end(const char *name, unsigned format, int64_t requests); /* prints its line */
bool row_wanted(const char *name);

/* What holds for every row: the key is nowhere, the budget adds up, nothing hung. */
void expect_sound(const struct trial *trial);
void print_log(const struct trial *trial); /* where the row failed and $FAULTS_LOG is set */

/* --- faults_clock.c: ticks under which a silent try ends by its limit --- */
void leap_in_stream(struct trial *trial, int number);
void leap_after_first(struct trial *trial, int number);

/* --- faults_more.c, faults_clock.c, faults_http2.c, faults_preflight.c --- */
void run_more(void);
void run_clocks(void);
void run_http2(void);
void run_preflight(void);
