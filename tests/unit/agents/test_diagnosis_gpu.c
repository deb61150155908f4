/* What is made of a GPU's counters. Rows marked "seen" are numbers that an NVIDIA H200 gave for the
 * start that is named; the others are made up around one limiter. */
#include "check.h"

#include "agents/diagnosis/diagnosis.h"
#include "agents/ideas/ideas.h"

#include <stdbool.h>

#define FACTS "{\"cores\": 16, \"sm_count\": 132, \"compute_capability\": 90}"
#define MEMORY(share, gbytes)                                                                      \
    "\"roofline\": {\"bytes\": 134217728, \"gbytes_per_s\": " #gbytes                              \
    ", \"share_of_memory_roof\": " #share ", \"limit\": \"memory\", \"share_of_limit\": " #share   \
    "}, "
#define COMPUTE(share, gflops)                                                                     \
    "\"roofline\": {\"bytes\": 134217728, \"gbytes_per_s\": 50, \"gflops_per_s\": " #gflops        \
    ", \"share_of_memory_roof\": 0.01, \"share_of_compute_roof\": " #share                         \
    ", \"limit\": \"compute\", \"share_of_limit\": " #share "}, "
#define COUNTERS "\"profile\": {\"source\": \"counters\", \"passes\": 9}, "
#define HOT(...) "\"hot_kernel\": {\"entry\": \"k\", \"issue_share\": 0.3, " __VA_ARGS__ "}"

