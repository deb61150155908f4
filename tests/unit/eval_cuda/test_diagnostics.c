/* What an author sees of NVRTC's words; without NVRTC. */
#include "kit.h"

static void check(struct kit *kit, const char *said, const char *expected)
{
    buf_reset(&kit->shown);
    cuda_diagnostics(kit->candidate, said, strlen(said), &kit->shown);
    assert_string_equal(buf_text(&kit->shown), expected);
}

#define SILENT "the compiler failed, and said nothing about the source\n"

static void test_lines(void **state)
{
    struct kit kit;
    (void)state;
    kit_open(&kit, NULL);
    kit_parse(&kit, "first\nsecond line\n");
    check(&kit, "candidate.cu(2): error: identifier \"zz\" is undefined\n1 error detected\n",
          "candidate.cu(2): error: identifier \"zz\" is undefined\n     2 | second line\n");
    check(&kit, "candidate.cu(1): warning #177-D: unused\ncandidate.cu(2): error: bad",
          "candidate.cu(2): error: bad\n     2 | second line\n"
          "candidate.cu(1): warning #177-D: unused\n     1 | first\n");
    check(&kit, "cub/block/x.cuh(40): error: static assertion failed\n",
          "cub/block/x.cuh(40): error: static assertion failed\n");
    check(&kit,
          "ptxas application ptx input, line 140; error   : Unknown modifier '.bar'\n"
          "ptxas fatal   : Ptx assembly aborted due to errors\n",
          "PTX assembly: Unknown modifier '.bar'\n");
    check(&kit, "cuda-compile: the launch names x\n", "the launch names x\n");
    check(&kit, "terminate called after throwing an instance of 'std::bad_alloc'\n",
          "the compiler ran out of memory\n");
    check(&kit,
          "cub/block/x.cuh(40): error: bad\n          detected during:\n"
          "            instantiation of class \"A<1>\" at line 2\n"
          "            instantiation of class \"A<2>\" at line 1 of /home/me/x.h\n"
          "            instantiation of \"A<3>\" at line 1\n"
          "            instantiation of \"A<4>\" at line 1\n",
          "cub/block/x.cuh(40): error: bad\n    in instantiation of class \"A<1>\" at line 2\n"
          "    in instantiation of class \"A<2>\" at line 1 of x.h\n"
          "    in instantiation of \"A<3>\" at line 1\n");
    check(&kit, "            instantiation of \"A<3>\" at line 1\n", SILENT);
    check(&kit, "", SILENT);
    kit_close(&kit);
}

/* Nothing that is not the source's own, or about it, gets through. */
static void test_leaks(void **state)
{
    struct kit kit;
    (void)state;
    kit_open(&kit, NULL);
    kit_parse(&kit, "first\n");
    check(&kit, "/etc/passwd(1): error: root:x:0:0\n", SILENT);
    check(&kit, "root:x:0:0 (1): error: x\n", SILENT);
    check(&kit, "        root:x:0:0:root\n        ^\n", SILENT);
    check(&kit,
          "candidate.cu(9): error: cannot open source file \"/etc/shadow\": Permission denied\n",
          "candidate.cu(9): error: cannot open source file \"shadow\"\n");
    check(&kit, "candidate.cu(9): error: cannot open source file \"/etc/nothing\"\n",
          "candidate.cu(9): error: cannot open source file \"nothing\"\n");
    check(&kit, "candidate.cu(1): error: declared at line 3 of \"/home/me/secret/place.h\"\n",
          "candidate.cu(1): error: declared at line 3 of \"place.h\"\n     1 | first\n");
    check(&kit, "ptxas /tmp/secret.ptx, line 1; error   : bad\x1b[2J\n", "PTX assembly: bad [2J\n");
    kit_close(&kit);
}

static void test_bounds(void **state)
{
    struct kit kit;
    struct buf flood;
    (void)state;
    kit_open(&kit, NULL);
    kit_parse(&kit, "first\n");
    buf_init(&flood, 1 << 20);
    for (int i = 0; i < 5000; i++)
        buf_addf(&flood, "candidate.cu(%d): error: %0200d\n", i, i);
    cuda_diagnostics(kit.candidate, buf_text(&flood), flood.length, &kit.shown);
    assert_true(kit.shown.length > 2000 && kit.shown.length < 4000);
    for (size_t length = 0; length < 300; length++) { /* cut anywhere */
        char *cut = arena_strndup(kit.arena, buf_text(&flood), length);
        cuda_diagnostics(kit.candidate, cut, length, &kit.shown);
    }
    check(&kit, "candidate.cu(99999999999999999999): error: x\n", SILENT);
    buf_free(&flood);
    kit_close(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
