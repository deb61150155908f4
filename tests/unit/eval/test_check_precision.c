/* Which mantissas pass for float32's, by the length of the sums, and that honest sums all do. */
#include "product.h"
#include "rows.h"

/* What a session asks of a product: sets at the main shape's own reduction, among them one whose
 * sums have few terms, so that no order of summing hides a low precision. */
static const enum distribution asked[] = {DRAW_UNIFORM, DRAW_NORMAL, DRAW_HEAVY, DRAW_SPARSE,
                                          DRAW_FEW};
enum { ASKED = sizeof asked / sizeof asked[0], BITS_LEAST = 10, BITS_MOST = 23 };

static void honest_pass(const struct product *p, float *got, size_t d)
{
    static const struct {
        const char *name;
        sum_order *order;
    } honest[] = {{"running sum", sum_sequential}, {"fused", sum_fused},
                  {"backwards", sum_backwards},    {"blocked", sum_blocked},
                  {"pairwise", sum_pairwise},      {"4 lanes", sum_4_lanes},
                  {"64 lanes", sum_64_lanes},      {"compensated", sum_compensated},
                  {"tf32x3", sum_tf32x3},          {"tf32x3, cut off", sum_tf32x3_cut}};
    size_t count = sizeof honest / sizeof honest[0] - (p->strict ? 1 : 0);
    for (size_t i = 0; i < count; i++) { /* what is cut off is not float32, strictly */
        multiply(p, p->a, p->b, honest[i].order, got);
        if (!product_passes(p, got, honest[i].name))
            fail_msg("%s refused: K %zu, %s inputs, strict %d", honest[i].name, p->k,
                     distribution_name(asked[d]), p->strict);
    }
}

/* Bit set: mantissas that some set refuses. */
static unsigned refused_bits(size_t k, bool strict, uint64_t seed)
{
    unsigned refused = 0;
    float got[32 * 24];
    for (size_t d = 0; d < ASKED; d++) {
        struct product p = {.m = 32, .n = 24, .k = k, .strict = strict};
        product_make(&p, asked[d], seed, sum_pairwise, false);
        honest_pass(&p, got, d);
        for (unsigned bits = BITS_LEAST; bits < BITS_MOST; bits++) {
            rounded_product(&p, bits, false, sum_pairwise, got);
            if (!product_passes(&p, got, NULL))
                refused |= 1U << bits;
        }
        product_free(&p);
    }
    return refused;
}

static void test_mantissas(void **state)
{
    static const size_t lengths[] = {64, 512, 4096};
    (void)state;
    for (int strict = 0; strict < 2; strict++)
        for (size_t l = 0; l < 3; l++) {
            unsigned refused = refused_bits(lengths[l], strict != 0, 40 + l);
            unsigned least = strict ? 20 : 18;
            print_message("%s K %4zu, refused with a mantissa of:", strict ? "strict " : "default",
                          lengths[l]);
            for (unsigned bits = BITS_LEAST; bits < BITS_MOST; bits++)
                print_message(refused >> bits & 1 ? " %u" : " -", bits);
            print_message("\n");
            for (unsigned bits = BITS_LEAST; bits <= least; bits++)
                assert_true((refused >> bits & 1) != 0);
            assert_true((refused >> 21) == 0);
        }
}

/* ---- operations that ship and are no sums of products alone ---- */

static const struct operation {
    const char *name, *folder;
    void (*exact)(const struct rows *rows, double *out);
    void (*compute)(const struct rows *rows, int way, float *out);
    size_t n, d;       /* the main shape's, of which four rows do, sixteen of attention */
    unsigned least[2]; /* bits that are refused at the least: there, and at a small shape */
} operations[] = {
    {"relu", "relu", exact_relu, float_relu, 8192, 0, {21, 21}},
    {"transpose", "transpose", exact_transpose, float_transpose, 8192, 0, {21, 21}},
    {"softmax", "softmax", exact_softmax, float_softmax, 16384, 0, {17, 17}},
    {"rmsnorm", "rmsnorm", exact_rmsnorm, float_rmsnorm, 16384, 0, {15, 16}},
    {"layernorm", "layernorm", exact_layernorm, float_layernorm, 16384, 0, {15, 17}},
    {"attention", "attention", exact_attention, float_attention, 1024, 64, {16, 17}},
};

struct drawn { /* one drawing of an operation's inputs, and rounded */
    size_t count[5];
    float *full[5], *rounded[5]; /* x, gamma, beta, k, v */
};

static void draw(struct drawn *drawn, const struct operation *o, size_t m, size_t n,
                 enum distribution distribution, uint64_t seed, const struct problem *problem)
{
    const size_t wanted[5] = {o->d > 0 ? m * o->d : m * n, n, n, n * o->d, n * o->d};
    for (size_t i = 0; i < 5; i++) {
        const struct tensor_spec *input = &problem->inputs[i == 0 ? 0 : problem->input_count - 1];
        drawn->count[i] = wanted[i];
        drawn->full[i] = (float *)mem_array(wanted[i] + 1, sizeof(float));
        drawn->rounded[i] = (float *)mem_array(wanted[i] + 1, sizeof(float));
        draw_fill(distribution, seed + i, DTYPE_FLOAT32, wanted[i], n, input->low, input->high,
                  drawn->full[i]);
    }
}

static struct rows rows_of(const struct operation *o, size_t m, size_t n, float *const all[5])
{
    return (struct rows){m, n, o->d, all[0], all[1], all[2], all[3], all[4]};
}

