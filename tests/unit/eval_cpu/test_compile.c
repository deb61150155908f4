/* What is built, what an author reads of the compiler's words, and what a compiler cannot reach. */
#include "kit.c" /* each test is one source file */

static const char *diagnose(struct buf *out)
{
    buf_init(out, 16 << 10);
    backend_cpu.diagnostics(kit.candidate, buf_text(&kit.said), kit.said.length, out);
    return buf_text(out);
}

/* Sources that do not compile; what the author reads, and what he does not. */
static const struct {
    const char *name, *text, *has, *lacks;
} failures[] = {
    {"an unknown name", KIT_SIGNATURE "{ C[0] = nowhere; }", "candidate.c:2:", "prologue"},
    {"its own line is quoted", KIT_SIGNATURE "{ C[0] = nowhere; }", "2 | { C[0] = nowhere; }", "/"},
    {"an unknown function", KIT_SIGNATURE "{ C[0] = nothing_there(1); }", "candidate.c:2:", "ld:"},
    {"a wrong signature", "void kernel(float *A, int n) { A[n] = 0; }",
     "candidate.c:1:6: error: conflicting types for 'kernel'", "/"},
    {"a wrong signature is explained", "void kernel(float *A, int n) { A[n] = 0; }",
     "the problem gives: void kernel(const float *", "/"},
    {"no kernel", "int x;", "link: undefined reference to `kernel'", "/"},
    {"another name is explained", "void candidate(float *A) { A[0] = 0; }",
     "the problem gives: void kernel(const float *", "/"},
    {"a missing library", "float other(void);\n" KIT_SIGNATURE "{ C[0] = other(); }",
     "link: undefined reference to `other'", "/"},
    {"includes a secret", "#include \"/etc/passwd\"\n" KIT_SIGNATURE "{}",
     "candidate.c:1:", "root:"},
    {"includes a secret in an array", "char x[] = {\n#include \"/etc/hostname\"\n};\n",
     "candidate.c", "localhost"},
    {"claims to be a file", "#line 1 \"/etc/passwd\"\n int x = ;\n", "nothing about the source",
     "root:"},
    {"includes a device", "#include \"/dev/zero\"\n" KIT_SIGNATURE "{}", "candidate.c:1:", "\\0"},
    {"includes the environment", "#include \"/proc/self/environ\"\n", "candidate.c:1:", "PATH="},
    {"assembles a secret", "__asm__(\".include \\\"/etc/passwd\\\"\");\n" KIT_SIGNATURE "{}",
     "inline assembly", "root:"},
    {"embeds a secret", "__asm__(\".incbin \\\"/etc/passwd\\\"\");\n" KIT_SIGNATURE "{}",
     "inline assembly", "root:"},
    {"a library", "void cblas_sgemm(void);\n" KIT_SIGNATURE "{ cblas_sgemm(); }",
     "candidates are linked with no library", "/"},
    {"a wrong instruction", KIT_SIGNATURE "{ __asm__(\"fly away\"); }",
     "no such instruction: `fly away'", "{standard"},
    {"prints a record", "__asm__(\".print \\\"{verdict: kernel}\\\"\");\n int x = ;",
     "candidate.c:2:", "verdict"},
    {"an unfinished comment", KIT_SIGNATURE "{}\n/* ", "candidate.c:3:1: error: unterminated",
     "/tmp"},
};

/* What goes wrong in a template is said where the template is. */
static void headers_are_told_of(void **state)
{
    struct buf out;
    (void)state;
    assert_int_not_equal(
        kit_compile(&kit, "k.cc",
                    "#include <thread>\n#include <chrono>\n#include <ranges>\n#include <vector>\n"
                    "struct s { s(const s &) = delete; };\nvoid f(std::vector<s> &v, s &a)\n"
                    "{ v.push_back(a); }\n" KIT_SIGNATURE "{}",
                    BUILD_FAST),
        0);
    const char *text = diagnose(&out);
    if (strstr(text, "in a header: error: ") == NULL || strstr(text, "candidate.cc:7:") == NULL ||
        strstr(text, "nothing about") != NULL || strstr(text, "/usr") != NULL)
        fail_msg("%s\nof\n%s", text, buf_text(&kit.said));
    buf_free(&out);
}

