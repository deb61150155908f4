/* base/clock: the one clock; tests inject another.
 * Any thread, once injected before threads start. Deadlines are monotonic, always. */
#pragma once

#include <stdint.h>

uint64_t clock_now_ns(void);   /* CLOCK_MONOTONIC, or the injected source */
uint64_t clock_now_ms(void);   /* the same in milliseconds */
uint64_t clock_wall_ms(void);  /* milliseconds since 1970 UTC; for records and display only */
int64_t clock_cpu_ns(int pid); /* CPU time of a process and all its threads; -1: not known */

/* Writes "2026-11-21T07:38:44.123Z" for a wall time in ms; text holds at least 32 bytes. */
void clock_format_wall(uint64_t wall_ms, char text[32]);

/* Tests only: replaces clock_now_ns() by `source`; NULL puts the real one back. */
void clock_inject(uint64_t (*source)(void *context), void *context);
