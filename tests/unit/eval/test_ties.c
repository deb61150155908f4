/* Integers that another honest kernel gives, too: an index of one of two that are equal, a number
 * that was rounded the other way. What is no tie is refused, however alike it looks. */
#include "eval/sets/excuse.h"
#include "one_session.h"

#include <math.h>

enum { ROWS = 24, LENGTH = 28 };

static const struct fake_entry kernels[] = {{"product", fake_product}, {NULL, NULL}};
static struct fixture fixture;
static struct problem *problem;
static struct session *session;
static struct folder folder;

/* X is [24, 28], Y [picks, 28]; C is [24, columns], int32 or what the spec says. */
static void begin(const char *body, const char *columns, const char *dtype)
{
    static const struct session_options options = {.baseline = "reference",
                                                   .memory_bytes = 1 << 20};
    struct session_options own = options;
    if (open_product(&fixture, kernels) != 0)
        fail_msg("%s", fixture.err.message);
    BUF_LOCAL(definition, 2000);
    BUF_LOCAL(spec, 2000);
    buf_addf(&definition, "import numpy as np\ndef reference(X, Y):\n    %s\n", body);
    buf_addf(&spec,
             "name: ties\ndims: {R: 24, N: 28}\n"
             "inputs: {X: {shape: [R, N], dtype: float32}, Y: {shape: [8, N], dtype: float32}}\n"
             "outputs: {C: {shape: [R, %s], dtype: %s}}\nreference: ref_impl.py\n"
             "check: [{R: 5, N: 9}]\n",
             columns, dtype);
    fake_problem(&folder, buf_text(&definition), "");
    folder_put(&folder, "spec.yaml", buf_text(&spec));
    own.folder = fixture.builds.path;
    if (problem_load(folder.path, &problem, &fixture.err) != 0 ||
        session_open(problem, &fake_backend, &fixture.lane, &own, &session, &fixture.err) != 0)
        fail_msg("%s", fixture.err.message);
}

static void end(void)
{
    void *state = &fixture;
    session_close(session);
    problem_free(problem);
    folder_remove(&folder);
    assert_int_equal(tear_down(&state), 0);
}

static const float *table; /* the second input of the set that is made */

/* A normal set, whose first input's every number `change` may set. */
static struct set *make(float (*change)(size_t row, size_t column, float drawn))
{
    struct set *set = &session->pool[1];
    set_redraw(set);
    set_draw(session, set);
    float *x = (float *)(void *)set->inputs[0];
    table = (const float *)(const void *)set->inputs[1];
    for (size_t i = 0; i < (size_t)ROWS * LENGTH && change != NULL; i++)
        x[i] = change(i / LENGTH, i % LENGTH, x[i]);
    if (set_expect(session, set, &fixture.err) != 0)
        fail_msg("%s", fixture.err.message);
    return set;
}

static void put_exact(const struct set *set, int32_t *got)
{
    for (size_t i = 0; i < set->shape->layout.outputs[0].elements; i++)
        got[i] = (int32_t)set->exact[0][i];
}

static float zero(size_t row, size_t column, float drawn)
{
    (void)row;
    (void)column;
    (void)drawn;
    return 0.0f;
}

static float negative(size_t row, size_t column, float drawn)
{
    (void)row;
    (void)column;
    return -1.0f - fabsf(drawn);
}

static float two_alike(size_t row, size_t column, float drawn)
{
    (void)row;
    return column == 3 || column == 17 ? 9.0f : drawn;
}

/* Of each row the largest lies just so that the next one's code is half of a step. */
static float half_steps(size_t row, size_t column, float drawn)
{
    if (column == 0)
        return 127.0f;
    return row % 3 == 0 && column == 5 ? 20.5f + 0x1p-19f : fminf(fmaxf(20.0f * drawn, -90), 90);
}

static float huge(size_t row, size_t column, float drawn)
{
    (void)row;
    (void)column;
    return 1e12f * drawn;
}

/* Two rows, nearest to the table's second; float32 finds all of the table as near. */
static float huge_in_two(size_t row, size_t column, float drawn)
{
    return row < 2 ? 1e12f * table[LENGTH + column] : drawn;
}

