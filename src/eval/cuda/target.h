/* eval/cuda/target: what is written for NVIDIA GPUs. Constants that link nothing of the backend. */
#ifndef EVAL_CUDA_TARGET_H
#define EVAL_CUDA_TARGET_H

#include "eval/problem/target.h"

extern const struct language language_cuda;
extern const struct target target_cuda;

#endif
