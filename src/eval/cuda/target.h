/* eval/cuda/target: what is written for NVIDIA GPUs. Constants that link nothing of the backend. */
#pragma once

#include "eval/problem/target.h"

extern const struct language language_cuda, language_triton;
extern const struct target target_cuda;
