/* A lane from the agent's side: answers, stages, a worker that dies, one that says nonsense, and
 * the end. The workers are this program: an honest one, and some that misbehave, chosen by
 * --backend. */
#include "eval/lane/lane.h"

#include "base/log.h"
#include "eval/lane/private.h"
#include "eval/worker/worker.h"
#include "fake_backend.h"
#include "loop/loop.h"
#include "loop/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static const struct fake_entry kernels[] = {{"product", fake_product}, {NULL, NULL}};

/* --- workers that misbehave --- */

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static const char *id_of(char *line)
{
    char *id = strstr(line, "\"id\":\"");
    id = id != NULL ? id + 6 : line;
    id[strcspn(id, "\"")] = '\0';
    return id;
}

static void answer_open(char *line)
{
    printf("{\"id\":\"%s\",\"event\":\"result\",\"ceilings\":{\"flops_per_s\":5.0}}\n",
           id_of(line));
    fflush(stdout);
}

/* Opens, then dies at the first evaluation; one that was opened again says so and does not. */
static int dies(void)
{
    static char line[1 << 16];
    bool again = false;
    while (fgets(line, sizeof line, stdin) != NULL) {
        again = again || strstr(line, "\"id\":\"reopen\"") != NULL;
        bool known = strstr(line, "\"ceilings\":{\"flops_per_s\":5") != NULL;
        if (strstr(line, "\"op\":\"open\"") != NULL) {
            answer_open(line);
            if (again && !known)
                return 9;
            continue;
        }
        if (!again) {
            fprintf(stderr, "something is amiss\n");
            return 7;
        }
        printf("{\"id\":\"%s\",\"event\":\"error\",\"code\":\"usage\",\"message\":\"again\"}\n",
               id_of(line));
        fflush(stdout);
    }
    return 0;
}

static int babbles(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin) != NULL) {
        say("hello");
        say("{\"id\":\"nobody\",\"event\":\"result\"}");
        say("[1, 2]");
        printf("{\"id\":\"%s\",\"event\":\"result\",\"evaluation\":{}}\n", id_of(line));
        fflush(stdout);
    }
    return 0;
}

/* Cannot read what it was sent, and so cannot say whose it was. */
static int puzzled(void)
{
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin) != NULL)
        say("{\"id\":null,\"event\":\"error\",\"code\":\"usage\",\"message\":\"what?\"}");
    return 0;
}

/* Opens, late as a job that waits for its node, then answers whoever asks whether it is there,
 * once: with that comes the evaluation. Opened again it falls silent for good. */
static int far_off(void)
{
    static char line[1 << 16], id[64];
    bool again = false;
    while (fgets(line, sizeof line, stdin) != NULL) {
        again = again || strstr(line, "\"id\":\"reopen\"") != NULL;
        if (strstr(line, "\"op\":\"open\"") != NULL) {
            usleep(50000);
            printf("{\"id\":\"%s\",\"event\":\"result\",\"host\":\"node7\"}\n", id_of(line));
        } else if (strstr(line, "\"op\":\"evaluate\"") != NULL) {
            snprintf(id, sizeof id, "%.63s", id_of(line));
        } else if (!again) {
            say("{\"id\":\"ping\",\"event\":\"result\"}");
            printf("{\"id\":\"%s\",\"event\":\"error\",\"code\":\"usage\",\"message\":\"%s\"}\n",
                   id, strstr(line, "\"op\":\"ping\"") != NULL ? "pinged" : "what?");
        }
        fflush(stdout);
    }
    return 0;
}

_Noreturn static void deaf(void) /* neither answers nor ends when its input does */
{
    signal(SIGTERM, SIG_IGN);
    for (;;)
        pause();
}

/* --- driving --- */

struct driver {
    struct task task;
    struct lane *lane;
    struct lane_request requests[4];
    size_t count;
    bool (*script)(struct driver *driver); /* true: over */
    int step, stages;
};

static enum task_result drive(struct task *task)
{
    struct driver *driver = (struct driver *)task;
    for (size_t i = 0; i < driver->count; i++)
        driver->stages |= 1 << driver->requests[i].stage;
    for (size_t i = 0; i < driver->count; i++)
        if (driver->requests[i].active)
            return TASK_WAIT;
    if (!driver->script(driver))
        return TASK_WAIT;
    lane_close(driver->lane);
    return TASK_DONE;
}

