/* What a session keeps between candidates and what it does not, seen from inside: sets and their
 * seeds, the samples of outputs of a call, cancelling between steps. */
#include "eval/cuda/target.h"
#include "eval/measure/guard.h"
#include "eval/measure/low_bits.h"
#include "eval/sets/helpers.h"
#include "eval/sets/wide.h"

#include "one_session.h"

#include <math.h>

/* In float64; `mark` tells its results from the definition's, far below what is looked at. */
static void wide_product(const struct fake_call *f)
{
    static const double mark = 1 + 1e-12;
    const double *a = (const double *)(const void *)f->a, *b = (const double *)(const void *)f->b;
    double *c = (double *)(void *)f->c;
    for (int64_t i = 0; i < f->m * f->n; i++) {
        double sum = 0.0;
        for (int64_t k = 0; k < f->k; k++)
            sum += a[i / f->n * f->k + k] * b[k * f->n + i % f->n];
        c[i] = sum * mark;
    }
}

/* One element of one shape, by less than float32 would show. */
static void wide_wrong(const struct fake_call *f)
{
    wide_product(f);
    if (f->m == 24)
        ((double *)(void *)f->c)[f->m * f->n - 1] *= 1 + 1e-6;
}

static void wide_dies(const struct fake_call *f)
{
    static int calls; /* in this process: five compare, the sixth is a set's */
    if (++calls > 5)
        abort();
    wide_product(f);
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"wide_product", wide_product},
                                            {"wide_wrong", wide_wrong},
                                            {"wide_dies", wide_dies},
                                            {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_product(&f, kernels);
}

static unsigned profiles_warmed;

static void note_warming(const struct lane_facts *lane, const struct region *region)
{
    (void)lane, (void)region;
    profiles_warmed++;
}

/* What a profile waits for begins beside the checks; of a sanitizer test_sanitize.c tells. */
static void test_profiles_are_warmed(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct backend backend = fake_backend;
    backend.warm_profile = note_warming;
    f->session->backend = &backend;
    measure(f, EFFORT_SEARCH);
    assert_int_equal(profiles_warmed, 0);
    f->request.profile = true;
    measure(f, EFFORT_SEARCH);
    assert_int_equal(profiles_warmed, 1);
    f->request.profile = false;
    f->session->backend = &fake_backend;
}

static size_t same_seeds(const struct session *session, const uint64_t *seeds)
{
    size_t same = 0;
    for (size_t i = 0; i < session->pool_count; i++)
        same += session->pool[i].expected && session->pool[i].seed == seeds[i];
    return same;
}

/* As the spec says, or else what the operations' number tells; never more than the inputs have. */
static void test_reduction(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct shape shape = {0};
    struct problem *problem = f->problem;
    const struct names *dims = &problem->shapes[0];
    assert_int_equal(shape_make(f->session, dims, &shape, &f->err), 0);
    size_t told = shape.reduction;
    assert_true(told > 2);
    assert_int_equal(expr_parse(problem->arena, "2", &problem->reduction, &f->err), 0);
    assert_int_equal(shape_make(f->session, dims, &shape, &f->err), 0);
    assert_int_equal(shape.reduction, 2);
    assert_int_equal(expr_parse(problem->arena, "1000000", &problem->reduction, &f->err), 0);
    assert_int_equal(shape_make(f->session, dims, &shape, &f->err), 0);
    assert_true(shape.reduction >= told && shape.reduction <= shape.elements);
    problem->reduction = NULL;
}

