/* cli/display: what a person sees while a run goes on: on a terminal a few lines that are redrawn
 * in place, otherwise a plain line for each thing worth one. A view of events and of
 * search_progress(). Loop thread only. */
#ifndef CLI_DISPLAY_H
#define CLI_DISPLAY_H

#include "agents/search.h"

#include <stdbool.h>
#include <stdio.h>

struct display {
    FILE *out;
    bool terminal, color, quiet;
    int lines;      /* drawn and to be erased at the next drawing */
    bool sink;      /* registered */
    char best[64];  /* last champion told */
    int64_t round;  /* last round told */
    char phase[40]; /* last phase told */
};

/* `out` is a terminal or not; NO_COLOR and TERM=dumb are honoured. `verbose` prints every event. */
void display_start(struct display *display, FILE *out, bool quiet, bool verbose);
void display_update(struct display *display, const struct search_progress *progress);
void display_stop(struct display *display); /* erases the live lines */

#endif
