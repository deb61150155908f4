/* cli/options/backends: the backends that this program has, one line each. Main thread. */
#pragma once

#include "eval/backend/backend.h"

extern const struct backend *const backends[]; /* ends with NULL */
extern char backends_choices[64];              /* "cpu|cuda", once begun */

void backends_begin(void); /* before all else */
/* The first that has what --language says, where no --backend stands; NULL: none has. */
const char *backends_of_language(const char *language);
const struct backend *backends_find(const char *name); /* NULL where not known */