static void test_sets_are_drawn_anew(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    uint64_t seeds[POOL_MOST];
    measure(f, EFFORT_FULL);
    for (size_t i = 0; i < session->pool_count; i++) {
        if (!session->pool[i].expected)
            assert_int_equal(set_expect(session, &session->pool[i], &f->err), 0);
        seeds[i] = session->pool[i].seed;
        for (size_t k = 0; k < i; k++)
            assert_true(seeds[k] != seeds[i]);
    }
    measure(f, EFFORT_SEARCH); /* one of them, at least */
    assert_true(same_seeds(session, seeds) < session->pool_count);
    assert_true(same_seeds(session, seeds) > 0);
    struct names hidden = session->shapes[session->shape_count].dims;
    bool moved = false;
    for (int i = 0; i < 4 && !moved; i++) { /* all of them, and other hidden shapes */
        measure(f, EFFORT_FINAL);
        assert_int_equal(same_seeds(session, seeds), 0);
        moved = memcmp(hidden.number, session->shapes[session->shape_count].dims.number,
                       3 * sizeof(int64_t)) != 0;
    }
    assert_true(moved);
}

static void test_what_the_battery_holds(void **state)
{
    const struct session *session = ((struct fixture *)*state)->session;
    unsigned distributions = 0, shapes = 0, offsets = 0;
    for (size_t i = 0; i < session->case_count; i++) {
        distributions |= 1U << session->cases[i].distribution;
        shapes |= 1U << (session->cases[i].shape - session->shapes);
        offsets += session->cases[i].distribution == DRAW_OFFSET;
    }
    /* its listed shapes are too small for rows */
    assert_int_equal(offsets, 3 + (session->short_shape != NULL));
    assert_int_equal(distributions, (1U << DISTRIBUTIONS) - 1);
    assert_int_equal(shapes & 1, session->long_shape == session->shapes); /* else not the main */
    assert_int_equal(shapes | 1, (1U << session->shape_total) - 1);
    assert_true(session->edge_case >= 6);
    assert_true(session->pool_count >= POOL_LEAST);
}

/* What is wrong in every row may be right in one by chance: edge cases have several, although a
 * shape of one row is smaller. */
static void test_edge_cases_have_rows(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session_options options = {
        .folder = f->builds.path, .baseline = "product", .memory_bytes = 1 << 20};
    struct folder folder;
    struct problem *problem;
    struct session *session;
    options.call_timeout_ms = 60000;
    fake_problem(&folder, "def reference(A, B):\n    return A @ B\n", "");
    folder_put(&folder, "spec.yaml",
               "name: rows\ndims: {M: 24, N: 80, K: 28}\n"
               "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
               "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
               "baselines: {product: product.c}\nflops: 2*M*N*K\n"
               "check: [{M: 1, N: 260, K: 2}, {M: 16, N: 40, K: 3}]\n");
    assert_int_equal(problem_load(folder.path, &problem, &f->err), 0);
    assert_int_equal(session_open(problem, &fake_backend, &f->lane, &options, &session, &f->err),
                     0);
    for (int turn = 0; turn < 20; turn++) {
        size_t count = session->edge_case + DRAW_FEW - DRAW_EDGES + 1; /* NaN */
        for (size_t i = session->edge_case; i < count; i++) {
            const struct placed *output = &session->cases[i].shape->layout.outputs[0];
            assert_true(output->extents[0] >= 8 && output->extents[1] >= 8);
        }
        /* sums that a loop over vectors leaves to its rest, far from zero */
        static const enum distribution short_ones[] = {DRAW_OFFSET, DRAW_BELOW, DRAW_HUGE};
        assert_int_equal(session->case_count, count + 3);
        for (size_t i = count; i < session->case_count; i++) {
            const struct set *set = &session->cases[i];
            assert_ptr_equal(set->shape, session->short_shape);
            assert_true(set->shape->dims.number[2] >= 5 && set->shape->dims.number[2] <= 7);
            assert_true(set->shape->layout.outputs[0].elements >= 256);
            assert_int_equal(set->distribution, short_ones[i - count]);
        }
        assert_int_equal(session_refresh(session, true, &f->err), 0);
    }
    session_close(session);
    problem_free(problem);
    folder_remove(&folder);
}

static size_t sanitized;

static int count_sanitized(const struct lane_facts *lane, const struct region *region,
                           const char *artifact, const struct program *program,
                           const struct call *calls, size_t count, bool together,
                           struct buf *report, struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)program, (void)calls, (void)together;
    (void)report, (void)err, sanitized += count;
    return 0;
}

