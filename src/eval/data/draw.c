/* Numbers come in blocks of BLOCK elements. A block's words are hashes of the element's index under
 * two keys, which follow from the seed and the block: no state is carried from one element to the
 * next, so that the loops vectorize and a tensor's first elements do not depend on its size.
 * Logarithm, sine and square root are short polynomials (numbers.h), since libm's are calls: the
 * numbers must look normal, not be exact. */
#include "eval/data/draw.h"

#include "eval/data/numbers.h"
#include "eval/data/parallel.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 1024, HALF_BLOCK = BLOCK / 2 };

struct drawing {
    enum distribution distribution;
    enum dtype dtype;
    bool bounded, folds;
    uint64_t seed, row, count;
    double low, high;
    double center, scale; /* a number is center + scale * z, folded into the bounds */
};

static const char *const names[DISTRIBUTIONS] = {
    [DRAW_UNIFORM] = "uniform", [DRAW_NORMAL] = "normal",
    [DRAW_HEAVY] = "heavy",     [DRAW_SPARSE] = "sparse",
    [DRAW_GIVEN] = "given",     [DRAW_ZEROS] = "zeros",
    [DRAW_ONES] = "ones",       [DRAW_EXTREMES] = "extremes",
    [DRAW_ONE_HOT] = "one-hot", [DRAW_ALTERNATING] = "alternating",
    [DRAW_SORTED] = "sorted",   [DRAW_TINY] = "tiny",
    [DRAW_HUGE] = "huge",       [DRAW_OFFSET] = "offset",
    [DRAW_BELOW] = "below",     [DRAW_ROWS] = "rows",
    [DRAW_COLUMNS] = "columns", [DRAW_WIDE] = "wide",
    [DRAW_FEW] = "few",         [DRAW_NON_FINITE] = "non-finite",
};

const char *distribution_name(enum distribution distribution)
{
    assert((unsigned)distribution < DISTRIBUTIONS);
    return names[distribution];
}

bool distribution_is_alike(enum distribution distribution)
{
    return distribution == DRAW_SPARSE ||
           (distribution >= DRAW_EDGES && distribution != DRAW_TINY && distribution != DRAW_HUGE);
}

static inline __attribute__((always_inline)) void hash_words(uint32_t before, uint32_t within,
                                                             uint32_t *restrict words)
{
    for (uint32_t i = 0; i < BLOCK; i++)
        words[i] = number_word(before, within, i);
}

#if defined(__x86_64__)
/* The least that every x86-64 has lacks a vector multiplication of 32 bits: several times slower.
 */
__attribute__((target("avx2"))) static void hash_words_avx2(uint32_t before, uint32_t within,
                                                            uint32_t *restrict words)
{
    hash_words(before, within, words);
}
#endif

static void fill_words(uint64_t seed, uint64_t block, uint64_t stream, uint32_t *restrict words)
{
    uint64_t key = number_key(seed, block, stream);
    uint32_t before = (uint32_t)key, within = (uint32_t)(key >> 32);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        hash_words_avx2(before, within, words);
        return;
    }
#endif
    hash_words(before, within, words);
}

static void fill_normal(const uint32_t *restrict words, float *restrict z)
{
    for (int i = 0; i < HALF_BLOCK; i++) {
        float radius = number_radius(words[i]);
        uint32_t turn = words[i + HALF_BLOCK];
        z[i] = radius * number_sine(turn);
        z[i + HALF_BLOCK] = radius * number_sine(turn + 0x40000000u);
    }
}

static float tiny_of(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT16 ? 1e-4f : dtype == DTYPE_INT32 ? 1.0f : 1e-20f;
}

static float huge_of(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT16 ? 100.0f : 1e12f;
}

/* How far from zero, for a deviation of one: the type must still tell such numbers apart. */
static float offset_of(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT16 ? 100.0f : dtype == DTYPE_BFLOAT16 ? 30.0f : 1000.0f;
}

