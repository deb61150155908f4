/* The memory that a session makes when it is opened, and shapes that are drawn for it. */
#include "one_session.h"

enum { MANY = 1000, SPEC_MOST = 1 << 17 };

/* The sum of all inputs, which are float64. */
static void sum_of_many(const struct fake_call *f)
{
    const struct call *call = f->call;
    const unsigned char *inputs = (const unsigned char *)(const void *)f->a - call->offsets[0];
    unsigned char *outputs = (unsigned char *)(void *)f->c - call->offsets[2];
    double *y = (double *)(void *)(outputs + call->offsets[MANY]);
    for (int64_t i = 0; i < call->dims[0]; i++) {
        y[i] = 0.0;
        for (size_t k = 0; k < MANY; k++)
            y[i] += ((const double *)(const void *)(inputs + call->offsets[k]))[i];
    }
}

static const struct fake_entry kernels[] = {{"product", fake_product}, {NULL, NULL}};
static const struct fake_entry sums[] = {{"product", sum_of_many}, {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_product(&f, kernels);
}

/* Hidden shapes that are larger than the region when they are drawn again are not taken, and leave
 * nothing half done. */
static void test_hidden_shapes_that_do_not_fit(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct names before[HIDDEN_SHAPES];
    size_t slot_bytes = session->slot_bytes;
    for (size_t i = 0; i < HIDDEN_SHAPES; i++)
        before[i] = session->shapes[session->shape_count + i].dims;
    session->slot_bytes = 1;
    assert_int_equal(session_refresh(session, true, &f->err), 0);
    session->slot_bytes = slot_bytes;
    for (size_t i = 0; i < HIDDEN_SHAPES; i++)
        assert_memory_equal(before[i].number, session->shapes[session->shape_count + i].dims.number,
                            sizeof before[i].number);
}

/* Red zones of a thousand inputs take as much as the numbers of the largest hidden shape do. */
static int open_many(void **state)
{
    static struct fixture f;
    BUF_LOCAL(spec, SPEC_MOST);
    *state = &f;
    buf_add_text(&spec, "name: many\ndims: {N: 10}\ninputs:\n");
    for (int i = 0; i < MANY; i++)
        buf_addf(&spec, "  x%d: {shape: [N], dtype: float64}\n", i);
    buf_add_text(&spec, "outputs: {y: {shape: [N], dtype: float64}}\nreference: ref_impl.py\n"
                        "baselines: {product: product.c}\nhidden: {N: [900, 1000]}\n");
    int status = open_problem(&f, sums, "def reference(*all):\n    return sum(all[:1000])\n",
                              buf_text(&spec));
    if (status != 0)
        print_error("%s\n", f.err.message);
    return status;
}

static void test_many_inputs(void **state)
{
    const struct session *session = ((struct fixture *)*state)->session;
    for (size_t i = 0; i < session->shape_total; i++)
        assert_true(session->shapes[i].layout.inputs_bytes + PAGE_BYTES <= session->slot_bytes);
}

static void test_regions_grow_and_stop_growing(void **state)
{
    struct session *session = ((struct fixture *)*state)->session;
    const struct region *region;
    struct err err = {0};
    assert_int_equal(session_region_for(session, 4096, &region, &err), 0);
    assert_ptr_equal(region, &session->region);
    size_t large = session->region.outputs_bytes + 1;
    assert_int_equal(session_region_for(session, large, &region, &err), 0);
    assert_ptr_equal(region, &session->roomy);
    assert_ptr_equal(region->inputs, session->region.inputs);
    size_t first = region->outputs_bytes;
    assert_true(first > large);
    assert_int_equal(session_region_for(session, 4 * first, &region, &err), 0);
    assert_true(region->outputs_bytes > 4 * first);
    region->outputs[4 * first] = 1;
    assert_int_equal(session_region_for(session, (size_t)1 << 40, &region, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hidden_shapes_that_do_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_inputs, open_many, tear_down),
        cmocka_unit_test_setup_teardown(test_regions_grow_and_stop_growing, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("room", tests, NULL, NULL);
}
