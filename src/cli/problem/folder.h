/* cli/problem/folder: `problem check` of a folder that holds problems: each is described, opened in
 * a worker of its own and checked, several at once; then a table. Main thread. */
#pragma once

#include "cli/options/settings.h"

#include <stdbool.h>

/* A folder without a spec.yaml. */
bool problem_folder_is(const char *path);

/* Returns an exit code: 0 where every file is fit. */
int problem_folder_check(const struct settings *settings, const char *path);
