/* Occupancy against numbers of CUDA's own calculator for compute capability 9.0 and 8.6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "eval/cuda/profile/occupancy.h"

#include <math.h>
#include <string.h>

static const struct {
    int64_t capability, registers, shared, threads, blocks; /* what is asked */
    int64_t blocks_per_sm;
    double theoretical, waves;
    const char *limited_by;
} rows[] = {
    {90, 32, 0, 256, 1056, 8, 1.0, 1.0, "warps"},
    {90, 40, 256, 512, 4096, 3, 0.75, 10.343, "registers"},  /* seen: softmax/block.cu */
    {90, 64, 384, 512, 4096, 2, 0.5, 15.515, "registers"},   /* seen: layernorm/block.cu */
    {90, 233, 51200, 128, 98, 2, 0.125, 0.371, "registers"}, /* seen: conv2d */
    {90, 219, 18816, 64, 32, 4, 0.125, 0.0606, "registers"}, /* seen: matmul/simt.cu */
    {90, 32, 4224, 256, 16384, 8, 1.0, 15.515, "warps"},     /* seen: transpose/tiles.cu */
    {90, 16, 0, 32, 132, 32, 0.5, 0.03125, "blocks"},
    {90, 32, 100 << 10, 128, 264, 2, 0.125, 1.0, "shared memory"},
    {90, 32, 227 << 10, 1024, 132, 1, 0.5, 1.0, "shared memory"},
    {90, 64, 0, 1024, 132, 1, 0.5, 1.0, "registers"},
    {90, 32, 16384, 32, 132, 13, 0.203125, 0.076923, "shared memory"}, /* 1 KB is the system's */
    {90, 65, 0, 1024, 132, 0, 0.0, 0.0, "registers"},                  /* does not fit at all */
    {90, 0, 0, 1024, 132, 2, 1.0, 0.5, "warps"},                       /* registers not known */
    {90, 255, 0, 33, 132, 4, 0.125, 0.25, "registers"},
    {86, 32, 0, 256, 84, 6, 1.0, 0.16667, "warps"},
    {86, 32, 0, 64, 84, 16, 0.66667, 0.0625, "blocks"},
};

static struct names facts_of(int64_t capability)
{
    struct names facts = {0};
    const struct {
        const char *name;
        int64_t number;
    } items[] = {{"compute_capability", capability},
                 {"sm_count", capability == 86 ? 84 : 132},
                 {"max_threads_per_sm", capability == 86 ? 1536 : 2048},
                 {"registers_per_sm", 65536},
                 {"sm_shared_bytes", capability == 86 ? 100 << 10 : 228 << 10}};
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
        assert_int_equal(names_set(&facts, items[i].name, items[i].number, NULL), 0);
    return facts;
}

static void test_rows(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct names facts = facts_of(rows[i].capability);
        const struct occupancy_ask ask = {rows[i].registers, rows[i].shared, rows[i].threads,
                                          rows[i].blocks};
        struct occupancy found = occupancy_of(&facts, &ask);
        if (found.blocks_per_sm != rows[i].blocks_per_sm ||
            fabs(found.theoretical - rows[i].theoretical) > 1e-4 ||
            fabs(found.waves - rows[i].waves) > 1e-3 ||
            strcmp(found.limited_by, rows[i].limited_by) != 0)
            fail_msg("row %zu: %lld blocks, %g, %g waves, by %s", i, (long long)found.blocks_per_sm,
                     found.theoretical, found.waves, found.limited_by);
    }
}

static void test_unknown(void **unused)
{
    struct names facts = {0};
    const struct occupancy_ask ask = {32, 0, 256, 100};
    (void)unused;
    assert_int_equal(occupancy_of(&facts, &ask).blocks_per_sm, 0);
    facts = facts_of(90);
    assert_int_equal(occupancy_of(&facts, &(struct occupancy_ask){.threads = 0}).blocks_per_sm, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