/* What all of a row, or of a column, is; of any index the same. Sums of as many as a row has are
 * exact, so that what is left of them less their mean is what it is for ones. Negative ones are
 * small: a sum of columns is hardly ever zero, where a kernel that leaves it out would be right. */
static float repeated(const struct drawing *drawing, uint64_t index)
{
    enum { SIZES = 4, LESS = 8, INTEGERS = 9 }; /* from -1 to 7 */
    uint64_t hash = number_mix(drawing->seed ^ number_mix(index));
    if (!dtype_is_float(drawing->dtype))
        return (float)(hash % INTEGERS) - 1.0f;
    float size = 1.0f / (float)(1U << (hash >> 8) % SIZES);
    return (hash & 1) != 0 ? -size / (float)LESS : size;
}

/* As far as products of two and their squares stay in the type's range. */
static float magnitude_of(const struct drawing *drawing, uint64_t row)
{
    int most = drawing->dtype == DTYPE_FLOAT16 ? 5 : drawing->dtype == DTYPE_INT32 ? 6 : 30;
    uint64_t hash = number_mix(drawing->seed ^ number_mix(~row));
    return ldexpf(1.0f, (int)(hash % (uint64_t)(2 * most + 1)) - most);
}

/* Numbers of the edge cases; `first` is the block's first index. Sorted and alternating ones do not
 * sum to nearly zero: then the order of a sum would decide its value, and honest kernels would
 * differ from each other by more than any bound. */
static void fill_edge(const struct drawing *drawing, uint64_t first, const uint32_t *words,
                      float *z)
{
    float tiny = tiny_of(drawing->dtype), huge = huge_of(drawing->dtype);
    for (uint32_t i = 0; i < BLOCK; i++) {
        float unit = number_signed_unit(words[i]), size = number_magnitude(unit);
        switch (drawing->distribution) {
        case DRAW_ONES:
            z[i] = 1.0f;
            break;
        case DRAW_EXTREMES:
            z[i] = (unit < 0.0f ? -1.0f : 1.0f) * (100.0f + 9900.0f * size * size);
            break;
        case DRAW_ALTERNATING:
            z[i] = ((first + i) % 2 == 0 ? 1.0f : -0.5f) * (1.0f + size);
            break;
        case DRAW_SORTED:
            z[i] = (float)(((double)((first + i) % drawing->row) + (double)size) /
                               (double)drawing->row * 4.0 -
                           1.0);
            break;
        case DRAW_TINY:
            z[i] *= tiny;
            break;
        case DRAW_HUGE:
            z[i] *= huge;
            break;
        case DRAW_OFFSET:
            z[i] += drawing->bounded ? 0.0f : offset_of(drawing->dtype);
            break;
        case DRAW_BELOW:
            z[i] -= drawing->bounded ? 0.0f : offset_of(drawing->dtype);
            break;
        case DRAW_ROWS:
            z[i] = repeated(drawing, (first + i) / drawing->row);
            break;
        case DRAW_COLUMNS:
            z[i] = repeated(drawing, (first + i) % drawing->row);
            break;
        case DRAW_WIDE:
            z[i] *= magnitude_of(drawing, (first + i) / drawing->row);
            break;
        case DRAW_ONE_HOT: {
            uint64_t row = (first + i) / drawing->row;
            uint64_t column = number_mix(drawing->seed ^ number_mix(row)) % drawing->row;
            z[i] = row * drawing->row + column == first + i ? 1.0f : 0.0f;
            break;
        }
        default:
            z[i] = 0.0f;
            break;
        }
    }
}

/* Of four stretches of numbers three have one that is not finite: a NaN, +inf, -inf. Of fewer
 * stretches each has one. Twice as long as a sum, they leave some sums of finite numbers alone. */