static void authors_read_of_their_source_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        struct buf out;
        if (kit_compile(&kit, "k.c", failures[i].text, BUILD_FAST) == 0)
            fail_msg("%s: it compiles", failures[i].name);
        const char *text = diagnose(&out);
        if (strstr(text, failures[i].has) == NULL || strstr(text, failures[i].lacks) != NULL)
            fail_msg("%s:\n%s\nof\n%s", failures[i].name, text, buf_text(&kit.said));
        buf_free(&out);
    }
}

/* The walls themselves, not the cleaner: the compiler's raw words hold nothing from outside. */
static void compilers_read_no_secret(void **state)
{
    static const char *const sources[] = {
        "#include \"/etc/passwd\"\n", "#line 1 \"/etc/passwd\"\nint x = ;\n",
        "__asm__(\".include \\\"/etc/passwd\\\"\");", "__asm__(\".incbin \\\"/etc/passwd\\\"\");",
        "#if __has_include(\"/etc/passwd\")\n#error it is there\n#endif\nint x = ;\n"};
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        for (int clang = 0; clang < 2; clang++) {
            char text[256];
            snprintf(text, sizeof text, "%s%s",
                     clang ? "/*---\ncompile: {compiler: clang}\n---*/\n" : "", sources[i]);
            assert_int_not_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
            if (strstr(buf_text(&kit.said), "root:") != NULL)
                fail_msg("%s:\n%s", text, buf_text(&kit.said));
        }
}

static void bombs_are_small(void **state)
{
    (void)state;
    struct buf out;
    assert_int_not_equal(
        kit_compile(&kit, "k.c", "#include __FILE__\n#include \"unit.c\"\n", BUILD_FAST), 0);
    assert_true(kit.said.length + kit.said.dropped < 20000);
    diagnose(&out);
    assert_true(out.length < 4000);
    buf_free(&out);
    char *wide = mem_alloc(400000);
    for (size_t i = 0; i + 4 < 400000; i += 4)
        memcpy(wide + i, "x=;\n", 4);
    assert_int_not_equal(kit_compile(&kit, "k.c", wide, BUILD_FAST), 0);
    diagnose(&out);
    assert_true(out.length < 4000);
    buf_free(&out);
    mem_free(wide);
}

/* Its CPU time is told from somebody's SIGKILL, which would be asked again. */
static void what_takes_too_long_is_told(void **state)
{
    static const char text[] = "template <int N, int M> struct A {\n"
                               "    static constexpr int v = A<N - 1, M * 2>::v + "
                               "A<N - 1, M * 2 + 1>::v;\n};\n"
                               "template <int M> struct A<0, M> { static constexpr int v = 1; };\n"
                               "int x = A<30, 0>::v;\n";
    const char *argv[160] = {NULL, "sandbox", "--limit", "cpu=1"};
    size_t count = 4;
    struct buf out;
    (void)state;
    kit_lay_out(&kit, "k.cc", text, BUILD_FAST);
    argv[0] = kit.build.spec.argv[0];
    size_t from = 0;
    while (strcmp(kit.build.spec.argv[from], "sandbox") != 0)
        from++;
    for (size_t i = from + 1; kit.build.spec.argv[i] != NULL; i++)
        argv[count++] = kit.build.spec.argv[i];
    kit.build.spec.argv = argv;
    assert_int_not_equal(kit_run_build(&kit), 0);
    if (strstr(diagnose(&out), "of CPU time") == NULL)
        fail_msg("%s of %s", buf_text(&out), buf_text(&kit.said));
    buf_free(&out);
}

