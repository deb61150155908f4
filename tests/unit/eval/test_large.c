/* Shapes as large as the timed one in every dim: which dims can be sliced, small problems in place
 * of large ones, and kernels that are wrong at such shapes alone. */
#include "eval/sets/view.h"
#include "one_session.h"

#include <math.h>

/* --- kernels --- */

static void product_within(const struct fake_call *f, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < f->k; k++)
                sum += f->a[i * f->k + k] * f->b[k * f->n + j];
            f->c[i * f->n + j] = sum;
        }
}

/* What follows is right at every shape with a small dim, and at the timed one. */
enum { TIMED_M = 48, TIMED_N = 64, TIMED_K = 40 };

static bool is_large(const struct fake_call *f)
{
    return f->m >= TIMED_M && f->n >= TIMED_N && f->k >= TIMED_K;
}

static void tail_dropped(const struct fake_call *f)
{
    bool large = is_large(f);
    product_within(f, large ? f->m / 8 * 8 : f->m, large ? f->n / 8 * 8 : f->n);
}

static void last_column_wrong(const struct fake_call *f)
{
    fake_product(f);
    if (is_large(f) && f->n > TIMED_N)
        for (int64_t i = 0; i < f->m; i++)
            f->c[i * f->n + f->n - 1] *= 1.01f;
}

static void one_element_wrong(const struct fake_call *f)
{
    fake_product(f);
    if (is_large(f) && f->m > TIMED_M)
        f->c[f->m / 2 * f->n + f->n / 2] += 1e6f;
}

/* A narrower type's range, at the timed shape: random inputs do not show it. */
static void clamped_when_timed(const struct fake_call *f)
{
    fake_product(f);
    for (int64_t i = 0; i < f->m * f->n && is_large(f); i++)
        f->c[i] = fminf(fmaxf(f->c[i], -65504.0f), 65504.0f);
}

/* The way for whole tiles, which is right at the timed shape (whose dims are not all such). */
static void whole_tiles_wrong(const struct fake_call *f)
{
    fake_product(f);
    if (f->m % 32 == 0 && f->n % 32 == 0 && f->k % 32 == 0 && is_large(f))
        f->c[f->n - 1] = NAN;
}

static void one_row_wrong(const struct fake_call *f)
{
    fake_product(f);
    if (f->m == 1 && f->n >= TIMED_N && f->k >= TIMED_K)
        f->c[f->n - 1] = NAN;
}

static void few_columns_wrong(const struct fake_call *f)
{
    fake_product(f);
    if (f->n > 1 && f->n < 16 && f->m >= TIMED_M && f->k >= TIMED_K)
        f->c[f->n - 1] = NAN;
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"tail_dropped", tail_dropped},
                                            {"last_column_wrong", last_column_wrong},
                                            {"one_element_wrong", one_element_wrong},
                                            {"clamped_when_timed", clamped_when_timed},
                                            {"whole_tiles_wrong", whole_tiles_wrong},
                                            {"one_row_wrong", one_row_wrong},
                                            {"few_columns_wrong", few_columns_wrong},
                                            {NULL, NULL}};

#define SPEC(tensors, rest)                                                                        \
    "name: large\ndims: {M: 48, N: 64, K: 40}\n" tensors "reference: ref_impl.py\n" rest

static const char product_spec[] =
    SPEC("inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
         "outputs: {C: {shape: [M, N], dtype: float32}}\n",
         "baselines: {product: product.c}\nflops: 2*M*N*K\ncheck: [{M: 1, N: 9, K: 2}, {M: 16, N: "
         "40, K: 3}]\n"
         "hidden: {M: [1, 20], N: [1, 20], K: [1, 20]}\n");

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_problem(&f, kernels, "def reference(A, B):\n    return A @ B\n", product_spec);
}

/* Over half a second for a set of the timed shape, by its float64 results. */
static int set_up_slow(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_problem(&f, kernels,
                        "import time\ndef reference(A, B):\n"
                        "    if A.shape == (48, 40) and A.dtype == 'float64':\n"
                        "        time.sleep(0.6)\n    return A @ B\n",
                        product_spec);
}