/* A win waits for the tools at small work and short sums; a final has them at all that fits. */
static void test_sanitized_at_small_work(void **state)
{
    struct fixture *f = (struct fixture *)*state, own = *f;
    struct session_options options = {
        .folder = f->builds.path, .baseline = "product", .memory_bytes = 1 << 20};
    struct backend backend = fake_backend;
    backend.sanitize = count_sanitized, options.call_timeout_ms = 60000;
    fake_problem(&own.folder, "def reference(A, B):\n    return A @ B\n", "");
    folder_put(&own.folder, "spec.yaml",
               "name: work\ndims: {M: 24, N: 20, K: 28}\n"
               "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
               "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
               "baselines: {product: product.c}\nflops: 2*M*N*K\n"
               "check: [{M: 4, N: 4, K: 4}, {M: 512, N: 512, K: 33}, {M: 2, N: 2, K: 513}]\n"
               "hidden: {M: [2, 8], N: [4, 4], K: [4, 4]}\n");
    assert_int_equal(problem_load(own.folder.path, &own.problem, &own.err), 0);
    assert_int_equal(
        session_open(own.problem, &backend, &own.lane, &options, &own.session, &own.err), 0);
    own.request.sanitized = "product";
    measure(&own, EFFORT_FULL);
    size_t of_a_win = sanitized;
    measure(&own, EFFORT_FINAL);
    assert_true(of_a_win > 0 && sanitized - of_a_win == of_a_win + 2);
    session_close(own.session);
    problem_free(own.problem);
    folder_remove(&own.folder);
}

/* An output that changes between the answer and the stop: here by our own hand. */
static void test_spots(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    struct bench bench = {.session = f->session,
                          .request = &f->request,
                          .arena = f->arena,
                          .evaluation = &evaluation,
                          .region = &f->session->region};
    struct arrangement arrangement;
    struct outcome outcome;
    struct set *set = &f->session->pool[0];
    buf_init(&bench.notes, 100);
    assert_int_equal(set_expect(f->session, set, &f->err), 0);
    assert_int_equal(bench_open(&bench, &f->err), 0);
    assert_int_equal(bench_arrange(&bench, set->shape, &arrangement, &f->err), 0);
    call_place(&bench, set, &arrangement);
    assert_int_equal(call_run(&bench, bench.subject, &arrangement, true, &outcome, &f->err), 0);
    assert_int_equal(bench.output_sample_count, OUTPUT_SAMPLES);
    assert_true(call_verify(&bench, set, &arrangement));
    bench.output_samples[OUTPUT_SAMPLES / 2].early ^= 1;
    assert_false(call_verify(&bench, set, &arrangement));
    assert_non_null(strstr(evaluation.reason, "after the call had ended"));
    low_bits_free(&bench);
    bench_close(&bench);
    buf_free(&bench.notes);
}

/* Before the first step, as a word that came ahead of the thread that takes it, and after it. */
static void test_cancelling_between_steps(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (int step = 0; step < 2; step++) {
        struct evaluation evaluation = {0};
        struct err ignored;
        if (step == 0)
            session_cancel(f->session);
        int status = session_check(f->session, &f->request, f->arena, &evaluation, &f->err);
        assert_int_equal(status, step - 1);
        session_cancel(f->session);
        assert_int_equal(session_time(f->session, &f->err), -1);
        assert_int_equal(f->err.code, ERR_CANCELLED);
        assert_int_equal(session_finish(f->session, &ignored), 0);
        session_uncancel(f->session);
    }
    measure(f, EFFORT_SEARCH);
}

