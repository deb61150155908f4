/* A point that is compiled for the main shape first, and looked at: what may end there, and that
 * nothing becomes a kernel by it. */
#include "eval/worker/core_lock.h"
#include "eval/worker/worker.h"

#include "a_worker.h"

/* Time is what a kernel says that it took: no machine is slow or busy here. */
static void costs(const struct fake_call *f, uint64_t ns)
{
    *f->cost_ns = ns;
    fake_product(f);
}

static void is_slow(const struct fake_call *f)
{
    costs(f, 20000000);
}

static void zeros(const struct fake_call *f)
{
    memset(f->c, 0, (size_t)(f->m * f->n) * sizeof(float));
}

/* Somebody else is on the device for its first calls. */
static void settles(const struct fake_call *f)
{
    static int calls;
    costs(f, calls++ < 3 ? 1500000 : FAKE_COST_NS);
}

/* Its first calls take longer, always. */
static void warms(const struct fake_call *f)
{
    static int calls;
    costs(f, calls++ < 6 ? 1000000 : FAKE_COST_NS);
}

/* Fast where it is called as where it is timed: a device's launches, none of them waited for. */
static void hurries(const struct fake_call *f)
{
    costs(f, f->call->timed ? FAKE_COST_NS : 20000000);
}

/* Fast in its first calls alone, which are those that are looked at. */
static void tires(const struct fake_call *f)
{
    static int calls;
    costs(f, calls++ < 4 ? FAKE_COST_NS : 40000000);
}

/* Fast and right where it is looked at. */
static void right_at_main(const struct fake_call *f)
{
    if (f->m == 24 && f->n == 20 && f->k == 28)
        fake_product(f);
    else
        zeros(f);
}

static const struct fake_entry kernels[] = {{"product", fake_product},
                                            {"waits", fake_product},
                                            {"is_slow", is_slow},
                                            {"as_slow", is_slow},
                                            {"settles", settles},
                                            {"warms", warms},
                                            {"heats", warms},
                                            {"hurries", hurries},
                                            {"tires", tires},
                                            {"zeros", zeros},
                                            {"right_at_main", right_at_main},
                                            {NULL, NULL}};

/* Says in builds/log what is built; all of `waits` waits for builds/go. */
static int build_and_say(struct arena *arena, const struct lane_facts *lane,
                         const struct problem *problem, const struct candidate *candidate,
                         const struct names *tune, const struct baseline_spec *baseline,
                         enum build_flavour flavour, const char *folder, struct build *build,
                         struct err *err)
{
    char path[120];
    int status =
        fake_build(arena, lane, problem, candidate, tune, baseline, flavour, folder, build, err);
    if (baseline != NULL || status != 0)
        return status;
    snprintf(path, sizeof path, "%s/log", getenv("TMPDIR"));
    FILE *log = fopen(path, "a");
    fprintf(log, "%s %s", flavour == BUILD_MAIN ? "main" : "all", build->artifact);
    for (size_t i = 0; i < tune->count; i++)
        fprintf(log, " %s=%lld", tune->name[i], (long long)tune->number[i]);
    fputc(',', log);
    fclose(log);
    if (flavour == BUILD_MAIN || strcmp(build->artifact, "waits") != 0)
        return 0;
    const char **argv = arena_array(arena, 4, sizeof *argv);
    argv[0] = build->spec.argv[0];
    argv[1] = "wait";
    argv[2] = arena_printf(arena, "%s/go", getenv("TMPDIR"));
    build->spec.argv = argv;
    return 0;
}

static bool narrows(const struct candidate *candidate)
{
    return strstr(candidate->source, "whole") == NULL;
}

static const char *built(const struct fixture *fixture)
{
    static char text[1000];
    char path[120];
    snprintf(path, sizeof path, "%s/log", fixture->builds.path);
    FILE *log = fopen(path, "r");
    if (log == NULL)
        return "";
    text[fread(text, 1, sizeof text - 1, log)] = '\0';
    fclose(log);
    return text;
}

static int set_up(void **state)
{
    return set_up_worker(state, "device");
}

