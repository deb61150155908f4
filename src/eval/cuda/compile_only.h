/* eval/cuda/compile_only: eval/backend/backend.h's compile_only. */
#pragma once

#include "eval/backend/backend.h"

int cuda_compile_only(const struct compile_only *asked, struct arena *arena,
                      struct evaluation *evaluation, struct buf *words, struct json *json,
                      struct err *err) MUST_USE;
