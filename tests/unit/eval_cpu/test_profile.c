/* What a profile says of kernels that are known. */
#include "kit.c" /* each test is one source file */

#include "base/random.h"
#include "base/value.h"
#include "eval/cpu/compile.h"

static struct value *parse(const struct buf *text)
{
    struct value *root;
    if (value_parse_json(kit.arena, "profile", buf_text(text), text->length, &root, &kit.err) != 0)
        fail_msg("%s:\n%s", kit.err.message, buf_text(text));
    return root;
}

static void remarks_have_reasons(void **state)
{
    static const char gcc[] =
        "candidate.c:12:27: optimized: loop vectorized using 64 byte vectors\n"
        "candidate.c:5:27: missed: couldn't vectorize loop\n"
        "candidate.c:5:27: missed: not vectorized: multiple nested loops.\n"
        "candidate.c:5:27: missed: not vectorized: multiple nested loops.\n"
        "candidate.c:10:24: missed: statement clobbers memory: expf\n"
        "candidate.c:4:6: note: vectorized 1 loops in function.\n"
        "/usr/include/math.h:1:1: missed: not vectorized: elsewhere.\n";
    static const char clang[] =
        "candidate.c:6:9: remark: vectorized loop (vectorization width: 16, interleaved count: 4) "
        "[-Rpass=loop-vectorize]\n"
        "candidate.c:9:19: remark: loop not vectorized: cannot prove it is safe to reorder "
        "[-Rpass-analysis=loop-vectorize]\n"
        "candidate.c:8:13: remark: loop not vectorized [-Rpass-missed=loop-vectorize]\n";
    struct buf text;
    struct json json;
    (void)state;
    buf_init(&text, 8192);
    json_init(&json, &text);
    remarks_parse(gcc, sizeof gcc - 1, &json);
    assert_string_equal(
        buf_text(&text),
        "[{\"line\":5,\"kind\":\"missed\",\"text\":\"not vectorized: multiple nested loops.\"},"
        "{\"line\":12,\"kind\":\"vectorized\",\"text\":\"loop vectorized using 64 byte "
        "vectors\"}]");
    buf_reset(&text);
    json_init(&json, &text);
    remarks_parse(clang, sizeof clang - 1, &json);
    struct value *root = parse(&text);
    assert_int_equal(root->count, 2);
    assert_string_equal(value_text(root->items[1], "kind", ""), "missed");
    assert_string_equal(value_text(root->items[1], "text", ""),
                        "cannot prove it is safe to reorder");
    buf_free(&text);
}

static void the_hot_loop_is_the_inner_one(void **state)
{
    static const char disassembly[] = "\n0000000000001110 <kernel>:\n"
                                      "    1110:\tpush   %rbp\n"
                                      "    1120:\tvmovups (%rsi,%rax,4),%zmm2\n"
                                      "    1122:\tvbroadcastss (%rdi),%zmm3\n"
                                      "    1124:\tvfmadd231ps 0x40(%rsi),%zmm3,%zmm0\n"
                                      "    1126:\tvfmadd231ps %zmm2,%zmm3,%zmm1\n"
                                      "    1128:\tvmovaps %zmm4,0x40(%rsp)\n"
                                      "    112a:\tvpermps %zmm1,%zmm2,%zmm5\n"
                                      "    112c:\tvaddss %xmm1,%xmm2,%xmm3\n"
                                      "    112e:\tjne    1120 <kernel+0x10>\n"
                                      "    1130:\tvmovups %zmm0,(%rdx)\n"
                                      "    1132:\tjl     1110 <kernel>\n"
                                      "    1134:\tret\n"
                                      "\n0000000000001200 <other>:\n"
                                      "    1200:\tadd    $0x1,%rax\n"
                                      "    1204:\tjne    1200 <other>\n";
    struct buf text;
    struct json json;
    (void)state;
    buf_init(&text, 8192);
    json_init(&json, &text);
    mix_parse(disassembly, NULL, NULL, &json);
    assert_string_equal(buf_text(&text),
                        "{\"function\":\"kernel\",\"instructions\":8,\"vector_bytes\":64,"
                        "\"vector_fma\":2,\"vector_arithmetic\":2,\"scalar_arithmetic\":1,"
                        "\"loads\":3,\"stores\":1,\"shuffles\":1,\"gathers\":0,\"spills\":1,"
                        "\"code\":\"1 vmovups (%rsi,%rax,4),%zmm2\\n2 vbroadcastss (%rdi),%zmm3\\n"
                        "3 vfmadd231ps 0x40(%rsi),%zmm3,%zmm0\\n4 vfmadd231ps %zmm2,%zmm3,%zmm1\\n"
                        "5 vmovaps %zmm4,0x40(%rsp)\\n6 vpermps %zmm1,%zmm2,%zmm5\\n"
                        "7 vaddss %xmm1,%xmm2,%xmm3\\n8 jne ->loop\\n\"}");
    buf_reset(&text);
    json_init(&json, &text);
    mix_parse("", NULL, NULL, &json);
    assert_string_equal(buf_text(&text), "null");
    buf_free(&text);
}

