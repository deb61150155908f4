/* Passes on several cores give what one core gives: every element once, the same bytes, the same
 * verdict. */
#include "eval/check/check.h"
#include "eval/data/draw.h"
#include "eval/data/parallel.h"

#include "base/mem.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = (1 << 19) + 12345, ROW = 257 };

/* As many entries as asked for, whatever there are: threads share what there is. */
static void use(size_t count)
{
    cpu_set_t set;
    int first = 0, cores[2 * PARALLEL_PARTS];
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET((size_t)first, &set))
        first++;
    for (size_t i = 0; i < count; i++)
        cores[i] = first;
    parallel_use(cores, count);
}

static unsigned char seen[COUNT];
static atomic_int calls;

static void visit(void *context, size_t part, size_t from, size_t to)
{
    const size_t *grain = (const size_t *)context;
    atomic_fetch_add(&calls, 1);
    assert_true(part < PARALLEL_PARTS);
    assert_int_equal(from % *grain, 0);
    for (size_t i = from; i < to; i++)
        seen[i]++;
}

static void test_every_element_once(void **state)
{
    (void)state;
    for (size_t cores = 0; cores <= 2 * PARALLEL_PARTS; cores += 3)
        for (size_t grain = 1; grain < 3000; grain = grain * 7 + 3)
            for (size_t count = 0; count < COUNT; count = count * 9 + 5) {
                use(cores);
                memset(seen, 0, sizeof seen);
                atomic_store(&calls, 0);
                size_t parts = parallel_for(count, grain, SIZE_MAX, visit, &grain);
                assert_int_equal(atomic_load(&calls), parts);
                assert_true(parts >= 1 && parts <= PARALLEL_PARTS);
                for (size_t i = 0; i < count; i++)
                    assert_int_equal(seen[i], 1);
                assert_true(count == COUNT || seen[count] == 0);
            }
    use(4);
    size_t grain = 1;
    assert_int_equal(parallel_for(1000, 1, 1000, visit, &grain), 1); /* not worth a thread */
}

static cpu_set_t where[PARALLEL_PARTS];

static void look_where(void *context, size_t part, size_t from, size_t to)
{
    (void)context, (void)from, (void)to;
    assert_int_equal(sched_getaffinity(0, sizeof where[part], &where[part]), 0);
}

/* Who is bound to a core starts its threads elsewhere, so that none of them waits there for it. */
static void test_beside_a_bound_caller(void **state)
{
    cpu_set_t before, one;
    int first = 0, cores[CPU_SETSIZE];
    size_t count = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &before))
            cores[count++] = i;
    first = cores[0];
    parallel_use(cores, count);
    CPU_ZERO(&one);
    CPU_SET((size_t)first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    size_t parts = parallel_for(COUNT, 1, SIZE_MAX, look_where, NULL);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_true(CPU_EQUAL(&where[0], &one));
    for (size_t i = 1; i < parts; i++)
        assert_false(CPU_ISSET((size_t)first, &where[i]));
    parts = parallel_for(COUNT, 1, SIZE_MAX, look_where, NULL);
    for (size_t i = 1; i < parts; i++)
        assert_true(CPU_EQUAL(&where[i], &before));
}

static void test_same_bytes(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT32, DTYPE_FLOAT16};
    unsigned char *one = (unsigned char *)mem_alloc(COUNT * 8);
    unsigned char *several = (unsigned char *)parallel_alloc(COUNT * 8);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int i = 0; i <= DISTRIBUTIONS; i++) {
            unsigned char *to[] = {one, several};
            for (size_t k = 0; k < 2; k++) {
                use(k == 0 ? 1 : 5);
                if (i == DISTRIBUTIONS)
                    draw_poison(77, dtypes[d], COUNT, to[k]);
                else
                    draw_fill((enum distribution)i, 42, dtypes[d], COUNT, ROW, 1.0, -1.0, to[k]);
            }
            assert_memory_equal(one, several, COUNT * dtype_bytes(dtypes[d]));
        }
    parallel_clear(several, COUNT * 8);
    for (size_t i = 0; i < COUNT * 8; i++)
        assert_int_equal(several[i], 0);
    parallel_copy(several, one, COUNT * 8);
    assert_memory_equal(one, several, COUNT * 8);
    mem_free(one);
    mem_free(several);
}

static void compare(const struct mismatch *a, const struct mismatch *b)
{
    assert_int_equal(a->passed, b->passed);
    assert_int_equal(a->bad_count, b->bad_count);
    assert_int_equal(a->worst, b->worst);
    assert_true(a->worst_ratio == b->worst_ratio);
    assert_true(a->norm_ratio <= b->norm_ratio * 1.000001 &&
                b->norm_ratio <= a->norm_ratio * 1.000001);
    assert_string_equal(a->pattern, b->pattern);
}

/* A wrong element is found in whichever part it lies; the bound is the same. */
static void test_same_verdict(void **state)
{
    (void)state;
    enum { ROWS = 5000, ELEMENTS = ROWS * ROW };
    const struct tensor_spec output = {.name = "C", .dtype = DTYPE_FLOAT32, .rank = 2};
    const int64_t extents[] = {ROWS, ROW};
    struct problem problem = {0};
    const struct sum one = {.terms = 1};
    float *got = (float *)mem_array(ELEMENTS, sizeof *got);
    double *exact = (double *)mem_array(ELEMENTS, sizeof *exact);
    draw_fill(DRAW_NORMAL, 3, DTYPE_FLOAT32, ELEMENTS, ROW, 1.0, -1.0, got);
    for (size_t i = 0; i < ELEMENTS; i++)
        exact[i] = (double)got[i] * (1.0 + (double)(i % 7) * 1e-9);
    static const size_t wrong[] = {ELEMENTS,         0,           ELEMENTS / 4 - 1, ELEMENTS / 4,
                                   ELEMENTS / 2 + 3, ELEMENTS - 1};
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        struct bound bounds[2];
        struct mismatch found[2];
        for (size_t k = 0; k < 2; k++) {
            use(k == 0 ? 1 : 4);
            bound_derive(&problem, &output, ELEMENTS, ROW, &one, exact, got, NULL, &bounds[k]);
        }
        assert_true(bounds[0].element == bounds[1].element);
        float kept = wrong[w] < ELEMENTS ? got[wrong[w]] : 0.0f;
        if (wrong[w] < ELEMENTS)
            got[wrong[w]] = kept + 1.0f;
        for (size_t k = 0; k < 2; k++) {
            use(k == 0 ? 1 : 4);
            check_output(&output, extents, ELEMENTS, &bounds[0], exact, got, &found[k]);
        }
        compare(&found[0], &found[1]);
        assert_int_equal(found[1].passed, wrong[w] == ELEMENTS);
        assert_true(wrong[w] == ELEMENTS || found[1].worst == wrong[w]);
        if (wrong[w] < ELEMENTS)
            got[wrong[w]] = kept;
    }
    mem_free(got);
    mem_free(exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_element_once),
        cmocka_unit_test(test_beside_a_bound_caller),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_same_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