static enum verdict verdict_of(struct fixture *f, const char *artifact, enum effort effort)
{
    struct evaluation evaluation = {0};
    f->request.artifact = artifact;
    f->request.effort = effort;
    assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    if (evaluation.verdict != VERDICT_KERNEL)
        print_message("%s: %s\n", artifact, evaluation.reason);
    else
        assert_non_null(strstr(evaluation.metrics, "\"checked_up_to\""));
    return evaluation.verdict;
}

static void test_wrong_at_large_shapes_alone(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 1; kernels[i].name != NULL; i++)
        assert_int_equal(verdict_of(f, kernels[i].name, EFFORT_FULL), VERDICT_REJECTED);
}

static void test_right_ones_are_accepted(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (int i = 0; i < 12; i++)
        assert_int_equal(verdict_of(f, "product", i % 3 == 2 ? EFFORT_FINAL : EFFORT_FULL),
                         VERDICT_KERNEL);
}

/* --- which dims --- */

static uint64_t slices_of(const char *spec, const char *reference)
{
    struct folder folder;
    struct problem *problem;
    struct session *session;
    struct lane_facts lane;
    struct arena *arena = arena_new();
    struct err err = {0};
    int core = 0;
    fake_problem(&folder, reference, "");
    folder_put(&folder, "spec.yaml", spec);
    struct session_options options = {.folder = folder.path, .memory_bytes = 1 << 20};
    assert_int_equal(problem_load(folder.path, &problem, &err), 0);
    assert_int_equal(fake_probe(&core, 1, false, arena, &lane, &err), 0);
    if (session_open(problem, &fake_backend, &lane, &options, &session, &err) != 0)
        fail_msg("%s", err.message);
    session_find_slices(session);
    uint64_t slices = session->slices;
    session_close(session);
    problem_free(problem);
    arena_free(arena);
    folder_remove(&folder);
    return slices;
}

#define ROWS                                                                                       \
    SPEC("inputs: {X: {shape: [M, N], dtype: float32}, y: {shape: [K], dtype: float32}}\n"         \
         "outputs: {Z: {shape: [M, N], dtype: float32}}\n",                                        \
         "flops: 2*M*N\ncheck: [{M: 2, N: 9, K: 2}]\n")

static void test_what_can_be_sliced(void **state)
{
    enum { M = 1, N = 2, K = 4 };
    (void)state;
    assert_int_equal(slices_of(product_spec, "def reference(A, B):\n    return A @ B\n"), M | N);
    assert_int_equal(slices_of(ROWS, "def reference(X, y):\n    return X * 2\n"), M | N);
    assert_int_equal(slices_of(ROWS, "import numpy as np\ndef reference(X, y):\n"
                                     "    e = np.exp(X - X.max(1, keepdims=True))\n"
                                     "    return e / e.sum(1, keepdims=True)\n"),
                     M);
    assert_int_equal(slices_of(ROWS, "def reference(X, y):\n    return X - X.mean(0)\n"), N);
    assert_int_equal(slices_of(ROWS, "def reference(X, y):\n    return X.cumsum(0).cumsum(1)\n"),
                     0);
    /* by its place */
    assert_int_equal(slices_of(ROWS, "import numpy as np\ndef reference(X, y):\n"
                                     "    return X * (np.arange(X.shape[0])[:, None] + 1)\n"),
                     N);
    /* a dim that another one follows from, or that stands twice in a tensor */
    assert_int_equal(slices_of(SPEC("inputs: {X: {shape: [M, 2*N], dtype: float32}, y: {shape: "
                                    "[K, K], dtype: float32}}\noutputs: {Z: {shape: [M, N], "
                                    "dtype: float32}}\n",
                                    "flops: 2*M*N\ncheck: [{M: 2, N: 9, K: 2}]\n"),
                               "def reference(X, y):\n    return X[:, ::2] + 1\n"),
                     M);
}

/* --- large shapes --- */