/* Its instructions with their shares; of a long one the head and the tail. */
static void the_hot_loop_is_shown_within_bounds(void **state)
{
    static uint64_t addresses[] = {0x1120, 0x1120, 0x1120, 0x1126, 0x1126, 0x1126,
                                   0x1126, 0x1126, 0x1126, 0x112c, 0x112c, 0x112c};
    const struct samples samples = {.total = 100, .own = 12, .addresses = addresses};
    ARENA_LOCAL(arena);
    BUF_LOCAL(source, 1 << 20);
    (void)state;
    buf_add_text(&source, "\n0000000000001110 <kernel>:\n"
                          "    1120:\tvmovups (%rsi),%zmm2 # 40 <x>\n"
                          "    1124:\tje     112a <kernel+0x1a>\n"
                          "    1126:\tcall   1050 <__tls_get_addr@plt>\n"
                          "    112a:\tjmp    1200 <kernel+0xf0>\n"
                          "    112c:\tjne    1120 <kernel+0x10>\n");
    for (int long_one = 0; long_one < 2; long_one++) {
        BUF_LOCAL(text, 1 << 16);
        struct json json;
        struct value *root;
        json_init(&json, &text);
        mix_parse(buf_text(&source), long_one ? NULL : &samples, NULL, &json);
        assert_int_equal(value_parse_json(arena, "mix", buf_text(&text), text.length, &root, NULL),
                         0);
        const char *code = value_text(root, "code", "");
        if (!long_one)
            assert_string_equal(code, " 25 % 1 vmovups (%rsi),%zmm2\n      2 je ->4\n"
                                      " 50 % 3 call   1050 <__tls_get_addr@plt>\n"
                                      "      4 jmp ->out\n 25 % 5 jne ->loop\n");
        if (long_one) {
            assert_non_null(strstr(code, "\n64 vfmadd231ps "));
            assert_non_null(strstr(code, "\n... 105 more ...\n170 vfmadd231ps "));
            assert_non_null(strstr(code, "\n200 vfmadd231ps "));
            assert_true(strlen(code) < 96 * 110);
        }
        buf_reset(&source);
        buf_add_text(&source, "\n0000000000001110 <kernel>:\n");
        for (int i = 0; i < 200; i++)
            buf_addf(&source, "    %x:\tvfmadd231ps %%zmm%d,%0120d,%%zmm1\n", 0x1120 + i, i % 32,
                     0);
        buf_addf(&source, "    %x:\tjne    1120 <kernel+0x10>\n", 0x1120 + 200);
    }
}

/* One sample more is chance: the loop that computes most stays the hot one; a dozen are not. */
static void few_samples_do_not_make_a_loop_hot(void **state)
{
    static const char disassembly[] = "\n0000000000001110 <kernel>:\n"
                                      "    1120:\tvfmadd231ps %zmm2,%zmm3,%zmm1\n"
                                      "    112e:\tjne    1120 <kernel+0x10>\n"
                                      "    1130:\tvaddss %xmm1,%xmm2,%xmm3\n"
                                      "    1134:\tjne    1130 <kernel+0x20>\n";
    uint64_t addresses[12];
    (void)state;
    for (size_t i = 0; i < 12; i++)
        addresses[i] = 0x1130;
    for (size_t own = 1; own <= 12; own += 11) {
        const struct samples samples = {.total = 100, .own = own, .addresses = addresses};
        struct buf text;
        struct json json;
        buf_init(&text, 8192);
        json_init(&json, &text);
        mix_parse(disassembly, &samples, NULL, &json);
        assert_int_equal(value_int(parse(&text), "vector_bytes", -1), own == 1 ? 64 : 0);
        buf_free(&text);
    }
}

/* Whatever a compiler or a disassembler says: nothing is read outside of it. */
static void garbage_is_read_within_its_bounds(void **state)
{
    static const char *const words[] = {
        "candidate.c:",
        "12:",
        ": error: ",
        ": Error: `",
        "undefined reference to `",
        "\n",
        "'",
        "/etc/x",
        "0x1f",
        "00001110 <f>:\n",
        "  1110:\tjne ",
        "pack():\n",
        "/x/unit.c:12 (discriminator 3)\n",
        "1110",
        "%zmm1,(%rsp)",
        ": missed: ",
        ": remark: loop not vectorized: ",
        " [-R",
        "<",
        "\tlock",
        "multiple definition of ",
        "prologue:1: error: ",
    };
    struct random random;
    (void)state;
    random_init(&random, 20);
    assert_int_equal(
        candidate_parse(kit.problem, "k.c", "int x;\nint y;", 13, &kit.candidate, &kit.err), 0);
    for (int i = 0; i < 3000; i++) {
        struct buf text, out;
        struct json json;
        buf_init(&text, 400);
        buf_init(&out, 64 << 10);
        for (uint64_t j = random_below(&random, 14); j > 0; j--)
            buf_add_text(&text, words[random_below(&random, sizeof words / sizeof words[0])]);
        char *exact =
            malloc(text.length + 1); /* no byte more, so that ASan sees the first too many */
        memcpy(exact, buf_text(&text), text.length + 1);
        json_init(&json, &out);
        remarks_parse(exact, text.length, &json);
        mix_parse(exact, NULL, NULL, &json);
        cpu_diagnostics(kit.candidate, exact, text.length, &out);
        free(exact);
        buf_free(&text);
        buf_free(&out);
    }
}

