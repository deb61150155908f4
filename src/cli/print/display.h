/* cli/print/display: what a person sees while a run goes on: on a terminal a few lines that are
 * redrawn in place, otherwise a plain line for each thing worth one. A view of events and of
 * search_progress(). Loop thread only. */
#pragma once

#include "agents/search/search.h"

#include <stdbool.h>
#include <stdio.h>

struct display {
    FILE *out;
    const struct search_options *options; /* borrowed: the caps that spending is shown against */
    bool terminal, color, quiet;
    int lines;          /* drawn and to be erased at the next drawing */
    bool sink;          /* registered */
    char best[64];      /* last champion told */
    int64_t round;      /* last round told */
    char phase[40];     /* last phase told */
    char paused[256];   /* why it waits; "": it does not */
    uint64_t paused_ms; /* since when, wall clock */
    char warning[256];  /* of the sandbox, a late batch, a short budget, to be told; "": none */
    char warned[256];   /* that was told */
    char note[480];     /* what a lane waits for, to be told; "": nothing */
    uint64_t noted_ms;  /* when the last such line was told */
};

/* `out` is a terminal or not; NO_COLOR and TERM=dumb are honoured. `verbose` prints every event. */
void display_start(struct display *display, FILE *out, const struct search_options *options,
                   bool quiet, bool verbose);
void display_update(struct display *display, const struct search_progress *progress);
void display_say(struct display *display, const char *text); /* one line that stays */
void display_wait(struct display *display,
                  const char *text);        /* a live line, before there is a run */
void display_stop(struct display *display); /* erases the live lines */

/* Commands without a display: one line a minute while a lane waits for another twagent. */
void display_tell_waits(FILE *out);
