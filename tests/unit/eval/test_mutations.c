/* Specs and front matter bent at random: whatever comes of it, it is a problem or one line that
 * begins with the file's name and a line number; and what loads can be worked with. */
#include "base/random.h"
#include "eval/candidate/layout.h"
#include "parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static const char spec[] =
    "name: conv\nfamily: f\ndims: {H: 32, W: 20, R: 3, PAD: 1, OH: H + 2*PAD - R + 1}\n"
    "inputs:\n  x: {shape: [H, ceil_div(W, 2)], dtype: float32}\n"
    "  w: {shape: [R, R], dtype: float32, range: [-1, 1.5]}\n"
    "outputs:\n  y: {shape: [OH, W], dtype: float32}\nreference: ref_impl.py:reference\n"
    "baseline: reference\nflops: 2*OH*W*R*R\nbytes: 4*H\ntolerance: {rtol: 0.1, atol: 1e-3}\n"
    "accuracy: normwise\nprecision: tf32\nwhere: PAD < R && H + 2*PAD >= R\n"
    "check:\n  - {H: 7, W: 9}\n  - {H: 5, W: 5, PAD: 0}\nhidden: {R: [1, 5], PAD: [0, 2]}\n";

static const char short_spec[] =
    "name: matmul\nshape_a: [51, 12]\nshape_b: [12, 5]\ndtype: float32\n";

static const char source[] =
    "/*---\nlaunch:\n  - entry: gemm\n    grid:  ceil_div(N, BN), ceil_div(M, BM), 1\n"
    "    block: [256, 1]\n    shared: 4 * (BM*BK + BK*BN)\n    args:  [A, B, C, part, M, N, K]\n"
    "workspace:\n  part: {shape: [SPLITK, M, N], dtype: float32}\n"
    "tune:\n  BM: [64, 128]\n  BN: [64, 128, 16]\n  BK: 8\n  SPLITK: [1, -2]\n"
    "  where: BM*BK + BK*BN <= 12288\n"
    "compile: {compiler: clang, flags: [-O3, -ffast-math, --param=x-y=10]}\n---*/\nvoid k(void);\n";

static const char *const pieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     ":",
                                     ": ",
                                     ",",
                                     "-",
                                     "\n",
                                     "\n  ",
                                     "\"",
                                     "'",
                                     "#",
                                     "&",
                                     "*",
                                     "!",
                                     "|",
                                     ">",
                                     "---*/",
                                     "/*---",
                                     "*/",
                                     "99999999999999999999",
                                     "-1",
                                     "0",
                                     "9223372036854775807",
                                     "ceil_div(",
                                     ")",
                                     "/ 0",
                                     "% 0",
                                     "null",
                                     "true",
                                     "1e999",
                                     ".nan",
                                     "\t",
                                     "M",
                                     "shape",
                                     "range: [1, 0]",
                                     "\x01",
                                     "\xc3",
                                     "\xef\xbb\xbf"};

/* Deletes, doubles, swaps, or puts in a piece, one to three times. */
static size_t mutate(struct random *random, const char *text, char *out, size_t most)
{
    size_t length = strlen(text);
    memcpy(out, text, length);
    for (uint64_t times = 1 + random_below(random, 3); times > 0; times--) {
        size_t at = (size_t)random_below(random, length);
        size_t span = (size_t)random_below(random, 12);
        span = span < length - at ? span : length - at;
        const char *piece = pieces[random_below(random, sizeof pieces / sizeof pieces[0])];
        char copy[16];
        switch (random_below(random, 4)) {
        case 0:
            memmove(out + at, out + at + span, length - at - span);
            length -= span;
            break;
        case 1:
            memcpy(copy, out + at, span);
            piece = copy;
            copy[span] = '\0';
            /* fall through */
        case 2:
            if (length + strlen(piece) < most) {
                memmove(out + at + strlen(piece), out + at, length - at);
                memcpy(out + at, piece, strlen(piece));
                length += strlen(piece);
            }
            break;
        default:
            out[at] = (char)(1 + random_below(random, 254));
            break;
        }
        if (length == 0)
            break;
    }
    out[length] = '\0';
    return length;
}

/* "name:LINE: ..." on one line. */
static void check_message(const char *message, const char *name)
{
    const char *at = strstr(message, name);
    if (at == NULL || strchr(message, '\n') != NULL)
        fail_msg("message: %s", message);
    at = at != NULL ? at + strlen(name) : "";
    if (at[0] != ':' || strspn(at + 1, "0123456789") == 0)
        fail_msg("no line: %s", message);
}

static void use_problem(const struct problem *problem)
{
    struct names dims;
    double flops, bytes;
    struct err err;
    for (uint64_t seed = 0; seed < 3; seed++)
        if (problem_draw_dims(problem, seed, &dims, &err) == 0 &&
            problem_work(problem, &dims, &flops, &bytes, &err) == 0)
            assert_true(bytes == bytes);
}

static void test_specs(void **state)
{
    struct folder folder;
    struct random random;
    size_t loaded = 0, refused = 0;
    char text[2048];
    (void)state;
    random_init(&random, 2024);
    folder_make(&folder);
    folder_put(&folder, "ref_impl.py", "def reference(x, w): return x\n");
    for (int i = 0; i < 1500; i++) {
        struct problem *problem = NULL;
        struct err err;
        mutate(&random, i % 4 == 0 ? short_spec : spec, text, sizeof text - 1);
        folder_put(&folder, "spec.yaml", text);
        if (problem_load(folder.path, &problem, &err) == 0) {
            use_problem(problem);
            problem_free(problem);
            loaded++;
        } else {
            assert_int_equal(err.code, ERR_USAGE);
            check_message(err.message, "spec.yaml");
            refused++;
        }
    }
    folder_remove(&folder);
    assert_true(loaded > 50 && refused > 500);
}

static void use_candidate(const struct problem *problem, const struct candidate *candidate)
{
    struct names facts = {0}, tune;
    struct layout layout;
    struct err err;
    uint64_t points = tune_points(candidate);
    for (uint64_t i = 0; i < points && i < 4; i++) {
        tune_at(candidate, points - 1 - i, &tune);
        assert_true(tune_index(candidate, &tune) == points - 1 - i);
        (void)tune_valid(candidate, &problem->shapes[0], &facts, &tune);
        if (layout_make(problem, &problem->shapes[0], candidate, &tune, 64, &layout, &err) != 0)
            assert_true(err.message[0] != '\0');
    }
    for (size_t i = 0; i < candidate->flag_count; i++)
        assert_true(candidate->flags[i][0] == '-');
}

static void test_sources(void **state)
{
    struct problem *problem = parse_problem(parse_spec);
    struct random random;
    size_t parsed = 0, refused = 0;
    char text[2048];
    (void)state;
    random_init(&random, 2025);
    for (int i = 0; i < 3000; i++) {
        struct candidate *candidate = NULL;
        struct err err;
        size_t length = mutate(&random, source, text, sizeof text - 1);
        if (candidate_parse(problem, "bent.c", text, length, &candidate, &err) == 0) {
            use_candidate(problem, candidate);
            candidate_free(candidate);
            parsed++;
        } else {
            assert_int_equal(err.code, ERR_USAGE);
            check_message(err.message, "bent.c");
            refused++;
        }
    }
    problem_free(problem);
    assert_true(parsed > 100 && refused > 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_specs),
                                       cmocka_unit_test(test_sources)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
