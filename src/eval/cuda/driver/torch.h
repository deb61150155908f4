/* eval/cuda/driver/torch: the lane's GPU as PyTorch finds it. Constants; any thread. */
#pragma once

#include "eval/backend/backend.h"

extern const struct torch_device torch_cuda;        /* by its number */
extern const struct torch_device torch_cuda_or_cpu; /* the same, of an adapter by NVIDIA */
