/* Front matter: what is read, and each way to write it wrong with the line that it gets. */
#include "eval/candidate/read.h"
#include "eval/cpu/target.h"
#include "eval/cuda/target.h"
#include "parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static struct problem *problem;

static int set_up(void **state)
{
    (void)state;
    problem = parse_problem(parse_spec);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    problem_free(problem);
    return 0;
}

static struct candidate *parse(const char *name, const char *text)
{
    struct candidate *candidate = NULL;
    struct err err;
    if (candidate_parse(problem, name, text, strlen(text), &candidate, &err) != 0)
        fail_msg("%s", err.message);
    return candidate;
}

static const char gemm[] = "\n"
                           "  \n"
                           "/*---\n"
                           "launch:\n"
                           "  - entry: gemm\n"
                           "    grid:  ceil_div(N, BN), ceil_div(M, BM), 1\n"
                           "    block: 256\n"
                           "    shared: 4 * (BM*BK + BK*BN)\n"
                           "    args:  [A, B, C, partial, M, N, K]\n"
                           "  - entry: reduce\n"
                           "    grid: [ceil_div(M, max(BM, 2)), sm_count]\n"
                           "    block: [32, 8]\n"
                           "workspace:\n"
                           "  partial: {shape: [SPLITK, ceil_div(M, BM), N], dtype: float32}\n"
                           "tune:\n"
                           "  BM: [64, 128]\n"
                           "  BN: [64, 128, 16]\n"
                           "  BK: 8\n"
                           "  SPLITK: [1, -2]\n"
                           "  where: BM*BK + BK*BN <= shared_bytes_optin\n"
                           "compile: {flags: [-use_fast_math, -maxrregcount=64]}\n"
                           "---*/\n"
                           "void kernel(void);\n";

static void test_whole(void **state)
{
    (void)state;
    struct candidate *c = parse("gemm.cu", gemm);
    assert_string_equal(c->language->name, "cuda");
    assert_string_equal(c->source, gemm);
    assert_int_equal(c->length, strlen(gemm));
    assert_int_equal(hash_compare(c->hash, hash_bytes(gemm, strlen(gemm))), 0);
    assert_int_equal(c->launch_count, 2);
    assert_non_null(c->launches[0].grid[2]);
    assert_null(c->launches[0].block[1]);
    assert_non_null(c->launches[0].shared_bytes);
    assert_int_equal(c->launches[0].arg_count, 7);
    assert_string_equal(c->launches[0].args[3], "partial");
    assert_non_null(c->launches[1].grid[1]);
    assert_null(c->launches[1].grid[2]);
    assert_int_equal(c->workspace_count, 1);
    assert_int_equal(c->workspaces[0].rank, 3);
    assert_string_equal(c->workspaces[0].shape_text[1], "ceil_div(M, BM)");
    assert_int_equal(c->tune_count, 4);
    assert_int_equal(c->tune[1].values[2], 16);
    assert_int_equal(c->tune[3].values[1], -2);
    assert_non_null(c->where);
    assert_int_equal(c->flag_count, 2);
    candidate_free(c);
    c = parse("a.c",
              "/*---\ncompile: {compiler: clang, flags: [-O3, -ffast-math, --param=x-y=10]}\n"
              "---*/\nint x;\n");
    assert_string_equal(c->compiler, "clang");
    assert_int_equal(c->flag_count, 3);
    candidate_free(c);
}

/* The program's languages decide: their suffixes, and the marks of their comments. */
static void test_another_language(void **state)
{
    static const char *const suffixes[] = {".snake", NULL};
    static const struct language python = {.name = "python",
                                           .suffixes = suffixes,
                                           .open = "\"\"\"---",
                                           .close = "---\"\"\"",
                                           .comment_end = "\"\"\"",
                                           .facts = ""};
    static const struct language *const languages[] = {&python, NULL};
    static const struct target snake = {.name = "snake", .languages = languages};
    static const struct target *const more[] = {&target_cpu, &snake, NULL}, *const usual[] = {
                                                                                &target_cpu,
                                                                                &target_cuda, NULL};
    static const char text[] = "\"\"\"---\ntune: {T: [1, 2]}\n---\"\"\"\nimport this\n";
    struct err err;
    struct candidate *none = NULL;
    (void)state;
    assert_int_equal(candidate_parse(problem, "a.snake", text, sizeof text - 1, &none, &err), -1);
    assert_non_null(
        strstr(err.message, "ends with .cc, .cpp, .cxx, .c, .cu, .py or .wgsl, or the key"));
    targets_use(more);
    struct candidate *c = parse("a.snake", text);
    assert_int_equal(c->tune_count, 1);
    assert_ptr_equal(c->language, &python);
    assert_ptr_equal(language_target(c->language), &snake);
    candidate_free(c);
    targets_use(usual);
}