static struct lane_request *submit(struct driver *driver, enum lane_op op)
{
    struct lane_request *request = &driver->requests[driver->count++];
    *request = (struct lane_request){.op = op,
                                     .id = "same",
                                     .name = "c.c",
                                     .source = "product",
                                     .source_length = 7,
                                     .effort = EFFORT_SEARCH};
    lane_submit(driver->lane, request, &driver->task);
    return request;
}

static void run(const char *backend, const char *problem, bool (*script)(struct driver *driver),
                struct driver *driver)
{
    static const char *const states[] = {"driving"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {"driver", states, moves, 1, drive, NULL};
    const struct lane_spec spec = {
        .backend = backend, .problem = problem, .baseline = "product", .time_budget_ms = 10};
    struct err err = {0};
    struct loop *loop = loop_new();
    *driver = (struct driver){.script = script};
    task_start(loop, &driver->task, &type, NULL, "driver");
    assert_int_equal(lane_open(loop, &spec, &driver->lane, &err), 0);
    loop_run(loop);
    assert_true(lane_closed(driver->lane));
    lane_free(driver->lane);
    loop_free(loop);
}

static void clean(struct driver *driver)
{
    for (size_t i = 0; i < driver->count; i++)
        arena_free(driver->requests[i].arena);
}

/* --- tests --- */

static bool open_then_evaluate(struct driver *driver)
{
    if (driver->step == 0)
        submit(driver, LANE_OPEN);
    if (driver->step == 1) {
        submit(driver, LANE_EVALUATE);
        submit(driver, LANE_CHECK_PROBLEM); /* the same id, and its own answer */
    }
    return driver->step++ == 2;
}

static void test_answers(void **state)
{
    struct folder folder;
    struct driver driver;
    (void)state;
    fake_problem(&folder, "def reference(A, B):\n    return A @ B\n", "");
    run("fake", folder.path, open_then_evaluate, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_NONE);
    assert_non_null(value_get(driver.requests[0].answer, "device"));
    assert_int_equal(driver.requests[1].err.code, ERR_NONE);
    assert_int_equal(driver.requests[1].evaluation.verdict, VERDICT_KERNEL);
    assert_true(driver.requests[1].evaluation.time_ns.median > 0.0);
    assert_true(value_bool(driver.requests[2].answer, "fit", false));
    assert_true((driver.stages & 1 << STAGE_CHECK) != 0 || (driver.stages & 1 << STAGE_TIME) != 0);
    clean(&driver);
    folder_remove(&folder);
}

static void test_a_worker_that_dies(void **state)
{
    struct driver driver;
    (void)state;
    run("dies", NULL, open_then_evaluate, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_NONE);
    assert_int_equal(driver.requests[1].err.code, ERR_CHILD);
    assert_non_null(strstr(driver.requests[1].err.message, "exited 7"));
    assert_non_null(strstr(driver.requests[1].err.message, "something is amiss"));
    assert_int_equal(driver.requests[2].err.code, ERR_CHILD); /* it was in flight as well */
    clean(&driver);
}

static bool die_and_ask_again(struct driver *driver)
{
    if (driver->step == 0)
        submit(driver, LANE_OPEN);
    if (driver->step == 1 || driver->step == 2)
        submit(driver, LANE_EVALUATE);
    return driver->step++ == 3;
}

static void test_the_next_one_opens_again(void **state)
{
    struct driver driver;
    (void)state;
    run("dies", NULL, die_and_ask_again, &driver);
    assert_int_equal(driver.requests[1].err.code, ERR_CHILD);
    assert_int_equal(driver.requests[2].err.code, ERR_USAGE);
    assert_string_equal(driver.requests[2].err.message, "again");
    clean(&driver);
}

/* Whose worker was asked whether it is there: until it says so no time passes. */
static const struct lane *patient_with;
static uint64_t clock_of_patience(void *context)
{
    struct timespec now;
    (void)context;
    if (patient_with != NULL && patient_with->pinged_ms > 0)
        return patient_with->pinged_ms * 1000000;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool ask_far_off(struct driver *driver)
{
    enum { QUEUED_MS = 5, SILENCE_MS = 1000, GONE_MS = 100 };
    struct lane *lane = driver->lane;
    lane->elsewhere = true;
    lane->silence_ms = driver->step == 0 ? QUEUED_MS : driver->step == 1 ? SILENCE_MS : GONE_MS;
    patient_with = driver->step == 1 ? lane : NULL;
    if (driver->step == 2) { /* it ended, say with its job */
        assert_string_equal(lane_host(lane), "node7");
        assert_true(lane_is_up(lane));
        process_stop(lane->process);
    }
    if (driver->step == 3)
        assert_false(lane_is_up(lane));
    if (driver->step < 4)
        submit(driver, driver->step == 0 ? LANE_OPEN : LANE_EVALUATE);
    return driver->step++ == 4;
}

static void test_a_worker_elsewhere_falls_silent(void **state)
{
    struct driver driver;
    (void)state;
    clock_inject(clock_of_patience, NULL);
    run("far off", NULL, ask_far_off, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_NONE);
    assert_string_equal(driver.requests[1].err.message, "pinged");
    assert_int_equal(driver.requests[2].err.code, ERR_CHILD);
    assert_non_null(strstr(driver.requests[2].err.message, "the worker on node7 ended"));
    assert_int_equal(driver.requests[3].err.code, ERR_CHILD); /* it never said anything more */
    clean(&driver);
}

static bool open_again(struct driver *driver)
{
    if (driver->step == 0)
        submit(driver, LANE_OPEN);
    return driver->step++ > 0 &&
           !lane_open_again(driver->lane, &driver->requests[0], &driver->task);
}

static void test_opening_is_tried_three_times(void **state)
{
    struct driver driver;
    (void)state;
    run("stillborn", NULL, open_again, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_CHILD);
    assert_int_equal(driver.requests[0].deaths, 1 + WORKER_DEATHS_MAX);
    assert_int_equal(driver.step, 2 + WORKER_DEATHS_MAX);
    clean(&driver);
}

static bool one_evaluation(struct driver *driver)
{
    if (driver->step == 0)
        submit(driver, LANE_EVALUATE);
    return driver->step++ == 1;
}

static void test_nonsense(void **state)
{
    struct driver driver;
    (void)state;
    run("babbles", NULL, one_evaluation, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_PROTOCOL);
    clean(&driver);
}

static void test_an_error_for_nobody_is_everybodys(void **state)
{
    struct driver driver;
    (void)state;
    run("puzzled", NULL, one_evaluation, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_PROTOCOL);
    assert_non_null(strstr(driver.requests[0].err.message, "what?"));
    clean(&driver);
}

/* No JSON line holds them: such a source is refused before anything is sent. */
static bool submit_no_text(struct driver *driver)
{
    static const struct {
        const char *source;
        size_t length;
    } sources[] = {{"void\n kernel\0", 13}, {"\xff\xfev\0", 4}, {"a\n\n\xff", 4}};
    for (; driver->step == 0 && driver->count < 3; driver->count++) {
        struct lane_request *request = &driver->requests[driver->count];
        *request = (struct lane_request){.op = LANE_EVALUATE,
                                         .id = "same",
                                         .name = "c.c",
                                         .source = sources[driver->count].source,
                                         .source_length = sources[driver->count].length};
        lane_submit(driver->lane, request, &driver->task);
    }
    task_wake(&driver->task);
    return driver->step++ == 1;
}

static void test_what_is_no_text_is_not_sent(void **state)
{
    static const char *const messages[] = {"c.c:2: expected text without NUL bytes",
                                           "c.c:1: expected UTF-8 text, not UTF-16",
                                           "c.c:3: expected UTF-8 text, not a byte 0xFF"};
    struct driver driver;
    (void)state;
    run("deaf", NULL, submit_no_text, &driver);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(driver.requests[i].err.code, ERR_USAGE);
        assert_string_equal(driver.requests[i].err.message, messages[i]);
    }
}

static bool cancel_one(struct driver *driver)
{
    if (driver->step++ > 0)
        return true;
    struct lane_request *request = submit(driver, LANE_EVALUATE);
    assert_true(request->active);
    lane_cancel(driver->lane, request);
    assert_true(request->done && !request->active);
    lane_cancel(driver->lane, request); /* harmless */
    task_wake(&driver->task);
    return false;
}

static void test_cancelling(void **state)
{
    struct driver driver;
    (void)state;
    run("deaf", NULL, cancel_one, &driver);
    assert_int_equal(driver.requests[0].err.code, ERR_CANCELLED);
}

static bool close_in_flight(struct driver *driver)
{
    if (driver->step++ > 0)
        return true;
    submit(driver, LANE_EVALUATE);
    assert_true(lane_busy_ratio(driver->lane) >= 0.0);
    lane_close(driver->lane);
    assert_int_equal(driver->requests[0].err.code, ERR_CANCELLED);
    return false;
}

static void test_closing(void **state)
{
    struct driver driver;
    (void)state;
    run("deaf", NULL, close_in_flight, &driver);
    run("fake", NULL, close_in_flight, &driver);
}

static void test_waiting_is_not_busy(void **state)
{
    const struct lane lane = {.first_ns = 1, .busy_ns = 5000000, .waits_ns = 2000000};
    (void)state;
    assert_true(lane_busy_ms(&lane) == 3.0);
}

static void test_what_cannot_start(void **state)
{
    const struct lane_spec spec = {.launcher = "/nowhere/launcher", .backend = "fake"};
    struct loop *loop = loop_new();
    struct lane *lane;
    struct err err = {0};
    (void)state;
    assert_int_equal(lane_open(loop, &spec, &lane, &err), -1);
    assert_int_equal(err.code, ERR_ENVIRONMENT);
    loop_run(loop);
    loop_free(loop);
}

static int worker(const char *backend)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } others[] = {{"dies", dies}, {"babbles", babbles}, {"puzzled", puzzled}, {"far off", far_off}};
    if (strcmp(backend, "stillborn") == 0)
        return 7;
    if (strcmp(backend, "deaf") == 0)
        deaf();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, backend) == 0)
            return others[i].run();
    return worker_main(&(struct worker_options){.backend = &fake_backend});
}

