/* cli/status/facts: where a run stands, as its record, its ledger and the end of its log have it:
 * the facts of `status`, of the live page and of the metrics. Nothing is asked of the run itself.
 * Any thread; blocks. Texts in `arena`. */
#pragma once

#include "cli/find/control.h"
#include "cli/find/history.h"
#include "cli/print/run_words.h"
#include "cli/status/log_tail.h"

struct status_row {
    const char *name, *text; /* "round", "3 of 8; 2 candidates on the way" */
};

struct run_status {
    struct run_record run;
    bool live;
    double since_ms; /* the record was written, of a live run; that long ago it was as it says */
    struct spending spending;
    struct log_tail tail;
    struct report_pause *pauses;
    size_t pause_count;
    const struct value *options, *asked; /* asked: the list of the record's `asked` */
    const char *state; /* "running", "paused", "died", "done", "stopped", "failed" */
    const char *words; /* the same in a sentence: "PAUSED since Sat 02:13: by a person" */
    struct status_row *rows;
    size_t row_count;
};

/* What a watcher keeps from one look to the next: the impact of a tune's parameters, which is
 * computed again when an eighth more kernels are there, so that looking costs a search nothing. */
struct status_seen {
    char run[32];
    int64_t timed;     /* points, when `impact` was made */
    struct buf impact; /* a line for each kernel's source */
};

void status_seen_init(struct status_seen *seen);
void status_seen_free(struct status_seen *seen);

/* The run `id`; NULL: the one that goes on now, or the last one. Errors as control_find(). */
int run_status_read(const struct settings *settings, struct arena *arena, const char *folder,
                    const char *id, struct status_seen *seen, struct run_status *status,
                    struct err *err) MUST_USE;

void run_status_json(const struct run_status *status, struct buf *out); /* one line, with its end */
/* OpenMetrics 1.0 text, with its "# EOF". */
void run_status_metrics(const struct run_status *status, struct buf *out);