static void test_none(void **state)
{
    (void)state;
    struct candidate *c = parse("a.c", "void kernel(void) {}\n");
    assert_int_equal(tune_points(c), 1);
    assert_string_equal(c->language->name, "c");
    candidate_free(c);
    c = parse("a.cc", "/*-------- a heading, not front matter */\nint x;\n");
    assert_string_equal(c->language->name, "c++");
    candidate_free(c);
    c = parse("a.c", "/*---\n---*/\n");
    assert_int_equal(c->tune_count, 0);
    candidate_free(c);
    c = parse("a.c", "/*---\r\ntune: {T: [1, 2]}\r\n---*/\r\nint x;\r\n");
    assert_int_equal(c->tune_count, 1);
    candidate_free(c);
    /* As it is pasted: a byte order mark, spaces that do not break, what takes no room. */
    c = parse("a.c",
              "\xEF\xBB\xBF/*---\ntune:\n\xC2\xA0 T: [1,\xE2\x80\x8B 2]\n---*/\nint\xC2\xA0x;\n");
    assert_int_equal(c->tune[0].count, 2);
    assert_string_equal(c->source, "/*---\ntune:\n  T: [1, 2]\n---*/\nint x;\n");
    assert_int_equal(c->length, strlen(c->source));
    candidate_free(c);
    /* Kernels of Triton's are often named so. */
    c = parse("a.py", "\"\"\"---\nlaunch:\n  - {entry: _add, grid: 1, args: [A]}\n---\"\"\"\n");
    assert_string_equal(c->launches[0].entry, "_add");
    candidate_free(c);
    c = parse("noname", "/*---\nlanguage: c++\ncompile: {flags: -O2  -funroll-loops}\n---*/\n");
    assert_string_equal(c->language->name, "c++");
    assert_string_equal(c->flags[1], "-funroll-loops");
    candidate_free(c);
}

static const char *const allowed[] = {"-O0",
                                      "-O3",
                                      "-Os",
                                      "-Ofast",
                                      "-ffast-math",
                                      "-fno-math-errno",
                                      "-fassociative-math",
                                      "-funroll-loops",
                                      "-fno-unroll-loops",
                                      "-fno-tree-vectorize",
                                      "-ftree-vectorize",
                                      "-ftree-parallelize-loops=4",
                                      "-fopenmp-simd",
                                      "-fstrict-aliasing",
                                      "-fno-strict-aliasing",
                                      "-mprefer-vector-width=512",
                                      "-mtune=skylake-avx512",
                                      "--param=max-unroll-times=8",
                                      "-std=c17",
                                      "-std=gnu++20",
                                      "-fno-slp-vectorize"};
static const char *const refused[] = {"",
                                      "-",
                                      "-O4",
                                      "-O3 -I/etc",
                                      "-I.",
                                      "-I",
                                      "-include",
                                      "-B/tmp",
                                      "-fplugin=x.so",
                                      "-specs=x",
                                      "-wrapper",
                                      "-o",
                                      "-oout",
                                      "@file",
                                      "-x",
                                      "-Wa,-a",
                                      "-Wl,-E",
                                      "-Xlinker",
                                      "-l",
                                      "-L.",
                                      "-shared",
                                      "-static",
                                      "-fPIE",
                                      "-fdump-tree-all",
                                      "-ftree-x/../y",
                                      "-ftree-",
                                      "-mtune=",
                                      "-mtune=a/b",
                                      "-march=native",
                                      "-fopenmp",
                                      "--param=x",
                                      "--param=x=",
                                      "--param=x=1/2",
                                      "--param",
                                      "--param=x=99999999999",
                                      "-std=c99",
                                      "-fno-such",
                                      "-DX=1",
                                      "-include/etc/passwd",
                                      "-save-temps",
                                      "-pipe",
                                      "-fprofile-use=/x",
                                      "-imacros",
                                      "-M",
                                      "-E",
                                      "-S",
                                      "-c",
                                      "-v",
                                      "-###",
                                      "-no-canonical-prefixes",
                                      "-fuse-ld=x",
                                      "-iquote",
                                      "-isystem",
                                      "-mprefer-vector-width=1024",
                                      "-fsanitize=address",
                                      "-flto",
                                      "-ftree-vectorize\n-I/etc"};

