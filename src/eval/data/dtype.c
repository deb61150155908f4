#include "eval/data/dtype.h"

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

struct dtype_facts {
    const char *name, *c_type;
    size_t bytes;
    bool is_float;
    double epsilon, max;
};

static const struct dtype_facts facts[DTYPES] = {
    [DTYPE_FLOAT32] = {"float32", "float", 4, true, FLT_EPSILON, FLT_MAX},
    [DTYPE_FLOAT64] = {"float64", "double", 8, true, DBL_EPSILON, DBL_MAX},
    [DTYPE_INT32] = {"int32", "int32_t", 4, false, 0.0, INT32_MAX},
    [DTYPE_FLOAT16] = {"float16", "uint16_t", 2, true, 0x1p-10, 65504.0},
    [DTYPE_BFLOAT16] = {"bfloat16", "uint16_t", 2, true, 0x1p-7, 0x1.fep127},
};

/* The two 16-bit formats differ in these alone. */
struct short_format {
    int mantissa_bits, bias;
};

static const struct short_format half = {10, 15};
static const struct short_format brain = {7, 127};

const char *dtype_name(enum dtype dtype)
{
    assert((unsigned)dtype < DTYPES);
    return facts[dtype].name;
}

bool dtype_parse(const char *name, enum dtype *dtype)
{
    for (int i = 0; i < DTYPES; i++)
        if (strcmp(facts[i].name, name) == 0) {
            *dtype = (enum dtype)i;
            return true;
        }
    return false;
}

size_t dtype_bytes(enum dtype dtype)
{
    assert((unsigned)dtype < DTYPES);
    return facts[dtype].bytes;
}

bool dtype_is_float(enum dtype dtype)
{
    assert((unsigned)dtype < DTYPES);
    return facts[dtype].is_float;
}

double dtype_epsilon(enum dtype dtype)
{
    assert((unsigned)dtype < DTYPES);
    return facts[dtype].epsilon;
}

double dtype_max(enum dtype dtype)
{
    assert((unsigned)dtype < DTYPES);
    return facts[dtype].max;
}

const char *dtype_c_type(enum dtype dtype)
{
    assert((unsigned)dtype < DTYPES);
    return facts[dtype].c_type;
}

static double from_bits(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double widen(struct short_format format, uint16_t bits)
{
    int exponent_bits = 15 - format.mantissa_bits;
    uint64_t mantissa = bits & ((1ull << format.mantissa_bits) - 1u);
    uint64_t exponent = (uint64_t)bits >> format.mantissa_bits & ((1ull << exponent_bits) - 1u);
    uint64_t sign = (uint64_t)(bits >> 15) << 63;
    if (exponent == (1u << exponent_bits) - 1u)
        exponent = 2047; /* infinity or NaN; the payload stays */
    else if (exponent == 0) {
        double magnitude = ldexp((double)mantissa, 1 - format.bias - format.mantissa_bits);
        return sign != 0 ? -magnitude : magnitude;
    } else
        exponent += (uint64_t)(1023 - format.bias);
    return from_bits(sign | exponent << 52 | mantissa << (52 - format.mantissa_bits));
}

/* Nearest and even, straight from 53 bits: by way of float32 it would be rounded twice. */
static uint16_t narrow(struct short_format format, double number)
{
    int shift = 52 - format.mantissa_bits, least = 1 - format.bias;
    uint64_t infinity = (uint64_t)(2 * format.bias + 1) << format.mantissa_bits, bits;
    memcpy(&bits, &number, sizeof bits);
    uint64_t magnitude = bits & ~(1ull << 63);
    uint32_t sign = (uint32_t)(bits >> 63) << 15;
    if (isnan(number))
        return (uint16_t)(sign | infinity | 1u << (format.mantissa_bits - 1));
    if (fabs(number) < ldexp(1.0, least)) /* subnormal, or becomes the first normal */
        return (uint16_t)(sign |
                          (uint32_t)nearbyint(ldexp(fabs(number), format.mantissa_bits - least)));
    uint64_t rounded = magnitude + (1ull << (shift - 1)) - 1u + (magnitude >> shift & 1u);
    uint64_t narrowed =
        (rounded >> shift) - ((uint64_t)(1023 - format.bias) << format.mantissa_bits);
    return (uint16_t)(sign | (uint32_t)(narrowed < infinity ? narrowed : infinity));
}

static int32_t saturate(double number)
{
    if (isnan(number))
        return 0;
    double rounded = nearbyint(number);
    if (rounded >= (double)INT32_MAX)
        return INT32_MAX;
    return rounded <= (double)INT32_MIN ? INT32_MIN : (int32_t)rounded;
}

double dtype_load(enum dtype dtype, const void *array, size_t index)
{
    switch (dtype) {
    case DTYPE_FLOAT32:
        return (double)((const float *)array)[index];
    case DTYPE_FLOAT64:
        return ((const double *)array)[index];
    case DTYPE_INT32:
        return ((const int32_t *)array)[index];
    case DTYPE_FLOAT16:
        return widen(half, ((const uint16_t *)array)[index]);
    case DTYPE_BFLOAT16:
        return widen(brain, ((const uint16_t *)array)[index]);
    case DTYPES:
        break;
    }
    assert(false);
    return NAN;
}

void dtype_store(enum dtype dtype, void *array, size_t index, double number)
{
    switch (dtype) {
    case DTYPE_FLOAT32:
        ((float *)array)[index] = (float)number;
        return;
    case DTYPE_FLOAT64:
        ((double *)array)[index] = number;
        return;
    case DTYPE_INT32:
        ((int32_t *)array)[index] = saturate(number);
        return;
    case DTYPE_FLOAT16:
        ((uint16_t *)array)[index] = narrow(half, number);
        return;
    case DTYPE_BFLOAT16:
        ((uint16_t *)array)[index] = narrow(brain, number);
        return;
    case DTYPES:
        break;
    }
    assert(false);
}

void dtype_to_double(enum dtype dtype, const void *array, size_t count, double *out)
{
    if (dtype == DTYPE_FLOAT32) {
        const float *numbers = (const float *)array;
        for (size_t i = 0; i < count; i++)
            out[i] = (double)numbers[i];
    } else if (dtype == DTYPE_FLOAT64) {
        memcpy(out, array, count * sizeof *out);
    } else if (dtype == DTYPE_INT32) {
        const int32_t *numbers = (const int32_t *)array;
        for (size_t i = 0; i < count; i++)
            out[i] = numbers[i];
    } else {
        for (size_t i = 0; i < count; i++)
            out[i] = dtype_load(dtype, array, i);
    }
}

void dtype_from_double(enum dtype dtype, const double *in, size_t count, void *array)
{
    if (dtype == DTYPE_FLOAT32) {
        float *numbers = (float *)array;
        for (size_t i = 0; i < count; i++)
            numbers[i] = (float)in[i];
    } else if (dtype == DTYPE_FLOAT64) {
        memcpy(array, in, count * sizeof *in);
    } else {
        for (size_t i = 0; i < count; i++)
            dtype_store(dtype, array, i, in[i]);
    }
}