static void spoil_block(const struct drawing *drawing, uint64_t first, float *restrict z)
{
    enum { LEAST = 16, GROUP = 4, KINDS = 3 };
    static const float kinds[KINDS] = {NAN, INFINITY, -INFINITY};
    uint64_t length = drawing->row > LEAST / 2 ? 2 * drawing->row : LEAST;
    uint64_t stretches = (drawing->count + length - 1) / length;
    for (uint64_t s = first / length; s < stretches && s * length < first + BLOCK; s++) {
        uint64_t turn = number_mix(drawing->seed ^ number_mix(s / GROUP));
        uint64_t kind = (s + turn % GROUP) % (stretches < GROUP ? KINDS : GROUP);
        uint64_t left = drawing->count - s * length, own = left < length ? left : length;
        uint64_t within = number_mix(drawing->seed + number_mix(~s)) % own;
        if (kind == KINDS - 1 &&
            s / GROUP % 2 == 0) /* as what a mask leaves out at its beginning */
            within = 0;
        uint64_t at = s * length + within;
        if (kind < KINDS && at >= first && at < first + BLOCK)
            z[at - first] = kinds[kind];
    }
}

static void fill_block(const struct drawing *drawing, uint64_t block, float *restrict z)
{
    uint32_t words[BLOCK];
    fill_words(drawing->seed, block, 0, words);
    switch (drawing->distribution) {
    case DRAW_UNIFORM:
        for (int i = 0; i < BLOCK; i++)
            z[i] = number_signed_unit(words[i]);
        return;
    case DRAW_NORMAL:
        fill_normal(words, z);
        return;
    case DRAW_HEAVY:
        for (int i = 0; i < BLOCK; i++)
            z[i] = number_heavy(words[i]);
        return;
    case DRAW_SPARSE:
        fill_normal(words, z);
        fill_words(drawing->seed, block, 1, words);
        for (int i = 0; i < BLOCK; i++)
            z[i] = number_sparse(z[i], words[i]);
        return;
    case DRAW_ZEROS:
        memset(z, 0, BLOCK * sizeof *z);
        return;
    case DRAW_FEW: {
        uint64_t most = UINT32_MAX / drawing->row;
        fill_normal(words, z);
        fill_words(drawing->seed, block, 1, words);
        for (int i = 0; i < BLOCK; i++)
            z[i] = words[i] <= most ? z[i] : 0.0f;
        return;
    }
    case DRAW_NON_FINITE:
        fill_normal(words, z);
        if (dtype_is_float(drawing->dtype))
            spoil_block(drawing, block * BLOCK, z);
        return;
    case DRAW_TINY:
    case DRAW_HUGE:
    case DRAW_OFFSET:
    case DRAW_BELOW:
    case DRAW_WIDE:
        fill_normal(words, z);
        break;
    default:
        break;
    }
    fill_edge(drawing, block * BLOCK, words, z);
}

static double clamp(double number, double low, double high)
{
    return number < low ? low : number > high ? high : number;
}

/* Mirrors at the bound that was passed, so that numbers do not heap up there. */
static double place(const struct drawing *drawing, double z)
{
    double number = drawing->center + drawing->scale * z;
    if (!isfinite(z))
        return z;
    if (drawing->folds && number < drawing->low)
        number = 2.0 * drawing->low - number;
    else if (drawing->folds && number > drawing->high)
        number = 2.0 * drawing->high - number;
    return clamp(number, drawing->low, drawing->high);
}

/* How wide a distribution is drawn and around what, so that it fits in the bounds: a range of
 * [0, 1] gives uniform numbers over all of it, one of [0, 1e6] gives |normal| ones. */