static void test_flags(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        if (!language_c.allows(allowed[i]))
            fail_msg("refused %s", allowed[i]);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (language_c.allows(refused[i]))
            fail_msg("allowed %s", refused[i]);
}

struct wrong {
    const char *name, *text, *message;
};

#define FRONT(yaml) "\n/*---\n" yaml "\n---*/\nint x;\n"

static const struct wrong wrongs[] = {
    {"a.c", "", "a.c:1: expected a source text"},
    {"a.h", "int x;\n", "expected a name that ends with .c"},
    {"a.c", "int x;\n\xff\n", "a.c:2: expected UTF-8 text, not a byte 0xFF"},
    {"a.c", "/*---\ntune: {TA: 1}\nint x;\n", "a.c:1: expected \"---*/\""},
    {"a.c", "/*---\ntune: {TA: 1}\n*/\nint x;\n", "a.c:3: expected the comment to end"},
    {"a.c", "/*---\ntune: {TA: 1} ---*/\nint x;\n", "a.c:2: expected the comment to end"},
    {"a.c", "int x;\n/*---\ntune: {TA: 1}\n---*/\n",
     "a.c:2: expected the front matter at the start"},
    {"a.c", FRONT("tune: {TA: 1"), "a.c:"},
    {"a.c", FRONT("[1]"), "a.c:3: expected a map"},
    {"a.c", FRONT("lunch: []"), "a.c:3: expected the key \"launch\""},
    {"a.c", FRONT("tune: [1]"), "a.c:3: expected tune: {"},
    {"a.c", FRONT("tune:\n  TA: x"), "a.c:4: expected TA: [NUMBER"},
    {"a.c", FRONT("tune: {TA: []}"), "expected TA: [NUMBER"},
    {"a.c", FRONT("tune: {TA: [1, 2, 1]}"), "expected each value of TA once, not 1 again"},
    {"a.c", FRONT("tune: {TA: [1.5]}"), "expected TA: [NUMBER"},
    {"a.c", FRONT("tune: {M: [1]}"), "not taken, not \"M\""},
    {"a.c", FRONT("tune: {C: [1]}"), "not taken, not \"C\""},
    {"a.c", FRONT("tune: {_X: [1]}"), "expected a tune parameter's name"},
    {"a.c", FRONT("tune: {for: [1]}"), "reserved word \"for\""},
    {"a.c", FRONT("tune: {kernel: [1]}"), "reserved word"},
    {"a.c", FRONT("tune: {TA: [1], where: TA < BB}"),
     "a.c:3: expected a dim, a tune parameter or a fact (cores vector_bytes l1_bytes"},
    {"a.c", FRONT("tune: {TA: [1], where: TA < sm_count}"), "page_bytes), not \"sm_count\""},
    {"a.c", FRONT("tune: {A1: [1]\n,A1: [2]}"), "a.c:4: expected each key once"},
    {"a.c", FRONT("workspace: {w: {shape: [cores], dtype: float32}}"), "not \"cores\""},
    {"a.c", FRONT("workspace: {A: {shape: [M], dtype: float32}}"), "not taken, not \"A\""},
    {"a.c", FRONT("workspace: {w: {shape: [M], dtype: float32, range: [0, 1]}}"),
     "expected one of"},
    {"a.c", FRONT("launch: {entry: x}"), "expected launch: a list"},
    {"a.c", FRONT("launch:\n- {grid: 1}"), "a.c:4: expected entry"},
    {"a.c", FRONT("launch:\n- {entry: 9a, grid: 1}"), "a.c:4: expected an entry's name"},
    {"a.c", FRONT("launch:\n- {entry: _, grid: 1}"), "a.c:4: expected an entry's name"},
    {"a.c", FRONT("launch:\n- {entry: x, grid: \"1,2,3,4\"}"), "at most 3 expressions for grid"},
    {"a.c", FRONT("launch:\n- {entry: x, grid: \"1,,2\"}"), "a.c:4: column 1: expected"},
    {"a.c", FRONT("launch:\n- {entry: x, grid: []}"), "one to three expressions for grid"},
    {"a.c", FRONT("launch:\n- {entry: x, grid: \"ceil_div(M, 2\"}"), "a.c:4: column"},
    {"a.c", FRONT("launch:\n- {entry: x, args: [D]}"),
     "expected a tensor, a workspace, a dim or a number"},
    {"a.c", FRONT("compile: {compiler: icc}"), "expected compiler: gcc or clang"},
    {"a.c", FRONT("compile:\n  flags:\n    - -O2\n    - -I/etc"),
     "a.c:6: expected a flag of the list"},
    {"a.c", FRONT("compile: {flags: -march=native}"), "the lane itself builds with"},
    {"a.c", FRONT("compile: {linker: x}"), "expected one of the keys compiler, flags"},
    {"a.c", FRONT("language: rust"), "expected language"},
    {"a.cu", "int x;\n", "a.cu:1: expected launch: in the front matter"},
    {"a.cu", FRONT("tune: {TA: [1]}"), "a.cu:2: expected launch: in the front matter"},
    {"a.cu", FRONT("launch:\n- {entry: x, block: 1}"), "a.cu:4: expected grid: in the launch of x"},
    {"a.cu", FRONT("launch:\n- {entry: x, grid: 1}"), "a.cu:4: expected block: in the launch of x"},
    {"a.cu", FRONT("launch:\n- {entry: x, grid: l1_bytes, block: 1}"),
     "a.cu:4: expected a dim, a tune parameter or a fact (compute_capability sm_count"},
    {"a.cu", FRONT("launch:\n- {entry: x, grid: bytes, block: 1}"), "not \"bytes\""},
    {"a.cu", FRONT("launch:\n- {entry: x, grid: 1, block: 1,\n   cooperative: sure}"),
     "a.cu:5: expected cooperative: true, or false"},
    {"a.cu", FRONT("tma: {t: {tensor: A, box: [8]}}"),
     "a.cu:3: expected as many numbers in box as A has axes: 2"},
    {"a.cu", FRONT("tma: {t: {tensor: A, box: [8, 8], type: 32}}"),
     "a.cu:3: expected type: tf32, or none"},
    {"a.cu",
     FRONT("workspace: {w: {shape: [M], dtype: float16}}\n"
           "tma: {t: {tensor: w, box: [8], type: tf32}}"),
     "a.cu:4: expected type: tf32 for float32 alone, and w is float16"},
};

