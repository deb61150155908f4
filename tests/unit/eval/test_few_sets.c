/* A pool of large tensors has the fewest sets, and threads are watched with several of them. */
#include "one_session.h"

static int open_threaded(const struct lane_facts *lane, const struct region *region,
                         const char *artifact, const struct program *program, bool fresh,
                         struct subject **subject, struct err *err)
{
    if (fake_open(lane, region, artifact, program, fresh, subject, err) != 0)
        return -1;
    (*subject)->holds = true;
    (*subject)->threads = 1;
    return 0;
}

static void test_threads_are_watched_with_few_sets(void **state)
{
    static const struct fake_entry kernels[] = {{"product", fake_product}, {0}};
    static struct fixture fixture;
    struct fixture *f = &fixture;
    struct backend backend = fake_backend;
    struct session_options options = {
        .baseline = "product", .call_timeout_ms = 60000, .time_budget_ms = 10, .memory_bytes = 1};
    *state = f;
    assert_int_equal(open_product(f, kernels), 0);
    session_close(f->session);
    backend.open = open_threaded, options.folder = f->builds.path;
    assert_int_equal(session_open(f->problem, &backend, &f->lane, &options, &f->session, &f->err),
                     0);
    assert_int_equal(f->session->pool_count, POOL_LEAST);
    for (int turn = 0; turn < 3; turn++) /* the order of calls is another one each time */
        measure(f, turn == 0 ? EFFORT_FINAL : EFFORT_FULL);
}

/* All distributions stay, however long a set takes. */
static void test_a_hurry_draws_few_sets(void **state)
{
    static const struct fake_entry kernels[] = {{"product", fake_product}, {0}};
    static struct fixture fixture;
    struct fixture *f = &fixture;
    *state = f;
    assert_int_equal(open_product(f, kernels), 0);
    size_t all = f->session->pool_count;
    assert_true(all > POOL_LEAST && (int)POOL_LEAST >= (int)DRAW_RANDOM_COUNT);
    struct session_options options = f->session->options;
    session_close(f->session);
    options.within_ms = 1;
    assert_int_equal(
        session_open(f->problem, &fake_backend, &f->lane, &options, &f->session, &f->err), 0);
    assert_int_equal(f->session->pool_count, POOL_LEAST);
    measure(f, EFFORT_SEARCH);
    measure(f, EFFORT_FINAL);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_threads_are_watched_with_few_sets, tear_down),
        cmocka_unit_test_teardown(test_a_hurry_draws_few_sets, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
