/* The tune space as a number line, its `where`, and what makes two builds the same. */
#include "parse.h"

#include "base/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static const char text[] = "/*---\n"
                           "tune: {TM: [4, 8], TN: [1, 2, 16], U: [3, 5],\n"
                           "       where: TM * TN <= M && TN < l1_bytes / 4}\n"
                           "---*/\n";

struct fixture {
    struct problem *problem;
    struct candidate *candidate;
};

static int set_up(void **state)
{
    struct fixture *f = MEM_NEW(struct fixture);
    struct err err;
    f->problem = parse_problem(parse_spec);
    if (candidate_parse(f->problem, "a.c", text, strlen(text), &f->candidate, &err) != 0)
        return -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    candidate_free(f->candidate);
    problem_free(f->problem);
    mem_free(f);
    return 0;
}

static void test_number_line(void **state)
{
    const struct candidate *candidate = ((struct fixture *)*state)->candidate;
    struct names tune, partial = {0};
    struct err err;
    assert_int_equal(tune_points(candidate), 12);
    tune_at(candidate, 0, &tune);
    assert_int_equal(tune.number[0], 4);
    assert_int_equal(tune.number[1], 1);
    assert_int_equal(tune.number[2], 3);
    for (uint64_t i = 0; i < 12; i++) {
        tune_at(candidate, i, &tune);
        assert_int_equal(tune_index(candidate, &tune), i);
    }
    assert_int_equal(names_set(&partial, "TN", 16, &err), 0);
    assert_int_equal(tune_index(candidate, &partial), 4);
    assert_int_equal(tune_index(candidate, NULL), 0);
    assert_int_equal(names_set(&partial, "TN", 17, &err), 0);
    assert_true(tune_index(candidate, &partial) == UINT64_MAX);
}

static void test_where(void **state)
{
    const struct fixture *f = (struct fixture *)*state;
    struct names facts = {0}, tune;
    struct err err;
    const struct names *dims = &f->problem->shapes[0]; /* M = 64 */
    tune_at(f->candidate, 11, &tune);
    assert_false(tune_valid(f->candidate, dims, &facts, &tune)); /* 8 * 16 > 64 */
    tune_at(f->candidate, 0, &tune);
    assert_false(tune_valid(f->candidate, dims, &facts, &tune)); /* l1_bytes is not known */
    assert_false(tune_valid(f->candidate, dims, NULL, &tune));
    assert_int_equal(names_set(&facts, "l1_bytes", 32, &err), 0);
    assert_true(tune_valid(f->candidate, dims, &facts, &tune));
    tune_at(f->candidate, 4, &tune); /* 16 < 8 */
    assert_false(tune_valid(f->candidate, dims, &facts, &tune));
}

static void test_identity(void **state)
{
    const struct candidate *candidate = ((struct fixture *)*state)->candidate;
    struct names tune, reversed = {0};
    struct err err;
    struct hash seen[12];
    for (uint64_t i = 0; i < 12; i++) {
        tune_at(candidate, i, &tune);
        seen[i] = candidate_identity(candidate, &tune);
        for (uint64_t j = 0; j < i; j++)
            assert_int_not_equal(hash_compare(seen[i], seen[j]), 0);
    }
    for (size_t i = 3; i-- > 0;)
        assert_int_equal(names_set(&reversed, tune.name[i], tune.number[i], &err), 0);
    assert_int_equal(hash_compare(candidate_identity(candidate, &reversed), seen[11]), 0);
    assert_int_equal(hash_compare(candidate_identity(candidate, NULL), seen[0]), 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static int given(const struct candidate *candidate, const char *json, struct names *tune,
                 struct err *err)
{
    struct arena *arena = arena_new();
    struct names dims = {0}, facts = {0};
    struct value *value;
    assert_int_equal(names_set(&dims, "M", 64, err), 0);
    assert_int_equal(names_set(&facts, "l1_bytes", 32768, err), 0);
    assert_int_equal(value_parse_json(arena, "tune", json, strlen(json), &value, err), 0);
    int result = tune_given(candidate, value, &dims, &facts, tune, err);
    arena_free(arena);
    return result;
}

/* What a person or a proposer names: the rest keeps its first value. */
static void test_given(void **state)
{
    const struct candidate *candidate = ((struct fixture *)*state)->candidate;
    struct names tune;
    struct err err;
    assert_int_equal(given(candidate, "{\"TN\": 2, \"U\": 7}", &tune, &err), 0);
    assert_int_equal(tune.number[0], 4);
    assert_int_equal(tune.number[1], 2);
    assert_int_equal(tune.number[2], 7);
    assert_int_equal(given(candidate, "{\"X\": 2}", &tune, &err), -1);
    assert_string_equal(err.message, "tune: X is no parameter of this candidate");
    assert_int_equal(given(candidate, "{\"TN\": 1.5}", &tune, &err), -1);
    assert_string_equal(err.message, "tune: TN is not a whole number");
    assert_int_equal(given(candidate, "{\"TN\": 17}", &tune, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_FIXTURE(test_number_line), WITH_FIXTURE(test_given),
                                       WITH_FIXTURE(test_where), WITH_FIXTURE(test_identity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
