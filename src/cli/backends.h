/* cli/backends: the backends that this program has, one line each. */
#ifndef CLI_BACKENDS_H
#define CLI_BACKENDS_H

#include "eval/backend/backend.h"

const struct backend *backends_find(const char *name); /* NULL where not known */

#endif
