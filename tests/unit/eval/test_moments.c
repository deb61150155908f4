/* What a subject does at a moment of its own choosing, and in which order it is called. The moments
 * are made on this side of its pipes, so that a busy machine changes nothing. */
#include "one_session.h"

static struct {
    struct region region;
    bool called;          /* since it was paused last */
    bool lingers, behind; /* which moment is its own */
    int64_t m[64];        /* of its first calls */
    size_t calls;
} watched;

static void nothing(const struct fake_call *f)
{
    (void)f;
}

/* Past the red zone, where a larger shape's output would lie. */
static void far(const struct fake_call *f)
{
    fake_product(f);
    f->c[f->m * f->n + 4096] = 1.0f;
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"lingers", fake_product},
                                            {"behind", nothing},
                                            {"far", far},
                                            {NULL, NULL}};

static int watched_call(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                        struct err *err)
{
    watched.called = true;
    if (watched.calls < 64)
        watched.m[watched.calls++] = call->dims[0];
    return fake_run(subject, call, elapsed_ns, err);
}

/* The one writes when it was let go again without a call, the other after it has answered and
 * before it stands still. */
static void watched_pause(struct subject *subject)
{
    const struct call *call = &((struct fake_subject *)subject)->shared->call;
    struct fake_call f = {.a = (const float *)(watched.region.inputs + call->offsets[0]),
                          .b = (const float *)(watched.region.inputs + call->offsets[1]),
                          .c = (float *)(watched.region.outputs + call->offsets[2]),
                          .m = call->dims[0],
                          .n = call->dims[1],
                          .k = call->dims[2],
                          .call = call};
    fake_pause(subject);
    if (watched.lingers && !watched.called)
        f.c[0] += 1.0f;
    if (watched.behind && watched.called)
        fake_product(&f);
    watched.called = false;
}

static int open_watched(const struct lane_facts *lane, const struct region *region,
                        const char *artifact, const struct program *program, bool fresh,
                        struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {watched_call, watched_pause, fake_resume, fake_close};
    int status = fake_open(lane, region, artifact, program, fresh, subject, err);
    if (status != 0 || region->outputs == NULL)
        return status;
    watched.region = *region;
    watched.lingers = strcmp(artifact, "lingers") == 0;
    watched.behind = strcmp(artifact, "behind") == 0;
    watched.called = false;
    (*subject)->ops = &ops;
    return 0;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    static struct backend backend;
    *state = &fixture;
    if (open_product(&fixture, kernels) != 0)
        return -1;
    backend = fake_backend;
    backend.open = open_watched;
    fixture.session->backend = &backend;
    return 0;
}

static void expect_rejected(struct fixture *f, const char *artifact, const char *reason)
{
    struct evaluation evaluation = {0};
    f->request.artifact = artifact;
    assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_non_null(strstr(evaluation.reason, reason));
    f->request.artifact = "product";
}

/* Nothing but the check of what comes after a call sees the one, nothing but the elements that are
 * read as a call ends the other. */
static void test_each_late_write_is_seen(void **state)
{
    expect_rejected(*state, "lingers", "after the call had ended");
    expect_rejected(*state, "behind", "after the call had ended");
}

static void test_far_writes_are_seen(void **state)
{
    expect_rejected(*state, "far", "out of bounds, after the end of C");
}

/* No two candidates are called with the same shapes in the same order. */
static void test_checks_are_shuffled(void **state)
{
    int64_t before[20];
    for (int i = 0; i < 2; i++) {
        memcpy(before, watched.m, sizeof before);
        watched.calls = 0;
        measure(*state, EFFORT_SEARCH);
        assert_true(watched.calls > 20);
    }
    assert_memory_not_equal(before, watched.m, sizeof before);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_late_write_is_seen),
                                       cmocka_unit_test(test_far_writes_are_seen),
                                       cmocka_unit_test(test_checks_are_shuffled)};
    return cmocka_run_group_tests_name("moments", tests, set_up, tear_down);
}
