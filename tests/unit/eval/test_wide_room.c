/* The memory that the definition's kernel in float64 computes in: as large as the largest of a
 * session's shapes, of which one beyond the main one is larger than that. */
#include "eval/cuda/target.h"
#include "eval/sets/wide.h"

#include "one_session.h"

static const struct session *asking;

static void wide_product(const struct fake_call *f)
{
    const double *a = (const double *)(const void *)f->a, *b = (const double *)(const void *)f->b;
    double *c = (double *)(void *)f->c;
    for (int64_t i = 0; i < f->call->dims[0]; i++)
        c[i] = a[i] * b[i];
}

static void product(const struct fake_call *f)
{
    const float *a = (const float *)(const void *)f->a, *b = (const float *)(const void *)f->b;
    float *c = (float *)(void *)f->c;
    for (int64_t i = 0; i < f->call->dims[0]; i++)
        c[i] = a[i] * b[i];
}

static const struct fake_entry kernels[] = {
    {"product", product}, {"wide_product", wide_product}, {NULL, NULL}};

static int open_with_room(const struct lane_facts *lane, const struct region *region,
                          const char *artifact, const struct program *program, bool fresh,
                          struct subject **subject, struct err *err)
{
    for (size_t i = 0; i < asking->shape_total; i++) {
        struct layout layout;
        if (layout_make(program->problem, &asking->shapes[i].dims, NULL, NULL, 0, &layout, err) !=
            0)
            return -1;
        assert_true(layout.inputs_bytes <= region->inputs_bytes);
        assert_true(layout.outputs_bytes <= region->outputs_bytes);
    }
    return fake_open(lane, region, artifact, program, fresh, subject, err);
}

static int set_up(void **state)
{
    static struct fixture f;
    static const char spec[] =
        "name: line\ndims: {N: 262144}\n"
        "inputs: {A: {shape: [N], dtype: float32}, B: {shape: [N], dtype: float32}}\n"
        "outputs: {C: {shape: [N], dtype: float32}}\nreference: ref_impl.py\n"
        "baselines: {product: product.c}\ncheck: [{N: 64}]\n";
    *state = &f;
    int status = open_problem(&f, kernels, "def reference(A, B):\n    return A * B\n", spec);
    if (status != 0)
        print_error("%s\n", f.err.message);
    return status;
}

/* As it was opened, and after other shapes were drawn. */
static void test_room_for_every_shape(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct backend with_plans = fake_backend;
    with_plans.device = true, with_plans.target = &target_cuda;
    with_plans.open = open_with_room;
    folder_put(&f->folder, "ref_impl.cu",
               "/*---\nlaunch:\n  - {entry: r, grid: N, block: 1, args: [A, B, C]}\n---*/\n"
               "wide_product");
    session->backend = &with_plans;
    asking = session;
    assert_true(session->beyond_count > 0);
    for (int turn = 0; turn < 3; turn++) {
        session->wide_over = false;
        session->exact_ns = 1e9;
        wide_warm(session);
        assert_int_equal(session_refresh(session, true, &f->err), 0);
        for (size_t i = 0; i < session->pool_count; i++)
            session->pool[i].expected = false;
        assert_int_equal(set_expect(session, &session->pool[0], &f->err), 0);
        assert_true(wide_believed(session));
        session->wide_over = true;
        wide_close(session);
    }
    session->backend = &fake_backend;
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_room_for_every_shape, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("wide_room", tests, NULL, NULL);
}
