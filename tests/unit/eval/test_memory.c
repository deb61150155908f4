/* Problems whose whole sets the machine has not the memory for: checked in slices. */
#include "eval/measure/low_bits.h"
#include "eval/sets/view.h"

#include <math.h>

/* Whole sets take 3.1 MB by the estimate, and slices 0.5 MB. */
enum { M = 150, N = 200, SCARCE = 3000000, TOO_LITTLE = 500000 };

#include "wrong_when_timed.h"

static const char spec[] =
    "name: large\ndims: {M: 150, N: 200, K: 40}\n"
    "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
    "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
    "baselines: {product: product.c}\nflops: 2*M*N*K\n"
    "check: [{M: 1, N: 9, K: 2}, {M: 16, N: 40, K: 3}, {M: 149, N: 200, K: 40}]\n"
    "hidden: {M: [1, 20], N: [1, 20], K: [1, 20]}\n";

static int open_with(void **state, uint64_t bytes, const char *reference)
{
    static struct fixture f;
    *state = &f;
    machine_bytes = bytes;
    return open_problem(&f, kernels, reference, spec);
}

static int set_up(void **state)
{
    return open_with(state, SCARCE, product);
}

static int set_up_whole(void **state)
{
    return open_with(state, 0, product);
}

static void count_whole(const struct session *session, size_t *inputs, size_t *exact)
{
    const struct set *sets[] = {session->pool, session->cases};
    const size_t counts[] = {session->pool_count, session->hidden_case};
    *inputs = *exact = 0;
    for (size_t which = 0; which < 2; which++)
        for (size_t i = 0; i < counts[which]; i++) {
            const struct set *set = &sets[which][i];
            bool large = set->shape->dims.number[0] >= M - 1;
            *inputs += large && set->inputs[0] != NULL;
            *exact += large && set->exact[0] != NULL;
        }
}

/* Right, and nowhere more than one large set's inputs, nor a large set's results. */
static void test_right_ones_are_accepted(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    const struct session *session = f->session;
    size_t inputs, exact;
    assert_true(session->sliced);
    assert_int_equal(session->slots, 1);
    for (size_t i = 0; i < session->pool_count; i++)
        assert_int_equal(session->pool[i].view->kind, VIEW_SAMPLED);
    for (int i = 0; i < 6; i++) {
        measure(f, i % 3 == 2 ? EFFORT_FINAL : i % 3 == 1 ? EFFORT_FULL : EFFORT_SEARCH);
        count_whole(session, &inputs, &exact);
        assert_true(inputs <= 1);
        assert_int_equal(exact, 0);
    }
    assert_true(session->region.inputs_bytes < 2 * session->slot_bytes);
}

static void test_wrong_ones_are_refused(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    for (size_t i = 1; kernels[i].name != NULL; i++) {
        struct evaluation evaluation = {0};
        f->request.artifact = kernels[i].name;
        f->request.effort = i % 2 == 0 ? EFFORT_SEARCH : EFFORT_FULL;
        assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err),
                         0);
        if (evaluation.verdict != VERDICT_REJECTED)
            fail_msg("%s: %s", kernels[i].name, evaluation.reason);
    }
}

/* Inputs that a call has met are drawn anew with the next one, and so is what they give. */
static void test_no_set_is_met_twice(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct set *set = &session->pool[0];
    assert_int_equal(set_expect(session, set, &f->err), 0);
    uint64_t seed = set->seed;
    assert_int_equal(set_expect(session, set, &f->err), 0);
    assert_true(set->seed == seed && set->inputs[0] != NULL); /* no call was made */
    session_let_go(session, set);
    assert_null(set->inputs[0]);
    assert_true(set->expected);
    assert_int_equal(set_expect(session, set, &f->err), 0);
    assert_true(set->seed != seed && set->inputs[0] != NULL);
    assert_int_equal(set_expect(session, &session->pool[1], &f->err), 0);
    assert_null(set->inputs[0]);
    assert_non_null(set->view->part.exact[0]); /* by which null solutions are judged */
}

/* What a win is asked for is kept as samples, with inputs that the next call has not. */
static void test_low_bits_are_kept(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct session *session = f->session;
    struct set *set = &session->pool[0];
    struct bench bench = {.session = session, .request = &f->request};
    const struct layout *layout = &set->shape->layout;
    f->request.effort = EFFORT_FULL;
    assert_int_equal(set_expect(session, set, &f->err), 0);
    assert_int_equal(set->distribution, DRAW_UNIFORM);
    const struct placed *output = &layout->outputs[0];
    const struct view *view = set->view;
    bench.outputs = session->region.outputs;
    for (size_t i = 0; i < output->elements; i++)
        ((float *)(void *)(bench.outputs + output->offset))[i] = (float)i;
    low_bits_keep(&bench, set, layout);
    const struct kept *kept = &bench.low_bits->kept[1];
    assert_true(kept->seed == set->seed && kept->set->seed == set->seed);
    assert_int_equal(kept->set->shape->elements, view->small.elements);
    assert_memory_equal(kept->set->exact[0], view->part.exact[0],
                        view->small.layout.outputs[0].elements * sizeof(double));
    size_t columns = (size_t)view->small.dims.number[1];
    for (size_t i = 0; i < view->small.layout.outputs[0].elements; i++) {
        size_t row = view->maps.of[0][i / columns], column = view->maps.of[1][i % columns];
        assert_true(kept->outputs[0][i] == (float)(row * N + column));
    }
    session_let_go(session, set);
    assert_int_equal(set_expect(session, set, &f->err), 0); /* others */
    assert_true(kept->seed == kept->set->seed && kept->set->expected);
    low_bits_free(&bench);
}

static void test_it_is_fit(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    struct fitness fitness;
    const char *why;
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    fitness_begin(&fitness, f->session, &json);
    assert_int_equal(fitness_check(&fitness, true, &f->err), 0);
    fitness_end(&fitness);
    json_object_end(&json);
    if (!fitness.fit)
        fail_msg("%s", buf_text(&text));
    assert_int_equal(session_fit(f->session, &why, &f->err), 0);
    assert_null(why);
}

static void test_whole_where_there_is_room(void **state)
{
    const struct session *session = ((struct fixture *)*state)->session;
    assert_false(session->sliced);
    assert_int_equal(session->slots, SLOTS);
    assert_null(session->pool[0].view);
}

/* A spec's that cannot be sliced is tried whole; what has no room for three times its tensors is
 * refused, with what it takes. */
static void test_what_cannot(void **state)
{
    /* at the small shape where it is asked what can be sliced */
    assert_int_equal(open_with(state, SCARCE,
                               "def reference(A, B):\n    C = A @ B\n"
                               "    if len(C) < 12:\n"
                               "        C = C.cumsum(0).cumsum(1)\n"
                               "    return C\n"),
                     0);
    assert_false(((struct fixture *)*state)->session->sliced);
    assert_null(((struct fixture *)*state)->session->pool[0].view);
    tear_down(state);
    assert_int_equal(open_with(state, TOO_LITTLE, product), -1);
    struct fixture *f = (struct fixture *)*state;
    assert_int_equal(f->err.code, ERR_LIMIT);
    assert_non_null(strstr(f->err.message, "checking it takes about"));
    f->session = NULL;
    tear_down(state);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_right_ones_are_accepted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_ones_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_set_is_met_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_low_bits_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_is_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_whole_where_there_is_room, set_up_whole, tear_down),
        cmocka_unit_test(test_what_cannot)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
