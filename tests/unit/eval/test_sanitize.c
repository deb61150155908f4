/* A sanitizer beside the checks: which thread asks it for what, in which order, and that nothing of
 * it runs while something is timed. */
#include "eval/measure/sanitize.h"
#include "one_session.h"

#include <stdatomic.h>

static void wrong_product(const struct fake_call *f)
{
    fake_product(f);
    f->c[0] += 1000.0f;
}

static const struct fake_entry kernels[] = {
    {"product", fake_product}, {"wrong", wrong_product}, {NULL, NULL}};

/* ---- a sanitizer that does as it is told ---- */

enum { GIVEN_MOST = 64 };
enum way { WELL, FINDS, DIES, HANGS, IS_HELD, IS_DISCOURAGED, IS_HOPELESS, WAITS_FOR_EACH_OTHER };

static struct {
    enum way way; /* of what is asked beside the checks */
    pthread_t measuring;
    atomic_bool inside, was_inside_while_timed, goes, has_begun;
    atomic_int held; /* enum sanitizer_hold */
    atomic_uint timed, holds;
    bool was_cancelled;
    unsigned ahead, warmed, given, asked, apart, let_go;
    struct {
        int64_t dims[3];
        bool beside, behind; /* asked by another thread; after something was timed */
        uint32_t first;      /* number of the first input, its bits as they lie there */
    } each[GIVEN_MOST];
} tools;

static void pause_ms(long ms)
{
    const struct timespec step = {.tv_nsec = ms * 1000000};
    nanosleep(&step, NULL);
}

static void warm(const struct lane_facts *lane, const struct region *region, bool all)
{
    (void)lane;
    assert_true(region->inputs_bytes > 0);
    tools.warmed += all;
    tools.ahead += !all;
}

/* The checks last until the tools that may go have the candidate: on a busy machine they would not
 * always. A tool that discourages late does not take back that it was cancelled. */
static void hold(enum sanitizer_hold how)
{
    while (how == HOLD_ALL && atomic_load(&tools.goes) && !atomic_load(&tools.has_begun))
        pause_ms(1);
    atomic_store(&tools.goes, how == HOLD_NOTHING);
    int before = atomic_load(&tools.held);
    while ((how != HOLD_ALL || before != HOLD_CANCEL) &&
           !atomic_compare_exchange_weak(&tools.held, &before, (int)how))
        continue;
    atomic_fetch_add(&tools.holds, how == HOLD_ALL ? 1 : 0);
}

static struct fixture fixture;

static int do_as_told(struct buf *report, struct err *err)
{
    switch (tools.way) {
    case FINDS:
        buf_add_text(report, "racecheck: Error: Race reported in candidate.cu:9\n");
        return err_set(err, ERR_CHILD, "compute-sanitizer (racecheck) found a defect");
    case DIES:
    case WAITS_FOR_EACH_OTHER:
        return err_set(err, ERR_CHILD, "under compute-sanitizer (memcheck): killed by SIGKILL");
    case HANGS:
        while (!(atomic_load(&tools.held) == HOLD_CANCEL))
            pause_ms(1);
        return err_set(err, ERR_CANCELLED, "cancelled");
    case IS_DISCOURAGED:
        sanitize_discourage(fixture.session->bench, false);
        return atomic_load(&tools.held) == HOLD_ALL ? 1 : 0;
    case IS_HOPELESS:
        sanitize_discourage(fixture.session->bench, true);
        while (atomic_load(&tools.holds) < 2) /* again where the checks are over */
            pause_ms(1);
        while (atomic_load(&tools.held) != HOLD_CANCEL)
            pause_ms(1);
        tools.was_cancelled = true;
        return err_set(err, ERR_CANCELLED, "cancelled");
    case IS_HELD:
        while (atomic_load(&tools.held) < HOLD_ALL)
            pause_ms(1);
        return 1;
    case WELL:
        break;
    }
    return 0;
}

