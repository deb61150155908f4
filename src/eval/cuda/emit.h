/* eval/cuda/emit: a kernel as a Python package for PyTorch. */
#pragma once

#include "eval/emit/emit.h"

extern const struct emitter emitter_cuda;