/* A single set may be left that this runner has not met: it is for timing, not for warming up. */
static void test_a_set_is_left_to_time(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct evaluation evaluation = {0};
    assert_int_equal(session_check(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    f->session->bench->seen = (UINT64_C(1) << (f->session->pool_count - 1)) - 1;
    f->session->bench->warm = 1;
    assert_int_equal(session_time(f->session, &f->err), 0);
    assert_int_equal(session_finish(f->session, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
}

static int never(const struct lane_facts *lane, const struct region *region, const char *artifact,
                 const struct program *program, bool fresh, struct subject **subject,
                 struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)program, (void)fresh, (void)subject;
    return err_set(err, ERR_UNSUPPORTED, "not asked for here");
}

/* What helpers compute is what the one process computes. */
static void test_helpers(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct backend device = fake_backend;
    device.device = true;
    device.open = never;
    session->backend = &device;
    for (size_t i = 0; i < session->pool_count; i++)
        set_redraw(&session->pool[i]);
    session->exact_ns = 1.0;
    session_expect_pool(session); /* a fast definition needs none */
    assert_null(session->helpers);
    assert_false(session->pool[0].expected);
    session->exact_ns = 9e9;
    session_expect_pool(session); /* nor is there any room on one core */
    assert_false(session->pool[0].expected);
    helpers_close(session);
    size_t cores = f->lane.core_count;
    f->lane.core_count = 8;
    session->exact_cores = 7.5;
    session_expect_pool(session); /* one that has most cores already is alone */
    assert_false(session->pool[0].expected);
    session->exact_cores = 1.5;
    session_expect_pool(session);
    f->lane.core_count = cores;
    size_t elements = session->shapes[0].layout.outputs[0].elements;
    for (size_t i = 0; i < session->pool_count; i++) {
        struct set *set = &session->pool[i];
        assert_true(set->expected);
        struct bound bound = set->bounds[0];
        double *exact = (double *)mem_alloc(elements * sizeof *exact);
        memcpy(exact, set->exact[0], elements * sizeof *exact);
        set->expected = false;
        assert_int_equal(set_expect(session, set, &f->err), 0);
        assert_memory_equal(exact, set->exact[0], elements * sizeof *exact);
        assert_true(bound.element == set->bounds[0].element && bound.norm == set->bounds[0].norm);
        mem_free(exact);
    }
    session->backend = &fake_backend;
    measure(f, EFFORT_FULL);
}

static int open_as_plain(const struct lane_facts *lane, const struct region *region,
                         const char *artifact, const struct program *program, bool fresh,
                         struct subject **subject, struct err *err)
{
    assert_true(fresh);
    assert_int_equal(program->problem->inputs[0].dtype, DTYPE_FLOAT64);
    return fake_open(lane, region, artifact, program, fresh, subject, err);
}

static void put_wide(struct fixture *f, const char *name)
{
    char source[300];
    snprintf(source, sizeof source,
             "/*---\nlaunch:\n  - {entry: r, grid: M, block: 1, args: [A, B, C]}\n---*/\n%s", name);
    folder_put(&f->folder, "ref_impl.cu", source);
    f->session->wide_over = false;
    f->session->exact_ns = 1e9;
}

/* Computes them once more: whether by the kernel that is called `name`. */
static bool wide_made(struct fixture *f, struct set *set, const char *name)
{
    struct session *session = f->session;
    put_wide(f, name);
    set->expected = false;
    assert_int_equal(set_expect(session, set, &f->err), 0);
    size_t elements = set->shape->layout.outputs[0].elements, marked = 0;
    double *made = arena_array(f->arena, elements, sizeof *made);
    memcpy(made, set->exact[0], elements * sizeof *made);
    struct bound bound = set->bounds[0];
    session->wide_over = true;
    wide_close(session);
    set->expected = false;
    assert_int_equal(set_expect(session, set, &f->err), 0);
    for (size_t i = 0; i < elements; i++) {
        double from = set->exact[0][i];
        assert_true(fabs(made[i] - from) <= 1e-10 * (fabs(from) + set->bounds[0].floor));
        marked += made[i] != from;
    }
    /* The bounds follow from the lower precision's results, too, which it also gives. */
    assert_true(fabs(bound.element / set->bounds[0].element - 1) < 0.1);
    return marked > elements / 2;
}

/* What a kernel beside the definition computes in float64 is taken where it agrees everywhere. */
static void test_wide(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct backend with_plans = fake_backend;
    with_plans.device = true, with_plans.target = &target_cuda, with_plans.open = open_as_plain;
    assert_int_equal(set_expect(session, &session->pool[0], &f->err), 0);
    session->wide_over = false;
    session->exact_ns = 1e9;
    wide_open(session);
    assert_null(session->wide); /* no backend with plans, and no file */
    session->backend = &with_plans;
    assert_true(wide_made(f, &session->pool[1], "wide_product"));
    assert_false(wide_made(f, &session->pool[2], "wide_wrong"));
    assert_false(wide_made(f, &session->pool[3], "wide_dies"));
    assert_false(wide_made(f, &session->pool[1], "no kernel of that name"));
    session->exact_ns = 1e6;
    session->wide_over = false;
    wide_open(session);
    assert_null(session->wide); /* the definition is quick */
    session->backend = &fake_backend;
}

/* One that was begun before the first set is believed by that one, which is the definition's. */
static void test_wide_from_the_first(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct backend with_plans = fake_backend;
    struct set *set = &session->pool[0];
    with_plans.device = true, with_plans.target = &target_cuda, with_plans.open = open_as_plain;
    assert_int_equal(set_expect(session, set, &f->err), 0);
    struct bound bound = set->bounds[0];
    double exact = set->exact[0][1];
    for (size_t i = 0; i < session->pool_count; i++)
        session->pool[i].expected = session->cases[i].expected = false;
    session->backend = &with_plans;
    put_wide(f, "wide_product");
    wide_begin(session);
    assert_false(wide_believed(session));
    session->costs.once_ms = 0.0;
    assert_int_equal(set_expect(session, set, &f->err), 0);
    assert_true(wide_believed(session));
    assert_true(session->costs.once_ms >= session->exact_ns / 1e6); /* not asked for again */
    assert_false(session->cases[0].expected); /* no more of it than the exact results */
    assert_true(set->exact[0][1] == exact);
    assert_true(fabs(bound.element / set->bounds[0].element - 1) < 0.1);
    session_expect_shared(session);
    for (size_t i = 1; i < session->pool_count; i++) {
        struct set *one = &session->pool[i];
        assert_true(one->expected && !one->unfit);
        bound = one->bounds[0];
        double given = one->exact[0][1];
        one->expected = false;
        assert_int_equal(set_expect(session, one, &f->err), 0);
        assert_true(given == one->exact[0][1]);
        assert_true(bound.element == one->bounds[0].element && bound.norm == one->bounds[0].norm);
    }
    session->wide_over = true;
    wide_close(session);
    session->backend = &fake_backend;
}

/* Of each shape one call has its inputs' ends guarded, and one their starts, where it has two. */
static void test_starts_are_guarded(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session *session = f->session;
    size_t starts = 0;
    measure(f, EFFORT_FULL);
    for (size_t i = 0; i < session->edge_case; i++) {
        size_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += session->cases[k].shape == session->cases[i].shape;
        assert_int_equal(guard_of_case(session, i), before == 0   ? GUARD_END
                                                    : before == 1 ? GUARD_START
                                                                  : GUARD_NONE);
        starts += before == 1;
    }
    assert_true(starts > 0);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_profiles_are_warmed),
                                       cmocka_unit_test(test_reduction),
                                       cmocka_unit_test(test_sets_are_drawn_anew),
                                       cmocka_unit_test(test_what_the_battery_holds),
                                       cmocka_unit_test(test_edge_cases_have_rows),
                                       cmocka_unit_test(test_sanitized_at_small_work),
                                       cmocka_unit_test(test_starts_are_guarded),
                                       cmocka_unit_test(test_spots),
                                       cmocka_unit_test(test_cancelling_between_steps),
                                       cmocka_unit_test(test_a_set_is_left_to_time),
                                       cmocka_unit_test(test_helpers),
                                       cmocka_unit_test(test_wide),
                                       cmocka_unit_test(test_wide_from_the_first)};
    return cmocka_run_group_tests_name("session_sets", tests, set_up, tear_down);
}