static void note_call(const struct region *region, const struct call *call, bool beside)
{
    memcpy(tools.each[tools.given].dims, call->dims, sizeof tools.each[0].dims);
    memcpy(&tools.each[tools.given].first, region->inputs + call->offsets[0], 4);
    tools.each[tools.given].behind = atomic_load(&tools.timed) > 0;
    tools.each[tools.given++].beside = beside;
}

static int sanitize(const struct lane_facts *lane, const struct region *region,
                    const char *artifact, const struct program *program, const struct call *calls,
                    size_t count, bool together, struct buf *report, struct err *err)
{
    bool beside = !pthread_equal(pthread_self(), tools.measuring);
    int status = 0;
    (void)lane, (void)program, (void)artifact;
    (void)!err_set(err, ERR_CHILD, "which the second try put right");
    atomic_store(&tools.inside, true);
    pause_ms(1);
    tools.asked += count > 0;
    tools.apart += count > 0 && !together;
    tools.let_go += count == 0;
    while (beside && atomic_load(&tools.held) == HOLD_RUNS)
        pause_ms(1);
    if (beside && atomic_load(&tools.held) == HOLD_ALL) {
        atomic_store(&tools.inside, false);
        return 1;
    }
    atomic_store(&tools.has_begun, true);
    for (size_t i = 0; i < count && tools.given < GIVEN_MOST; i++)
        note_call(region, &calls[i], beside);
    if (beside || (tools.way == WAITS_FOR_EACH_OTHER && together))
        status = do_as_told(report, err);
    atomic_store(&tools.inside, false);
    return status;
}

/* ---- a candidate that is watched ---- */

static int watched_call(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                        struct err *err)
{
    if (call->timed) {
        atomic_fetch_add(&tools.timed, 1);
        if (atomic_load(&tools.inside))
            atomic_store(&tools.was_inside_while_timed, true);
    }
    return fake_run(subject, call, elapsed_ns, err);
}

static int watched_open(const struct lane_facts *lane, const struct region *region,
                        const char *artifact, const struct program *program, bool fresh,
                        struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {watched_call, fake_pause, fake_resume, fake_close};
    int status = fake_open(lane, region, artifact, program, fresh, subject, err);
    if (status == 0)
        (*subject)->ops = &ops;
    return status;
}

/* ---- the scene ---- */

static struct backend backend;

static void begin(enum way way)
{
    memset(&tools, 0, sizeof tools);
    tools.way = way;
    tools.measuring = pthread_self();
    assert_int_equal(open_product(&fixture, kernels), 0);
    backend = fake_backend;
    backend.open = watched_open;
    backend.sanitize = sanitize;
    backend.warm_sanitizer = warm;
    backend.hold_sanitizer = hold;
    fixture.session->backend = &backend;
    fixture.request.sanitizes = fixture.request.alone = true;
    fixture.request.sanitized = "product"; /* of what wins */
    fixture.request.effort = EFFORT_FULL;
}

static struct evaluation evaluate(void)
{
    struct evaluation evaluation = {0};
    struct fixture *f = &fixture;
    if (session_measure(f->session, &f->request, f->arena, &evaluation, &f->err) != 0)
        fail_msg("%s", f->err.message);
    assert_false(atomic_load(&tools.inside));
    assert_false(atomic_load(&tools.was_inside_while_timed));
    assert_int_equal(tools.warmed, 1);
    return evaluation;
}

static void end(void)
{
    void *state = &fixture;
    assert_int_equal(tear_down(&state), 0);
}

static bool same_dims(const int64_t *one, const int64_t *other)
{
    return memcmp(one, other, 3 * sizeof *one) == 0;
}

/* Each shape once from `from` on, its inputs those of a set; returns how many. */
static unsigned expect_all(unsigned from)
{
    const struct session *session = fixture.session;
    for (unsigned i = from; i < tools.given; i++) {
        bool found = false;
        size_t before = 0, alike = 0; /* hidden shapes are drawn, and may be equal */
        for (unsigned k = from; k < i; k++)
            before += same_dims(tools.each[i].dims, tools.each[k].dims);
        for (size_t k = 0; k < session->shape_total; k++)
            alike += same_dims(session->shapes[k].dims.number, tools.each[i].dims);
        assert_true(before < alike);
        for (size_t k = 0; k < session->case_count; k++) {
            uint32_t first;
            memcpy(&first, session->cases[k].inputs[0], sizeof first);
            found = found || (same_dims(session->cases[k].shape->dims.number, tools.each[i].dims) &&
                              first == tools.each[i].first);
        }
        assert_true(found);
    }
    return tools.given - from;
}

