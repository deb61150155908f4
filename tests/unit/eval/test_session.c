/* Candidates through a whole session: what must be a kernel is one, and each thing that must not
 * pass is refused by the check that is there for it. Subjects are forked children (fake_backend.h),
 * the reference is the real one. No time is asserted. */

#include "eval/measure/session_private.h"
#include "fake_backend.h"
#include "measured.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static const char *const matmul = "def reference(A, B):\n    return A @ B\n";

struct fixture {
    struct folder folder, builds;
    struct problem *problem;
    struct lane_facts lane;
    struct arena *arena;
    struct session *session;
};

/* --- kernels --- */

static void zeros(const struct fake_call *f)
{
    memset(f->c, 0, (size_t)(f->m * f->n) * sizeof(float));
}

static void nothing(const struct fake_call *f)
{
    (void)f;
}

static void last_element_missing(const struct fake_call *f)
{
    float kept = f->c[f->m * f->n - 1];
    fake_product(f);
    f->c[f->m * f->n - 1] = kept;
}

static void past_the_end(const struct fake_call *f)
{
    fake_product(f);
    f->c[f->m * f->n] = 0.0f;
}

static void before_the_start(const struct fake_call *f)
{
    fake_product(f);
    f->c[-1] = 0.0f;
}

static void crashes(const struct fake_call *f)
{
    (void)f;
    raise(SIGSEGV);
}

static void leaves(const struct fake_call *f)
{
    (void)f;
    _exit(0);
}

static void hangs(const struct fake_call *f)
{
    (void)f;
    for (;;)
        pause();
}

/* Right at first sight: it answers, and a thread computes afterwards, when everybody has looked. */
static void *compute_late(void *argument)
{
    const struct fake_call *f = (const struct fake_call *)argument;
    nanosleep(&(struct timespec){.tv_sec = 5}, NULL);
    fake_product(f);
    return NULL;
}

static void late(const struct fake_call *f)
{
    static struct fake_call kept;
    pthread_t thread;
    kept = *f;
    if (pthread_create(&thread, NULL, compute_late, &kept) == 0)
        pthread_detach(thread);
}

/* Right when it answers; a thread changes its mind when nobody should be looking. */
static void *spoil_later(void *argument)
{
    const struct fake_call *f = (const struct fake_call *)argument;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    f->c[0] += 1.0f;
    return NULL;
}

static void spoils(const struct fake_call *f)
{
    static struct fake_call kept;
    pthread_t thread;
    fake_product(f);
    kept = *f;
    if (pthread_create(&thread, NULL, spoil_later, &kept) == 0)
        pthread_detach(thread);
}

/* An answer kept by where the inputs lie and what their shape is. */
static void replays(const struct fake_call *f)
{
    static struct {
        const float *a;
        int64_t m, n;
        float c[1 << 16];
    } kept[64];
    static size_t count;
    size_t elements = (size_t)(f->m * f->n);
    for (size_t i = 0; i < count; i++)
        if (kept[i].a == f->a && kept[i].m == f->m && kept[i].n == f->n) {
            memcpy(f->c, kept[i].c, elements * sizeof(float));
            return;
        }
    fake_product(f);
    if (count < 64 && elements <= sizeof kept[0].c / sizeof(float)) {
        kept[count].a = f->a;
        kept[count].m = f->m;
        kept[count].n = f->n;
        memcpy(kept[count++].c, f->c, elements * sizeof(float));
    }
}

/* Looks for a word of its own beyond the tensors, where no red zone is, at the first call of its
 * life, and leaves one: a runner before it must not be able to tell it anything. */
static void hears_from_before(const struct fake_call *f)
{
    static bool asked;
    size_t place = f->m * f->n > 1 << 16 ? 0 : 1 << 18; /* of a large output it is none */
    volatile uint32_t *beyond = (volatile uint32_t *)(volatile void *)(f->c + place);
    bool heard = !asked && *beyond == 0x1234567;
    asked = (*beyond = 0x1234567) != 0;
    fake_product(f);
    if (heard)
        f->c[0] += 1.0f;
}

/* Honest as long as it thinks that it is being checked. */
static void lazy_later(const struct fake_call *f)
{
    static int calls;
    if (f->m == 24 && ++calls > 4)
        return;
    fake_product(f);
}

static void low_precision(const struct fake_call *f)
{
    fake_product(f);
    for (int64_t i = 0; i < f->m * f->n; i++)
        f->c[i] *= 1.0f + 0x1p-11f;
}

