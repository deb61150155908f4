/* eval/cuda/probe/roofline_ptx: the loops that a device's ceilings are measured with, as PTX text.
 */
#pragma once

#include "base/buf.h"

enum roofline_unit { UNIT_FP32, UNIT_TF32, UNIT_BF16, UNIT_FP16, UNITS };

enum { ROOFLINE_THREADS = 256, ROOFLINE_SHARED_BYTES = 48 << 10 };

/* Entries: `read` (from, 16-byte words, out) and `work` (turns, out), for compute capability
 * major.minor. `flops`: of one turn of all threads of a block. False: the device has no such
 * unit. */
bool roofline_ptx(enum roofline_unit unit, int major, int minor, struct buf *text, double *flops);