static void splits_a_launcher_as_a_shell_does(void **state)
{
    static const struct {
        const char *text, *words[6];
    } cases[] = {{NULL, {NULL}},
                 {"  ", {NULL}},
                 {"/a  -n1\t-q ", {"/a", "-n1", "-q"}},
                 {"/a 'b  c' \"d 'e'\" f\\ g", {"/a", "b  c", "d 'e'", "f g"}},
                 {"/a --x='1 2'\"3 \\\" 4\" ''", {"/a", "--x=1 23 \" 4", ""}}};
    struct arena *arena = arena_new();
    const char *words[6] = {NULL};
    size_t count;
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(lane_launcher(arena, cases[i].text, words, 6, &count, &err), 0);
        for (size_t k = 0; k < count; k++)
            assert_string_equal(words[k], cases[i].words[k]);
        assert_true(count == 6 || cases[i].words[count] == NULL);
    }
    assert_int_equal(lane_launcher(arena, "/a 'b", words, 6, &count, &err), -1);
    assert_int_equal(lane_launcher(arena, "/a \"b\\", words, 6, &count, &err), -1);
    assert_int_equal(lane_launcher(arena, "1 2 3 4 5 6 7", words, 6, &count, &err), -1);
    assert_int_equal(lane_launcher(arena, "sh -c", words, 6, &count, &err), 0);
    assert_int_equal(words[0][0], '/'); /* where PATH has it */
    arena_free(arena);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    fake_kernels = kernels;
    if (argc >= 4 && strcmp(argv[1], "worker") == 0)
        return worker(argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_a_launcher_as_a_shell_does),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_a_worker_that_dies),
        cmocka_unit_test(test_the_next_one_opens_again),
        cmocka_unit_test(test_a_worker_elsewhere_falls_silent),
        cmocka_unit_test(test_opening_is_tried_three_times),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_an_error_for_nobody_is_everybodys),
        cmocka_unit_test(test_what_is_no_text_is_not_sent),
        cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_closing),
        cmocka_unit_test(test_waiting_is_not_busy),
        cmocka_unit_test(test_what_cannot_start),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
