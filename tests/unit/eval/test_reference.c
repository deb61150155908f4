/* The Python child: three precisions, what a user's function may be called and return, what is said
 * where it is wrong, and that its death costs one call. */
#include "eval/reference/reference.h"
#include "process/python_probe.h"

#include "fake_backend.h"

#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <cmocka.h>

struct fixture {
    struct folder folder;
    struct problem *problem;
    struct arena *arena;
    struct lane_facts lane;
    struct region region;
    struct layout layout;
    struct call call;
    struct reference *reference;
    struct err err;
};

enum { ELEMENTS = 24 * 20, PAGE = 4096 };

static bool use_gpu; /* the lane is a GPU's; all lanes have the cores that this process has */

static void know_cores(struct lane_facts *lane)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    lane->gpu = use_gpu;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &set) &&
            lane->core_count < sizeof lane->cores / sizeof lane->cores[0])
            lane->cores[lane->core_count++] = core;
}

/* 0, or -1 with fixture->err. `spec`: another one, or NULL. */
static int begin_with(struct fixture *fixture, const char *source, const char *spec)
{
    const char *python;
    *fixture = (struct fixture){.arena = arena_new()};
    know_cores(&fixture->lane);
    fake_problem(&fixture->folder, source, "");
    if (spec != NULL)
        folder_put(&fixture->folder, "spec.yaml", spec);
    if (problem_load(fixture->folder.path, &fixture->problem, &fixture->err) != 0 ||
        layout_make(fixture->problem, &fixture->problem->shapes[0], NULL, NULL, 64,
                    &fixture->layout, &fixture->err) != 0 ||
        region_open(fixture->layout.inputs_bytes + 4096, fixture->layout.outputs_bytes,
                    &fixture->region, &fixture->err) != 0 ||
        reference_open(fixture->problem, &fixture->lane, &fixture->region, NULL, fixture->arena,
                       &python, &fixture->reference, &fixture->err) != 0 ||
        reference_ready(fixture->reference, &fixture->err) != 0)
        return -1;
    assert_int_equal(python[0], '/');
    call_make(&fixture->layout, 4096, 600000, &fixture->call); /* none of these hangs */
    for (size_t tensor = 0; tensor < 2; tensor++) {
        float *input = (float *)(void *)(fixture->region.inputs + fixture->call.offsets[tensor]);
        for (size_t i = 0; i < fixture->layout.inputs[tensor].elements; i++)
            input[i] = (float)((double)(i * 7 % 31) / 30.0 - 0.5 + (double)tensor / 3.0);
    }
    return 0;
}

static int begin(struct fixture *fixture, const char *source)
{
    return begin_with(fixture, source, NULL);
}

static void end(struct fixture *fixture)
{
    reference_close(fixture->reference);
    if (fixture->region.inputs != NULL)
        region_close(&fixture->region);
    problem_free(fixture->problem);
    arena_free(fixture->arena);
    folder_remove(&fixture->folder);
}

static int compute(struct fixture *fixture, enum reference_precision precision, void *out)
{
    void *outs[] = {out};
    fixture->err = (struct err){0};
    return reference_compute(fixture->reference, &fixture->layout, &fixture->call, precision, outs,
                             &fixture->err);
}

static double product_at(const struct fixture *fixture, size_t row, size_t column)
{
    const float *a = (const float *)(void *)(fixture->region.inputs + fixture->call.offsets[0]);
    const float *b = (const float *)(void *)(fixture->region.inputs + fixture->call.offsets[1]);
    double sum = 0.0;
    for (size_t k = 0; k < 28; k++)
        sum += (double)a[row * 28 + k] * (double)b[k * 20 + column];
    return sum;
}

static void test_precisions(void **state)
{
    struct fixture fixture;
    double exact[ELEMENTS];
    float honest[ELEMENTS], lower[ELEMENTS];
    double honest_error = 0.0, lower_error = 0.0;
    (void)state;
    assert_int_equal(
        begin(&fixture, "def reference(A, B):\n    print('hello')\n    return A @ B\n"), 0);
    assert_int_equal(compute(&fixture, PRECISION_EXACT, exact), 0);
    assert_int_equal(compute(&fixture, PRECISION_SPEC, honest), 0);
    assert_int_equal(compute(&fixture, PRECISION_LOWER, lower), 0);
    for (size_t i = 0; i < ELEMENTS; i++) {
        assert_true(fabs(exact[i] - product_at(&fixture, i / 20, i % 20)) < 1e-12);
        honest_error = fmax(honest_error, fabs((double)honest[i] - exact[i]));
        lower_error = fmax(lower_error, fabs((double)lower[i] - exact[i]));
    }
    assert_true(honest_error < 1e-5);
    assert_true(lower_error > 1e-4 && lower_error < 1e-1); /* ten bits of mantissa */
    end(&fixture);
}

