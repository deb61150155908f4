/* report/words: numbers as people read them. Each fills `text` and returns it. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

const char *words_time(double ns, char text[32]); /* "1.234 ms"; "-" where not measured */
/* The same and a ratio ("1.97") with no more digits than [low, high] supports: base/digits. */
const char *words_time_in(double ns, double low, double high, char text[32]);
const char *words_ratio(double ratio, double low, double high, char text[32]);
/* A time whose interval is known as that of its ratio to another: [low, high] around `ratio`. */
const char *words_time_by(double ns, double ratio, double low, double high, char text[32]);
/* The median of a record's {median, low, high}. */
struct value;
const char *words_time_of(const struct value *interval, char text[32]);
const char *words_spread(double spread, char text[32]); /* "0.53 %", "12 %" */
const char *words_duration(double ms, char text[32]);   /* "0:07", "12:05", "2:13:07" */
const char *words_count(int64_t count, char text[32]);  /* "812", "48.1 k", "1.20 M" */
const char *words_number(int64_t count, const char *noun,
                         char text[48]); /* "1 kernel", "0 kernels" */
/* "", or "; left out: ...": a best baseline that was not timed is nothing to be silent about. */
const char *words_left_out(const char *left_out, char text[160]);
/* "", or what every result is told with where the problem is not fit (`unfit`), or where something
 * of the sandbox is missing (`unconfined`). "" or NULL: it is not so. */
const char *words_caveats(const char *unfit, const char *unconfined, char text[160]);
/* What a comparison shows: the record's own word; of a record that is older than those "faster",
 * "slower" (the whole interval is below 1) or "no difference shown" */
const char *words_finding(const char *finding, bool win, double high);
/* "reference (numpy)": a baseline's name, and what the person calls the reference. */
const char *words_baseline(const char *name, const char *definition, char text[160]);
/* "numpy", "naive": what a speed-up is told to be over. Returns one of the two. */
const char *words_over(const char *name, const char *definition);
const char *words_dollars(int64_t micro, char text[32]);  /* "$1.23"; "$0.0042" below a cent */
const char *words_clock(uint64_t wall_ms, char text[32]); /* local: "Sat 02:13" */
const char *words_date(uint64_t wall_ms, char text[32]);  /* local: "2026-11-21 02:13" */
/* "Sat 02:13 for 1:05:00"; until 0: "since Sat 02:13" */
const char *words_pause(uint64_t since_ms, uint64_t until_ms, char text[96]);
/* "$1.23 of $5.00", or "not priced": what a run without prices says of dollars. cap 0: none */
const char *words_spent(int64_t micro, int64_t cap, bool unpriced, char text[64]);
/* "5 kernels, 1 rejected, 0 failed"; where some were none: ", 2 no points of the tune space" */
const char *words_outcomes(int64_t kept, int64_t rejected, int64_t failed, int64_t dropped,
                           int64_t outside, char text[160]);
/* "lane busy 62 %"; where there was some: "lane busy 62 %, 30 % waiting for another twagent" */
const char *words_lane(double busy, double waits, char text[80]);

/* Of a record's metrics: how near the bound a kernel comes, beside an honest computation; the
 * largest number of each dim at which it was called ("M=202, N=161"). "": they do not say. */
const char *words_error(const struct value *metrics, char text[160]);
const char *words_reached(const struct value *metrics, char text[320]);
/* ", in 600 calls of its package in numpy 2.4.6"; "": none. */
const char *words_package(const struct value *metrics, char text[96]);
/* Which clocks a GPU's times were compared with, from metrics.profile (NULL is fine): "events
 * 1.234 ms, CUPTI's records 1.230 ms" of the same launches. "": it does not say. */
enum { WORDS_CLOCKS = 320 };
const char *words_clocks(const struct value *profile, char text[WORDS_CLOCKS]);
