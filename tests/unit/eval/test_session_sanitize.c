/* Which shapes the sanitizer has, and when: of a device beside the checks. */
#include "one_session.h"

static size_t sanitized, words;
static bool unclean;
static char order[64]; /* of what the tools were told: call, dismiss, settle, last word, drop */

static void note_word(char word)
{
    if (words < sizeof order - 1)
        order[words++] = word;
}

static bool takes_at_times(void)
{
    static unsigned turn;
    return turn++ % 3 == 0;
}

static void note_settle(void)
{
    note_word('s');
}

static void note_dismiss(void)
{
    note_word('d');
}

static void note_drop(void)
{
    note_word('x');
}

static int sanitize_noted(const struct lane_facts *lane, const struct region *region,
                          const char *artifact, const struct program *program,
                          const struct call *call, struct buf *report, struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)program;
    note_word(call != NULL ? 'c' : 'w');
    if (call != NULL || !unclean)
        return 0;
    buf_add_text(report, "a race");
    return err_set(err, ERR_CHILD, "found a defect");
}

/* A device's tools have all their shapes before anything is timed, and their last word behind it:
 * a win's verdict, a note for what is none. */
static void test_sanitized_ahead(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    static const struct sanitizer_ahead ahead = {takes_at_times, note_settle, note_dismiss,
                                                 note_drop};
    struct backend backend = fake_backend;
    struct evaluation evaluation = {0};
    struct measure_request request = f->request;
    backend.sanitize = sanitize_noted;
    backend.ahead = &ahead;
    f->session->backend = &backend;
    request.sanitizes = true;
    request.sanitized = request.artifact;
    request.effort = EFFORT_FINAL;
    assert_int_equal(session_measure(f->session, &request, f->arena, &evaluation, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    size_t calls = strspn(order, "c");
    if (calls == 0 || strcmp(order + calls, "dswx") != 0)
        fail_msg("%s", order);
    int64_t passed = evaluation.checks_passed;
    assert_int_equal(evaluation.checks_total, passed);
    for (int win = 0; win < 2; win++) {
        memset(order, 0, sizeof order);
        words = 0;
        unclean = true;
        request.sanitized = win != 0 ? "sanitized" : NULL;
        assert_int_equal(session_measure(f->session, &request, f->arena, &evaluation, &f->err), 0);
        assert_int_equal(evaluation.verdict, win != 0 ? VERDICT_REJECTED : VERDICT_KERNEL);
        if (win != 0) {
            assert_string_equal(evaluation.details, "a race");
            assert_int_equal(evaluation.checks_total, evaluation.checks_passed + 1);
        } else {
            assert_non_null(strstr(evaluation.metrics, "found a defect; a win would be refused"));
        }
    }
    f->session->backend = &fake_backend;
}

static int count_sanitized(const struct lane_facts *lane, const struct region *region,
                           const char *artifact, const struct program *program,
                           const struct call *call, struct buf *report, struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)program, (void)report, (void)err;
    sanitized += call != NULL;
    return 0;
}

/* A win waits for the tools at small work and short sums; a final has them at all that fits. */
static void test_sanitized_at_small_work(void **state)
{
    struct fixture *f = (struct fixture *)*state, own = *f;
    const struct session_options options = {
        .folder = f->builds.path, .baseline = "product", .memory_bytes = 1 << 20};
    struct backend backend = fake_backend;
    backend.sanitize = count_sanitized;
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

static const struct fake_entry kernels[] = {{"product", fake_product}, {NULL, NULL}};

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    return open_product(&f, kernels);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sanitized_ahead),
        cmocka_unit_test(test_sanitized_at_small_work),
    };
    return cmocka_run_group_tests_name("session_sanitize", tests, set_up, tear_down);
}
