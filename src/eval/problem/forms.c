/* Shapes for which kernels have a way of their own: whole tiles, a single row, a few, a little less
 * than the timed one. The main shape mostly is one of whole tiles, and what else is drawn is odd: a
 * way for tiles that is right at the main shape alone would be asked nowhere. */
#include "eval/problem/private.h"

#include "base/random.h"

#include <string.h>

struct drawing {
    const struct problem *problem;
    struct random random;
    uint64_t sizes, batches;
    int64_t numbers[DIMS_MAX];
};

uint64_t problem_form_sizes(const struct problem *problem, uint64_t batches)
{
    uint64_t sizes = 0, divisors = problem_divisors(problem);
    for (size_t i = 0; i < problem->dim_count; i++) {
        int64_t number = problem->shapes[0].number[i];
        bool batch = (batches >> i & 1) != 0 && number > 1;
        if (!large_is_fixed(&problem->dims[i]) && (number >= KIND_MOST || batch))
            sizes |= UINT64_C(1) << i;
    }
    return sizes & ~divisors;
}

static int64_t main_number(const struct drawing *drawing, size_t index)
{
    return drawing->problem->shapes[0].number[index];
}

static int64_t least_of(const struct problem *problem, size_t index)
{
    int64_t low = problem->dims[index].hidden_low;
    return low > 0 ? low : 1;
}

/* The next multiple or one of those behind it; of less than a tile a smaller one's. */
static int64_t tiled(struct drawing *drawing, size_t index, int64_t tile, bool grows)
{
    enum { FURTHER = 3 };
    int64_t number = main_number(drawing, index);
    int64_t most = large_most(drawing->problem, index, drawing->batches);
    while (tile > number && tile > KIND_MOST)
        tile /= 2;
    int64_t up = (number + tile - 1) / tile * tile;
    int64_t more = (int64_t)random_below(&drawing->random, FURTHER);
    up += tile * (grows && more == 0 ? 1 : more);
    return number >= KIND_MOST && up <= most ? up : number;
}

static int64_t less(struct drawing *drawing, size_t index)
{
    enum { SCALES = 4 };
    int64_t number = main_number(drawing, index), low = least_of(drawing->problem, index);
    uint64_t span = (uint64_t)number >> (1 + random_below(&drawing->random, SCALES));
    int64_t fewer = 1 + (int64_t)random_below(&drawing->random, span > 0 ? span : 1);
    return number - fewer > low ? number - fewer : low;
}

/* The main number, or a little more. */
static int64_t about(struct drawing *drawing, size_t index)
{
    enum { ROOM = 32 };
    int64_t number = main_number(drawing, index);
    int64_t most = large_most(drawing->problem, index, drawing->batches);
    int64_t more = number + 1 + (int64_t)random_below(&drawing->random, ROOM);
    return number >= KIND_MOST && random_below(&drawing->random, 2) == 0 && more < most ? more
                                                                                        : number;
}

/* From 2 on, the fewer the likelier. */
static int64_t few(struct drawing *drawing, size_t index)
{
    enum { FEW = 14, SCALES = 4 };
    int64_t low = least_of(drawing->problem, index), least = low > 2 ? low : 2;
    int64_t number = least + ((int64_t)random_below(&drawing->random, FEW) >>
                              random_below(&drawing->random, SCALES));
    return number < main_number(drawing, index) ? number : least;
}

static bool is_size(const struct drawing *drawing, size_t index)
{
    return (drawing->sizes >> index & 1) != 0;
}

static void draw_numbers(struct drawing *drawing, enum form form, size_t index, int64_t least)
{
    enum { TILE = 32, TILES = 3 };
    struct random *random = &drawing->random;
    int64_t tile = (int64_t)TILE << random_below(random, TILES);
    bool grows = random_below(random, 2) == 0;
    memcpy(drawing->numbers, drawing->problem->shapes[0].number, sizeof drawing->numbers);
    for (size_t i = 0; i < drawing->problem->dim_count; i++) {
        if (!is_size(drawing, i))
            continue;
        if (form == FORM_TILES)
            drawing->numbers[i] = tiled(drawing, i, tile, grows);
        else if (form == FORM_LESS)
            drawing->numbers[i] = grows ? less(drawing, i) : main_number(drawing, i);
        else if (i != index)
            drawing->numbers[i] = about(drawing, i);
        else
            drawing->numbers[i] = form == FORM_FEW ? few(drawing, i) : least;
        grows = form == FORM_LESS ? random_below(random, 2) == 0 : grows;
    }
}

static bool is_main(const struct drawing *drawing)
{
    for (size_t i = 0; i < drawing->problem->dim_count; i++)
        if (is_size(drawing, i) && drawing->numbers[i] != main_number(drawing, i))
            return false;
    return true;
}

bool problem_draw_form(const struct problem *problem, uint64_t seed, enum form form, size_t index,
                       uint64_t batches, double times, struct names *dims)
{
    enum { TRIES = 64, AT_LEAST = 8 };
    struct drawing drawing = {
        .problem = problem, .sizes = problem_form_sizes(problem, batches), .batches = batches};
    random_init(&drawing.random, seed);
    for (int try = 0; try < TRIES; try++) {
        /* what follows from it may have none at 1 */
        int64_t least = least_of(problem, index) + try / AT_LEAST;
        draw_numbers(&drawing, form, index, least);
        if (!is_main(&drawing) && large_make(problem, drawing.numbers, dims) &&
            large_affordable(problem, dims, times))
            return true;
    }
    return false;
}
