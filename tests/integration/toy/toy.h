/* A backend for the test of backends: postfix arithmetic, element by element, as in "X X + 2 *". */
#ifndef TESTS_TOY_H
#define TESTS_TOY_H

#include "cli/emit/emit.h"
#include "eval/backend/backend.h"

extern const struct backend backend_toy;
extern const struct emitter emitter_toy;

#endif
