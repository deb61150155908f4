/* cli/archive/list: a run as one line of the list, in words. Any thread. */
#pragma once

#include "agents/record/record.h"

#include <sys/types.h>

struct run_line {
    const struct run_record *run; /* borrowed */
    const char *state;            /* "running", "paused", "died", "done", "stopped", "failed" */
    bool waits;                   /* for somebody to go on with it */
    char started[32], time[32], speedup[40];
    char verdict[192]; /* "win", "no win", "", and caveats behind a semicolon */
};

/* `owner` as control_owner() says. */
struct run_line list_line(const struct run_record *run, pid_t owner);
