/* What a generator runs on its device: draw.c's numbers, bit by bit. NVRTC compiles this behind
 * eval/data/numbers.h and the enums of draw.h and dtype.h; a test compiles it as C. */

/* Numbers i and i + NUMBERS_HALF of a block. */
static inline void draw_two(const struct drawing *drawing, uint64_t block, uint32_t i, float *z)
{
    const uint64_t key = number_key(drawing->seed, block, 0);
    const uint32_t before = (uint32_t)key, within = (uint32_t)(key >> 32);
    const uint32_t a = number_word(before, within, i),
                   b = number_word(before, within, i + NUMBERS_HALF);
    if (drawing->distribution == DRAW_UNIFORM) {
        z[0] = number_signed_unit(a);
        z[1] = number_signed_unit(b);
    } else if (drawing->distribution == DRAW_HEAVY) {
        z[0] = number_heavy(a);
        z[1] = number_heavy(b);
    } else { /* normal, or sparse */
        const float radius = number_radius(a);
        z[0] = radius * number_sine(b);
        z[1] = radius * number_sine(b + 0x40000000u);
    }
    if (drawing->distribution == DRAW_SPARSE) {
        const uint64_t other = number_key(drawing->seed, block, 1);
        for (uint32_t k = 0; k < 2; k++)
            z[k] = number_sparse(z[k], number_word((uint32_t)other, (uint32_t)(other >> 32),
                                                   i + k * NUMBERS_HALF));
    }
}

static inline void draw_write(const struct drawing *drawing, uint64_t block, uint32_t i, float z,
                              void *out, uint64_t at)
{
    double number = (double)z;
    if (drawing->dtype == DTYPE_FLOAT64) {
        const uint64_t key = number_key(drawing->seed, block, 2);
        number = number_wide(z, number_word((uint32_t)key, (uint32_t)(key >> 32), i));
    }
    if (drawing->bounded)
        number = number_place(drawing, number);
    if (drawing->dtype == DTYPE_FLOAT64)
        ((double *)out)[at] = number;
    else if (drawing->dtype == DTYPE_FLOAT32)
        ((float *)out)[at] = (float)number;
    else if (drawing->dtype == DTYPE_FLOAT16)
        ((uint16_t *)out)[at] = number_narrow(10, 15, number);
    else
        ((uint16_t *)out)[at] = number_narrow(7, 127, number);
}

/* `count` numbers from block `first` of a tensor on. */
#ifdef __cplusplus
extern "C"
#endif
    __global__ void
    draw(const struct drawing *drawing, uint64_t first, uint64_t count, void *out)
{
    for (uint64_t block = blockIdx.x; block * NUMBERS_BLOCK < count; block += gridDim.x)
        for (uint32_t i = threadIdx.x; i < NUMBERS_HALF; i += blockDim.x) {
            float z[2];
            draw_two(drawing, first + block, i, z);
            for (uint32_t k = 0; k < 2; k++) {
                const uint32_t place = i + k * NUMBERS_HALF;
                const uint64_t at = block * NUMBERS_BLOCK + place;
                if (at < count)
                    draw_write(drawing, first + block, place, z[k], out, at);
            }
        }
}
