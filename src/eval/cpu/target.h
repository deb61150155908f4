/* eval/cpu/target: what is written for the CPU. Constants that link nothing of the backend. */
#ifndef EVAL_CPU_TARGET_H
#define EVAL_CPU_TARGET_H

#include "eval/problem/target.h"

extern const struct language language_c, language_cxx;
extern const struct target target_cpu;

#endif
