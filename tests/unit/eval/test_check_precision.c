/* Which mantissas pass for float32's, by the length of the sums, and that honest sums all do. */
#include "product.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mantissas),
    };
    return cmocka_run_group_tests_name("check_precision", tests, NULL, NULL);
}
