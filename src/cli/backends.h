/* cli/backends: the backends that this program has, one line each. */
#ifndef CLI_BACKENDS_H
#define CLI_BACKENDS_H

#include "eval/backend/backend.h"

extern char backends_choices[64]; /* "cpu|cuda", once they are begun with */

void backends_begin(void);                             /* names their targets; before all else */
const struct backend *backends_find(const char *name); /* NULL where not known */

#endif
