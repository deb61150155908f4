/* eval/cpu/target: what is written for the CPU. Constants that link nothing of the backend. */
#pragma once

#include "eval/problem/target.h"

extern const struct language language_c, language_cxx;
extern const struct target target_cpu;
