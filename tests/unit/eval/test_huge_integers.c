/* Integers that 16 bits do not hold: asked where the definition takes them, and nowhere else. */
#include "one_session.h"

static const int32_t *input(const struct fake_call *f, size_t index)
{
    const unsigned char *inputs = (const unsigned char *)(const void *)f->a - f->call->offsets[0];
    return (const int32_t *)(const void *)(inputs + f->call->offsets[index]);
}

static void sum(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->call->dims[0]; i++)
        ((int32_t *)(void *)f->c)[i] = input(f, 0)[i] + input(f, 1)[i];
}

static void narrow(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->call->dims[0]; i++)
        ((int32_t *)(void *)f->c)[i] = (int16_t)input(f, 0)[i] + (int16_t)input(f, 1)[i];
}

/* In 64 bits, as a definition in 32 has not overflowed. */
static void square(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->call->dims[0]; i++) {
        int64_t x = input(f, 0)[i], y = x * x + input(f, 1)[i];
        ((int32_t *)(void *)f->c)[i] = y > INT32_MAX ? INT32_MAX : (int32_t)y;
    }
}

/* Right as far as a float holds integers. */
static void larger(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->call->dims[0]; i++)
        ((int32_t *)(void *)f->c)[i] =
            input(f, 0)[i] > input(f, 1)[i] ? input(f, 0)[i] : input(f, 1)[i];
}

static void larger_float(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->call->dims[0]; i++) {
        volatile float a = (float)input(f, 0)[i], b = (float)input(f, 1)[i];
        float most = a > b ? a : b;
        ((int32_t *)(void *)f->c)[i] = most >= 0x1p31f ? INT32_MAX : (int32_t)most;
    }
}

static const struct fake_entry largest[] = {
    {"product", larger}, {"narrow", larger_float}, {NULL, NULL}};
static const struct fake_entry sums[] = {{"product", sum}, {"narrow", narrow}, {NULL, NULL}};
static const struct fake_entry squares[] = {{"product", square}, {NULL, NULL}};

static struct fixture fixture;

static const struct set *set_of(const struct session *session, enum distribution distribution)
{
    const struct set *found = NULL;
    for (size_t i = 0; i < session->case_count; i++)
        if (session->cases[i].distribution == distribution)
            found = &session->cases[i];
    assert_non_null(found);
    return found;
}

static void begin(const struct fake_entry *entries, const char *definition)
{
    static const char spec[] =
        "name: whole\ndims: {N: 4096}\n"
        "inputs: {A: {shape: [N], dtype: int32}, B: {shape: [N], dtype: int32}}\n"
        "outputs: {C: {shape: [N], dtype: int32}}\nreference: ref_impl.py\n"
        "baselines: {product: product.c}\nflops: N\ncheck: [{N: 300}]\n";
    if (open_problem(&fixture, entries, definition, spec) != 0)
        fail_msg("%s", fixture.err.message);
}

static void end(void)
{
    void *state = &fixture;
    assert_int_equal(tear_down(&state), 0);
}

static void test_taken(void **unused)
{
    struct evaluation evaluation = {0};
    (void)unused;
    begin(sums, "def reference(A, B):\n    return A + B\n");
    measure(&fixture, EFFORT_SEARCH);
    const struct set *set = set_of(fixture.session, DRAW_HUGE);
    assert_true(set->expected && !set->unfit);
    bool large = false;
    for (size_t i = 0; i < set->shape->layout.inputs[0].elements; i++)
        large = large || abs(((const int32_t *)(const void *)set->inputs[0])[i]) > INT16_MAX;
    assert_true(large);
    fixture.request.artifact = "narrow";
    assert_int_equal(session_measure(fixture.session, &fixture.request, fixture.arena, &evaluation,
                                     &fixture.err),
                     0);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    end();
}

static int32_t largest_drawn(const struct set *set)
{
    int32_t most = 0;
    for (size_t i = 0; i < set->shape->layout.inputs[0].elements; i++) {
        int32_t number = ((const int32_t *)(const void *)set->inputs[0])[i];
        most = number > most ? number : most;
    }
    return most;
}

/* All of 32 bits where nothing overflows; half of a sum's; as usual where a product's would. */
static void test_whole_range(void **unused)
{
    static const struct {
        const struct fake_entry *entries;
        const char *definition;
        int32_t least, most;
    } cases[] = {
        {largest, "import numpy as np\ndef reference(A, B):\n    return np.maximum(A, B)\n",
         INT32_MAX, INT32_MAX},
        {sums, "def reference(A, B):\n    return A + B\n", 1 << 29, 1 << 30},
        {squares, "def reference(A, B):\n    return A * A + B\n", 100, 46340},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct evaluation evaluation = {0};
        begin(cases[i].entries, cases[i].definition);
        measure(&fixture, EFFORT_SEARCH);
        const struct set *set = set_of(fixture.session, DRAW_EXTREMES);
        assert_true(set->expected && !set->unfit);
        assert_in_range(largest_drawn(set), cases[i].least, cases[i].most);
        if (i == 0) {
            fixture.request.artifact = "narrow";
            assert_int_equal(session_measure(fixture.session, &fixture.request, fixture.arena,
                                             &evaluation, &fixture.err),
                             0);
            assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
        }
        end();
    }
}

/* One that would overflow, and one that raises. */
static void test_not_taken(void **unused)
{
    static const char *const definitions[] = {
        "def reference(A, B):\n    return A * A + B\n",
        "def reference(A, B):\n    if abs(A).max() > 40000:\n        raise ValueError('large')\n"
        "    return A * A + B\n"};
    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        begin(squares, definitions[i]);
        measure(&fixture, EFFORT_SEARCH);
        assert_true(set_of(fixture.session, DRAW_HUGE)->unfit);
        end();
    }
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken),
                                       cmocka_unit_test(test_not_taken),
                                       cmocka_unit_test(test_whole_range)};
    return cmocka_run_group_tests_name("huge_integers", tests, NULL, NULL);
}
