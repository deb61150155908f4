/* Every problem that ships loads, by its name too, and each of its C and WGSL starts parses and has
 * a point of its tune space that is valid on a small machine. */
#include "eval/candidate/candidate.h"

#include "base/buf.h"
#include "base/file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_start(const struct problem *problem, const char *path)
{
    struct candidate *candidate = NULL;
    struct err err;
    struct buf text;
    struct names facts = {0}, tune;
    bool valid = false;
    static const char *const known[] = {"cores",          "l1_bytes",        "l2_bytes",
                                        "l3_bytes",       "vector_bytes",    "page_bytes",
                                        "max_workgroups", "max_invocations", "workgroup_bytes",
                                        "binding_bytes",  "software"};
    static const int64_t numbers[] = {2,     32768, 1048576, 33554432,  32, 4096,
                                      65535, 256,   16384,   134217728, 1};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(names_set(&facts, known[i], numbers[i], &err), 0);
    buf_init(&text, 1 << 20);
    assert_int_equal(file_read(path, &text, &err), 0);
    if (candidate_parse(problem, path, buf_text(&text), text.length, &candidate, &err) != 0)
        fail_msg("%s", err.message);
    for (uint64_t i = 0; !valid && i < tune_points(candidate); i++) {
        tune_at(candidate, i, &tune);
        valid = tune_valid(candidate, &problem->shapes[0], &facts, &tune);
    }
    if (!valid)
        fail_msg("%s: no valid point", path);
    buf_free(&text);
    candidate_free(candidate);
}

static void check_problem(const char *name)
{
    struct problem *problem = NULL;
    struct names dims;
    struct err err;
    const char *starts[32];
    if (problem_load(name, &problem, &err) != 0)
        fail_msg("%s", err.message);
    assert_string_equal(problem->name, name);
    for (size_t b = 0; b < 2; b++) {
        size_t count = problem_starts(problem, b == 0 ? "cpu" : "webgpu", starts, 32);
        for (size_t i = 0; i < count; i++)
            check_start(problem, starts[i]);
    }
    for (uint64_t seed = 0; seed < 50; seed++)
        assert_int_equal(problem_draw_dims(problem, seed, &dims, &err), 0);
    problem_free(problem);
}

static void test_all(void **state)
{
    char path[1024];
    size_t loaded = 0;
    struct dirent *entry;
    (void)state;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    DIR *problems = opendir(TEST_SOURCE_DIR "/problems");
    assert_non_null(problems);
    while ((entry = readdir(problems)) != NULL) {
        snprintf(path, sizeof path, "%s/problems/%s/spec.yaml", TEST_SOURCE_DIR, entry->d_name);
        if (!file_exists(path))
            continue;
        check_problem(entry->d_name);
        loaded++;
    }
    closedir(problems);
    assert_true(loaded > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