static void test_large_shapes(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct problem *problem = f->problem;
    bool over_512 = false, square = true;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct names dims;
        assert_true(problem_draw_large(problem, seed, 0, 1.75, false, &dims));
        for (size_t i = 0; i < dims.count; i++) {
            assert_true(dims.number[i] > problem->shapes[0].number[i]);
            assert_true(dims.number[i] % 16 != 0);
            over_512 = over_512 || dims.number[i] > 512;
        }
        square = square && dims.number[0] == dims.number[1];
        assert_true((double)dims.number[0] * (double)dims.number[1] * (double)dims.number[2] <
                    0x1p28);
        assert_true(dims.number[0] * dims.number[1] > 1 << 16); /* where 16 bits do not count C */
    }
    assert_true(over_512 && !square);
    struct names alike;
    assert_true(problem_draw_large(problem, 1, 0, 1.75, true, &alike));
    assert_true(alike.number[0] == alike.number[1] && alike.number[1] == alike.number[2]);
    assert_int_equal(problem_resize(f->problem, "M=4096,N=4096,K=4096", &f->err), 0);
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct names dims;
        double work = 1.0;
        assert_true(problem_draw_large(problem, seed, 0, 1.75, false, &dims));
        for (size_t i = 0; i < dims.count; i++) {
            assert_true(dims.number[i] > 4096 && dims.number[i] % 2 == 1);
            work *= (double)dims.number[i] / 4096.0;
        }
        assert_true(work <= 1.75);
    }
}

/* A kernel that is wrong where two dims are large at once has been called there: the record has one
 * shape's numbers. */
static void test_reached(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (int turn = 0; turn < 4; turn++) {
        struct evaluation evaluation = {0};
        struct value *metrics;
        bool called = false;
        f->request.effort = turn % 2 == 0 ? EFFORT_FULL : EFFORT_FINAL;
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        assert_int_equal(value_parse_json(f->arena, "metrics", evaluation.metrics,
                                          strlen(evaluation.metrics), &metrics, &f->err),
                         0);
        const struct value *reached = value_get(metrics, "checked_up_to");
        for (size_t i = 0; i < f->session->large_shape_count; i++) {
            const struct names *dims = &f->session->large_shapes[i].dims;
            bool same = true;
            for (size_t k = 0; k < dims->count; k++) {
                same = same && value_int(reached, dims->name[k], 0) == dims->number[k];
                assert_true(value_int(reached, dims->name[k], 0) > f->problem->shapes[0].number[k]);
            }
            called = called || same;
        }
        assert_true(called);
    }
}

/* Where the definition is slow and cannot be sliced nothing larger is called, which the record says
 * once; and not where it is. */
static void test_what_was_not_asked(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (int turn = 0; turn < 2; turn++) {
        struct evaluation evaluation = {0};
        f->request.effort = EFFORT_SEARCH;
        if (turn == 1) {
            f->session->slices_known = true;
            f->session->slices = 0;
            for (size_t i = 0; i < LARGE_SETS; i++)
                set_free(&f->session->large[i]);
        }
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
        const char *said = strstr(evaluation.metrics, "no shape larger than the timed one");
        assert_int_equal(said != NULL, turn == 1);
        if (turn == 1) {
            assert_non_null(strstr(said, "nothing of the definition can be sliced"));
            assert_null(strstr(said + 1, "no shape larger"));
        }
    }
}

/* Whole, as long as the definition is quick: which is known before the first large shape's turn, in
 * whatever order the calls come. */
static void test_whole_where_nothing_is_sliced(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    f->session->slices_known = true;
    f->session->slices = 0;
    for (int turn = 0; turn < 8; turn++) {
        struct evaluation evaluation = {0};
        f->request.effort = EFFORT_SEARCH;
        f->session->exact_ns = 0.0;
        for (size_t i = 0; i < f->session->pool_count; i++)
            set_redraw(&f->session->pool[i]);
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        assert_null(strstr(evaluation.metrics, "no shape larger than the timed one"));
    }
}