/* On how many cores its first thread may be, with how many threads its products are told to
 * compute, and how long those stay awake. */
static void look_at_cores(struct fixture *fixture, struct reference *reference, float *cores,
                          float *threads, float *timeout)
{
    float results[ELEMENTS];
    void *outs[] = {results};
    struct err err = {0};
    assert_int_equal(
        reference_send(reference, &fixture->layout, &fixture->call, PRECISION_SPEC, &err), 0);
    assert_int_equal(reference_take(reference, &fixture->layout, outs, &err), 0);
    *cores = results[0];
    *threads = results[1];
    *timeout = results[2];
}

/* Where nothing is timed with it, the definition's first thread is bound to no core: not on a GPU's
 * lane, nor in a process beside the first, which are several at once. */
static void test_its_cores(void **state)
{
    static const char source[] = "import os\ndef reference(A, B):\n    C = A @ B\n"
                                 "    C[0, 0] = len(os.sched_getaffinity(0))\n"
                                 "    C[0, 1] = int(os.environ['OPENBLAS_NUM_THREADS'])\n"
                                 "    C[0, 2] = int(os.environ.get('OPENBLAS_THREAD_TIMEOUT', 0))\n"
                                 "    return C\n";
    enum { THREADS = 3 };
    struct fixture fixture;
    struct region region;
    float cores, threads, timeout, all;
    cpu_set_t set;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    all = (float)CPU_COUNT(&set);
    assert_int_equal(begin(&fixture, source), 0);
    look_at_cores(&fixture, fixture.reference, &cores, &threads, &timeout);
    assert_true(cores == 1.0F && threads == all && timeout == 0.0F);
    assert_int_equal(region_open(fixture.region.inputs_bytes, PAGE, &region, &fixture.err), 0);
    struct reference *other = reference_again(fixture.reference, &region, THREADS);
    assert_non_null(other);
    look_at_cores(&fixture, other, &cores, &threads, &timeout);
    assert_true(cores == all && threads == (float)THREADS);
    reference_close(other);
    region_close(&region);
    end(&fixture);
    use_gpu = true;
    assert_int_equal(begin(&fixture, source), 0);
    use_gpu = false;
    look_at_cores(&fixture, fixture.reference, &cores, &threads, &timeout);
    assert_true(cores == all && threads == all && timeout == 14.0F); /* 2^14 cycles */
    end(&fixture);
}

/* A tensor without axes stays one, also where its bits are cut. */
static void test_single_number(void **state)
{
    static const char spec[] = "name: number\ndims: {}\n"
                               "inputs: {A: {shape: [], dtype: float32}, "
                               "B: {shape: [], dtype: float32}}\n"
                               "outputs: {C: {shape: [], dtype: float32}}\n"
                               "reference: ref_impl.py\n";
    struct fixture fixture;
    double exact = 0.0;
    float honest = 0.0f, lower = 0.0f;
    (void)state;
    assert_int_equal(begin_with(&fixture, "def reference(A, B):\n    return A + B\n", spec), 0);
    assert_int_equal(compute(&fixture, PRECISION_EXACT, &exact), 0);
    assert_int_equal(compute(&fixture, PRECISION_SPEC, &honest), 0);
    if (compute(&fixture, PRECISION_LOWER, &lower) != 0)
        fail_msg("%s", fixture.err.message);
    assert_true(fabs(exact + 2.0 / 3.0) < 1e-6);
    assert_true(fabs((double)honest - exact) < 1e-6 && fabs((double)lower - exact) < 1e-3);
    end(&fixture);
}

/* What computes in float64 whatever it is given is named; a function of constants is no such step.
 */
