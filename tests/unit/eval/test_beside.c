/* A session whose compiled baseline gets ready in a process of its own: it is opened meanwhile, and
 * what is timed waits for it or finds it stopped. fake_torch.py is slow while a file says so. */
#include "eval/cuda/cuda.h"
#include "process/python_probe.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "one_session.h"

enum { X = 0, W = 5, OUT = 7 };

/* The module of fake_torch.py: out = x * w, rows of four. */
static void scaled(const struct fake_call *f)
{
    const struct call *call = f->call;
    const unsigned char *inputs = (const unsigned char *)f->a - call->offsets[0];
    unsigned char *outputs = (unsigned char *)f->c - call->offsets[2];
    const float *x = (const float *)(const void *)(inputs + call->offsets[X]);
    const float *w = (const float *)(const void *)(inputs + call->offsets[W]);
    float *out = (float *)(void *)(outputs + call->offsets[OUT]);
    for (int64_t i = 0; i < 4 * call->dims[0]; i++)
        out[i] = x[i] * w[i % 4];
}

static const struct fake_entry kernels[] = {{"product", scaled}, {NULL, NULL}};

static void slow(const struct fixture *f, bool is)
{
    char path[100];
    snprintf(path, sizeof path, "%s/slow", f->folder.path);
    if (is)
        folder_put(&f->folder, "slow", "");
    else
        assert_int_equal(unlink(path), 0);
}

static void begin(struct fixture *f, const char *line, struct session_options options)
{
    static struct backend backend;
    int core = 0;
    char path[100];
    *f = (struct fixture){.arena = arena_new()};
    backend = fake_backend;
    backend.torch = backend_cuda.torch;
    fake_kernels = kernels;
    folder_make(&f->folder);
    folder_make(&f->builds);
    folder_put(&f->folder, "7_fake.py", line);
    setenv("XDG_CACHE_HOME", f->builds.path, 1);
    slow(f, true);
    snprintf(path, sizeof path, "%s/7_fake.py", f->folder.path);
    options.folder = f->builds.path;
    options.time_budget_ms = 10;
    options.call_timeout_ms = 600000; /* none of these hangs */
    if (problem_load(path, &f->problem, &f->err) != 0 ||
        fake_probe(&core, 1, false, f->arena, &f->lane, &f->err) != 0)
        fail_msg("%s", f->err.message);
    f->lane.gpu = true; /* PyTorch's own clock */
    if (session_open(f->problem, &backend, &f->lane, &options, &f->session, &f->err) != 0 ||
        candidate_parse(f->problem, "c.c", "product", 7, &f->candidate, &f->err) != 0)
        fail_msg("%s", f->err.message);
    f->request = (struct measure_request){.candidate = f->candidate,
                                          .tune = &f->tune,
                                          .artifact = "product",
                                          .effort = EFFORT_SEARCH};
}

static struct baseline *compiled(struct session *session)
{
    for (size_t i = 0; i < session->baseline_count; i++)
        if (strcmp(session->baselines[i].name, "compile") == 0)
            return &session->baselines[i];
    fail_msg("no such baseline");
    return NULL;
}

static void *let_go(void *fixture)
{
    usleep(200000); /* the checks have begun, or will find it ready: either is right */
    slow((const struct fixture *)fixture, false);
    return NULL;
}

/* Opened and checked before it is there; timed against it, and never without it. */
static void test_waited_for(void **state)
{
    struct fixture f;
    struct evaluation evaluation = {0};
    pthread_t thread;
    (void)state;
    begin(&f, "# right\n", (struct session_options){.baseline = "compile"});
    struct baseline *baseline = compiled(f.session);
    assert_true(baseline_pending(baseline) && baseline->subject == NULL);
    assert_int_equal(pthread_create(&thread, NULL, let_go, &f), 0);
    if (session_measure(f.session, &f.request, f.arena, &evaluation, &f.err) != 0)
        fail_msg("%s", f.err.message);
    pthread_join(thread, NULL);
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_string_equal(evaluation.baseline, "compile");
    assert_true(baseline->verified && evaluation.speedup.samples > 0);
    assert_int_equal(baseline->subject->pid, reference_subject(baseline->own)->pid);
    assert_int_not_equal(baseline->subject->pid, reference_subject(f.session->reference)->pid);
    assert_int_equal(tear_down(&(void *){&f}), 0);
}

static char state_of(int pid)
{
    char path[40], name = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &name) != 1)
        fail_msg("no process %d", pid);
    fclose(file);
    return name;
}

/* One that only a last measurement asks for begins where there will be one, and stands still while
 * anything is timed. */
