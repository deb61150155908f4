/* eval/data/timeline: where the seconds of an evaluation go, for whoever makes it faster. Where
 * $TWAGENT_TIMELINE names a file, every step of a worker is a line of it: pid, begin and length in
 * ns of CLOCK_MONOTONIC, name. Else nothing happens. bench/cuda/timeline.py adds them up. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool timeline_on(void);
uint64_t timeline_begin(void); /* 0 where nothing is written */
/* `name` without blanks, as "set.draw". */
void timeline_end(const char *name, uint64_t begin);
void timeline_put(const char *name, uint64_t begin_ns, uint64_t length_ns);
