/* The headers of C and C++ that kernels include out of habit. NVRTC knows the functions by itself;
 * what it lacks are the types and limits. Numbers are written as CCCL writes them, which defines
 * the same names without asking. */
#include "eval/cuda/compile/source.h"

/* CCCL's, so that its headers may come after; cuda.h expects them. dims arrive as int64_t. */
static const char types_text[] =
    "#pragma once\n"
    "typedef signed char int8_t; typedef signed short int16_t; typedef signed int int32_t;\n"
    "typedef signed long long int64_t; typedef unsigned char uint8_t;\n"
    "typedef unsigned short uint16_t; typedef unsigned int uint32_t;\n"
    "typedef unsigned long long uint64_t; typedef uint64_t uintptr_t; typedef int64_t intptr_t;\n";

static const char stdint_text[] = "#pragma once\n"
                                  "#define INT8_MIN SCHAR_MIN\n#define INT16_MIN SHRT_MIN\n"
                                  "#define INT32_MIN INT_MIN\n#define INT64_MIN LLONG_MIN\n"
                                  "#define INT8_MAX SCHAR_MAX\n#define INT16_MAX SHRT_MAX\n"
                                  "#define INT32_MAX INT_MAX\n#define INT64_MAX LLONG_MAX\n"
                                  "#define UINT8_MAX UCHAR_MAX\n#define UINT16_MAX USHRT_MAX\n"
                                  "#define UINT32_MAX UINT_MAX\n#define UINT64_MAX ULLONG_MAX\n"
                                  "#define SIZE_MAX UINT64_MAX\n"
                                  "#include <limits.h>\n";

static const char limits_text[] = "#pragma once\n"
                                  "#ifndef INT_MAX\n"
                                  "#define CHAR_BIT 8\n"
                                  "#define SCHAR_MIN (-128)\n#define SCHAR_MAX 127\n"
                                  "#define UCHAR_MAX 255\n"
                                  "#define SHRT_MIN (-SHRT_MAX - 1)\n#define SHRT_MAX 0x7fff\n"
                                  "#define USHRT_MAX 0xffff\n"
                                  "#define INT_MIN (-INT_MAX - 1)\n#define INT_MAX 0x7fffffff\n"
                                  "#define UINT_MAX 0xffffffff\n"
                                  "#define LONG_MIN (-LONG_MAX - 1)\n#define LONG_MAX LLONG_MAX\n"
                                  "#define ULONG_MAX ULLONG_MAX\n"
                                  "#define LLONG_MIN (-LLONG_MAX - 1)\n"
                                  "#define LLONG_MAX 0x7fffffffffffffffLL\n"
                                  "#define ULLONG_MAX 0xffffffffffffffffUL\n"
                                  "#endif\n";

static const char float_text[] =
    "#pragma once\n"
    "#ifndef FLT_MAX\n"
    "#define FLT_RADIX 2\n#define FLT_MANT_DIG 24\n#define FLT_DIG 6\n"
    "#define FLT_MAX_EXP 128\n#define FLT_MIN_EXP (-125)\n"
    "#define FLT_MAX 3.40282347e+38F\n#define FLT_MIN 1.17549435e-38F\n"
    "#define FLT_EPSILON 1.19209290e-7F\n"
    "#define DBL_MANT_DIG 53\n#define DBL_DIG 15\n"
    "#define DBL_MAX 1.7976931348623157e+308\n"
    "#define DBL_MIN 2.2250738585072014e-308\n"
    "#define DBL_EPSILON 2.2204460492503131e-16\n"
    "#endif\n";

static const char math_text[] = "#pragma once\n"
                                "#ifndef M_PI\n"
                                "#define M_E 2.7182818284590452354\n"
                                "#define M_LOG2E 1.4426950408889634074\n"
                                "#define M_LN2 0.69314718055994530942\n"
                                "#define M_PI 3.14159265358979323846\n"
                                "#define M_PI_2 1.57079632679489661923\n"
                                "#define M_1_PI 0.31830988618379067154\n"
                                "#define M_2_SQRTPI 1.12837916709551257390\n"
                                "#define M_SQRT2 1.41421356237309504880\n"
                                "#define M_SQRT1_2 0.70710678118654752440\n"
                                "#endif\n"
                                "#ifndef HUGE_VALF\n#define HUGE_VALF INFINITY\n#endif\n";

static const char nothing[] = "#pragma once\n";

static const char *const names[] = {
    CUDA_SOURCE_TYPES, "stdint.h",
    "cstdint",         "inttypes.h",
    "limits.h",        "climits",
    "float.h",         "cfloat",
    "math.h",          "cmath",
    "stddef.h",        "cstddef",
    "stdlib.h",        "cstdlib",
    "stdio.h",         "cstdio",
    "string.h",        "cstring",
    "assert.h",        "cassert",
    "stdbool.h",       "device_launch_parameters.h",
};
static const char *const texts[] = {
    types_text, stdint_text, stdint_text, stdint_text, limits_text, limits_text,
    float_text, float_text,  math_text,   math_text,   nothing,     nothing,
    nothing,    nothing,     nothing,     nothing,     nothing,     nothing,
    nothing,    nothing,     nothing,     nothing,
};
_Static_assert(sizeof names == sizeof texts, "a text for each name");

const char *const *cuda_source_header_names(size_t *count)
{
    *count = sizeof names / sizeof names[0];
    return names;
}

const char *const *cuda_source_header_texts(void)
{
    return texts;
}
