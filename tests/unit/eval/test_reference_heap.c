/* Where numpy has large arrays from: what is computed for checks from memory that was its own
 * before, what is timed from fresh pages, as in a user's process. Counted in page faults. */
#include "eval/reference/reference.h"

#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

/* Faults of the call before are its first number. 48 MiB are more than a process keeps by itself.
 */
static const char source[] =
    "import resource\n"
    "import numpy as np\n"
    "before = 0\n"
    "def faults():\n"
    "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
    "def reference(A, B):\n"
    "    global before\n"
    "    result, begun = np.full((A.shape[0], B.shape[1]), before, A.dtype), faults()\n"
    "    for i in range(4):\n"
    "        np.ones(6 << 20)\n"
    "    before = faults() - begun\n"
    "    return result\n";

struct fixture {
    struct folder folder;
    struct problem *problem;
    struct arena *arena;
    struct region region;
    struct layout layout;
    struct call call;
    struct reference *reference;
    struct err err;
};

static void begin(struct fixture *fixture)
{
    static const struct lane_facts lane;
    const char *python;
    *fixture = (struct fixture){.arena = arena_new()};
    fake_problem(&fixture->folder, source, "");
    assert_int_equal(problem_load(fixture->folder.path, &fixture->problem, &fixture->err), 0);
    assert_int_equal(layout_make(fixture->problem, &fixture->problem->shapes[0], NULL, NULL, 64,
                                 &fixture->layout, &fixture->err),
                     0);
    assert_int_equal(region_open(fixture->layout.inputs_bytes, fixture->layout.outputs_bytes,
                                 &fixture->region, &fixture->err),
                     0);
    assert_int_equal(reference_open(fixture->problem, &lane, &fixture->region, NULL, fixture->arena,
                                    &python, &fixture->reference, &fixture->err),
                     0);
    assert_int_equal(reference_ready(fixture->reference, &fixture->err), 0);
    call_make(&fixture->layout, 0, 600000, &fixture->call);
}

static void end(struct fixture *fixture)
{
    reference_close(fixture->reference);
    region_close(&fixture->region);
    problem_free(fixture->problem);
    arena_free(fixture->arena);
    folder_remove(&fixture->folder);
}

/* Of the call before this one. */
static float faults(struct fixture *fixture)
{
    float results[4096];
    void *outs[] = {results};
    assert_true(fixture->layout.outputs[0].elements <= 4096);
    assert_int_equal(reference_compute(fixture->reference, &fixture->layout, &fixture->call,
                                       PRECISION_SPEC, outs, &fixture->err),
                     0);
    return results[0];
}

static void test_faults(void **state)
{
    struct fixture fixture;
    uint64_t elapsed_ns;
    (void)state;
    begin(&fixture);
    struct subject *subject = reference_subject(fixture.reference);
    (void)faults(&fixture);
    float first = faults(&fixture), again = faults(&fixture);
    assert_int_equal(subject_call(subject, &fixture.call, &elapsed_ns, &fixture.err), 0);
    assert_int_equal(subject_call(subject, &fixture.call, &elapsed_ns, &fixture.err), 0);
    float timed = faults(&fixture);
    (void)faults(&fixture);
    float later = faults(&fixture);
    assert_true(first >= 1.0F);         /* the first call's own */
    assert_true(timed >= 4.0F * 24.0F); /* pages of 2 MiB at the largest */
    assert_true(again < timed / 4.0F);
    assert_true(later < timed / 4.0F);
    end(&fixture);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests_name("reference_heap", tests, NULL, NULL);
}
