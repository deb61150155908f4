/* A profile as a person sees it: counters of softmax/block.cu that an NVIDIA H200 gave
 * (golden/softmax_h200.json), and profiles that hold less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "cli/eval/profile_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *print(const char *metrics, const char *facts)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    const struct evaluation evaluation = {
        .verdict = VERDICT_KERNEL,
        .metrics = metrics,
        .baseline = "naive",
        .time_ns = {.median = 40300, .low = 40200, .high = 40400, .samples = 12},
        .speedup = {.median = 1.25, .low = 1.2, .high = 1.3, .samples = 12}};
    assert_non_null(out);
    profile_print(&evaluation, facts, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_counters(void **unused)
{
    static const char *const wanted[] = {
        "  time       40.30 us, 1.25x naive\n",
        "  place      74 % of the memory roof",
        "  limiter    long-scoreboard stalls\n",
        "  source     hardware counters, 9 passes, 350 ms\n",
        "  DRAM       134.1 MB moved, 134.2 MB needed: 1.00x\n",
        "\nkernel softmax: 39.17 us, 100 % of the time\n",
        "  launch     grid 4096, block 512: 10.3 waves of 3 blocks a multiprocessor\n",
        "  resources  40 registers a thread, 0.2 KB shared a block: at most 75 % of the warps, by "
        "registers\n",
        "  of peak    DRAM               ##################.......  71.2 %\n",
        "             issue slots        ############.............  47.6 %\n",
        "  warps wait long_scoreboard    ##########...............  39.4 %\n"
        "             barrier            #####....................  18.2 %\n",
        "             sectors a request: 16 of loads, 16 of stores; 0 % of loads hit L1\n",
        "             bank conflicts: 1.3 % of shared memory's wavefronts\n",
        "  instr.     17.63 million of warps, 32.0 of 32 threads active: fma 38 % alu 41 %"};
    struct buf metrics;
    struct err err = {0};
    (void)unused;
    buf_init(&metrics, 1 << 16);
    assert_int_equal(
        file_read(TEST_SOURCE_DIR "/tests/unit/cli/golden/softmax_h200.json", &metrics, &err), 0);
    char *text = print(buf_text(&metrics), "{\"sm_count\": 132}");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (strstr(text, wanted[i]) == NULL)
            fail_msg("no \"%s\" in\n%s", wanted[i], text);
    assert_null(strstr(text, "nan"));
    free(text);
    buf_free(&metrics);
}

static void test_less(void **unused)
{
    static const struct {
        const char *metrics, *wanted;
    } rows[] = {
        {"{}", "limiter    unknown"},
        {"no JSON", "limiter    unknown"},
        {"{\"profile\": {\"source\": \"records\", \"why\": \"not permitted\"}, \"kernels\": "
         "[{\"entry\": \"k\", \"grid\": [8, 2, 1], \"block\": [128, 1, 1], \"shared_bytes\": 0, "
         "\"time_ns\": 5000, \"time_share\": 1}], \"hot_kernel\": {\"entry\": \"k\"}}",
         "kernel k: 5 us, 100 % of the time\n  launch     grid 8 x 2, block 128\n"},
        {"{\"profile\": {\"source\": \"resources\", \"why\": \"no libcupti\"}, \"kernels\": [], "
         "\"hot_kernel\": {}}",
         "no hardware counters: no libcupti"},
        {"{\"profile\": {\"source\": \"counters\", \"records\": {\"launches\": 5, \"event_ns\": "
         "7000, "
         "\"span_ns\": 5000}}, \"kernels\": [], \"hot_kernel\": {}}",
         "\n  clocks     events 7.000 us, CUPTI's records 5.000 us\n"},
        {"{\"kernels\": 3, \"hot_kernel\": 4, \"profile\": 5, \"notes\": {}}", "limiter"},
        {"{\"kernels\": [1, {\"issue_share\": 0.5, \"pipes\": [], \"stalls\": 3, \"mix\": 1}], "
         "\"hot_kernel\": {}}",
         "issue slots"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = print(rows[i].metrics, "");
        if (strstr(text, rows[i].wanted) == NULL)
            fail_msg("row %zu:\n%s", i, text);
        free(text);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* a person looks at it */
        struct buf metrics;
        struct err err = {0};
        buf_init(&metrics, 1 << 20);
        if (file_read(argv[1], &metrics, &err) != 0)
            return 1;
        char *text = print(buf_text(&metrics), "{\"sm_count\": 132}");
        fputs(text, stdout);
        free(text);
        buf_free(&metrics);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counters),
                                       cmocka_unit_test(test_less)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