static void test_held(void **state)
{
    struct fixture f;
    struct evaluation evaluation = {0};
    (void)state;
    begin(&f, "# right\n", (struct session_options){.baseline = "eager"});
    assert_null(compiled(f.session)->own);
    assert_int_equal(tear_down(&(void *){&f}), 0);
    begin(&f, "# right\n", (struct session_options){.baseline = "eager", .final = true});
    const struct baseline *baseline = compiled(f.session);
    assert_true(baseline_pending(baseline) && f.session->drawn_ahead > 0);
    int pid = reference_subject(baseline->own)->pid;
    assert_int_equal(session_check(f.session, &f.request, f.arena, &evaluation, &f.err), 0);
    f.session->drawn_ahead = 9; /* as if some of them were left */
    assert_int_equal(session_time(f.session, &f.err), 0);
    assert_int_equal(state_of(pid), 'T');
    assert_int_equal(f.session->drawn_ahead, 0); /* nor is anything drawn */
    assert_int_equal(state_of(reference_subject(f.session->reference)->pid), 'T');
    assert_int_equal(session_finish(f.session, &f.err), 0);
    assert_int_not_equal(state_of(pid), 'T');
    assert_true(baseline_pending(baseline)); /* nobody has asked for it */
    assert_int_equal(evaluation.verdict, VERDICT_KERNEL);
    assert_int_equal(tear_down(&(void *){&f}), 0);
}

/* One that is wrong, there and in the definition's own process, is not asked for again: what is
 * wrong with it takes long to say. */
static void test_broken(void **state)
{
    struct fixture f;
    struct evaluation evaluation = {0};
    (void)state;
    begin(&f, "# fine\n", (struct session_options){.baseline = "compile"});
    const struct baseline *baseline = compiled(f.session);
    slow(&f, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(session_measure(f.session, &f.request, f.arena, &evaluation, &f.err), -1);
        assert_non_null(strstr(f.err.message, "baseline compile: its results are wrong"));
        assert_non_null(baseline->broken);
        assert_null(baseline->own);
        slow(&f, i == 0); /* now it would be waited for */
    }
    assert_int_equal(tear_down(&(void *){&f}), 0);
}

static struct interpreter numpy; /* fake_torch.py is everybody's else */

/* A library that candidates are timed with is begun while the problem is opened, and waited for
 * where nothing is timed yet; that it does not open is told there. */
static void test_library(void **state)
{
    struct fixture f = {.arena = arena_new()};
    struct backend device = fake_backend;
    struct session_options options = {.baseline = "torch", .python = numpy.path};
    int core = 0;
    char path[100];
    (void)state;
    device.torch = backend_cuda.torch;
    device.device = true;
    folder_make(&f.builds);
    options.folder = f.builds.path;
    snprintf(path, sizeof path, "%s/bin", f.builds.path);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/bin/python3", f.builds.path);
    assert_int_equal(symlink(getenv("TWAGENT_PYTHON"), path), 0);
    setenv("VIRTUAL_ENV", f.builds.path, 1); /* where torch is looked for */
    fake_problem(&f.folder, "def reference(A, B):\n    return A @ B\n", "");
    snprintf(path, sizeof path, "%s/baselines", f.folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    folder_put(&f.folder, "baselines/torch.py", "# fake_torch.py does not know its binding\n");
    folder_put(&f.folder, "baselines/slow", ""); /* as long as it says nothing of that */
    if (problem_load(f.folder.path, &f.problem, &f.err) != 0 ||
        fake_probe(&core, 1, false, f.arena, &f.lane, &f.err) != 0)
        fail_msg("%s", f.err.message);
    f.lane.gpu = true;
    if (session_open(f.problem, &device, &f.lane, &options, &f.session, &f.err) != 0)
        fail_msg("%s", f.err.message);
    assert_true(baseline_pending(&f.session->baselines[f.session->baseline]));
    snprintf(path, sizeof path, "%s/baselines/slow", f.folder.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(session_await_library(f.session, &f.err), -1);
    unsetenv("VIRTUAL_ENV");
    if (strncmp(f.err.message, "baseline torch: ", 16) != 0)
        fail_msg("%s", f.err.message);
    assert_int_equal(tear_down(&(void *){&f}), 0);
}

int main(int argc, char **argv)
{
    int code;
    struct err err;
    if (fake_dispatch(argc, argv, &code))
        return code;
    struct arena *arena = arena_new();
    if (interpreter_find(NULL, "numpy", arena, &numpy, &err) != 0)
        return EXIT_FAILURE;
    setenv("TWAGENT_PYTHON", TEST_SOURCE_DIR "/tests/unit/eval/fake_torch.py", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waited_for),
                                       cmocka_unit_test(test_held), cmocka_unit_test(test_broken),
                                       cmocka_unit_test(test_library)};
    int failed = cmocka_run_group_tests_name("beside", tests, NULL, NULL);
    arena_free(arena);
    return failed;
}