/* Whatever is sampled of it is in the loop that is vectorized. */
static const char scaled[] =
    KIT_SIGNATURE "{\nfor (int again = 0; again < 3000; again++) {\n#pragma GCC ivdep\n"
                  "for (int64_t i = 0; i < M * N; i++)\nC[i] = C[i] * 2 + 1;\n"
                  "__asm__ volatile(\"\" ::: \"memory\"); }\n" KIT_RIGHT "}";

static void a_kernel_is_profiled(void **state)
{
    struct buf text;
    struct json json;
    (void)state;
    assert_int_equal(kit_compile(&kit, "k.c", scaled, BUILD_REMARKS), 0);
    const char *log = kit.build.log;
    assert_non_null(log);
    assert_int_equal(kit_try(&kit, scaled), ERR_NONE);
    kit.lane.copy_bytes_per_s = 10e9;
    kit.lane.flops_per_s = 100e9;
    buf_init(&text, 64 << 10);
    json_init(&json, &text);
    json_object(&json);
    assert_int_equal(backend_cpu.profile(&kit.lane, kit.problem, &kit.problem->shapes[0],
                                         kit.build.artifact, log, 1000, kit.subject, &kit.call,
                                         &json, &kit.err),
                     0);
    json_object_end(&json);
    struct value *root = parse(&text);
    /* 7x5x3: 210 operations, 4 * (21 + 15 + 35) bytes; 28.4 ns of memory against 2.1 of compute */
    assert_true(value_real(value_get(root, "roofline"), "flops", 0) == 210);
    assert_true(value_real(value_get(root, "roofline"), "bytes", 0) == 284);
    assert_string_equal(value_text(value_get(root, "roofline"), "limit", ""), "memory");
    double share = value_real(value_get(root, "roofline"), "share_of_limit", 0);
    assert_true(share > 0.0283 && share < 0.0285);
    assert_true(value_get(root, "remarks")->count >= 1);
#if defined(__x86_64__)
    if (file_exists("/usr/bin/objdump"))
        assert_true(value_int(value_get(root, "hot_loop"), "vector_bytes", 0) >= 16);
#endif
    assert_non_null(value_at(root, "counters.cycles")); /* a number, or null */
    assert_int_equal(kit_call(&kit), 0);
    buf_free(&text);
}

static void what_is_not_known_is_null(void **state)
{
    struct buf text;
    struct json json;
    (void)state;
    assert_int_equal(kit_try(&kit, scaled), ERR_NONE);
    buf_init(&text, 64 << 10);
    json_init(&json, &text);
    json_object(&json);
    assert_int_equal(backend_cpu.profile(&kit.lane, kit.problem, &kit.problem->shapes[0],
                                         "/nowhere.so", "/nowhere.txt", 1000, kit.subject,
                                         &kit.call, &json, &kit.err),
                     0);
    json_object_end(&json);
    struct value *root = parse(&text);
    assert_int_equal(value_at(root, "roofline.limit")->kind, VALUE_NULL);
    assert_int_equal(value_at(root, "roofline.share_of_limit")->kind, VALUE_NULL);
    assert_null(value_get(root, "hot_loop"));
    assert_null(value_get(root, "remarks"));
    buf_free(&text);
}

static void cachegrind_counts(void **state)
{
    struct buf text;
    struct json json;
    (void)state;
    if (!file_exists("/usr/bin/valgrind"))
        skip();
    assert_int_equal(kit_compile(&kit, "k.c", KIT_SIGNATURE "{" KIT_RIGHT "}", BUILD_PORTABLE), 0);
    buf_init(&text, 8192);
    json_init(&json, &text);
    json_object(&json);
    if (cpu_cachegrind(&kit.lane, &kit.region, kit.build.artifact, &kit.call, &json, &kit.err) != 0)
        fail_msg("%s", kit.err.message);
    json_object_end(&json);
    struct value *root = parse(&text);
    assert_true(value_real(value_get(root, "cachegrind"), "instructions", -1) > 1000);
    assert_true(value_real(value_get(root, "cachegrind"), "branch_mispredictions", -1) > 0);
    assert_true(kit_right(&kit));
    buf_free(&text);
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(remarks_have_reasons, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_hot_loop_is_the_inner_one, set_up, tear_down),
        cmocka_unit_test(the_hot_loop_is_shown_within_bounds),
        cmocka_unit_test_setup_teardown(few_samples_do_not_make_a_loop_hot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(garbage_is_read_within_its_bounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_kernel_is_profiled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_known_is_null, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cachegrind_counts, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
