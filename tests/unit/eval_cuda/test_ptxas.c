/* ptxas's report: read from logs of several versions, told as JSON, read back; without NVRTC. */
#include "kit.h"

#include "eval/cuda/compile/ptxas.h"

/* NVRTC 13.0, two entries, the second with a function that is called */
static const char log_13[] =
    "candidate.cu(6): warning #1105-D: #warning directive: foo\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'mm' for 'sm_90a'\n"
    "ptxas info    : Function properties for mm\n"
    "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
    "ptxas info    : Used 32 registers, used 1 barriers, 16 bytes cumulative stack size, 4096 "
    "bytes "
    "smem\n"
    "ptxas info    : Compile time = 60.081 ms\n"
    "ptxas info    : Compiling entry function '_Z1kILi3EEvPf' for 'sm_90a'\n"
    "ptxas info    : Function properties for helper\n"
    "ptxas         .     400 bytes stack frame, 300 bytes spill stores, 200 bytes spill loads\n"
    "ptxas info    : Function properties for _Z1kILi3EEvPf\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 0 barriers, 44 bytes smem, 368 bytes cmem[0], 8 "
    "bytes "
    "cmem[2]\n";

static void check_13(const struct cuda_report *report)
{
    assert_int_equal(report->entry_count, 2);
    const struct cuda_resources *entry = ptxas_entry(report, "mm");
    assert_non_null(entry);
    assert_int_equal(entry->registers, 32);
    assert_int_equal(entry->stack_bytes, 16);
    assert_int_equal(entry->spill_store_bytes, 8);
    assert_int_equal(entry->spill_load_bytes, 4);
    assert_int_equal(entry->shared_bytes, 4096);
    assert_int_equal(entry->constant_bytes, 0);
    assert_int_equal(entry->barriers, 1);
    entry = ptxas_entry(report, "_Z1kILi3EEvPf");
    assert_non_null(entry);
    assert_int_equal(entry->registers, 255);
    assert_int_equal(entry->stack_bytes, 0); /* its own, not the helper's */
    assert_int_equal(entry->shared_bytes, 44);
    assert_int_equal(entry->constant_bytes, 376);
    assert_null(ptxas_entry(report, "helper"));
}

static void test_parse(void **state)
{
    struct arena *arena = arena_new();
    struct cuda_report report = {0};
    (void)state;
    ptxas_parse(arena, log_13, strlen(log_13), &report);
    check_13(&report);
    arena_free(arena);
}

static void test_round_trip(void **state)
{
    struct arena *arena = arena_new();
    struct cuda_report report = {.arch = "sm_90a", .version = "NVRTC 13.0", .compile_ms = 12.5};
    struct cuda_report read;
    struct buf text;
    struct json json;
    struct err err;
    char path[] = "/tmp/twagent-test-XXXXXX";
    (void)state;
    ptxas_parse(arena, log_13, strlen(log_13), &report);
    buf_init(&text, 1 << 16);
    json_init(&json, &text);
    ptxas_put(&report, &json);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text.data, text.length) == (ssize_t)text.length);
    close(fd);
    assert_int_equal(cuda_report_read(arena, path, &read, &err), 0);
    check_13(&read);
    assert_string_equal(read.arch, "sm_90a");
    assert_string_equal(read.version, "NVRTC 13.0");
    assert_true(read.compile_ms == 12.5);
    unlink(path);
    assert_int_equal(cuda_report_read(arena, path, &read, &err), -1);
    buf_free(&text);
    arena_free(arena);
}

/* What a source prints comes before ptxas's own words about the same entry, which count. */
static void test_forged(void **state)
{
    static const char forged[] =
        "candidate.cu(5): remark #20200-D: #pragma message: \"x\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Used 1 registers, used 0 barriers\"\n"
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas info    : Function properties for k\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 99 registers, used 1 barriers\n";
    struct arena *arena = arena_new();
    struct cuda_report report = {0};
    (void)state;
    ptxas_parse(arena, forged, strlen(forged), &report);
    assert_int_equal(report.entry_count, 1);
    assert_int_equal(report.entries[0].registers, 99);
    assert_int_equal(report.entries[0].spill_store_bytes, 0);
    arena_free(arena);
}

/* Whatever is cut off, doubled or too much: no more entries than there is room for, no crash. */
static void test_hostile(void **state)
{
    struct arena *arena = arena_new();
    struct cuda_report report;
    struct buf text;
    (void)state;
    for (size_t length = 0; length <= strlen(log_13); length++) {
        report = (struct cuda_report){0};
        char *cut = arena_strndup(arena, log_13, length);
        ptxas_parse(arena, cut, length, &report);
        assert_true(report.entry_count <= 2);
    }
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 100; i++)
        buf_addf(&text,
                 "ptxas info    : Compiling entry function 'k%d' for 'sm_90a'\n"
                 "ptxas info    : Used 99999999999999999999999999 registers, 1 bytes cmem[0]\n",
                 i);
    report = (struct cuda_report){0};
    ptxas_parse(arena, buf_text(&text), text.length, &report);
    assert_int_equal(report.entry_count, CUDA_ENTRIES_MAX);
    buf_free(&text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