static void test_double_steps(void **state)
{
    struct fixture fixture;
    float results[ELEMENTS];
    (void)state;
    assert_int_equal(begin(&fixture, "import math\nimport numpy as np\ndef reference(A, B):\n"
                                     "    C = np.vectorize(math.erf)(A @ B)\n"
                                     "    return C / math.sqrt(2.0)\n"),
                     0);
    assert_int_equal(compute(&fixture, PRECISION_SPEC, results), 0);
    assert_string_equal(reference_double_steps(fixture.reference, false, fixture.arena),
                        "ref_impl.py:4: math.erf, ref_impl.py:4: np.vectorize");
    end(&fixture);
    assert_int_equal(begin(&fixture, "import math\ndef reference(A, B):\n"
                                     "    return A @ B * math.sqrt(len(A))\n"),
                     0);
    assert_int_equal(compute(&fixture, PRECISION_SPEC, results), 0);
    assert_string_equal(reference_double_steps(fixture.reference, false, fixture.arena), "");
    end(&fixture);
}

/* The only function there is, one with a dim as its last parameter, one that returns a dict. */
static void test_forms(void **state)
{
    static const char *const sources[] = {
        "_scale = 1\ndef reference(A, B, K):\n    assert K == len(B)\n    return A @ B\n",
        "def small(A, B):\n    return [A @ B]\n",
        "def _helper(x):\n    return x\ndef whatever(A, B):\n    return {'C': _helper(A @ B)}\n"};
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        struct fixture fixture;
        double exact[ELEMENTS];
        assert_int_equal(begin(&fixture, sources[i]), 0);
        assert_int_equal(compute(&fixture, PRECISION_EXACT, exact), 0);
        assert_true(fabs(exact[7] - product_at(&fixture, 0, 7)) < 1e-12);
        end(&fixture);
    }
}

