/* eval/runner/wire: what every host and runner have in common: descriptors by number, two eventfds,
 * and how a runner that gives up by itself ends. */
#pragma once

#include "process/descriptors.h"

enum { WIRE_PATH_MAX = 1024 };

/* A runner with a device of its own has a report page, which says of a load or a call: */
enum { WIRE_REPORT = 8 };
enum report_status {
    REPORT_FINE,
    REPORT_FAULT,   /* the candidate's: it failed as it ran */
    REPORT_REFUSED, /* the candidate's: it cannot be loaded, compiled or bound as it says */
    REPORT_BROKEN   /* ours, or the machine's */
};

/* A runner that gives up by itself says why in the last line of its stderr, and exits with this. */
enum { RUNNER_EXIT = 70 };

/* What it says when a guard was hit; 16 hexadecimal digits follow: the offset from the inputs. */
#define WIRE_GUARD_HIT "guard "