static void uses_workspace(const struct fake_call *f)
{
    float *workspace = f->c + (f->call->offsets[3] - f->call->offsets[2]) / sizeof(float);
    memcpy(workspace, f->b, (size_t)(f->k * f->n) * sizeof(float));
    fake_product(f);
}

static void past_workspace(const struct fake_call *f)
{
    float *workspace = f->c + (f->call->offsets[3] - f->call->offsets[2]) / sizeof(float);
    workspace[f->k * f->n] = 1.0f;
    fake_product(f);
}

/* The fake's own, and of two kernels an error of a kind. */
static int profile(const struct lane_facts *lane, const struct problem *problem,
                   const struct names *dims, const char *artifact, const char *remarks_log,
                   double time_ns, struct subject *subject, const struct call *call,
                   struct json *json, struct err *err)
{
    if (strcmp(artifact, "distrusted") == 0)
        err_set(err, ERR_PROTOCOL, "another clock says otherwise");
    else if (strcmp(artifact, "not_profiled") == 0)
        err_set(err, ERR_CHILD, "cannot be profiled");
    int status =
        fake_profile(lane, problem, dims, artifact, remarks_log, time_ns, subject, call, json, err);
    return err->code != ERR_NONE ? -1 : status;
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"unclean", fake_product},
                                            {"late_under_tools", fake_product},
                                            {"distrusted", fake_product},
                                            {"not_profiled", fake_product},
                                            {"zeros", zeros},
                                            {"nothing", nothing},
                                            {"last_element_missing", last_element_missing},
                                            {"past_the_end", past_the_end},
                                            {"before_the_start", before_the_start},
                                            {"crashes", crashes},
                                            {"leaves", leaves},
                                            {"hangs", hangs},
                                            {"late", late},
                                            {"spoils", spoils},
                                            {"replays", replays},
                                            {"lazy_later", lazy_later},
                                            {"hears_from_before", hears_from_before},
                                            {"low_precision", low_precision},
                                            {"uses_workspace", uses_workspace},
                                            {"past_workspace", past_workspace},
                                            {NULL, NULL}};

/* --- the session --- */

static int set_up(void **state)
{
    static struct fixture fixture;
    static struct backend backend;
    struct err err = {0};
    struct session_options options = {.folder = fixture.builds.path,
                                      .baseline = "product",
                                      .call_timeout_ms = 600000,
                                      .time_budget_ms = 20,
                                      .memory_bytes = 1 << 20};
    int core = 0;
    fixture = (struct fixture){0};
    backend = fake_backend;
    backend.profile = profile;
    fake_kernels = kernels;
    fake_ceiling = 0.0;
    fake_problem(&fixture.folder, matmul, "");
    folder_make(&fixture.builds);
    fixture.arena = arena_new();
    if (problem_load(fixture.folder.path, &fixture.problem, &err) != 0 ||
        fake_probe(&core, 1, false, fixture.arena, &fixture.lane, &err) != 0 ||
        session_open(fixture.problem, &backend, &fixture.lane, &options, &fixture.session, &err) !=
            0) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    session_close(fixture->session);
    problem_free(fixture->problem);
    arena_free(fixture->arena);
    folder_remove(&fixture->folder);
    folder_remove(&fixture->builds);
    return 0;
}

static struct evaluation measure_with(struct fixture *fixture, const char *source,
                                      const char *artifact, const char *sanitized,
                                      enum effort effort)
{
    struct candidate *candidate;
    struct err err = {0};
    struct names tune;
    struct evaluation evaluation = {0};
    assert_int_equal(
        candidate_parse(fixture->problem, "candidate.c", source, strlen(source), &candidate, &err),
        0);
    tune_at(candidate, 0, &tune);
    struct measure_request request = {.candidate = candidate,
                                      .tune = &tune,
                                      .artifact = artifact,
                                      .sanitized = sanitized,
                                      .effort = effort,
                                      .profile = true};
    int status = session_measure(fixture->session, &request, fixture->arena, &evaluation, &err);
    if (status != 0)
        fprintf(stderr, "%s: %s\n", artifact, err.message);
    assert_int_equal(status, 0);
    candidate_free(candidate);
    return evaluation;
}

static struct evaluation measure(struct fixture *fixture, const char *source, const char *artifact,
                                 enum effort effort)
{
    return measure_with(fixture, source, artifact, effort == EFFORT_FINAL ? artifact : NULL,
                        effort);
}