static void test_what_is_said(void **state)
{
    static const struct {
        const char *source, *message;
        bool at_open;
    } cases[] = {
        {"def reference(A, B):\n    return A @ B.T @ nothing\n", "line", false},
        {"def reference(A, B):\n    raise ValueError('no such luck')\n", "no such luck", false},
        {"def reference(A, B):\n    return A\n", "shape (24, 28), expected (24, 20)", false},
        {"def reference(A, B):\n    A[0, 0] = 1\n    return A @ B\n", "read-only", false},
        {"def reference(A, B):\n    return A @ B, A\n", "2 results", false},
        {"def reference(A, B)\n    return A\n", "SyntaxError", true},
        {"def one(A):\n    return A\ndef two(A):\n    return A\n", "found one, two", true},
        {"import os\nos._exit(3)\n", "exited 3", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        float honest[ELEMENTS];
        int status = begin(&fixture, cases[i].source);
        assert_int_equal(status != 0, cases[i].at_open);
        if (!cases[i].at_open)
            assert_int_equal(compute(&fixture, PRECISION_SPEC, honest), -1);
        if (i > 0 && strstr(fixture.err.message, cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, fixture.err.message);
        if (!cases[i].at_open) { /* the child is well, and the next call is answered */
            assert_int_equal(fixture.err.code, ERR_USAGE);
            assert_int_equal(compute(&fixture, PRECISION_SPEC, honest), -1);
            assert_int_equal(fixture.err.code, ERR_USAGE);
        }
        end(&fixture);
    }
}

static void test_its_death_costs_one_call(void **state)
{
    struct fixture fixture;
    double exact[ELEMENTS];
    uint64_t elapsed_ns;
    (void)state;
    assert_int_equal(begin(&fixture, "def reference(A, B):\n    return A @ B\n"), 0);
    struct subject *subject = reference_subject(fixture.reference);
    assert_true(subject->pid > 0);
    kill(subject->pid, SIGKILL);
    assert_int_equal(compute(&fixture, PRECISION_EXACT, exact), -1);
    assert_int_equal(fixture.err.code, ERR_CHILD);
    assert_int_equal(compute(&fixture, PRECISION_EXACT, exact), 0);
    assert_true(fabs(exact[21] - product_at(&fixture, 1, 1)) < 1e-12);
    kill(subject->pid, SIGKILL);
    assert_int_equal(subject_call(subject, &fixture.call, &elapsed_ns, &fixture.err), -1);
    assert_int_equal(subject_call(subject, &fixture.call, &elapsed_ns, &fixture.err), 0);
    end(&fixture);
}

static void test_as_a_subject(void **state)
{
    struct fixture fixture;
    uint64_t elapsed_ns = 0;
    (void)state;
    assert_int_equal(begin(&fixture, "import time\nrest = [3600, 0.02]\n"
                                     "def reference(A, B):\n    time.sleep(rest.pop())\n"
                                     "    return A @ B\n"),
                     0);
    struct subject *subject = reference_subject(fixture.reference);
    subject->ops->pause(subject);
    subject->ops->resume(subject);
    assert_int_equal(subject_call(subject, &fixture.call, &elapsed_ns, &fixture.err), 0);
    assert_true(elapsed_ns >= 20000000);
    fixture.call.timeout_ms = 1;
    assert_int_equal(subject_call(subject, &fixture.call, &elapsed_ns, &fixture.err), -1);
    assert_int_equal(fixture.err.code, ERR_TIMEOUT);
    end(&fixture);
}

/* A Python whose packages are those of FOLDER/site. */
static const char *put_python(struct folder *folder, struct arena *arena)
{
    folder_put(folder, "python3",
               arena_printf(arena,
                            "#!/bin/sh\nshift\nPYTHONPATH=%s/site exec /usr/bin/python3 \"$@\"\n",
                            folder->path));
    const char *python = arena_printf(arena, "%s/python3", folder->path);
    assert_int_equal(chmod(python, 0755), 0);
    return python;
}

/* A package that was installed without byte code gets some of ours, once; one that has its own, and
 * a user without a folder for it, keep what they have. */
static void test_byte_code(void **state)
{
    struct folder folder;
    char path[300], cache[80];
    struct arena *arena = arena_new();
    struct interpreter found = {0};
    struct err err = {0};
    const char *kept = getenv("XDG_CACHE_HOME");
    (void)state;
    folder_make(&folder);
    snprintf(path, sizeof path, "%s/site/plain", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "site/plain/__init__.py", "__version__ = '1.2'\n");
    const char *python = put_python(&folder, arena);
    snprintf(cache, sizeof cache, "%s/cache", folder.path);
    setenv("XDG_CACHE_HOME", cache, 1);
    assert_int_equal(interpreter_find(python, "plain", arena, &found, &err), 0);
    assert_string_equal(found.package, "1.2");
    snprintf(path, sizeof path, "%s/twagent/python", cache);
    assert_string_equal(found.bytecode, path);
    snprintf(path, sizeof path, "%s/twagent/python%s/site/plain", cache, folder.path);
    assert_true(file_is_dir(path));
    snprintf(path, sizeof path, "%s/site/plain/__pycache__", folder.path);
    assert_false(file_exists(path)); /* nothing is written where it was installed */
    assert_int_equal(file_make_dirs(path, &err), 0);
    assert_int_equal(interpreter_find(python, "plain", arena, &found, &err), 0);
    assert_string_equal(found.bytecode, "");
    setenv("XDG_CACHE_HOME", kept != NULL ? kept : "", 1);
    arena_free(arena);
    folder_remove(&folder);
}

/* numpy is imported by whoever computes with it; before, it is enough that it is there and that its
 * library loads. One that does not is passed over. */
static void test_found_without_import(void **state)
{
    struct folder folder;
    char path[300];
    struct arena *arena = arena_new();
    struct interpreter found = {0};
    struct err err = {0};
    (void)state;
    folder_make(&folder);
    snprintf(path, sizeof path, "%s/site/numpy/core", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    snprintf(path, sizeof path, "%s/site/numpy/__pycache__", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "site/numpy/__init__.py", "raise SystemExit('imported')\n");
    const char *python = put_python(&folder, arena);
    assert_int_equal(interpreter_find_numpy(python, arena, &found, &err), -1);
    folder_put(&folder, "site/numpy/core/_multiarray_umath.so", "torn");
    assert_int_equal(interpreter_find_numpy(python, arena, &found, &err), -1);
    assert_int_equal(err.code, ERR_ENVIRONMENT);
    snprintf(path, sizeof path, "%s/site/numpy/core/_multiarray_umath.so", folder.path);
    assert_int_equal(unlink(path), 0);
    Dl_info libc; /* which any Python can load */
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) != 0);
    assert_int_equal(symlink(libc.dli_fname, path), 0);
    assert_int_equal(interpreter_find_numpy(python, arena, &found, &err), 0);
    assert_string_equal(found.prefix, "/usr");
    assert_string_equal(found.bytecode, "");
    assert_int_equal(interpreter_find(python, "numpy", arena, &found, &err), -1);
    snprintf(path, sizeof path, "%s/site/torch/__pycache__", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "site/torch/__init__.py", "raise SystemExit('imported')\n");
    assert_int_equal(interpreter_find_torch(python, arena, &found, &err), -1);
    snprintf(path, sizeof path, "%s/site/torch/lib", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "site/torch/lib/libtorch.so", "");
    assert_int_equal(interpreter_find_torch(python, arena, &found, &err), 0);
    assert_string_equal(found.package, "");
    arena_free(arena);
    folder_remove(&folder);
}

/* The same of Triton, whose version is read; where it cannot be, it is imported. */
static void test_triton_is_found_without_import(void **state)
{
    struct folder folder;
    char path[300];
    struct arena *arena = arena_new();
    struct interpreter found = {0};
    struct err err = {0};
    Dl_info libc;
    (void)state;
    folder_make(&folder);
    snprintf(path, sizeof path, "%s/site/triton/_C", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    snprintf(path, sizeof path, "%s/site/triton/__pycache__", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "site/triton/__init__.py",
               "__version__ = '3.9.0'\nraise SystemExit('imported')\n");
    const char *python = put_python(&folder, arena);
    assert_int_equal(interpreter_find_triton(python, arena, &found, &err), -1);
    folder_put(&folder, "site/triton/_C/libtriton.so", "torn");
    assert_int_equal(interpreter_find_triton(python, arena, &found, &err), -1);
    snprintf(path, sizeof path, "%s/site/triton/_C/libtriton.so", folder.path);
    assert_int_equal(unlink(path), 0);
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) != 0);
    assert_int_equal(symlink(libc.dli_fname, path), 0);
    assert_int_equal(interpreter_find_triton(python, arena, &found, &err), 0);
    assert_string_equal(found.package, "3.9.0");
    assert_true(strstr(found.folder, "/site/triton") != NULL);
    folder_put(&folder, "site/triton/__init__.py", "__version__ = '3.' + '10.0'\n");
    assert_int_equal(interpreter_find_triton(python, arena, &found, &err), 0);
    assert_string_equal(found.package, "3.10.0");
    arena_free(arena);
    folder_remove(&folder);
}