static uint64_t divisors_of(const char *name, bool *lower)
{
    struct problem *problem;
    struct names drawn;
    struct err err;
    *lower = false;
    assert_int_equal(problem_load(name, &problem, &err), 0);
    uint64_t divisors = problem_divisors(problem);
    for (uint64_t seed = 0; seed < 40; seed++) {
        assert_true(problem_draw_large(problem, seed, 0, 1.75, true, &drawn));
        for (size_t i = 0; i < drawn.count; i++)
            if ((divisors >> i & 1) != 0)
                *lower = *lower || drawn.number[i] < problem->shapes[0].number[i];
            else
                assert_true(drawn.number[i] >= problem->shapes[0].number[i]);
        /* 4 times as many, in tensors 1.75 times as large */
        assert_true(problem_reduction(problem, &drawn) <=
                    7 * problem_reduction(problem, &problem->shapes[0]));
    }
    problem_free(problem);
    return divisors;
}

/* Few groups are large ones: a number that no tensor grows with is small at a large shape. */
static void test_divisors(void **state)
{
    bool lower;
    (void)state;
    assert_int_equal(divisors_of(TEST_SOURCE_DIR "/problems/group_norm", &lower), 1 << 4);
    assert_true(lower);
    assert_int_equal(divisors_of(TEST_SOURCE_DIR "/problems/max_pool2d", &lower), 1 << 4 | 1 << 6);
    assert_int_equal(divisors_of(TEST_SOURCE_DIR "/problems/matmul", &lower), 0);
}

/* Padding may make an output larger than any size that was asked for makes it. */
static void test_what_follows(void **state)
{
    enum { OH = 8, OW = 9, PAD = 6 };
    struct problem *problem;
    struct names drawn;
    struct err err;
    (void)state;
    assert_int_equal(problem_load(TEST_SOURCE_DIR "/problems/depthwise_conv2d", &problem, &err), 0);
    assert_int_equal(problem_resize(problem, "N=2,C=64,H=56,W=56", &err), 0);
    assert_string_equal(problem->dims[OW].name, "OW");
    for (uint64_t seed = 0; seed < 40; seed++) {
        assert_true(problem_draw_large(problem, seed, 3, 1.75, true, &drawn));
        assert_int_equal(drawn.number[PAD], 3);
        assert_true(drawn.number[OH] > 60 && drawn.number[OW] > 60); /* no H or W is */
    }
    problem_free(problem);
}

/* Groups are few at every such shape, and long ones. */
static void test_few_groups(void **state)
{
    struct problem *problem;
    struct names drawn;
    struct err err;
    (void)state;
    assert_int_equal(problem_load(TEST_SOURCE_DIR "/problems/group_norm", &problem, &err), 0);
    assert_int_equal(problem_resize(problem, "N=4,C=64,H=56,W=56,G=16", &err), 0);
    for (uint64_t seed = 0; seed < 40; seed++) {
        assert_true(problem_draw_large(problem, seed, 1, 1.75, true, &drawn));
        assert_true(problem_reduction(problem, &drawn) > INT16_MAX);
    }
    problem_free(problem);
}

/* The call that is not of all distributions at once. */
static void test_what_is_sampled(void **state)
{
    enum { LARGE = 1, TIMED = 3, TURNS = 200 };
    struct fixture *f = (struct fixture *)*state;
    bool zeros = false;
    session_begin_large(f->session, true);
    for (int i = 0; i < TURNS; i++) {
        const struct set *set = session_next_large(f->session, LARGE);
        assert_non_null(set);
        assert_true(set->distribution != DRAW_ZEROS && set->distribution != DRAW_ONES &&
                    set->distribution != DRAW_ONE_HOT && set->distribution != DRAW_TINY &&
                    set->distribution != DRAW_ROWS && set->distribution != DRAW_COLUMNS &&
                    set->distribution != DRAW_WIDE && set->distribution != DRAW_NON_FINITE);
        set = session_next_large(f->session, TIMED);
        assert_non_null(set);
        zeros = zeros || set->distribution == DRAW_ZEROS;
    }
    assert_true(zeros);
}