/* ---- what is asked where ---- */

static unsigned shapes_behind(void)
{
    begin(WELL);
    fixture.request.alone = false;
    struct evaluation evaluation = evaluate();
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true(evaluation.stage_ms[STAGE_SANITIZE] > 0.0);
    for (unsigned i = 0; i < tools.given; i++)
        assert_true(tools.each[i].behind && !tools.each[i].beside);
    assert_int_equal(tools.asked, 1);
    unsigned count = expect_all(0);
    end();
    return count;
}

/* The same shapes, and the verdict counts them. */
static void test_beside(void **unused)
{
    (void)unused;
    unsigned behind = shapes_behind();
    assert_true(behind >= 3);
    begin(WELL);
    struct evaluation evaluation = evaluate();
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_true(evaluation.stage_ms[STAGE_SANITIZE] > 0.0);
    assert_int_equal(evaluation.checks_total, evaluation.checks_passed);
    assert_true(tools.timed > 0 && tools.given > 0 && tools.each[0].beside);
    assert_false(tools.each[0].behind);
    assert_true(expect_all(0) >= behind - HIDDEN_SHAPES);
    assert_int_equal(tools.asked, 1);
    assert_int_equal(tools.let_go, 0);
    assert_true(evaluation.checks_total > tools.given + tools.timed / 2);
    end();
}

static void test_finding(void **unused)
{
    (void)unused;
    begin(FINDS);
    struct evaluation evaluation = evaluate();
    assert_int_equal(evaluation.verdict, VERDICT_REJECTED);
    assert_int_equal(evaluation.stage, STAGE_SANITIZE);
    assert_non_null(strstr(evaluation.reason, "(racecheck) found a defect"));
    assert_non_null(strstr(evaluation.details, "candidate.cu:9"));
    assert_int_equal(evaluation.checks_passed, evaluation.checks_total - 1);
    assert_int_equal(tools.asked, 1);
    end();
}

/* Nothing is asked of one that does not win once it was timed; what was found before is said. */
static void test_no_win(void **unused)
{
    (void)unused;
    begin(FINDS);
    fixture.request.sanitized = NULL;
    struct evaluation evaluation = evaluate();
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_false(evaluation.stage_ms[STAGE_SANITIZE] > 0.0);
    assert_non_null(strstr(evaluation.metrics, "(racecheck) found a defect"));
    assert_int_equal(tools.asked, 1);
    end();
}

/* What died or hung said nothing: all shapes are asked again, alone; what was held goes on with the
 * same ones. */
static void test_asked_again(void **unused)
{
    static const enum way ways[] = {DIES, HANGS, IS_HELD, IS_DISCOURAGED};
    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        begin(ways[i]);
        struct evaluation evaluation = evaluate();
        assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
        assert_true(evaluation.stage_ms[STAGE_SANITIZE] > 0.0);
        assert_int_equal(evaluation.checks_total, evaluation.checks_passed);
        unsigned before = 0;
        while (before < tools.given && tools.each[before].beside)
            before++;
        assert_true(before > 0 && tools.each[before].behind);
        assert_int_equal(expect_all(before), before);
        for (unsigned k = 0; k < before; k++) {
            assert_true(same_dims(tools.each[k].dims, tools.each[before + k].dims));
            assert_int_equal(tools.each[k].first, tools.each[before + k].first);
        }
        assert_int_equal(tools.asked, 2);
        assert_int_equal(tools.apart, ways[i] == DIES || ways[i] == HANGS);
        end();
    }
}

/* What fails where all run at the same time is asked one after the other, behind the timing, too.
 */
