/* bench/night: a search in virtual time. The search is the real one; completions and evaluations
 * are stand-ins that answer after latencies drawn by what they are asked, not by when. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;

/* --- virtual_time.c: the clock jumps to the next deadline whenever nothing is left to do but to
 * wait for it. Between two jumps it runs as the real one does, or stands still: then, with
 * work_at_once.c, a night is the same on every machine and under every load, and a task that spins
 * aborts. Call once, after loop_new(), before loop_run(). --- */
void virtual_time_start(struct loop *loop, bool stands_still);
void virtual_time_end(void);
double virtual_ms(void); /* since the start; before it, 0 */

/* --- night.c --- */
struct latencies {
    double ideas_s[2], code_s[2], evaluation_s[2]; /* from, to */
};
extern struct latencies latencies;
uint64_t night_hash(const char *kind, const char *id, int64_t number);
double night_share(uint64_t hash); /* [0, 1) */
/* Uniform in the range, in ms, by the hash. */
uint64_t night_draw(const double range_s[2], uint64_t hash);