/* --- picking, and back --- */

static void test_picking(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct tensor_spec *a = &f->problem->inputs[0], *c = &f->problem->outputs[0];
    uint32_t rows[7] = {3, 0, 1, 1, 2, 0, 3}, columns[5] = {2, 0, 1, 2, 0};
    struct maps maps = {.of = {rows, columns}, .from = {4, 3}};
    const int64_t a_to[] = {7, 6}, c_to[] = {7, 5};
    float from[4 * 6], to[7 * 6], got[7 * 5], worst[4 * 3];
    double exact[4 * 3], farthest[4 * 3];
    for (int i = 0; i < 24; i++)
        from[i] = (float)i;
    maps_gather(f->problem, a, &maps, a_to, sizeof(float), from, to);
    for (size_t i = 0; i < 42; i++)
        assert_true(to[i] == from[rows[i / 6] * 6 + i % 6]);
    for (int i = 0; i < 12; i++) {
        exact[i] = i;
        farthest[i] = -1.0;
    }
    maps_gather(f->problem, c, &maps, c_to, sizeof(float), from, got);
    for (size_t i = 0; i < 35; i++) { /* the small one has rows of 3 */
        got[i] = (float)exact[rows[i / 5] * 3 + columns[i % 5]];
    }
    got[2 * 5 + 4] += 0.5f; /* of (1, 0), which has three other copies */
    got[3 * 5 + 1] -= 2.0f; /* the same */
    got[6 * 5 + 3] = NAN;   /* of (3, 2) */
    struct fold fold = {.exact = exact, .worst = worst, .farthest = farthest};
    maps_fold(f->problem, c, &maps, c_to, got, &fold);
    for (size_t i = 0; i < 12; i++) {
        if (i == 11)
            assert_true(isnan(worst[i]) && isinf(farthest[i]));
        else
            assert_true((double)worst[i] == (i == 3 ? exact[i] - 2.0 : exact[i]));
    }
    struct slab slab = {f->problem, a, (const int64_t[]){4, 6}, 0, 2};
    float half[12];
    slab_get(&slab, 1, sizeof(float), from, half);
    assert_memory_equal(half, from + 12, sizeof half);
    slab_put(&slab, 0, sizeof(float), half, from);
    assert_memory_equal(half, from, sizeof half);
}

/* Each index of an expanded set is picked about as often as any other; a sample has both ends. */
static void test_indices(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    measure(f, EFFORT_FULL);
    const struct set *expanded = &session->large[0], *sampled = &session->large[1];
    assert_non_null(expanded->view);
    assert_int_equal(expanded->view->kind, VIEW_EXPANDED);
    for (enum distribution d = 0; d < DRAW_NON_FINITE; d++) {
        size_t at = 0;
        while (at < expanded->view->segment_count && expanded->view->segments[at].distribution != d)
            at++;
        assert_true(at < expanded->view->segment_count);
    }
    assert_int_equal(sampled->view->kind, VIEW_SAMPLED);
    for (size_t dim = 0; dim < 2; dim++) {
        size_t few = (size_t)sampled->view->small.dims.number[dim];
        const uint32_t *map = sampled->view->maps.of[dim];
        assert_int_equal(map[0], 0);
        assert_int_equal(map[few - 1], sampled->shape->dims.number[dim] - 1);
        for (size_t i = 1; i < few; i++)
            assert_true(map[i] > map[i - 1]);
    }
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wrong_at_large_shapes_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_right_ones_are_accepted, set_up, tear_down),
        cmocka_unit_test(test_what_can_be_sliced),
        cmocka_unit_test_setup_teardown(test_large_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reached, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_not_asked, set_up_slow, tear_down),
        cmocka_unit_test_setup_teardown(test_whole_where_nothing_is_sliced, set_up, tear_down),
        cmocka_unit_test(test_divisors),
        cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_few_groups),
        cmocka_unit_test_setup_teardown(test_what_is_sampled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_picking, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_indices, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