static const struct {
    const char *what, *limiter, *evidence;
    const char *profile;
} rows[] = {
    {"seen: softmax/block.cu", "long-scoreboard stalls", "long scoreboard) 39 %",
     "{" MEMORY(0.74, 3330) COUNTERS HOT(
         "\"waves\": 10.3, \"dram_share\": 0.712, \"l2_share\": 0.338, \"l1_share\": 0.284, "
         "\"occupancy\": 0.684, \"occupancy_most\": 0.75, \"sm_busy_share\": 0.939, "
         "\"sectors_per_load\": 16, \"sectors_per_store\": 16, \"load_sectors\": 2097152, "
         "\"store_sectors\": 2097152, \"local_sectors\": 0, \"bank_conflict_share\": 0.013, "
         "\"pipes\": {\"fma\": 0.179, \"tensor\": 0.007, \"xu\": 0.126}, \"stalls\": "
         "{\"long_scoreboard\": 0.394, \"short_scoreboard\": 0.103, \"barrier\": 0.182, "
         "\"not_selected\": 0.116}") ", \"dram_bytes\": 134087424}"},
    {"seen: matmul/simt.cu at 512", "tail effect", "32 blocks are 0.061 of a wave on 132",
     "{" COMPUTE(0.085, 4877) COUNTERS HOT(
         "\"blocks\": 32, \"waves\": 0.0606, \"dram_share\": 0.015, \"sm_busy_share\": 0.235, "
         "\"occupancy\": 0.031, \"occupancy_most\": 0.125, \"pipes\": {\"fma\": 0.305, \"tensor\": "
         "0.0}, \"bank_conflict_share\": 0.197, \"stalls\": {\"wait\": 0.092, \"no_instruction\": "
         "0.09}") "}"},
    {"seen: relu/linear.cu", "long-scoreboard stalls", "DRAM 72 % busy",
     "{" MEMORY(0.74, 3326) COUNTERS HOT(
         "\"waves\": 1.333, \"sm_busy_share\": 0.93, \"occupancy\": 0.599, \"dram_share\": 0.724, "
         "\"sectors_per_load\": 16, \"load_sectors\": 2097152, \"store_sectors\": 2097152, "
         "\"local_sectors\": 0, \"stalls\": {\"long_scoreboard\": 0.756, \"lg_throttle\": "
         "0.176}") ", \"dram_bytes\": 136067840}"},
    {"at the roof", "memory bandwidth", "only moving fewer",
     "{" MEMORY(0.93, 4000) COUNTERS HOT("\"dram_share\": 0.9") "}"},
    {"at the compute roof", "compute", "only fewer of them",
     "{" COMPUTE(0.91, 52000) COUNTERS HOT("\"dram_share\": 0.1") "}"},
    {"spills", "register spills", "255 registers a thread, 372 bytes spilled: 30 %",
     "{" COMPUTE(0.2, 9000) COUNTERS HOT(
         "\"registers\": 255, \"spill_bytes\": 372, \"local_sectors\": 300, \"load_sectors\": 600, "
         "\"store_sectors\": 100") "}"},
    {"strided loads", "uncoalesced loads", "32 sectors a request",
     "{" MEMORY(0.12, 500) COUNTERS HOT(
         "\"sectors_per_load\": 32, \"load_sectors\": 800, \"store_sectors\": 200, "
         "\"local_sectors\": 0, \"dram_share\": 0.5, \"stalls\": {\"long_scoreboard\": 0.8}") "}"},
    {"strided stores", "uncoalesced stores", "32 sectors a request in global stores",
     "{" MEMORY(0.12, 500)
         COUNTERS HOT("\"sectors_per_load\": 4, \"sectors_per_store\": 32, \"load_sectors\": 100, "
                      "\"store_sectors\": 800, \"local_sectors\": 0, \"dram_share\": 0.5") "}"},
    {"conflicts", "bank conflicts", "62 % of the wavefronts",
     "{" COMPUTE(0.2, 9000) COUNTERS HOT("\"bank_conflict_share\": 0.62, \"l1_share\": 0.5, "
                                         "\"stalls\": {\"short_scoreboard\": 0.3, "
                                         "\"mio_throttle\": 0.2}") "}"},
    {"a short call", "launch-bound", "a call takes 4.19 us",
     "{" MEMORY(0.05, 32000) COUNTERS HOT("\"waves\": 1") "}"},
    {"many launches", "launch-bound", "between them",
     "{" MEMORY(0.1, 1000) COUNTERS "\"kernels\": [{\"entry\": \"a\"}, {\"entry\": \"b\"}], "
                                    "\"kernels_ns\": 60000, " HOT("\"waves\": 3") "}"},
    {"two clocks that disagree", DIAGNOSIS_NONE, "took longer when they were counted",
     "{" MEMORY(0.1, 1000) COUNTERS "\"kernels_ns\": 200000, " HOT("\"waves\": 3") "}"},
    {"a tail", "tail effect", "2.1 waves: the multiprocessors are busy 71 %",
     "{" COMPUTE(0.5, 20000) COUNTERS HOT("\"waves\": 2.06, \"sm_busy_share\": 0.71") "}"},
    {"two passes", "cache misses", "2.1 times what the problem needs",
     "{" MEMORY(0.4, 1800)
         COUNTERS HOT("\"dram_share\": 0.83, \"waves\": 9") ", \"dram_bytes\": 281857229}"},
    {"DRAM is busy", "memory bandwidth", "DRAM is 84 % busy",
     "{" MEMORY(0.8, 3500) COUNTERS HOT("\"dram_share\": 0.84, \"waves\": 9") "}"},
    {"no tensor cores", "idle tensor pipe", "no tensor-core instruction",
     "{" COMPUTE(0.05, 45000) COUNTERS HOT("\"pipes\": {\"fma\": 0.6, \"tensor\": 0}") "}"},
    {"hungry tensor cores", "idle tensor pipe", "the tensor pipe is 21 % busy",
     "{" COMPUTE(0.2, 190000) COUNTERS HOT("\"pipes\": {\"fma\": 0.1, \"tensor\": 0.21}") "}"},
    {"low occupancy", "low occupancy", "achieved occupancy 21 % of the warps, 25 % at most",
     "{" MEMORY(0.4, 1700) COUNTERS HOT(
         "\"occupancy\": 0.21, \"occupancy_most\": 0.25, \"dram_share\": 0.4, \"waves\": 8, "
         "\"stalls\": {\"long_scoreboard\": 0.6}") "}"},
    {"barriers", "barrier stalls", "__syncthreads 41 %",
     "{" MEMORY(0.4, 1700) COUNTERS HOT(
         "\"occupancy\": 0.8, \"dram_share\": 0.4, \"stalls\": {\"long_scoreboard\": 0.2, "
         "\"barrier\": 0.41}") "}"},
    {"wgmma", "wgmma stalls", "wait for wgmma 52 %",
     "{" COMPUTE(0.7, 700000) COUNTERS HOT(
         "\"pipes\": {\"tensor\": 0.7}, \"stalls\": {\"gmma\": 0.52, \"wait\": 0.1}") "}"},
    {"instructions", "instruction-bound", "82 % of the issue slots",
     "{" MEMORY(0.5, 2000) COUNTERS
     "\"hot_kernel\": {\"entry\": \"k\", \"issue_share\": 0.82, \"dram_share\": 0.5}}"},
    {"nothing stands out", DIAGNOSIS_NONE, "no single reason",
     "{" MEMORY(0.5, 2000) COUNTERS HOT("\"dram_share\": 0.5, \"occupancy\": 0.9") "}"},
    /* without counters */
    {"spills by ptxas", "register spills", "no hardware counters (not permitted): kernels' times",
     "{" COMPUTE(
         0.3,
         15000) "\"profile\": {\"source\": \"records\", \"why\": \"not permitted\"}, "
                "\"hot_kernel\": {\"entry\": \"k\", \"registers\": 255, \"spill_bytes\": 400}}"},
    {"a small grid", "tail effect", "the compiler's numbers and the grid alone",
     "{" COMPUTE(0.1, 5000) "\"profile\": {\"source\": \"resources\", \"why\": \"no libcupti\"}, "
                            "\"hot_kernel\": {\"entry\": \"k\", \"blocks\": 16, \"waves\": 0.12}}"},
    {"few warps", "low occupancy", "allow 12 % of the warps",
     "{" MEMORY(0.3, 1300) "\"hot_kernel\": {\"entry\": \"k\", \"waves\": 4, \"occupancy_most\": "
                           "0.125}}"},
    {"little is known", DIAGNOSIS_NONE, "kernel k: 8 blocks of 128 threads",
     "{" MEMORY(0.3, 1300) "\"kernels\": [{\"entry\": \"k\", \"grid\": [8, 1, 1], \"threads\": "
                           "128}], \"hot_kernel\": {}}"},
    {"other kinds", "unknown", "",
     "{\"hot_kernel\": [], \"kernels\": 3, \"profile\": \"x\", \"dram_bytes\": {}}"},
    {"kinds within", "unknown", "",
     "{\"hot_kernel\": {\"stalls\": [1], \"issue_share\": \"x\", \"pipes\": 4}, \"kernels\": "
     "[1, null, {}]}"},
};

