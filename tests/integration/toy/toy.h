/* A backend for the test of backends: postfix arithmetic, element by element, as in "X X + 2 *". */
#pragma once

#include "eval/backend/backend.h"

extern const struct backend backend_toy;