static void ask(struct fixture *fixture, const char *source, const char *more)
{
    send_text(fixture,
              "{\"op\":\"evaluate\",\"id\":\"%s\",\"name\":\"c.c\",\"source\":\"%s\","
              "\"effort\":\"search\",\"of_run\":true,\"late\":1.1%s}\n",
              source, source, more);
}

static const struct value *evaluated(struct fixture *fixture, const char *source, const char *more)
{
    ask(fixture, source, more);
    return value_get(answer(fixture, source, NULL), "evaluation");
}

static void is_verdict(const struct value *evaluation, const char *verdict)
{
    assert_string_equal(value_text(evaluation, "verdict", ""), verdict);
}

/* The first is a kernel by all checks; what is far behind it ends at the look. */
static void test_far_behind_is_dropped(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    const struct value *kernel = evaluated(fixture, "product", "");
    is_verdict(kernel, "kernel");
    assert_false(value_bool(kernel, "dropped", true));
    const struct value *dropped = evaluated(fixture, "is_slow", "");
    is_verdict(dropped, "dropped");
    assert_string_equal(built(fixture), "main product,all product,main is_slow,");
    assert_true(value_bool(dropped, "dropped", false));
    assert_false(value_bool(dropped, "win", true));
    assert_int_equal(value_get(dropped, "speedup")->kind, VALUE_NULL);
    assert_true(value_real(value_at(dropped, "time_ns"), "median", 0) > 1e7);
    assert_non_null(strstr(value_text(dropped, "reason", ""), "checked at the main shape only"));
    assert_true(value_at(dropped, "checks.total")->integer <
                value_at(kernel, "checks.total")->integer);
    /* Nothing remembers it as anything else. */
    evaluate(fixture, "again", "is_slow", "full");
    const struct value *again = answer(fixture, "again", NULL);
    assert_false(value_bool(again, "remembered", false));
    is_verdict(value_get(again, "evaluation"), "kernel");
}

/* Wrong at a check shape, and fast: refused, and nobody is measured by it. */
static void test_right_at_the_main_shape_alone(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    is_verdict(evaluated(fixture, "right_at_main", ""), "rejected");
    assert_string_equal(built(fixture), "main right_at_main,all right_at_main,");
    const struct value *kernel = evaluated(fixture, "is_slow", "");
    is_verdict(kernel, "kernel");
    assert_false(value_bool(kernel, "dropped", true));
}

static void test_wrong_at_the_main_shape(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    is_verdict(evaluated(fixture, "zeros", ""), "rejected");
    assert_string_equal(built(fixture), "main zeros,");
    assert_int_equal(value_get(evaluated(fixture, "zeros", ""), "time_ns")->kind, VALUE_NULL);
}

/* What is known of the run as a whole counts, too; what asks for more than a search does not. */
static void test_who_is_looked_at(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    is_verdict(evaluated(fixture, "is_slow", ",\"best_ns\":1000"), "dropped");
    send_text(fixture, "{\"op\":\"evaluate\",\"id\":\"f\",\"name\":\"c.c\",\"source\":\"as_slow\","
                       "\"effort\":\"full\",\"of_run\":true,\"late\":1.1,\"best_ns\":1000}\n");
    is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
    assert_string_equal(built(fixture), "main is_slow,all as_slow,");
}

/* Where the main shape's build is that of all shapes, there is one. */
static void test_looked_at_as_it_is_built(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    const struct value *kernel = evaluated(fixture, "product /* whole */", "");
    is_verdict(kernel, "kernel");
    assert_true(value_at(kernel, "checks.total")->integer > 3); /* not those of the look alone */
    is_verdict(evaluated(fixture, "is_slow /* whole */", ""), "dropped");
    is_verdict(evaluated(fixture, "zeros /* whole */", ""), "rejected");
    assert_string_equal(built(fixture), "all product,all is_slow,all zeros,");
}

/* How far behind is far is said by who asks. */
static void test_how_far_behind(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    send_text(fixture, "{\"op\":\"evaluate\",\"id\":\"f\",\"name\":\"c.c\",\"source\":\"is_slow\","
                       "\"effort\":\"search\",\"of_run\":true,\"late\":1e9,\"best_ns\":1000}\n");
    is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
    assert_string_equal(built(fixture), "main is_slow,all is_slow,");
}