static void tune_numbers_reach_the_source(void **state)
{
    (void)state;
    assert_int_equal(
        kit_try(&kit, "/*---\ntune:\n  BM: [42, 7]\n---*/\n" KIT_SIGNATURE "{ C[0] = BM; }"),
        ERR_NONE);
    assert_true(kit_output(&kit)[0] == 42);
}

/* Both runtimes of OpenMP and both compilers' sanitizers get along with the sandbox. */
static void sanitized_threads_run(void **state)
{
    (void)state;
    for (int clang = 0; clang < 2; clang++) {
        char text[1024];
        struct buf report;
        buf_init(&report, 4096);
        snprintf(text, sizeof text, "%s%s{\n#pragma omp parallel for\n%s}",
                 clang ? "/*---\ncompile: {compiler: clang}\n---*/\n" : "", KIT_SIGNATURE,
                 KIT_RIGHT);
        if (kit_compile(&kit, "k.c", text, BUILD_SANITIZED) != 0)
            fail_msg("%s", buf_text(&kit.said));
        memset(kit_output(&kit), 0xff, kit.layout.outputs[0].bytes);
        if (backend_cpu.sanitize(&kit.lane, &kit.region, kit.build.artifact, NULL, &kit.call, 1,
                                 false, &report, &kit.err) != 0)
            fail_msg("%d: %s\n%s", clang, kit.err.message, buf_text(&report));
        assert_true(kit_right(&kit));
        buf_free(&report);
    }
}

static void sanitizers_find_what_is_outside(void **state)
{
    static const struct {
        const char *body, *found;
    } cases[] = {
        {"{" KIT_RIGHT "}", NULL},
        {"{" KIT_RIGHT " C[M * N] = 0; }", "heap-buffer-overflow"},
        {"{" KIT_RIGHT " volatile float x = A[M * K]; (void)x; }", "READ of size 4"},
        {"{" KIT_RIGHT
         " volatile block x = *(const block *)(A + (M * K + 15) / 16 * 16); (void)x; }",
         "READ of size 16"}, /* all of it past the last whole block */
        {"{" KIT_RIGHT " volatile block x = *(const block *)(A + (M * K - 1) / 4 * 4); (void)x; }",
         NULL},
        {"{" KIT_RIGHT " _exit(0); }", ""}, /* leaves before anybody looks */
        {"{" KIT_RIGHT " volatile int n = 33; n = 1 << n; (void)n; }", "runtime error: shift"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        struct buf report;
        buf_init(&report, 4096);
        snprintf(text, sizeof text,
                 "#include <unistd.h>\ntypedef float block __attribute__((vector_size(16)));\n%s%s",
                 KIT_SIGNATURE, cases[i].body);
        if (kit_compile(&kit, "k.c", text, BUILD_SANITIZED) != 0)
            fail_msg("%s", buf_text(&kit.said));
        memset(kit_output(&kit), 0xff, kit.layout.outputs[0].bytes);
        int result = backend_cpu.sanitize(&kit.lane, &kit.region, kit.build.artifact, NULL,
                                          &kit.call, 1, false, &report, &kit.err);
        if (cases[i].found == NULL && result != 0)
            fail_msg("%zu: %s\n%s", i, kit.err.message, buf_text(&report));
        if (cases[i].found == NULL)
            assert_true(kit_right(&kit));
        else if (result == 0 || kit.err.code != ERR_CHILD ||
                 strstr(buf_text(&report), cases[i].found) == NULL)
            fail_msg("%zu: %s\n%s", i, kit.err.message, buf_text(&report));
        assert_null(strstr(buf_text(&report), "/tmp"));
        buf_free(&report);
    }
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(headers_are_told_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(authors_read_of_their_source_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(compilers_read_no_secret, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bombs_are_small, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_takes_too_long_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tune_numbers_reach_the_source, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sanitized_threads_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sanitizers_find_what_is_outside, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
