/* cli/options/backends: the backends that this program has, one line each. Main thread. */
#pragma once

#include "eval/backend/backend.h"

struct emitter;

struct program_backend {
    const struct backend *backend;
    const struct emitter *emitter;
};

extern const struct program_backend backends[]; /* ends with a backend of NULL */
extern char backends_choices[64];               /* "cpu|cuda", once begun */

void backends_begin(void);                                      /* before all else */
const struct program_backend *backends_entry(const char *name); /* NULL where not known */
const struct backend *backends_find(const char *name);          /* the same */