static void expect(struct fixture *fixture, const char *name, enum verdict verdict,
                   const char *reason)
{
    struct evaluation evaluation = measure(fixture, name, name, EFFORT_FULL);
    if (evaluation.verdict != verdict || strstr(evaluation.reason, reason) == NULL)
        fail_msg("%s: %s (%s), expected %s with \"%s\"", name, verdict_name(evaluation.verdict),
                 evaluation.reason, verdict_name(verdict), reason);
    assert_false(evaluation_wins(&evaluation));
}

static void test_an_honest_kernel(void **state)
{
    struct evaluation evaluation = measure(*state, "product", "product", EFFORT_FULL);
    assert_string_equal(evaluation.reason, "");
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_int_equal(evaluation.stage, STAGE_PROFILE);
    assert_int_equal(evaluation.checks_passed, evaluation.checks_total);
    assert_true(evaluation.checks_total > 20);
    assert_true(evaluation.timed_samples + evaluation.dropped_samples >= 10);
    assert_true(evaluation.time_ns.low > 0.0 && evaluation.time_ns.low <= evaluation.time_ns.high);
    assert_true(isfinite(evaluation.speedup.median) && isfinite(evaluation.spread));
    assert_string_equal(evaluation.baseline, "product");
    assert_non_null(strstr(evaluation.metrics, "profiled_ns"));
    /* two builds of one version, on another BLAS, are other questions to the cache */
    assert_non_null(strstr(evaluation.versions, "\"numpy_build\""));
    assert_non_null(strstr(evaluation.versions, "\"blas\""));
}

/* A profile that fails costs nothing; one that shows that the time is none costs all. */
static void test_another_clock(void **state)
{
    struct evaluation evaluation = measure(*state, "product", "distrusted", EFFORT_SEARCH);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_int_equal(evaluation.stage, STAGE_PROFILE);
    assert_string_equal(evaluation.reason, "another clock says otherwise");
    assert_false(evaluation_wins(&evaluation));
    assert_non_null(strstr(evaluation.metrics, "profiled_ns"));
    evaluation = measure(*state, "product", "not_profiled", EFFORT_SEARCH);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_non_null(strstr(evaluation.metrics, "profile: cannot be profiled"));
}

static void test_wrong_results(void **state)
{
    expect(*state, "zeros", VERDICT_REJECTED, "wrong result");
    expect(*state, "nothing", VERDICT_REJECTED, "wrong result");
    expect(*state, "last_element_missing", VERDICT_REJECTED, "wrong result");
    expect(*state, "low_precision", VERDICT_REJECTED, "wrong result");
}

static void test_writes_where_it_must_not(void **state)
{
    expect(*state, "past_the_end", VERDICT_REJECTED, "out of bounds, after the end of C, at M=");
    expect(*state, "before_the_start", VERDICT_REJECTED, "out of bounds, before the start of C");
}

static void test_ends_that_are_no_answers(void **state)
{
    expect(*state, "crashes", VERDICT_FAILED, "SIGSEGV");
    expect(*state, "leaves", VERDICT_FAILED, "exited 0");
}

static void test_work_past_the_end(void **state)
{
    /* On a busy machine the thread may come before we look, which makes the result wrong, or in a
     * later call, where something else lies at its address. */
    struct evaluation evaluation = measure(*state, "spoils", "spoils", EFFORT_FULL);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    if (strstr(evaluation.reason, "after the call had ended") == NULL &&
        strstr(evaluation.reason, "wrong result") == NULL &&
        strstr(evaluation.reason, "wrote out of bounds, ") == NULL)
        fail_msg("rejected, but: %s", evaluation.reason);
    evaluation = measure(*state, "late", "late", EFFORT_FULL);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
}

static void test_answers_that_were_kept(void **state)
{
    expect(*state, "replays", VERDICT_REJECTED, "wrong result");
    expect(*state, "lazy_later", VERDICT_REJECTED, "wrong result");
    expect(*state, "hears_from_before", VERDICT_KERNEL, ""); /* it heard nothing */
}

static void test_workspaces(void **state)
{
    static const char front[] = "/*---\nworkspace:\n  W: {shape: [K, N], dtype: float32}\n---*/\n";
    static const char large[] =
        "/*---\nworkspace:\n  W: {shape: [K, N, 400000], dtype: float32}\n---*/\n";
    char source[300];
    snprintf(source, sizeof source, "%suses_workspace", front);
    assert_int_equal(measure(*state, source, "uses_workspace", EFFORT_FULL).verdict,
                     VERDICT_KERNEL);
    snprintf(source, sizeof source, "%spast_workspace", front);
    struct evaluation evaluation = measure(*state, source, "past_workspace", EFFORT_FULL);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_non_null(strstr(evaluation.reason, "after the end of W"));
    snprintf(source, sizeof source, "%suses_workspace", large);
    evaluation = measure(*state, source, "uses_workspace", EFFORT_SEARCH);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_non_null(strstr(evaluation.reason, "MiB"));
}

