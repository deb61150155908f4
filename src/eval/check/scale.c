#include "eval/check/scale.h"

#include <math.h>
#include <string.h>

double scale_largest(double a, double b)
{
    return a > b ? a : b;
}

/* Rare: something is not finite, or squares leave the range of a double. */
static double careful_rms(const double *numbers, size_t count)
{
    double most = 0.0, sum = 0.0;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i]))
            most = scale_largest(most, fabs(numbers[i]));
    if (most == 0.0)
        return 0.0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i])) {
            sum += numbers[i] / most * (numbers[i] / most);
            finite++;
        }
    return most * sqrt(sum / (double)finite);
}

/* Of the finite ones; 0 for none. */
static double scale_rms(const double *numbers, size_t count)
{
    vector sums[4] = {{0.0, 0.0}};
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t lane = 0; lane < 4; lane++) {
            vector x;
            memcpy(&x, numbers + i + 2 * lane, sizeof x);
            sums[lane] += x * x;
        }
    vector total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double sum = total[0] + total[1];
    for (; i < count; i++)
        sum += numbers[i] * numbers[i];
    /* Below 1e-280 squares may have vanished. */
    if (!isfinite(sum) || sum < 1e-280)
        return careful_rms(numbers, count);
    return sqrt(sum / (double)count);
}

void groups_init(struct groups *groups, const double *exact, size_t count, size_t row,
                 bool normwise)
{
    row = row > 0 ? row : 1;
    size_t group = row >= SCALE_LEAST ? row : row * ((SCALE_LEAST + row - 1) / row);
    *groups = (struct groups){.exact = exact, .count = count, .group = group, .tensor = -1.0};
    if (normwise)
        groups->least = groups->tensor = scale_rms(exact, count);
}

double groups_rms(struct groups *groups, size_t first)
{
    size_t left = groups->count - first;
    size_t length = left < groups->group ? left : groups->group;
    if (length < SCALE_LEAST && first > 0) { /* a short last group looks back */
        size_t back = groups->count < SCALE_LEAST ? groups->count : SCALE_LEAST;
        first = groups->count - back;
        length = back;
    }
    double rms = scale_largest(scale_rms(groups->exact + first, length), groups->least);
    if (rms > 0.0)
        return rms;
    if (groups->tensor < 0.0)
        groups->tensor = scale_rms(groups->exact, groups->count);
    return groups->tensor;
}

void judge_init(const struct bound *bound, enum dtype dtype, double rms, struct judge *judge)
{
    *judge = (struct judge){.dtype_most = dtype_max(dtype)};
    if (bound->exact_equality) { /* integers: anything but 0 is at least 1 off */
        judge->floor = 0.5;
    } else if (bound->fixed) {
        judge->ratio = bound->rtol;
        judge->floor = bound->atol;
    } else {
        judge->ratio = bound->element;
        judge->rms = rms;
        judge->floor = bound->floor + (rms == 0.0 ? bound->zero : 0.0);
    }
}

double judge_allowed(const struct judge *judge, double exact)
{
    return judge->ratio * scale_largest(fabs(exact), judge->rms) + judge->floor;
}

bool judge_is_finite(const struct judge *judge, double exact)
{
    return fabs(exact) <= judge->dtype_most;
}

/* Payloads that no computation makes. */
static const uint64_t anything_bits = UINT64_C(0x7ff8616e79746869);
static const uint64_t not_finite_bits = UINT64_C(0x7ff86e6f7466696e);

static double of_bits(uint64_t bits)
{
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

double check_anything(void)
{
    return of_bits(anything_bits);
}

double check_not_finite(void)
{
    return of_bits(not_finite_bits);
}

bool check_is_anything(double exact)
{
    return bits_of(exact) == anything_bits;
}

bool check_is_not_finite(double exact)
{
    return bits_of(exact) == not_finite_bits;
}

bool judge_element(const struct judge *judge, double exact, double got)
{
    if (isnan(exact))
        return isnan(got) || check_is_anything(exact) || (isinf(got) && check_is_not_finite(exact));
    if (isinf(exact))
        return got == exact;
    if (isinf(got)) { /* right where the exact value is out of range, or nearly so */
        double slack = judge->ratio < 0.5 ? judge->ratio : 0.5;
        return (got > 0.0) == (exact > 0.0) && fabs(exact) >= judge->dtype_most * (1.0 - slack);
    }
    return fabs(got - exact) <= judge_allowed(judge, exact);
}
