/* The worker as a process behind two pipes: what it answers, in which order, and how it ends. */
#include "eval/worker/worker.h"

#include "a_worker.h"
#include "eval/worker/private.h"

#include <glob.h>

static void is_slow(const struct fake_call *f)
{
    *f->cost_ns = 20000000;
    fake_product(f);
}

static void zeros(const struct fake_call *f)
{
    memset(f->c, 0, (size_t)(f->m * f->n) * sizeof(float));
}

/* Each call waits for the test, which makes this file. */
static void stays(const struct fake_call *f)
{
    char path[120];
    snprintf(path, sizeof path, "%s/go", getenv("TMPDIR"));
    while (access(path, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    fake_product(f);
}

/* ... or those alone that are timed. */
static void waits(const struct fake_call *f)
{
    if (f->call->timed)
        stays(f);
    else
        fake_product(f);
}

static const struct fake_entry kernels[] = {{"product", fake_product}, {"stays", stays},
                                            {"is_slow", is_slow},      {"zeros", zeros},
                                            {"waits", waits},          {NULL, NULL}};

static const double MEASURED = 8e9; /* by the worker that has a "device" or is a "host" */

static int set_up(void **state)
{
    return set_up_worker(state, "worker");
}

static int set_up_host(void **state)
{
    return set_up_worker(state, "host");
}

static int set_up_device(void **state)
{
    return set_up_worker(state, "device");
}

static void test_what_is_no_request(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    send_text(fixture, "not JSON\n");
    assert_string_equal(value_text(answer(fixture, NULL, NULL), "event", ""), "error");
    send_text(fixture, "{\"op\":\"dance\",\"id\":\"d\"}\n");
    assert_string_equal(value_text(answer(fixture, "d", NULL), "code", ""), "protocol");
    evaluate(fixture, "e", "product", "full");
    assert_string_equal(value_text(answer(fixture, "e", NULL), "message", ""),
                        "no problem is open");
    send_text(fixture, "{\"op\":\"open\",\"id\":\"o\",\"problem\":\"/nowhere\"}\n");
    assert_string_equal(value_text(answer(fixture, "o", NULL), "event", ""), "error");
    send_text(fixture, "{\"op\":\"open\",\"id\":\"p\"}\n"); /* a probe: no problem */
    assert_non_null(value_at(answer(fixture, "p", NULL), "versions.numpy"));
}

static double copied(struct fixture *fixture, const char *asked, bool *under_load)
{
    send_text(fixture, "{\"op\":\"open\",\"id\":\"p\",%s}\n", asked);
    const struct value *ceilings = value_get(answer(fixture, "p", NULL), "ceilings");
    *under_load = value_bool(ceilings, "under_load", false);
    return value_real(ceilings, "copy_bytes_per_s", 0.0);
}

/* Measured once for a machine; again where they are doubted and nobody else is there. Those that
 * are told hold before what is remembered. */
static void test_ceilings(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    struct lane_facts lane = {.identity = "a fake", .copy_bytes_per_s = MEASURED / 2};
    static const char *const ask = "\"roofline\":true";
    static const char *const tell = "\"ceilings\":{\"copy_bytes_per_s\":3e9}";
    bool under_load;
    assert_true(copied(fixture, ask, &under_load) == MEASURED); /* nothing is known */
    char *known = file_join(fixture->locks.path, "twagent");
    struct err err;
    assert_int_equal(file_remove_tree(known, &err), 0);
    mem_free(known);
    setenv("XDG_CACHE_HOME", fixture->locks.path, 1);
    ceilings_remember(&lane);
    assert_true(copied(fixture, ask, &under_load) == MEASURED / 2 && !under_load);
    ceilings_doubt(&lane);
    double again = copied(fixture, ask, &under_load);
    assert_true(again == MEASURED || (again == MEASURED / 2 && under_load));
    ceilings_doubt(&lane);
    assert_true(copied(fixture, tell, &under_load) == 3e9 && !under_load);
}

static void test_one_evaluation(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    char stages[16] = "";
    open_problem(fixture);
    evaluate(fixture, "e1", "product", "full");
    const struct value *value = answer(fixture, "e1", stages);
    assert_string_equal(value_text(value_get(value, "evaluation"), "verdict", ""), "kernel");
    assert_int_equal(strncmp(stages, "cct", 3), 0); /* compile, check, time */
    assert_false(value_bool(value, "remembered", false));
    evaluate(fixture, "e2", "product", "search"); /* the same again, for less */
    value = answer(fixture, "e2", NULL);
    assert_true(value_bool(value, "remembered", false));
    assert_string_equal(value_text(value_get(value, "evaluation"), "verdict", ""), "kernel");
    evaluate(fixture, "e3", "zeros", "full");
    value = value_get(answer(fixture, "e3", NULL), "evaluation");
    assert_string_equal(value_text(value, "verdict", ""), "rejected");
    assert_non_null(strstr(value_text(value, "details", ""), "shape:"));
}

static void test_what_never_runs(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    evaluate(fixture, "e1", "broken", "full");
    const struct value *value = value_get(answer(fixture, "e1", NULL), "evaluation");
    assert_string_equal(value_text(value, "verdict", ""), "failed");
    assert_string_equal(value_text(value, "stage", ""), "compile");
    assert_string_equal(value_text(value, "details", ""), "candidate.c:1: broken\n");
    evaluate(fixture, "e2", "/*---\\nnonsense: 1\\n---*/", "full");
    value = value_get(answer(fixture, "e2", NULL), "evaluation");
    assert_string_equal(value_text(value, "stage", ""), "parse");
    send_text(fixture, "{\"op\":\"evaluate\",\"id\":\"e3\",\"name\":\"c.c\",\"source\":"
                       "\"product\",\"tune\":{\"T\":1}}\n");
    value = value_get(answer(fixture, "e3", NULL), "evaluation");
    assert_non_null(strstr(value_text(value, "reason", ""), "no parameter"));
}

/* Requests that come at once are each answered; a duplicate of one in flight runs once. */
static void test_many_at_once(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    int kernels_seen = 0, remembered = 0;
    open_problem(fixture);
    evaluate(fixture, "a", "product", "search");
    evaluate(fixture, "b", "product", "search");
    evaluate(fixture, "c", "broken", "search");
    evaluate(fixture, "d", "zeros", "search");
    for (int i = 0; i < 4; i++) {
        const struct value *value = answer(fixture, NULL, NULL);
        const struct value *evaluation = value_get(value, "evaluation");
        kernels_seen += strcmp(value_text(evaluation, "verdict", ""), "kernel") == 0;
        remembered += value_bool(value, "remembered", false);
    }
    assert_int_equal(kernels_seen, 2);
    assert_int_equal(remembered, 1);
}

/* Those of a run that were asked for before anything was known of the first. */
static void test_far_behind_one_that_came_before(void **state)
{
    static const char *const sources[] = {"product", "is_slow"};
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    for (int of_run = 0; of_run < 2; of_run++)
        for (int i = 0; i < 2; i++) { /* a source is evaluated once in a session */
            send_text(fixture,
                      "{\"op\":\"evaluate\",\"id\":\"e\",\"name\":\"c.c\",\"source\":"
                      "\"%s /* %d */\",\"effort\":\"search\",\"best_ns\":0%s}\n",
                      sources[i], of_run, of_run ? ",\"of_run\":true" : "");
            const struct value *evaluation = value_get(answer(fixture, "e", NULL), "evaluation");
            assert_string_equal(value_text(evaluation, "verdict", ""), "kernel");
            assert_int_equal(value_bool(evaluation, "dropped", false), of_run == 1 && i == 1);
        }
}

/* Reads on until `id` comes to `stage`, or is answered; true where `seen` was meanwhile at
 * `compile`.
 */
static bool read_until(struct fixture *fixture, const char *id, const char *stage, const char *seen)
{
    bool compiles = false;
    for (;;) {
        const struct value *value = record(fixture);
        const char *whose = value_text(value, "id", ""), *at = value_text(value, "stage", "");
        compiles = compiles || (strcmp(whose, seen) == 0 && strcmp(at, "compile") == 0);
        bool answered = strcmp(value_text(value, "event", ""), "stage") != 0;
        if (strcmp(whose, id) == 0 && (answered || strcmp(at, stage) == 0))
            return compiles;
    }
}

/* Compilers wait while the host's clock times, not while a device's does. */
static void compile_beside(struct fixture *fixture, bool device)
{
    bool compiles = false;
    open_problem(fixture);
    evaluate(fixture, "a", "waits", "full");
    (void)read_until(fixture, "a", "time", "");
    evaluate(fixture, "b", "product", "search");
    while (device && !compiles) {
        const struct value *value = record(fixture);
        compiles = strcmp(value_text(value, "id", ""), "b") == 0 &&
                   strcmp(value_text(value, "stage", ""), "compile") == 0;
    }
    for (int turns = 0; turns < 3; turns++) { /* by the last answer b has had its turn */
        send_text(fixture, "{\"op\":\"dance\",\"id\":\"d\"}\n");
        compiles = read_until(fixture, "d", "", "b") || compiles;
    }
    assert_int_equal(compiles, device);
    folder_put(&fixture->builds, "go", "");
    for (int left = 2; left > 0; left--) {
        const struct value *value = answer(fixture, NULL, NULL);
        assert_string_equal(value_text(value_get(value, "evaluation"), "verdict", ""), "kernel");
    }
}

static void test_compiles_beside_a_device(void **state)
{
    compile_beside((struct fixture *)*state, true);
}

static void test_compiles_after_a_host(void **state)
{
    compile_beside((struct fixture *)*state, false);
}

static void test_cancelling(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    evaluate(fixture, "slow", "stays", "full");
    for (const struct value *value = record(fixture);
         strcmp(value_text(value, "stage", ""), "check") != 0;)
        value = record(fixture);
    send_text(fixture, "{\"op\":\"cancel\",\"id\":\"slow\"}\n{\"op\":\"dance\",\"id\":\"d\"}\n");
    for (int left = 2; left > 0; left--) { /* a call that has begun ends first */
        const struct value *value = answer(fixture, NULL, NULL);
        bool heard = strcmp(value_text(value, "id", ""), "d") == 0;
        assert_string_equal(value_text(value, "code", ""), heard ? "protocol" : "cancelled");
        if (heard)
            folder_put(&fixture->builds, "go", "");
    }
    evaluate(fixture, "next", "product", "search");
    const struct value *value = value_get(answer(fixture, "next", NULL), "evaluation");
    assert_string_equal(value_text(value, "verdict", ""), "kernel");
}

static void test_a_problem_is_checked(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    send_text(fixture, "{\"op\":\"check_problem\",\"id\":\"f\"}\n");
    const struct value *value = answer(fixture, "f", NULL);
    const struct value *findings = value_get(value, "findings");
    assert_true(findings != NULL && findings->count >= 9);
    for (size_t i = 0; i < findings->count; i++)
        if (!value_bool(findings->items[i], "passed", false))
            fail_msg("%s: %s", value_text(findings->items[i], "name", ""),
                     value_text(findings->items[i], "text", ""));
    assert_true(value_bool(value, "fit", false));
}

/* The end of its input ends it once a call that has begun ends; nothing stays behind. */
static void test_the_end(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    struct err err = {0};
    const char *line;
    char pattern[100];
    glob_t found;
    open_problem(fixture);
    evaluate(fixture, "slow", "stays", "full");
    record(fixture);
    close(fixture->child.input);
    fixture->child.input = open("/dev/null", O_WRONLY | O_CLOEXEC);
    folder_put(&fixture->builds, "go", "");
    while (child_line(&fixture->child, HANG_MS, &line, &err) == 0)
        continue;
    assert_int_equal(err.code, ERR_CHILD);
    snprintf(pattern, sizeof pattern, "%s/go", fixture->builds.path);
    assert_int_equal(unlink(pattern), 0);
    snprintf(pattern, sizeof pattern, "%s/*", fixture->builds.path);
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

/* --- a turn at what another one holds --- */

struct waiter {
    struct task task;
    struct worker worker;
    struct turn turn;
    struct core_lock others;
    int asked;
    bool shares; /* it does not time */
};

static enum task_result wait_for_turn(struct task *task)
{
    struct waiter *waiter = (struct waiter *)task;
    bool taken = waiter->shares ? turn_share(&waiter->worker, &waiter->turn, task, "w")
                                : turn_take(&waiter->worker, &waiter->turn, task, "w");
    if (waiter->turn.timer.armed && waiter->asked++ == 3)
        core_lock_release(&waiter->others);
    assert_int_equal(taken, !waiter->turn.timer.armed);
    return taken ? TASK_DONE : TASK_WAIT;
}

/* Returns how often it has asked. */
static int asks_in(struct waiter *waiter)
{
    static const char *const states[] = {"waiting"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {"waiter", states, moves, 1, wait_for_turn, NULL};
    struct loop *loop = loop_new();
    task_start(loop, &waiter->task, &type, NULL, "waiter");
    loop_run(loop);
    assert_true(waiter->turn.taken);
    loop_free(loop);
    return waiter->asked;
}

/* However often it asks: it has its turn when the other one is done, and not before; who shares
 * does not wait for those who do. */
static int asks(bool shares, bool others_share)
{
    struct folder folder;
    struct waiter waiter = {.turn.patience_ns = UINT64_MAX, .shares = shares};
    char power[sizeof folder.path + 8];
    folder_make(&folder);
    snprintf(power, sizeof power, "%s/power", folder.path);
    assert_int_equal(mkdir(power, 0700), 0);
    waiter.worker.lane.lock_path = folder.path;
    assert_true(core_lock_try_path(&waiter.others, folder.path, others_share));
    assert_int_equal(waiter.others.count, 1);
    int asked = asks_in(&waiter);
    turn_end(&waiter.turn);
    core_lock_release(&waiter.others);
    folder_remove(&folder);
    return asked;
}

static void test_who_waits_waits(void **state)
{
    (void)state;
    assert_true(asks(false, false) >= 4);
    assert_true(asks(false, true) >= 4);
    assert_true(asks(true, false) >= 4);
    assert_int_equal(asks(true, true), 0);
}

/* A last measurement waits until another one has ended, also while that one lets others in; who is
 * none does not. */
static void test_last_ones_do_not_take_turns(void **state)
{
    (void)state;
    for (int final = 0; final < 2; final++) {
        struct folder folder;
        struct waiter waiter = {.turn = {.patience_ns = final ? 1 : UINT64_MAX, .final = final}};
        struct core_lock third = {.count = 0};
        char vendor[sizeof folder.path + 8];
        folder_make(&folder);
        folder_put(&folder, "vendor", "");
        snprintf(vendor, sizeof vendor, "%s/vendor", folder.path);
        waiter.worker.lane.lock_path = folder.path;
        assert_true(core_lock_try_path(&waiter.others, vendor, false));
        assert_int_equal(waiter.others.count, 1);
        int asked = asks_in(&waiter);
        assert_true(final ? asked >= 4 : asked == 0);
        core_lock_release(&waiter.others);
        assert_int_equal(core_lock_try_path(&third, vendor, false), !final);
        turn_end(&waiter.turn);
        assert_true(core_lock_try_path(&third, vendor, false));
        core_lock_release(&third);
        folder_remove(&folder);
    }
}

static void *breathes(void *argument)
{
    struct waiter *waiter = (struct waiter *)argument;
    return turn_breathe(&waiter->worker, &waiter->turn) > 0 ? waiter : NULL;
}

/* Who times on a device for long lets those in who wait for it, and has it again after them. */
static void test_who_times_lets_others_in(void **state)
{
    struct folder folder;
    struct waiter waiter = {.turn = {.taken = true}};
    struct core_lock queue = {.count = 0};
    char power[sizeof folder.path + 8];
    pthread_t thread;
    void *let;
    (void)state;
    folder_make(&folder);
    snprintf(power, sizeof power, "%s/power", folder.path);
    assert_int_equal(mkdir(power, 0700), 0);
    waiter.worker.lane.lock_path = folder.path;
    assert_true(core_lock_try_path(&waiter.turn.lock, folder.path, false));
    assert_null(breathes(&waiter)); /* nobody waits */
    assert_false(core_lock_try_path(&waiter.others, folder.path, false));
    assert_true(core_lock_try_path(&queue, power, false));
    waiter.turn.held_ns = UINT64_MAX / 2; /* not for long yet */
    assert_null(breathes(&waiter));
    waiter.turn.held_ns = 0;
    assert_int_equal(pthread_create(&thread, NULL, breathes, &waiter), 0);
    while (!core_lock_try_path(&waiter.others, folder.path, false))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    core_lock_release(&queue);
    core_lock_release(&waiter.others);
    assert_int_equal(pthread_join(thread, &let), 0);
    assert_non_null(let);
    assert_int_equal(waiter.turn.lock.count, 1);
    assert_false(core_lock_try_path(&waiter.others, folder.path, false));
    turn_end(&waiter.turn);
    folder_remove(&folder);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    fake_kernels = kernels;
    if (argc >= 2 && strcmp(argv[1], "worker") == 0)
        return worker_main(&(struct worker_options){.backend = &fake_backend});
    struct backend device = fake_backend;
    device.device = true;
    device.open = fake_open_on_device;
    fake_identity = "a fake";
    fake_ceiling = MEASURED;
    bool host = argc >= 2 && strcmp(argv[1], "host") == 0;
    fake_gpu = fake_costs = !host;
    if (host || (argc >= 2 && strcmp(argv[1], "device") == 0))
        return worker_main(&(struct worker_options){.backend = host ? &fake_backend : &device,
                                                    .cores = our_cores()});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_no_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ceilings, set_up_host, tear_down),
        cmocka_unit_test_setup_teardown(test_one_evaluation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_never_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_far_behind_one_that_came_before, set_up_device,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_compiles_beside_a_device, set_up_device, tear_down),
        cmocka_unit_test_setup_teardown(test_compiles_after_a_host, set_up_host, tear_down),
        cmocka_unit_test_setup_teardown(test_cancelling, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_problem_is_checked, set_up, tear_down),
        cmocka_unit_test(test_who_waits_waits),
        cmocka_unit_test(test_last_ones_do_not_take_turns),
        cmocka_unit_test(test_who_times_lets_others_in),
        cmocka_unit_test_setup_teardown(test_the_end, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