static void test_a_champion(void **state)
{
    struct evaluation evaluation = measure(*state, "product", "product", EFFORT_FINAL);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true(evaluation.hot_ns.samples > 0);
    assert_non_null(strstr(evaluation.baselines, "\"reference\""));
    assert_non_null(strstr(evaluation.baselines, "\"product\""));
    evaluation = measure(*state, "unclean", "unclean", EFFORT_FINAL);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_int_equal(evaluation.stage, STAGE_SANITIZE);
    assert_non_null(strstr(evaluation.details, "heap-buffer-overflow"));
}

static struct evaluation sanitized(struct fixture *fixture, const char *artifact)
{
    return measure_with(fixture, "product", artifact, artifact, EFFORT_SEARCH);
}

/* Weights alone may be large: then the smallest shape is sanitized, if that comes to an end. */
static void test_sanitized_where_all_is_large(void **state)
{
    const struct fixture *fixture = (const struct fixture *)*state;
    struct fixture large = {.arena = fixture->arena, .lane = fixture->lane};
    const struct session_options options = {.folder = fixture->builds.path,
                                            .baseline = "product",
                                            .call_timeout_ms = 600000,
                                            .time_budget_ms = 20,
                                            .memory_bytes = 1 << 20};
    struct err err = {0};
    fake_problem(&large.folder, matmul, "");
    folder_put(&large.folder, "spec.yaml",
               "name: large\ndims: {M: 2, N: 600000, K: 1}\n"
               "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
               "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref_impl.py\n"
               "baselines: {product: product.c}\nflops: 2*M*N*K\n"
               "check: [{M: 1, N: 600000, K: 1}]\n"
               "hidden: {M: [1, 2], N: [600000, 600000], K: [1, 1]}\n");
    if (problem_load(large.folder.path, &large.problem, &err) != 0 ||
        session_open(large.problem, &fake_backend, &large.lane, &options, &large.session, &err) !=
            0)
        fail_msg("%s", err.message);
    assert_int_equal(sanitized(&large, "unclean").verdict, VERDICT_REJECTED);
    struct evaluation evaluation = sanitized(&large, "late_under_tools");
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_non_null(strstr(evaluation.metrics, "sanitizer: did not end"));
    assert_int_equal(sanitized(*state, "late_under_tools").verdict, VERDICT_REJECTED);
    session_close(large.session);
    problem_free(large.problem);
    folder_remove(&large.folder);
}

static void test_far_behind(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    struct candidate *candidate;
    struct err err = {0};
    struct names tune;
    struct evaluation evaluation = {0};
    assert_int_equal(
        candidate_parse(fixture->problem, "candidate.c", "product", 7, &candidate, &err), 0);
    tune_at(candidate, 0, &tune);
    struct measure_request request = {.candidate = candidate,
                                      .tune = &tune,
                                      .artifact = "product",
                                      .effort = EFFORT_SEARCH,
                                      .best_ns = 1.0};
    assert_int_equal(session_measure(fixture->session, &request, fixture->arena, &evaluation, &err),
                     0);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true(evaluation.dropped);
    assert_false(evaluation_wins(&evaluation));
    assert_memory_equal(evaluation.reason, "dropped: far behind: ", 21);
    assert_true(evaluation.timed_samples + evaluation.dropped_samples <= 10); /* when busy */
    candidate_free(candidate);
}

static void test_a_hang(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    fixture->session->options.call_timeout_ms = 300; /* nothing else is so short of time */
    expect(fixture, "hangs", VERDICT_FAILED, "in time");
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_kernel),
        cmocka_unit_test(test_another_clock),
        cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_writes_where_it_must_not),
        cmocka_unit_test(test_ends_that_are_no_answers),
        cmocka_unit_test(test_work_past_the_end),
        cmocka_unit_test(test_answers_that_were_kept),
        cmocka_unit_test(test_workspaces),
        cmocka_unit_test(test_a_champion),
        cmocka_unit_test(test_sanitized_where_all_is_large),
        cmocka_unit_test(test_far_behind),
        cmocka_unit_test(test_a_hang),
    };
    return cmocka_run_group_tests_name("session", tests, set_up, tear_down);
}
