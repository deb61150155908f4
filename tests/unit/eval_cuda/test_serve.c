/* The compile server: what it shelves, and that nobody depends on it; the cache on disk. */
#include "kit.h"

#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/cuda/compile/serve.h"
#include "eval/cuda/compile/source.h"

#include <sys/socket.h>

/* ---- precompiled headers; without NVRTC ---- */

static int unit_file(const char *text)
{
    char path[] = "/tmp/twagent-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    unlink(path);
    return fd;
}

#define TYPES "#include <" CUDA_SOURCE_TYPES ">\n"

static void test_prefix(void **state)
{
    static const struct {
        const char *text, *prefix;
    } cases[] = {
        {TYPES CUDA_SOURCE_STOP "int x;\n", NULL},
        {TYPES "#include <mma.h>\n" CUDA_SOURCE_STOP "int x;\n", TYPES "#include <mma.h>\n"},
        {TYPES "#include <mma.h>\n" CUDA_SOURCE_STOP "#include \"x\"\n" CUDA_SOURCE_STOP,
         TYPES "#include <mma.h>\n"},
        {"", NULL},
        {"int x;\n", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = unit_file(cases[i].text);
        char *prefix = pch_prefix(fd);
        if (cases[i].prefix == NULL)
            assert_null(prefix);
        else
            assert_string_equal(prefix, cases[i].prefix);
        mem_free(prefix);
        close(fd);
    }
}

static void test_shelf(void **state)
{
    struct pch_shelf *shelf = pch_shelf_new("/nowhere");
    bool create;
    (void)state;
    int fd = unit_file(TYPES "#include <mma.h>\n" CUDA_SOURCE_STOP "int x;\n");
    int plain = unit_file(TYPES CUDA_SOURCE_STOP "int x;\n");
    struct cuda_job job = {.arch = "sm_90a", .unit = fd}, other = job;
    other.flags[other.flag_count++] = "-std=c++20";
    assert_null(pch_find(shelf, &job, &create)); /* once: not worth the while */
    assert_false(create);
    const char *path = pch_find(shelf, &job, &create);
    assert_true(path != NULL && create);
    assert_null(pch_find(shelf, &job, &create)); /* somebody makes it */
    assert_null(pch_find(shelf, &other, &create));
    pch_made(shelf, path, true);
    assert_ptr_equal(pch_find(shelf, &job, &create), path);
    assert_false(create);
    path = pch_find(shelf, &other, &create);
    assert_true(path != NULL && create);
    pch_made(shelf, path, false);
    assert_null(pch_find(shelf, &other, &create)); /* and is not tried again */
    assert_false(create);
    other.unit = plain;
    assert_null(pch_find(shelf, &other, &create));
    assert_null(pch_find(shelf, &other, &create));
    mem_free(shelf);
    close(fd);
    close(plain);
}

/* ---- compiling ---- */

#define WITH_HEADER                                                                                \
    "#include <mma.h>\n"                                                                           \
    "extern \"C\" __global__ void k(float *x)\n"                                                   \
    "{ x[0] = "

/* Plain, then with the header made, then with the header: the same kernel, wrong lines where
 * they are, and whoever has no server gets the same. */
static void test_shelved(void **state)
{
    struct kit kit;
    int64_t registers = 0;
    char text[400];
    struct cuda_compiler compiler;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    assert_int_equal(cuda_compiler_find(kit.arena, &compiler, &kit.err), 0);
    bool can = compiler.version_major * 100 + compiler.version_minor >= 1208;
    for (int i = 0; i < 4; i++) { /* the last one without a server */
        snprintf(text, sizeof text,
                 "/*---\ntune: {V: [%d]}\n---*/\n"
                 "#include <cuda_fp16.h>\n" WITH_HEADER "V; }\n",
                 10 + i);
        if (i == 3)
            setenv("TWAGENT_CUDA_SERVER", "0", 1);
        if (kit_compile(&kit, text) != 0)
            fail_msg("%s", buf_text(&kit.said));
        assert_int_equal(kit.report.entry_count, 1);
        assert_true(kit.report.entries[0].registers > 0);
        if (can)
            assert_int_equal(kit.report.precompiled, i == 1 || i == 2);
        registers = i == 0 ? kit.report.entries[0].registers : registers;
        assert_int_equal(kit.report.entries[0].registers, registers);
    }
    unsetenv("TWAGENT_CUDA_SERVER");
    assert_int_equal(kit_compile(&kit, WITH_HEADER "\nnothing; }\n"), 1);
    assert_true(kit_shows(&kit, "candidate.cu(4): error: identifier \"nothing\""));
    kit_close(&kit);
}

/* A server that is gone, or is none: the compile's own process does it. */
static void test_gone(void **state)
{
    struct kit kit;
    int ends[2];
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    kit_parse(&kit, "extern \"C\" __global__ void k(float *x) { x[0] = 3; }\n");
    assert_int_equal(cuda_build(kit.arena, "sm_90a", kit.problem, kit.candidate, &kit.tune, NULL,
                                BUILD_FAST, kit.folder, &kit.build, &kit.err),
                     0);
    assert_int_equal(kit.build.spec.pass_count, 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[1]);
    kit.build.spec.pass_fds = ends;
    assert_int_equal(kit_run(&kit), 0);
    assert_int_equal(cuda_report_read(kit.arena, kit.build.log, &kit.report, &kit.err), 0);
    assert_int_equal(kit.report.entry_count, 1);
    kit.build.spec.pass_count = 0; /* its descriptor is the unit's, or nobody's */
    assert_int_equal(kit_run(&kit), 0);
    close(ends[0]);
    kit_close(&kit);
}

/* As a worker does it: the loop's own children, with the server's descriptor. */
static void test_loop(void **state)
{
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    kit_parse(&kit, "extern \"C\" __global__ void k(float *x) { x[0] = 4; }\n");
    for (int i = 0; i < 2; i++) {
        if (cuda_build(kit.arena, "sm_90a", kit.problem, kit.candidate, &kit.tune, NULL, BUILD_FAST,
                       kit.folder, &kit.build, &kit.err) != 0 ||
            build_run(&kit.build.spec, &kit.err) != 0)
            fail_msg("%s", kit.err.message);
        assert_int_equal(kit.build.spec.pass_count, 1);
        assert_int_equal(cuda_report_read(kit.arena, kit.build.log, &kit.report, &kit.err), 0);
        assert_string_equal(kit.report.entries[0].entry, "k");
    }
    kit_parse(&kit, "nothing\n");
    assert_int_equal(cuda_build(kit.arena, "sm_90a", kit.problem, kit.candidate, &kit.tune, NULL,
                                BUILD_FAST, kit.folder, &kit.build, &kit.err),
                     0);
    assert_int_equal(build_run(&kit.build.spec, &kit.err), -1);
    assert_int_equal(kit.err.code, ERR_CHILD);
    assert_non_null(strstr(kit.err.message, "candidate.cu(1): error"));
    kit_close(&kit);
}

/* ---- what is on disk (cubin_cache.h) ---- */

static const char on_disk[] = "/*---\ntune: {V: [1, 2]}\n---*/\n"
                              "extern \"C\" __global__ void k(float *x) { x[0] = V; }\n";

/* With a server and without; two workers have it in common. */
static void test_disk(void **state)
{
    struct kit kit;
    struct buf first, second;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    buf_init(&first, 1 << 20);
    buf_init(&second, 1 << 20);
    setenv("TWAGENT_CUDA_SERVER", "0", 1);
    assert_int_equal(kit_compile(&kit, on_disk), 0);
    assert_false(kit.report.cached);
    double compile_ms = kit.report.compile_ms;
    assert_int_equal(file_read(kit.build.artifact, &first, &kit.err), 0);
    assert_int_equal(kit_compile(&kit, on_disk), 0);
    assert_true(kit.report.cached && kit.report.compile_ms == compile_ms);
    assert_string_equal(kit.report.entries[0].entry, "k");
    assert_int_equal(file_read(kit.build.artifact, &second, &kit.err), 0);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    unsetenv("TWAGENT_CUDA_SERVER");
    assert_int_equal(kit_compile(&kit, on_disk), 0);
    assert_true(kit.report.cached);
    assert_int_equal(kit_build(&kit, "sm_90", BUILD_FAST), 0);
    assert_false(kit.report.cached);
    tune_at(kit.candidate, 1, &kit.tune); /* another definition */
    assert_int_equal(kit_build(&kit, "sm_90a", BUILD_FAST), 0);
    assert_false(kit.report.cached);
    assert_int_equal(kit_build(&kit, "sm_90a", BUILD_SANITIZED), 0); /* the same command */
    assert_true(kit.report.cached);
    setenv("TWAGENT_CUDA_CACHE", "0", 1); /* the server alone keeps nothing */
    assert_int_equal(kit_build(&kit, "sm_90a", BUILD_FAST), 0);
    assert_false(kit.report.cached);
    unsetenv("TWAGENT_CUDA_CACHE");
    buf_free(&first);
    buf_free(&second);
    kit_close(&kit);
}

static void test_disk_failures(void **state)
{
    struct kit kit;
    char cubins[100];
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    snprintf(cubins, sizeof cubins, "%s/twagent", kit.folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_compile(&kit, "nothing\n"), 1);
        assert_true(kit_shows(&kit, "error"));
        assert_false(file_exists(cubins));
    }
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kit_compile(&kit, on_disk), 0);
    kit_close(&kit);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),        cmocka_unit_test(test_shelf),
        cmocka_unit_test(test_shelved),       cmocka_unit_test(test_gone),
        cmocka_unit_test(test_loop),          cmocka_unit_test(test_disk),
        cmocka_unit_test(test_disk_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