static bool has_category(const char *text)
{
    for (size_t i = 0; idea_categories[i] != NULL; i++)
        if (strncmp(text, idea_categories[i], strlen(idea_categories[i])) == 0)
            return true;
    return false;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new();
        struct diagnosis found = diagnosis_of(arena, rows[i].profile, FACTS);
        if (strcmp(found.limiter, rows[i].limiter) != 0 ||
            strstr(found.evidence, rows[i].evidence) == NULL)
            fail_msg("%s: %s\n%s", rows[i].what, found.limiter, found.evidence);
        assert_true(strcmp(found.limiter, "unknown") == 0 || has_category(found.categories));
        arena_free(arena);
    }
}

/* One launch's line, and the numbers in short. */
static void test_words(void **state)
{
    static const char kernel[] =
        "{\"entry\": \"gemm\", \"grid\": [64, 32, 1], \"block\": [256, 1, 1], \"threads\": 256, "
        "\"registers\": 128, \"shared_bytes\": 33792, \"blocks_per_sm\": 2, \"occupancy_limit\": "
        "\"registers\", \"waves\": 7.76, \"time_ns\": 2710000, \"time_share\": 0.97, "
        "\"issue_share\": 0.61, \"occupancy\": 0.24, \"occupancy_most\": 0.25, \"dram_share\": "
        "0.03, \"l2_share\": 0.2, \"l1_share\": 0.4, \"pipes\": {\"fma\": 0.71, \"tensor\": 0}, "
        "\"stalls\": {\"long_scoreboard\": 0.08, \"barrier\": 0.02, \"wait\": 0.3, "
        "\"not_selected\": 0.12}}";
    char profile[4096];
    struct arena *arena = arena_new();
    (void)state;
    snprintf(profile, sizeof profile,
             "{" COMPUTE(0.8, 46000) COUNTERS "\"kernels\": [%s], \"hot_kernel\": %s}", kernel,
             kernel);
    struct diagnosis found = diagnosis_of(arena, profile, FACTS);
    assert_non_null(strstr(found.evidence,
                           "- kernel gemm: 2710 us, 97 % of the time; 64 x 32 blocks of 256 "
                           "threads, 128 registers, 33792 bytes shared, 2 blocks a multiprocessor "
                           "(limited by registers), 7.76 waves\n"));
    assert_non_null(strstr(found.evidence,
                           "- of peak: DRAM 3 %, L2 20 %, L1 40 %, FMA 71 %, tensor 0.0 %; issue "
                           "slots 61 %; occupancy 24 % of 25 %; warps' time: wait 30 %, "
                           "not_selected 12 %, long_scoreboard 8 %\n"));
    assert_string_equal(found.place, "80 % of the compute roof (46 Tflop/s of 57.5 Tflop/s); 1 % "
                                     "of the memory roof");
    arena_free(arena);
}

/* Lines, as CUPTI's samples have them; one of a header, and one at which no warp ever waits. */
static void test_lines(void **state)
{
    struct arena *arena = arena_new();
    (void)state;
    struct diagnosis found = diagnosis_of(
        arena,
        "{" COMPUTE(0.8, 46000) COUNTERS HOT(
            "\"dram_share\": 0.03") ", \"time\": {\"samples\": "
                                    "52000, \"phases\": [{\"share\": 0.62, \"in\": "
                                    "\"gemm\", \"first_line\": 19, "
                                    "\"last_line\": 19, \"text\": \"sum += a[y][i] * "
                                    "b[i][x];\", \"stall\": "
                                    "\"mio_throttle\", \"stall_share\": 0.7}, "
                                    "{\"share\": 0.2, \"in\": \"gemm\", "
                                    "\"first_line\": 812, \"last_line\": 812, "
                                    "\"file\": \"cuda_fp16.hpp\", \"stall\": "
                                    "\"wait\", \"stall_share\": 0.4}, {\"share\": "
                                    "0.08, \"in\": \"gemm\", "
                                    "\"first_line\": 20, \"last_line\": 20, \"stall\": null}]}}",
        FACTS);
    assert_non_null(strstr(found.evidence,
                           "- where the time goes: 62 % in line 19: `sum += a[y][i] * b[i][x];` "
                           "(gemm: 70 % mio_throttle), 20 % in line 812 of cuda_fp16.hpp (gemm: 40 "
                           "% wait), 8 % in line 20 (gemm), 10 % in other lines\n"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
