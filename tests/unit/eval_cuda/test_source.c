/* The unit that NVRTC reads, and the flags it may be given; without NVRTC. */
#include "kit.h"

#include "eval/cuda/compile/source.h"

static bool always(void *context, const char *name)
{
    ++*(int *)context;
    return strcmp(name, "cuda/nothing") != 0;
}

static void check_prefix(const char *text, const char *expected)
{
    struct buf out;
    int asked = 0;
    buf_init(&out, 4096);
    cuda_source_prefix(text, strlen(text), always, &asked, &out);
    assert_string_equal(buf_text(&out), expected);
    buf_free(&out);
}

static void test_prefix(void **state)
{
    (void)state;
    check_prefix("", "");
    check_prefix("#include <cuda_fp16.h>\n", "#include <cuda_fp16.h>\n");
    check_prefix("/*---\ntune:\n  T: [1]\n---*/\n// words\n#  include \"mma.h\" // more\n"
                 "#include <cuda_fp16.h>\n#include <mma.h>\nint x;\n#include <cuda.h>\n",
                 "#include <cuda_fp16.h>\n#include <mma.h>\n");
    check_prefix("#include <stdint.h>\n#include <cub/block/block_reduce.cuh>\n",
                 "#include <cub/block/block_reduce.cuh>\n");
    check_prefix("#define CUB_X 1\n#include <cuda_fp16.h>\n", "");
    check_prefix("#include <cuda/nothing>\n#include <cuda/pipeline>", "#include <cuda/pipeline>\n");
    /* what is not on the list is the source's own business */
    check_prefix("#include <cub/cub.cuh>\n#include \"/etc/passwd\"\n#include <cuda/../../x>\n"
                 "#include <cuda/x\\y>\n#include MACRO\n#include <mma.h>\n",
                 "");
    check_prefix("#include <mma.h\n", "");
    check_prefix("#include <", "");
    check_prefix("/* open", "");
    check_prefix("// open", "");
    check_prefix("#", "");
}

static void test_unit(void **state)
{
    struct kit kit;
    struct buf unit;
    (void)state;
    kit_open(&kit, NULL);
    buf_init(&unit, 1 << 16);
    kit_parse(&kit, "/*---\ntune:\n  T: [16, 32]\n  MINUS: [-3]\n---*/\nint line6;");
    cuda_source_unit(kit.candidate, &kit.tune, "candidate.cu", "#include <mma.h>\n", &unit);
    const char *text = buf_text(&unit), *include = strstr(text, "#include <mma.h>\n");
    const char *stop = strstr(text, "#pragma nv_hdrstop\n"), *tune = strstr(text, "#define T 16\n");
    const char *line = strstr(text, "#line 1 \"candidate.cu\"\n/*---\n");
    assert_ptr_equal(strstr(text, "#include <" CUDA_SOURCE_TYPES ">\n"), text);
    assert_true(include > text && stop > include && tune > stop && line > tune);
    assert_non_null(strstr(text, "#define MINUS -3\n"));
    assert_non_null(strstr(line, "\nint line6;\n"));
    buf_free(&unit);
    kit_close(&kit);
}

static void test_flags(void **state)
{
    static const char *const allowed[] = {"-use_fast_math", "-maxrregcount=64", "-std=c++20",
                                          "--ptxas-options=-dlcm=cg"};
    static const char *const refused[] = {"-I/etc",
                                          "-maxrregcount=",
                                          "-maxrregcount=6",
                                          "-O3",
                                          "-maxrregcount=1000",
                                          "-maxrregcount=64 -I/etc",
                                          "--pre-include=/etc/passwd",
                                          "-use_fast_math ",
                                          "--ptxas-options=--output-file=/tmp/x",
                                          "-DX=1",
                                          "--time=/tmp/x",
                                          "-create-pch=/tmp/x",
                                          "-dlto"};
    struct kit kit;
    struct err err;
    struct candidate *candidate = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        assert_true(language_cuda.allows(allowed[i]));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_false(language_cuda.allows(refused[i]));
    kit_open(&kit, NULL);
    kit_parse(&kit, "/*---\ncompile: {flags: [-use_fast_math, -maxrregcount=128]}\n"
                    "launch: [{entry: k, grid: 1, block: 1}]\n---*/\nint x;");
    assert_int_equal(kit.candidate->flag_count, 2);
    const char *text = "/*---\ncompile: {flags: -ffast-math}\n---*/\nint x;";
    assert_int_equal(candidate_parse(kit.problem, "k.cu", text, strlen(text), &candidate, &err),
                     -1);
    assert_non_null(strstr(err.message, "k.cu:2:"));
    kit_close(&kit);
}

/* A name and a text each, so that an unknown one is a mistake of ours and not of a source's. */
static void test_headers(void **state)
{
    size_t count;
    (void)state;
    const char *const *names = cuda_source_header_names(&count);
    const char *const *texts = cuda_source_header_texts();
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(names[i]) > 0);
        assert_non_null(strstr(texts[i], "#pragma once\n"));
    }
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_unit),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