static void test_index_of_equals(void **unused)
{
    int32_t got[ROWS];
    (void)unused;
    begin("return X.argmax(1)[:, None]", "1", "int32");
    struct set *set = make(zero);
    for (size_t i = 0; i < ROWS; i++)
        got[i] = (int32_t)(i % LENGTH);
    assert_true(session_excuses(session, set, 0, got));
    got[7] = LENGTH; /* there is none */
    assert_false(session_excuses(session, set, 0, got));
    set = make(two_alike);
    for (size_t i = 0; i < ROWS; i++)
        got[i] = i % 2 == 0 ? 3 : 17;
    assert_true(session_excuses(session, set, 0, got));
    got[1] = 4;
    assert_false(session_excuses(session, set, 0, got));
    set = make(NULL);
    put_exact(set, got);
    got[0] = (got[0] + 1) % LENGTH;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

static void test_several_indices(void **unused)
{
    int32_t got[3 * ROWS];
    (void)unused;
    begin("return np.argsort(-X, 1, kind='stable')[:, :3]", "3", "int32");
    struct set *set = make(zero);
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        got[i] = (int32_t)(20 - i % 3);
    assert_true(session_excuses(session, set, 0, got));
    got[1] = got[0]; /* the same one twice */
    assert_false(session_excuses(session, set, 0, got));
    set = make(two_alike);
    put_exact(set, got);
    for (size_t i = 0; i < ROWS; i++) {
        got[3 * i] = 17;
        got[3 * i + 1] = 3;
    }
    assert_true(session_excuses(session, set, 0, got));
    int32_t kept = got[1];
    got[1] = got[2]; /* in another order than their numbers' */
    got[2] = kept;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

/* The definition's own step makes them equal. */
static void test_index_of_what_is_equal_then(void **unused)
{
    int32_t got[ROWS];
    (void)unused;
    begin("return np.maximum(X, 0).argmax(1)[:, None]", "1", "int32");
    struct set *set = make(negative);
    for (size_t i = 0; i < ROWS; i++)
        got[i] = (int32_t)(LENGTH - 1 - i);
    assert_true(session_excuses(session, set, 0, got));
    set = make(two_alike);
    assert_false(session_excuses(session, set, 0, got));
    end();
}

static void test_nearest_of_huge(void **unused)
{
    int32_t got[ROWS];
    (void)unused;
    begin("return ((X[:, None] - Y[None]) ** 2).sum(2).argmin(1)[:, None]", "1", "int32");
    struct set *set = make(huge); /* float32 cannot tell them apart */
    put_exact(set, got);
    for (size_t i = 0; i < ROWS; i++)
        got[i] = got[i] == 0 ? 1 : 0;
    size_t wrong = 0;
    for (int i = 0; i < 4; i++)
        wrong += !session_excuses(session, set, 0, got);
    assert_int_equal(wrong, 0);
    got[0] = 8;
    assert_false(session_excuses(session, set, 0, got));
    set = make(huge_in_two);
    put_exact(set, got);
    got[0] = got[1] = 7; /* the last of them, while the definition takes the first */
    assert_true(session_excuses(session, set, 0, got));
    got[2] = got[2] == 0 ? 1 : 0;
    assert_false(session_excuses(session, set, 0, got));
    set = make(NULL);
    put_exact(set, got);
    got[2] = got[2] == 0 ? 1 : 0;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

static void test_codes(void **unused)
{
    int32_t got[ROWS * LENGTH] = {0};
    (void)unused;
    begin("return np.rint(X / (np.abs(X).max(1, keepdims=True) / X.dtype.type(127)))", "N",
          "int32");
    struct set *set = make(half_steps);
    put_exact(set, got);
    for (size_t i = 0; i < ROWS; i += 3)
        got[i * LENGTH + 5] = got[i * LENGTH + 5] == 20 ? 21 : 20;
    assert_true(session_excuses(session, set, 0, got));
    got[5] = 22;
    assert_false(session_excuses(session, set, 0, got));
    put_exact(set, got);
    got[8] += 1; /* no half is near */
    assert_false(session_excuses(session, set, 0, got));
    for (size_t i = 0; i < (size_t)ROWS * LENGTH; i++)
        got[i] = 20;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

/* The same as floats. */
static void test_steps(void **unused)
{
    float got[ROWS * LENGTH];
    (void)unused;
    begin("s = np.abs(X).max(1, keepdims=True) / X.dtype.type(127)\n    return np.rint(X / s) * s",
          "N", "float32");
    struct set *set = make(half_steps);
    dtype_from_double(DTYPE_FLOAT32, set->exact[0], sizeof got / sizeof *got, got);
    for (size_t i = 0; i < ROWS; i += 3)
        got[i * LENGTH + 5] = got[i * LENGTH + 5] < 20.5f ? 21.0f : 20.0f;
    assert_true(session_excuses(session, set, 0, got));
    got[5] = 22.0f;
    assert_false(session_excuses(session, set, 0, got));
    dtype_from_double(DTYPE_FLOAT32, set->exact[0], sizeof got / sizeof *got, got);
    got[8] += 1.0f;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

/* No index, and no number of what lies on an edge: those have an answer. */
static void test_what_is_no_tie(void **unused)
{
    static const char *const definitions[] = {"return (X > 0).astype(np.int32)",
                                              "return np.sign(X).astype(np.int32)"};
    int32_t got[ROWS * LENGTH] = {0};
    (void)unused;
    for (size_t d = 0; d < 2; d++) {
        begin(definitions[d], "N", "int32");
        struct set *set = make(zero);
        for (size_t i = 0; i < sizeof got / sizeof *got; i++)
            got[i] = 1;
        assert_false(session_excuses(session, set, 0, got));
        end();
    }
    begin("return (X > 0).sum(1)[:, None]", "1", "int32");
    struct set *set = make(two_alike);
    put_exact(set, got);
    got[3] += 1;
    assert_false(session_excuses(session, set, 0, got));
    set = make(zero);
    for (size_t i = 0; i < ROWS; i++)
        got[i] = LENGTH;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

/* To a ten-millionth: nobody's last digit is right, and a constant is wrong. */
static void test_fine_steps(void **unused)
{
    int32_t got[ROWS * LENGTH] = {0};
    (void)unused;
    begin("return np.rint(np.tanh(X) * X.dtype.type(10000000))", "N", "int32");
    struct set *set = make(NULL);
    put_exact(set, got);
    for (size_t i = 0; i < sizeof got / sizeof *got; i += 9)
        got[i] += abs(got[i]) > 3000000 && abs(got[i]) < 7000000;
    assert_true(session_excuses(session, set, 0, got));
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        got[i] = 1000;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

/* To a millionth: of two numbers that are a step apart, one at a half, rounding makes one. */
static float step_apart(size_t row, size_t column, float drawn)
{
    (void)drawn;
    float number = 0.001f * (float)(column + 1) + 0.03f * (float)row;
    return column == 7 ? 0.6034685f : column == 9 ? 0.603469f : number;
}

static void test_codes_that_become_one(void **unused)
{
    int32_t got[ROWS * LENGTH] = {0};
    (void)unused;
    begin("return np.rint(X * X.dtype.type(1000000))", "N", "int32");
    struct set *set = make(step_apart);
    put_exact(set, got);
    assert_int_equal(got[9] - got[7], 1);
    got[7] = got[9];
    assert_true(session_excuses(session, set, 0, got));
    got[7] += 100;
    assert_false(session_excuses(session, set, 0, got));
    end();
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_index_of_equals),
                                       cmocka_unit_test(test_several_indices),
                                       cmocka_unit_test(test_index_of_what_is_equal_then),
                                       cmocka_unit_test(test_nearest_of_huge),
                                       cmocka_unit_test(test_codes),
                                       cmocka_unit_test(test_steps),
                                       cmocka_unit_test(test_what_is_no_tie),
                                       cmocka_unit_test(test_fine_steps),
                                       cmocka_unit_test(test_codes_that_become_one)};
    return cmocka_run_group_tests_name("ties", tests, NULL, NULL);
}