static void test_wrongs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        struct candidate *candidate = NULL;
        struct err err;
        const char *text = wrongs[i].text;
        if (candidate_parse(problem, wrongs[i].name, text, strlen(text), &candidate, &err) == 0)
            fail_msg("parsed: %s", text);
        if (strstr(err.message, wrongs[i].message) == NULL)
            fail_msg("%s\ngot:    %s\nwanted: %s", text, err.message, wrongs[i].message);
        assert_int_equal(err.code, ERR_USAGE);
        assert_null(strchr(err.message, '\n'));
    }
}

static void test_sizes(void **state)
{
    struct candidate *candidate = NULL;
    struct err err;
    char *text = (char *)mem_alloc((1 << 20) + 2);
    char yaml[2048] = "/*---\ntune:\n";
    (void)state;
    memset(text, ' ', (1 << 20) + 1);
    assert_int_equal(candidate_parse(problem, "a.c", text, 1 << 20, &candidate, &err), 0);
    candidate_free(candidate);
    assert_int_equal(candidate_parse(problem, "a.c", text, (1 << 20) + 1, &candidate, &err), -1);
    text[7] = '\0';
    assert_int_equal(candidate_parse(problem, "a.c", text, 100, &candidate, &err), -1);
    mem_free(text);
    for (int i = 0; i < 16; i++) {
        snprintf(yaml + strlen(yaml), 64, "  P%d: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n", i);
        if (i == 15) {
            strcat(yaml, "---*/\n");
            assert_int_equal(candidate_parse(problem, "a.c", yaml, strlen(yaml), &candidate, &err),
                             -1);
            assert_non_null(strstr(err.message, "2^53"));
        }
    }
}

#define WITH_PROBLEM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PROBLEM(test_whole), WITH_PROBLEM(test_another_language), WITH_PROBLEM(test_none),
        WITH_PROBLEM(test_flags), WITH_PROBLEM(test_wrongs),           WITH_PROBLEM(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