static void plan(struct drawing *drawing)
{
    double span = drawing->high - drawing->low, below = 0.0, above = 0.0;
    bool integer = !dtype_is_float(drawing->dtype);
    drawing->folds = true;
    drawing->scale = 1.0;
    drawing->center = 0.0;
    switch (drawing->distribution) {
    case DRAW_UNIFORM:
        drawing->scale = integer || span < 2.0 ? span / 2.0 : 1.0;
        below = above = drawing->scale;
        break;
    case DRAW_SORTED:
        drawing->scale = integer || span < 4.0 ? span / 4.0 : 1.0;
        below = drawing->scale;
        above = drawing->scale * 3.0;
        break;
    case DRAW_NORMAL:
    case DRAW_SPARSE:
    case DRAW_FEW:
    case DRAW_NON_FINITE:
    case DRAW_HEAVY:
        drawing->scale = integer || span < 6.0 ? span / 6.0 : 1.0;
        break;
    case DRAW_ALTERNATING:
        drawing->scale = integer || span < 4.0 ? span / 4.0 : 1.0;
        break;
    case DRAW_OFFSET: /* beside the upper bound: what is narrow and far from zero */
    case DRAW_BELOW:  /* beside the lower one */
        drawing->scale = integer ? span / 60.0 : fmin(1.0, span / 1000.0);
        drawing->center = (double)offset_of(drawing->dtype);
        if (drawing->distribution == DRAW_BELOW)
            drawing->center = -drawing->center;
        drawing->center = clamp(drawing->center, drawing->low + 3.0 * drawing->scale,
                                drawing->high - 3.0 * drawing->scale);
        return;
    case DRAW_ZEROS:
    case DRAW_ONES:
    case DRAW_ONE_HOT:
    case DRAW_ROWS:
    case DRAW_COLUMNS:
        drawing->folds = false;
        return;
    default: /* extremes, tiny and huge numbers keep their size */
        break;
    }
    drawing->center = clamp(0.0, drawing->low + below, drawing->high - above);
}

/* A uniform drawing, as everywhere, but over the whole of the range. */
static void plan_given(struct drawing *drawing)
{
    if (!drawing->bounded) {
        drawing->bounded = true;
        drawing->low = 0.0;
        drawing->high = 1.0;
    }
    drawing->distribution = DRAW_UNIFORM;
    drawing->folds = true;
    drawing->scale = drawing->high / 2.0 - drawing->low / 2.0;
    drawing->center = drawing->low + drawing->scale;
}

static void write_double(const struct drawing *drawing, uint64_t block, const float *z,
                         size_t count, double *out)
{
    uint32_t words[BLOCK];
    bool whole = drawing->distribution == DRAW_ONES || drawing->distribution == DRAW_ONE_HOT ||
                 drawing->distribution == DRAW_ZEROS || drawing->distribution == DRAW_ROWS ||
                 drawing->distribution == DRAW_COLUMNS;
    if (!whole)
        fill_words(drawing->seed, block, 2, words);
    for (size_t i = 0; i < count; i++) {
        double number = whole ? (double)z[i] : number_wide(z[i], words[i]);
        out[i] = drawing->bounded ? place(drawing, number) : number;
    }
}

static void write_block(const struct drawing *drawing, uint64_t block, const float *z, size_t count,
                        void *array)
{
    if (drawing->dtype == DTYPE_FLOAT64) {
        write_double(drawing, block, z, count, (double *)array);
    } else if (!drawing->bounded && drawing->dtype == DTYPE_FLOAT32) {
        memcpy(array, z, count * sizeof *z);
    } else if (drawing->dtype == DTYPE_FLOAT32) {
        float *out = (float *)array;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)place(drawing, (double)z[i]);
    } else {
        for (size_t i = 0; i < count; i++)
            dtype_store(drawing->dtype, array, i,
                        drawing->bounded ? place(drawing, (double)z[i]) : (double)z[i]);
    }
}

struct fill {
    const struct drawing *drawing;
    size_t count;
    unsigned char *out;
};

static void fill_part(void *context, size_t part, size_t from, size_t to)
{
    const struct fill *fill = (const struct fill *)context;
    float z[BLOCK] = {0.0f};
    size_t bytes = BLOCK * dtype_bytes(fill->drawing->dtype);
    (void)part;
    for (uint64_t block = from; block < to; block++) {
        size_t left = fill->count - block * BLOCK;
        fill_block(fill->drawing, block, z);
        write_block(fill->drawing, block, z, left < BLOCK ? left : BLOCK,
                    fill->out + block * bytes);
    }
}