/* What torch.compile imports is no part of an import of torch. */
static void test_byte_code_of_compilers(void **state)
{
    struct folder folder;
    char path[200], python[100], text[600];
    struct arena *arena = arena_new();
    struct interpreter found = {0};
    struct err err = {0};
    const char *kept = getenv("XDG_CACHE_HOME");
    (void)state;
    folder_make(&folder);
    snprintf(path, sizeof path, "%s/site/torch/_inductor", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "site/torch/__init__.py", "__version__ = '1.2'\n");
    folder_put(&folder, "site/torch/_inductor/__init__.py", "");
    folder_put(&folder, "site/torch/_inductor/compile_fx.py", "");
    snprintf(text, sizeof text,
             "#!/bin/sh\nshift\nPYTHONPATH=%s/site exec /usr/bin/python3 \"$@\"\n", folder.path);
    folder_put(&folder, "python3", text);
    snprintf(path, sizeof path, "%s/cache", folder.path);
    setenv("XDG_CACHE_HOME", path, 1);
    snprintf(python, sizeof python, "%s/python3", folder.path);
    assert_int_equal(chmod(python, 0755), 0);
    assert_int_equal(interpreter_find(python, "torch", arena, &found, &err), 0);
    interpreter_fill(&found);
    snprintf(path, sizeof path, "%s/cache/twagent/python/compiler-1.2", folder.path);
    while (!file_exists(path)) /* it goes on beside us */
        usleep(10000);
    snprintf(text, sizeof text,
             "ls %s/cache/twagent/python%s/site/torch/_inductor/compile_fx.*.pyc >/dev/null",
             folder.path, folder.path);
    assert_int_equal(system(text), 0);
    setenv("XDG_CACHE_HOME", kept != NULL ? kept : "", 1);
    arena_free(arena);
    folder_remove(&folder);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_its_cores),
        cmocka_unit_test(test_single_number),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_double_steps),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_its_death_costs_one_call),
        cmocka_unit_test(test_as_a_subject),
        cmocka_unit_test(test_byte_code),
        cmocka_unit_test(test_found_without_import),
        cmocka_unit_test(test_triton_is_found_without_import),
        cmocka_unit_test(test_byte_code_of_compilers),
    };
    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
