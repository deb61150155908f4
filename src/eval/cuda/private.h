/* eval/cuda/private: the backend's operations, whose contracts are in eval/backend/backend.h. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/emit/emit.h"

extern const struct emitter emitter_cuda; /* a kernel as a Python package for PyTorch */

int cuda_compile_only(const struct compile_only *asked, struct arena *arena,
                      struct evaluation *evaluation, struct buf *words, struct json *json,
                      struct err *err) MUST_USE;
void cuda_describe(void); /* each GPU's driver is asked in a short-lived process of its own */
int cuda_findings(const struct value *answer, struct buf *out);