/* Two calls may both be disturbed: what would end is looked at more often. */
static void test_a_disturbed_look(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    send_text(fixture, "{\"op\":\"evaluate\",\"id\":\"f\",\"name\":\"c.c\",\"source\":\"settles\","
                       "\"effort\":\"search\",\"of_run\":true,\"late\":1.1,\"best_ns\":1e6}\n");
    is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
}

/* A look is held against a look: what is as fast as the best is not ended by its first calls. */
static void test_a_look_beside_a_look(void **state)
{
    static const char *const sources[] = {"warms", "heats"};
    struct fixture *fixture = (struct fixture *)*state;
    open_for(fixture, 100); /* time for many more calls than its first */
    for (int i = 0; i < 2; i++) {
        send_text(fixture,
                  "{\"op\":\"evaluate\",\"id\":\"f\",\"name\":\"c.c\",\"source\":\"%s\","
                  "\"effort\":\"search\",\"of_run\":true,\"late\":4.0}\n",
                  sources[i]);
        is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
    }
}

/* What ends a point is a time as the kernel's that it is held against. */
static void test_looks_as_it_times(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    send_text(fixture, "{\"op\":\"evaluate\",\"id\":\"f\",\"name\":\"c.c\",\"source\":\"hurries\","
                       "\"effort\":\"search\",\"of_run\":true,\"late\":1.1,\"best_ns\":1.7e7}\n");
    is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
}

/* What looked faster than it is ends nobody who is faster. */
static void test_a_look_that_flattered(void **state)
{
    static const char *const sources[] = {"tires", "is_slow"};
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    for (int i = 0; i < 2; i++) {
        send_text(fixture,
                  "{\"op\":\"evaluate\",\"id\":\"f\",\"name\":\"c.c\",\"source\":\"%s\","
                  "\"effort\":\"search\",\"of_run\":true,\"late\":1.1}\n",
                  sources[i]);
        is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
    }
}

static void read_stages(struct fixture *fixture, const char *id, const char *letters)
{
    for (size_t i = 0; letters[i] != '\0';) {
        const struct value *value = record(fixture);
        if (strcmp(value_text(value, "id", ""), id) == 0)
            assert_int_equal(value_text(value, "stage", "?")[0], letters[i++]);
    }
}

/* One that looks far faster is on its way: who is behind it waits for its verdict, and is dropped
 * by a kernel's time alone. */
static void test_who_looks_slower_waits(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    ask(fixture, "waits", ""); /* compile, check, compile: looked at, and its whole build waits */
    read_stages(fixture, "waits", "ccc");
    ask(fixture, "is_slow", "");
    read_stages(fixture, "is_slow", "ccc");
    ask(fixture, "as_slow", "");
    read_stages(fixture, "as_slow", "ccc");
    send_text(fixture, "{\"op\":\"cancel\",\"id\":\"as_slow\"}\n");
    assert_string_equal(value_text(answer(fixture, "as_slow", NULL), "code", ""), "cancelled");
    assert_string_equal(built(fixture), "main waits,all waits,main is_slow,main as_slow,");
    folder_put(&fixture->builds, "go", "");
    for (int left = 2; left > 0; left--) {
        const struct value *value = answer(fixture, NULL, NULL);
        bool slow = strcmp(value_text(value, "id", ""), "is_slow") == 0;
        is_verdict(value_get(value, "evaluation"), slow ? "dropped" : "kernel");
    }
}

/* ... and goes on where that one turns out to be no kernel. */
static void test_who_waited_for_nothing_goes_on(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    open_problem(fixture);
    ask(fixture, "waits", "");
    read_stages(fixture, "waits", "ccc");
    ask(fixture, "is_slow", "");
    read_stages(fixture, "is_slow", "ccc");
    send_text(fixture, "{\"op\":\"cancel\",\"id\":\"waits\"}\n");
    for (int left = 2; left > 0; left--) {
        const struct value *value = answer(fixture, NULL, NULL);
        if (strcmp(value_text(value, "id", ""), "is_slow") == 0)
            is_verdict(value_get(value, "evaluation"), "kernel");
        else
            assert_string_equal(value_text(value, "code", ""), "cancelled");
    }
    assert_string_equal(built(fixture), "main waits,all waits,main is_slow,all is_slow,");
}