static struct rows rounded_rows(const struct operation *o, size_t m, size_t n, struct drawn *drawn,
                                unsigned bits)
{
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < drawn->count[i]; k++)
            drawn->rounded[i][k] = round_to_bits(drawn->full[i][k], bits);
    return rows_of(o, m, n, drawn->rounded);
}

/* Bit set: mantissas that a set refuses; honest ways of computing all pass. */
static unsigned refused_of(const struct operation *o, const struct problem *problem, size_t m,
                           size_t n, enum distribution distribution, uint64_t seed)
{
    struct drawn drawn;
    struct bound bound;
    struct mismatch mismatch;
    struct names dims = problem->shapes[0];
    for (size_t i = 0; i < dims.count; i++)
        if (strcmp(dims.name[i], "N") == 0 || strcmp(dims.name[i], "L") == 0)
            dims.number[i] = (int64_t)n;
        else if (strcmp(dims.name[i], "D") != 0)
            dims.number[i] = (int64_t)(o->d > 0 ? 1 : m);
    draw(&drawn, o, m, n, distribution, seed, problem);
    size_t row = o->d > 0 ? o->d : n, count = m * row;
    double *exact = (double *)mem_array(count, sizeof *exact);
    double *less = (double *)mem_array(count, sizeof *less);
    float *got = (float *)mem_array(count, sizeof *got),
          *low = (float *)mem_array(count, sizeof *low);
    struct rows rows = rows_of(o, m, n, drawn.full), rounded = rounded_rows(o, m, n, &drawn, 10);
    o->exact(&rows, exact);
    o->exact(&rounded, less);
    for (size_t i = 0; i < count; i++)
        low[i] = (float)less[i];
    o->compute(&rows, DEFINITION, got);
    const struct sum sum = {.terms = problem_reduction(problem, &dims),
                            .alike = distribution_is_alike(distribution),
                            .cut = true,
                            .outweighed = distribution == DRAW_HEAVY,
                            .products = problem_products(problem, &dims)};
    const struct tensor_spec *output = &problem->outputs[0];
    bound_derive(problem, output, count, row, &sum, exact, got, low, &bound);
    int64_t extents[RANK_MAX] = {1, 1, 1};
    extents[output->rank - 1] = (int64_t)row, extents[output->rank - 2] = (int64_t)m;
    for (int way = 0; way < WAYS; way++) {
        o->compute(&rows, way, got);
        check_compare(output, extents, count, &bound, exact, got, &mismatch);
        if (!mismatch.passed)
            fail_msg("%s, way %d, %s inputs, %zu x %zu: %g of what is allowed", o->name, way,
                     distribution_name(distribution), m, n, mismatch_ratio(&mismatch));
    }
    unsigned refused = 0;
    for (unsigned bits = BITS_LEAST; bits < BITS_MOST; bits++) {
        rounded = rounded_rows(o, m, n, &drawn, bits);
        o->compute(&rounded, DEFINITION, got);
        check_compare(output, extents, count, &bound, exact, got, &mismatch);
        refused |= (mismatch.passed ? 0U : 1U) << bits;
    }
    void *const all[] = {exact, less, got, low};
    for (size_t i = 0; i < 4; i++)
        mem_free(all[i]);
    for (size_t i = 0; i < 5; i++) {
        mem_free(drawn.full[i]);
        mem_free(drawn.rounded[i]);
    }
    return refused;
}

/* The most bits of which all that have no more are refused. */
static unsigned refused_up_to(const struct operation *o, const struct problem *problem, size_t m,
                              size_t n)
{
    unsigned refused = 0, bits = BITS_LEAST;
    for (int d = 0; d < DRAW_RANDOM_COUNT; d++)
        refused |= refused_of(o, problem, m, n, (enum distribution)d, 77);
    while (bits < BITS_MOST && (refused >> bits & 1) != 0)
        bits++;
    return bits - 1;
}

static struct problem *load(const struct operation *o)
{
    char path[400];
    struct problem *problem;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/%s", TEST_SOURCE_DIR "/problems", o->folder);
    if (problem_load(path, &problem, &err) != 0)
        fail_msg("%s", err.message);
    return problem;
}

/* A row's largest term may take in what is added behind it, always with the same sign of error. */
static void test_outweighed(void **state)
{
    static const size_t lengths[] = {800, 2048};
    const struct operation *softmax = &operations[2];
    struct problem *problem = load(softmax);
    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            unsigned refused =
                refused_of(softmax, problem, 3, lengths[l], DRAW_HEAVY, 1000 + 10 * seed);
            assert_true((refused >> 22) == 0);
        }
    problem_free(problem);
}

/* The definition may err by chance less than it does elsewhere, where inputs make rounding grow. */
static void test_amplified(void **state)
{
    const struct operation *layernorm = &operations[4];
    struct problem *problem = load(layernorm);
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++)
        refused_of(layernorm, problem, 3, 37, DRAW_OFFSET, 1000 + 10 * seed);
    problem_free(problem);
}

static void test_by_problem(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        const struct operation *o = &operations[i];
        struct problem *problem = load(o);
        unsigned large = refused_up_to(o, problem, o->d > 0 ? 8 : 4, o->n);
        unsigned small = refused_up_to(o, problem, 7, 61);
        print_message("%-10s refused up to %u bits at the main shape, %u at 7 x 61\n", o->name,
                      large, small);
        assert_true(large >= o->least[0] && small >= o->least[1]);
        problem_free(problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mantissas),
        cmocka_unit_test(test_outweighed),
        cmocka_unit_test(test_amplified),
        cmocka_unit_test(test_by_problem),
    };
    return cmocka_run_group_tests_name("check_precision", tests, NULL, NULL);
}
