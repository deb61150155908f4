/* Which definition a problem is: what changes it, and what does not. */
#include "eval/problem/identity.h"

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char spec[] = "name: scale\n"
                           "dims: {N: 64}\n"
                           "inputs: {x: {shape: [N], dtype: float32}}\n"
                           "outputs: {y: {shape: [N], dtype: float32}}\n"
                           "reference: ref.py\n";
static const char reference[] = "import helper\n"
                                "import numpy as np\n"
                                "def reference(x):\n"
                                "    return helper.twice(x) + np.load('table.npy')\n";

static struct folder folder;

static void put(const char *name, const char *text)
{
    folder_put(&folder, name, text);
}

static void fill(void)
{
    put("spec.yaml", spec);
    put("ref.py", reference);
    put("helper.py", "def twice(x):\n    return x * 2\n");
    put("table.npy", "0");
    put("other.py", "");
}

static void identity(const char *size, char text[IDENTITY_BYTES])
{
    struct problem *problem;
    struct err err;
    char path[512];
    snprintf(path, sizeof path, "%s%s", folder.path, size);
    if (problem_load(path, &problem, &err) != 0)
        fail_msg("%s", err.message);
    problem_identity(problem, text);
    problem_free(problem);
    assert_int_equal(strlen(text), IDENTITY_BYTES - 1);
}

/* One edit of one file, and whether it is another definition then. */
static void edited(const char *file, const char *text, bool another)
{
    char before[IDENTITY_BYTES], after[IDENTITY_BYTES];
    fill();
    identity("", before);
    put(file, text);
    identity("", after);
    if ((strcmp(before, after) != 0) != another)
        fail_msg("%s: %s", file, another ? "the same as before" : "another one");
}

static void what_is_edited_is_another_one(void **state)
{
    char plain[IDENTITY_BYTES], sized[IDENTITY_BYTES];
    char text[1024];
    (void)state;
    edited("ref.py", "def reference(x):\n    return x * 3\n", true);
    edited("helper.py", "def twice(x):\n    return x + x + x\n", true);
    edited("table.npy", "1", true);
    edited("other.py", "x = 1\n", false); /* nobody imports it */
    snprintf(text, sizeof text, "# a comment\n%s", spec);
    edited("spec.yaml", text, false);
    snprintf(text, sizeof text, "%scheck: [{N: 7}]\n", spec);
    edited("spec.yaml", text, false);
    static const char *const more[] = {"tolerance: {rtol: 0.1, atol: 0.1}\n",
                                       "accuracy: normwise\n", "precision: strict\n"};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        snprintf(text, sizeof text, "%s%s", spec, more[i]);
        edited("spec.yaml", text, true);
    }
    static const char *const swaps[][2] = {
        {"x: {shape: [N], dtype: float32}", "x: {shape: [N], dtype: float32, range: [0, 1]}"},
        {"x: {shape: [N], dtype: float32}", "x: {shape: [N], dtype: float64}"},
        {"N: 64", "N: 65"},
    };
    for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++) {
        const char *at = strstr(spec, swaps[i][0]);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - spec), spec, swaps[i][1],
                 at + strlen(swaps[i][0]));
        edited("spec.yaml", text, true);
    }
    fill();
    identity("", plain);
    identity("@N=128", sized);
    assert_string_equal(plain, sized);
}

/* Where it lies and what it is called do not matter; what cannot be read is nobody's. */
static void a_module_is_its_text(void **state)
{
    char one[IDENTITY_BYTES], other[IDENTITY_BYTES];
    (void)state;
    put("one.py", "from helper import twice\nclass Model: pass\n");
    put("two.py", "from helper import twice\nclass Model: pass\n");
    MEM_LOCAL char *first = file_join(folder.path, "one.py");
    MEM_LOCAL char *second = file_join(folder.path, "two.py");
    MEM_LOCAL char *none = file_join(folder.path, "none.py");
    problem_identity_of_module(first, one);
    problem_identity_of_module(second, other);
    assert_string_equal(one, other);
    put("helper.py", "def twice(x):\n    return x\n");
    problem_identity_of_module(first, other);
    assert_string_not_equal(one, other);
    MEM_LOCAL char *package = file_join(folder.path, "kernels");
    mkdir(package, 0700);
    put("kernels/__init__.py", "a = 1\n");
    put("one.py", "import os, kernels.deep as k\nclass Model: pass\n");
    problem_identity_of_module(first, one);
    put("kernels/__init__.py", "a = 2\n");
    problem_identity_of_module(first, other);
    assert_string_not_equal(one, other);
    problem_identity_of_module(none, one);
    assert_string_equal(one, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_edited_is_another_one),
        cmocka_unit_test(a_module_is_its_text),
    };
    folder_make(&folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    folder_remove(&folder);
    return failed;
}