/* A device's checks are not beside another one's timing, and are beside its checks. */
static void test_checks_wait_for_who_times(void **state)
{
    struct fixture *fixture = (struct fixture *)*state;
    struct core_lock other = {.count = 0};
    open_problem(fixture);
    assert_true(core_lock_try_path(&other, fixture->builds.path, false));
    evaluate(fixture, "e", "product", "full");
    const struct value *value = record(fixture);
    while (value_get(value, "waits") == NULL) {
        assert_string_equal(value_text(value, "stage", ""), "compile");
        value = record(fixture);
    }
    assert_string_equal(value_text(value, "stage", ""), "check");
    core_lock_release(&other);
    is_verdict(value_get(answer(fixture, "e", NULL), "evaluation"), "kernel");
    assert_true(core_lock_try_path(&other, fixture->builds.path, true));
    evaluate(fixture, "f", "as_slow", "full");
    do {
        value = record(fixture);
        assert_true(value_get(value, "waits") == NULL || value_get(value, "stage") == NULL ||
                    strcmp(value_text(value, "stage", ""), "check") != 0);
    } while (value_get(value, "waits") == NULL);
    core_lock_release(&other);
    is_verdict(value_get(answer(fixture, "f", NULL), "evaluation"), "kernel");
}

/* While the problem is opened all points are compiled, the first one for all shapes, too; whoever
 * asks for what is being compiled waits for that. */
static void test_compiles_ahead(void **state)
{
    static const char source[] = "/*---\\ntune:\\n  T: [1, 2, 3]\\n  where: T != 2\\n---*/\\nwaits";
    struct fixture *fixture = (struct fixture *)*state;
    send_text(fixture,
              "{\"op\":\"open\",\"id\":\"o\",\"problem\":\"%s\",\"baseline\":\"product\","
              "\"time_budget_ms\":10,\"call_timeout_ms\":600000,\"memory_bytes\":1000000,"
              "\"ahead\":{\"name\":\"c.c\",\"source\":\"%s\",\"tune\":{\"T\":3},"
              "\"space\":true}}\n",
              fixture->folder.path, source);
    assert_string_equal(value_text(answer(fixture, "o", NULL), "event", ""), "result");
    assert_string_equal(built(fixture), "main waits T=3,all waits T=3,main waits T=1,");
    send_text(fixture,
              "{\"op\":\"evaluate\",\"id\":\"e\",\"name\":\"c.c\",\"source\":\"%s\","
              "\"tune\":{\"T\":3}}\n",
              source);
    for (int turns = 0; turns < 3; turns++) { /* it has its turns, and does not compile */
        send_text(fixture, "{\"op\":\"dance\",\"id\":\"d\"}\n");
        assert_string_equal(value_text(answer(fixture, "d", NULL), "code", ""), "protocol");
    }
    folder_put(&fixture->builds, "go", "");
    is_verdict(value_get(answer(fixture, "e", NULL), "evaluation"), "kernel");
}

int main(int argc, char **argv)
{
    int code;
    if (argc >= 3 && strcmp(argv[1], "wait") == 0) {
        while (access(argv[2], F_OK) != 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return 0;
    }
    if (fake_dispatch(argc, argv, &code))
        return code;
    fake_kernels = kernels;
    struct backend device = fake_backend;
    device.device = fake_gpu = fake_costs = true;
    device.open = fake_open_on_device;
    device.build = build_and_say;
    device.narrows = narrows;
    device.lock_folder = getenv("TMPDIR");
    if (argc >= 2 && strcmp(argv[1], "device") == 0)
        return worker_main(&(struct worker_options){.backend = &device, .cores = our_cores()});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_far_behind_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_right_at_the_main_shape_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_at_the_main_shape, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_is_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_looked_at_as_it_is_built, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_far_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_disturbed_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_look_beside_a_look, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_looks_as_it_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_look_that_flattered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_looks_slower_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_waited_for_nothing_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_checks_wait_for_who_times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_compiles_ahead, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