static void make(enum distribution distribution, uint64_t seed, enum dtype dtype, size_t row,
                 double low, double high, struct drawing *drawing)
{
    *drawing = (struct drawing){
        .distribution = distribution,
        .seed = seed,
        .dtype = dtype,
        .row = row > 0 ? row : 1,
        .bounded = low <= high,
        .low = low,
        .high = high,
    };
    assert((unsigned)distribution < DISTRIBUTIONS);
    if (!dtype_is_float(dtype)) {
        drawing->low = drawing->bounded ? ceil(low) : -100.0;
        drawing->high = drawing->bounded ? floor(high) : 100.0;
        drawing->bounded = true;
    } else if (dtype == DTYPE_FLOAT32 && drawing->bounded) { /* rounding must not lead outside */
        float inside_low = (float)low, inside_high = (float)high;
        drawing->low =
            (double)((double)inside_low < low ? nextafterf(inside_low, INFINITY) : inside_low);
        drawing->high =
            (double)((double)inside_high > high ? nextafterf(inside_high, -INFINITY) : inside_high);
    }
    if (drawing->low > drawing->high)
        drawing->high = drawing->low;
    if (distribution == DRAW_GIVEN)
        plan_given(drawing);
    else if (drawing->bounded)
        plan(drawing);
}

void draw_fill(enum distribution distribution, uint64_t seed, enum dtype dtype, size_t count,
               size_t row, double low, double high, void *out)
{
    struct drawing drawing;
    struct fill fill = {&drawing, count, (unsigned char *)out};
    make(distribution, seed, dtype, row, low, high, &drawing);
    drawing.count = count;
    parallel_for((count + BLOCK - 1) / BLOCK, 1, count, fill_part, &fill);
}

void draw_poison_bits(enum dtype dtype, struct poison_bits *bits)
{
    static const struct poison_bits kinds[] = {
        [DTYPE_FLOAT32] = {{0x7fc00000u, 0x7fc00000u}, {0x803fffffu, 0x803fffffu}},
        [DTYPE_FLOAT16] = {{0x7e007e00u, 0x7e007e00u}, {0x81ff81ffu, 0x81ff81ffu}},
        [DTYPE_BFLOAT16] = {{0x7fc07fc0u, 0x7fc07fc0u}, {0x803f803fu, 0x803f803fu}},
        /* the upper half of each double, little-endian */
        [DTYPE_FLOAT64] = {{0, 0x7ff80000u}, {UINT32_MAX, 0x8007ffffu}},
        [DTYPE_INT32] = {{0, 0}, {UINT32_MAX, UINT32_MAX}},
    };
    assert((size_t)dtype < sizeof kinds / sizeof kinds[0] && kinds[dtype].random[1] != 0);
    *bits = kinds[dtype];
}

struct poison {
    uint64_t seed;
    struct poison_bits bits;
    size_t bytes;
    unsigned char *out;
};

static void poison_part(void *context, size_t part, size_t from, size_t to)
{
    const struct poison *poison = (const struct poison *)context;
    const struct poison_bits *bits = &poison->bits;
    uint32_t words[BLOCK];
    (void)part;
    for (uint64_t block = from; block < to; block++) {
        size_t done = block * sizeof words;
        size_t left = poison->bytes - done;
        fill_words(poison->seed, block, 3, words);
        for (int i = 0; i < BLOCK; i += 2) {
            words[i] = bits->fixed[0] | (words[i] & bits->random[0]);
            words[i + 1] = bits->fixed[1] | (words[i + 1] & bits->random[1]);
        }
        memcpy(poison->out + done, words, left < sizeof words ? left : sizeof words);
    }
}

void draw_poison(uint64_t seed, enum dtype dtype, size_t count, void *out)
{
    enum { BYTES = BLOCK * sizeof(uint32_t) };
    struct poison poison = {
        .seed = seed, .bytes = count * dtype_bytes(dtype), .out = (unsigned char *)out};
    draw_poison_bits(dtype, &poison.bits);
    parallel_for((poison.bytes + BYTES - 1) / BYTES, 1, poison.bytes / 4, poison_part, &poison);
}
