/* eval/cpu/emit: kernel.c and kernel.h, build.sh, a test against the problem's plain C where it has
 * one; as numpy kernel.py and test.py besides. */
#pragma once

#include "eval/emit/emit.h"

extern const struct emitter emitter_cpu;
