#include "eval/backend/lane_facts.h"

#include "eval/problem/problem.h"

#include <math.h>
#include <string.h>

/* The fastest unit that the problem's precision allows: matrix units are for narrower types, or for
 * float32 where the spec says that tf32 will do. */
double lane_operations_rate(const struct lane_facts *lane, const struct problem *problem)
{
    double rate = lane->flops_per_s;
    for (size_t i = 0; i < problem->input_count; i++) {
        if (problem->inputs[i].dtype == DTYPE_FLOAT16)
            rate = fmax(rate, lane->fp16_flops_per_s);
        if (problem->inputs[i].dtype == DTYPE_BFLOAT16)
            rate = fmax(rate, lane->bf16_flops_per_s);
    }
    bool tf32 = problem->precision != NULL && strcmp(problem->precision, "tf32") == 0;
    return tf32 ? fmax(rate, lane->tf32_flops_per_s) : rate;
}
