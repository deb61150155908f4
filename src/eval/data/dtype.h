/* eval/data/dtype: element types of tensors. float16 and bfloat16 are storage types: values are
 * computed with elsewhere in float32 or float64 and rounded to nearest even on the way in. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype { DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT32, DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPES };

const char *dtype_name(enum dtype dtype); /* "float32", ... as numpy and PyTorch spell it */
bool dtype_parse(const char *name, enum dtype *dtype);
size_t dtype_bytes(enum dtype dtype);
bool dtype_is_float(enum dtype dtype);
double dtype_epsilon(enum dtype dtype); /* distance from 1 to the next; 0 for integers */
double dtype_max(enum dtype dtype);     /* largest finite value */
const char *
dtype_c_type(enum dtype dtype); /* "float", "double", "int32_t", "uint16_t" (both 16s) */

/* Element `index` of an array as a double, and back (rounded, saturating for integers). */
double dtype_load(enum dtype dtype, const void *array, size_t index);
void dtype_store(enum dtype dtype, void *array, size_t index, double number);
/* Whole arrays; may vectorize. */
void dtype_to_double(enum dtype dtype, const void *array, size_t count, double *out);
void dtype_from_double(enum dtype dtype, const double *in, size_t count, void *array);
