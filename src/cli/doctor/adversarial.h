/* cli/doctor/adversarial: the shipped attacks and honest controls, evaluated on this machine. */
#pragma once

#include "cli/options/settings.h"

/* Prints a line for each, then "N passed, N failed". Exit code: 0 where every verdict held, else 1;
 * 3 where the attacks are not installed. `only`: part of a file's name, or NULL for all. */
int adversarial_run(const struct settings *settings, const char *only);