static void test_together(void **unused)
{
    (void)unused;
    for (int alone = 0; alone < 2; alone++) {
        begin(WAITS_FOR_EACH_OTHER);
        fixture.request.alone = alone != 0;
        struct evaluation evaluation = evaluate();
        assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
        assert_int_equal(evaluation.checks_total, evaluation.checks_passed);
        assert_int_equal(tools.asked, 2);
        assert_int_equal(tools.apart, 1);
        end();
    }
}

/* Once the baseline's time is known nothing is begun for what takes longer. */
static void test_by_estimate(void **unused)
{
    (void)unused;
    for (int may_win = 0; may_win < 2; may_win++) {
        begin(WELL);
        struct session *session = fixture.session;
        baseline_remember(&session->baselines[session->baseline], may_win ? 1e12 : 1.0);
        if (!may_win)
            fixture.request.sanitized = NULL;
        assert_int_equal(evaluate().verdict, VERDICT_KERNEL);
        assert_int_equal(tools.asked, may_win);
        assert_true(!may_win || (tools.each[0].beside && !tools.each[0].behind));
        end();
    }
}

/* Of what is far behind the baseline nobody waits for the shape under way. */
static void test_hopeless(void **unused)
{
    (void)unused;
    begin(IS_HOPELESS);
    fixture.request.sanitized = NULL;
    assert_int_equal(evaluate().verdict, VERDICT_KERNEL);
    assert_true(tools.was_cancelled);
    end();
}

/* A wrong kernel's verdict waits for none of it, and neither do tools that have some of it left. */
static void test_rejected(void **unused)
{
    static const enum way ways[] = {HANGS, IS_HELD};
    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        begin(ways[i]);
        fixture.request.artifact = "wrong";
        assert_int_equal(evaluate().verdict, VERDICT_REJECTED);
        assert_int_equal(tools.timed, 0);
        assert_int_equal(tools.asked, 1);
        assert_int_equal(tools.let_go, 1);
        end();
    }
}

/* As the problem is opened the slowest tool begins to start, with the inputs' room that the rest
 * will have, too. */
static void test_ahead(void **unused)
{
    struct err err = {0};
    (void)unused;
    begin(WELL);
    assert_int_equal(sanitize_ahead(fixture.session, &err), 0);
    assert_int_equal(tools.ahead, 1);
    const unsigned char *room = fixture.session->sanitized.inputs;
    assert_int_equal(evaluate().verdict, VERDICT_KERNEL);
    assert_ptr_equal(fixture.session->sanitized.inputs, room);
    end();
}

/* ---- one that shares the candidate's memory, and is asked shape by shape ---- */

static unsigned deaths, times_asked;

static int dies(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, const struct call *calls, size_t count, bool at_once,
                struct buf *report, struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)program, (void)calls, (void)count;
    (void)at_once, (void)report;
    times_asked++;
    if (deaths == 0)
        return 0;
    deaths--;
    return err_set(err, ERR_CHILD, "it ended before its call was over");
}

/* A death that nothing was said of is asked about once more: the machine's memory may have ended.
 */
static void test_a_death_without_words(void **unused)
{
    (void)unused;
    for (unsigned most = 1; most <= 2; most++) {
        struct evaluation evaluation = {0};
        begin(WELL);
        backend.sanitize = dies;
        backend.hold_sanitizer = NULL;
        backend.warm_sanitizer = NULL;
        deaths = most;
        times_asked = 0;
        assert_int_equal(session_measure(fixture.session, &fixture.request, fixture.arena,
                                         &evaluation, &fixture.err),
                         0);
        assert_int_equal(evaluation.verdict, most == 1 ? VERDICT_KERNEL : VERDICT_REJECTED);
        assert_true(most == 1 ? times_asked > 2 : times_asked == 2);
        end();
    }
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beside),      cmocka_unit_test(test_a_death_without_words),
        cmocka_unit_test(test_finding),     cmocka_unit_test(test_no_win),
        cmocka_unit_test(test_asked_again), cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_rejected),    cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_together),    cmocka_unit_test(test_by_estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
