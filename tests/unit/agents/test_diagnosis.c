/* Profiles, most of them measured ones, and what they should be taken to mean. */
#include "check.h"

#include "agents/diagnosis/diagnosis.h"
#include "agents/ideas/ideas.h"

#include <stdbool.h>

#define FACTS "{\"cores\": 2, \"vector_bytes\": 64, \"l1_bytes\": 49152}"
#define ROOFLINE(limit, gflops, gbytes, memory, compute, share)                                    \
    "\"roofline\": {\"flops\": 268435456, \"bytes\": 134217728, \"gflops_per_s\": " #gflops        \
    ", \"gbytes_per_s\": " #gbytes ", \"share_of_memory_roof\": " #memory                          \
    ", \"share_of_compute_roof\": " #compute ", \"limit\": \"" limit                               \
    "\", \"share_of_limit\": " #share "}"
#define LOOP(function, instructions, width, fma, vector, scalar, loads, stores, shuffles, gathers, \
             spills)                                                                               \
    "\"hot_loop\": {\"function\": \"" function "\", \"instructions\": " #instructions              \
    ", \"vector_bytes\": " #width ", \"vector_fma\": " #fma ", \"vector_arithmetic\": " #vector    \
    ", \"scalar_arithmetic\": " #scalar ", \"loads\": " #loads ", \"stores\": " #stores            \
    ", \"shuffles\": " #shuffles ", \"gathers\": " #gathers ", \"spills\": " #spills "}"
#define NO_COUNTERS                                                                                \
    "\"counters\": {\"cycles\": null, \"instructions\": null, \"cache_misses\": null, "            \
    "\"instructions_per_cycle\": null}"
#define OMP "kernel._omp_fn.0"

static const struct {
    const char *what, *limiter, *evidence; /* evidence: words that must be there */
    const char *profile;
} rows[] = {
    {"a plain matmul", "not vectorized", "2 operations on single numbers and 1 on vectors",
     "{" ROOFLINE("compute", 1.5147, 0.01775, 0.00051, 0.00314, 0.00314) ", " LOOP(
         "kernel", 11, 16, 0, 1, 2, 3, 0, 2, 0, 1) ", " NO_COUNTERS "}"},
    {"a direct matmul", "register reuse", "12 loads for 8 operations",
     "{" ROOFLINE("compute", 235.2, 2.757, 0.079, 0.488, 0.488) ", " LOOP("tile_edge", 19, 64, 8, 8,
                                                                          0, 12, 0, 0, 0, 0) "}"},
    {"a packed matmul that spills", "register pressure", "56 of 232 instructions",
     "{" ROOFLINE("compute", 305, 3.57, 0.0795, 0.6187,
                  0.6187) ", " LOOP("tile_edge", 232, 64, 48, 49, 7, 65, 33, 0, 0, 56) "}"},
    {"a packed matmul", "compute", "hot loop in tile_edge.constprop.0: 161 instructions",
     "{" ROOFLINE("compute", 316.5, 3.71, 0.107, 0.657, 0.657) ", " LOOP(
         "tile_edge.constprop.0", 161, 64, 96, 96, 0, 50, 0, 0, 0, 0) "}"},
    {"more than the roof", DIAGNOSIS_NONE, "357 % of the roof that binds: the roof was measured",
     "{" ROOFLINE("memory", 3, 24.5, 3.57, 0.01, 3.57) ", " LOOP(OMP, 30, 64, 0, 4, 0, 6, 4, 0, 0,
                                                                 0) "}"},
    {"nothing left", "compute", "only fewer of them help",
     "{" ROOFLINE("compute", 458, 3.71, 0.107, 0.95, 0.95) "}"},
    {"one accumulator", "latency", "1 multiply-adds in a loop without stores",
     "{" ROOFLINE("compute", 40, 1, 0.02, 0.09, 0.3) ", " LOOP(OMP, 6, 64, 1, 1, 0, 2, 0, 0, 0,
                                                               0) "}"},
    {"half vectors", "narrow vectors", "50 % of the machine's",
     "{" ROOFLINE("compute", 72.2, 0.56, 0.016, 0.15, 0.15) ", " LOOP("block", 386, 32, 72, 133, 34,
                                                                      63, 19, 25, 0, 6) "}"},
    {"shuffles", "data movement", "60 of 200 instructions of the hot loop rearrange",
     "{" ROOFLINE("compute", 100, 1, 0.02, 0.2, 0.2) ", " LOOP(OMP, 200, 64, 40, 80, 0, 20, 8, 60,
                                                               0, 0) "}"},
    {"gathers", "access pattern", "4 gathers",
     "{" ROOFLINE("memory", 3, 5, 0.15, 0.01, 0.15) ", " LOOP(OMP, 30, 64, 0, 4, 0, 6, 4, 0, 4,
                                                              0) "}"},
    {"a library's exp in one thread", "parallelism", "line 5, 9 (a sum in a given order",
     "{" ROOFLINE("memory", 2.04, 0.817, 0.0235, 0.0042, 0.0235) ", " LOOP(
         "kernel", 13, 64, 0, 2, 0, 2, 1, 2, 0,
         0) ", \"remarks\": [{\"line\": 5, \"kind\": \"missed\", \"text\": \"not vectorized: "
            "unsupported use in stmt.\"}, {\"line\": 7, \"kind\": \"missed\", \"text\": \"not "
            "vectorized: loop nest containing two or more consecutive inner loops cannot be "
            "vectorized\"}, {\"line\": 9, \"kind\": \"missed\", \"text\": \"not vectorized: "
            "unsupported use in stmt.\"}, {\"line\": 18, \"kind\": \"vectorized\", \"text\": "
            "\"loop vectorized using 64 byte vectors\"}]}"},
    {"vectors, far below the roof, beside loops that were left", DIAGNOSIS_NONE,
     "16 operations on vectors",
     "{" ROOFLINE("compute", 20, 1, 0.01, 0.04, 0.04) ", " LOOP(
         OMP, 60, 64, 16, 16, 0, 12, 2, 0, 0,
         0) ", \"remarks\": [{\"line\": 5, \"kind\": \"missed\", \"text\": \"not vectorized: "
            "control flow in loop.\"}]}"},
    {"packing, by samples", "data movement",
     "62 % in lines 40 to 58 (pack_b: only moves data), 30 %",
     "{" ROOFLINE("compute", 20, 1, 0.01, 0.04, 0.04) ", " LOOP(
         OMP, 9, 0, 0, 0, 0, 1, 1, 0, 0,
         0) ", \"time\": {\"samples\": 900, \"phases\": [{\"share\": 0.62, \"in\": \"pack_b\", "
            "\"first_line\": 40, \"last_line\": 58, \"stores\": 1}, {\"share\": 0.3, \"in\": "
            "\"tile\", \"first_line\": 12, \"last_line\": 12, \"vector_bytes\": 64, "
            "\"vector_arithmetic\": 16}], \"elsewhere\": [{\"name\": \"libgomp.so.1\", "
            "\"share\": 0.05}]}}"},
    {"a loop that looks hot and is not", DIAGNOSIS_NONE, "20 % in line 12",
     "{" ROOFLINE("compute", 20, 1, 0.01, 0.04,
                  0.04) ", "
                        "\"hot_loop\": {\"function\": \"" OMP
                        "\", \"instructions\": 9, \"vector_bytes\": 16, "
                        "\"vector_fma\": 0, \"vector_arithmetic\": 0, \"scalar_arithmetic\": 4, "
                        "\"loads\": 2, "
                        "\"stores\": 0, \"shuffles\": 0, \"gathers\": 0, \"spills\": 0, "
                        "\"time_share\": 0.2}, "
                        "\"time\": {\"samples\": 900, \"phases\": [{\"share\": 0.2, \"in\": \"f\", "
                        "\"first_line\": 12, "
                        "\"last_line\": 12, \"scalar_arithmetic\": 4}], \"elsewhere\": []}}"},
    {"exp by numbers", "not vectorized", "61 % of the time goes into libm",
     "{" ROOFLINE("memory", 20, 1, 0.04, 0.01,
                  0.04) ", \"time\": {\"samples\": 900, \"phases\": [], "
                        "\"elsewhere\": [{\"name\": \"libm.so.6\", \"share\": 0.61}]}}"},
    {"samples without a roof", DIAGNOSIS_NONE, "100 % in line 3",
     "{\"time\": {\"samples\": 90, \"phases\": [{\"share\": 1, \"in\": \"k\", \"first_line\": 3, "
     "\"last_line\": 3, \"vector_arithmetic\": 4}], \"elsewhere\": []}}"},
    {"a strange time", "unknown", "", "{\"time\": null, \"hot_loop\": {\"time_share\": []}}"},
    {"one thread", "parallelism", "there are 2 cores",
     "{" ROOFLINE("memory", 10, 10, 0.35, 0.02, 0.35) ", " LOOP("kernel", 40, 64, 4, 12, 0, 8, 4, 0,
                                                                0, 0) "}"},
    {"a transposition by single numbers", "not vectorized", "17 loads, 15 stores",
     "{" ROOFLINE("memory", null, 12.16, 0.349, null, 0.349) ", " LOOP(OMP, 63, 0, 0, 0, 0, 17, 15,
                                                                       0, 0, 0) "}"},
    {"a transposition by vectors", DIAGNOSIS_NONE, "requests in flight",
     "{" ROOFLINE("memory", null, 11.7, 0.34, null, 0.34) ", " LOOP(OMP, 570, 64, 0, 0, 0, 159, 37,
                                                                    100, 0, 0) "}"},
    {"a copy near the roof", "memory bandwidth", "non-temporal stores",
     "{" ROOFLINE("memory", 3.27, 26.15, 0.7516, 0.0068, 0.7516) ", " LOOP("share", 81, 32, 0, 0, 0,
                                                                           9, 9, 7, 0, 0) "}"},
    {"a sum at the roof", "memory bandwidth", "only moving fewer of them helps",
     "{" ROOFLINE("memory", 8.7, 34.9, 1.0, 0.02, 1.0) "}"},
    {"cache misses", "cache misses", "3 times the bytes",
     "{" ROOFLINE("memory", 3, 10, 0.3, 0.01, 0.3) ", \"counters\": {\"cache_misses\": 6291456, "
                                                   "\"instructions_per_cycle\": 2.1}}"},
    {"a low rate of instructions", "latency", "0.4 instructions a cycle",
     "{" ROOFLINE("compute", 100, 1, 0.01, 0.3, 0.3) ", \"counters\": {\"cache_misses\": null, "
                                                     "\"instructions_per_cycle\": 0.4}}"},
    {"a very short call", "overhead", "a call takes 13.4 us",
     "{" ROOFLINE("compute", 20, 10000, 0.01, 0.04, 0.04) "}"},
    {"a roof alone", DIAGNOSIS_NONE, "Possible: packing",
     "{" ROOFLINE("compute", 20, 1, 0.01, 0.04, 0.04) "}"},
    {"a hot loop alone", "not vectorized", "single numbers",
     "{" LOOP("kernel", 11, 16, 0, 1, 2, 3, 0, 2, 0, 1) "}"},
    /* what is missing, or is not what it should be, is not spoken of */
    {"nothing", "unknown", "", "{}"},
    {"no text", "unknown", "", ""},
    {"no object", "unknown", "", "[1, 2]"},
    {"no JSON", "unknown", "", "{\"roofline\": "},
    {"other kinds", "unknown", "",
     "{\"roofline\": [], \"hot_loop\": null, \"remarks\": {\"a\": 1}, \"counters\": 7}"},
    {"texts for numbers", "unknown", "",
     "{\"roofline\": {\"share_of_limit\": \"0.9\", \"limit\": 3, \"gbytes_per_s\": {}}, "
     "\"remarks\": [1, null, {\"line\": \"x\", \"kind\": \"missed\"}]}"},
    {"zeros", "unknown", "",
     "{" ROOFLINE("neither", 0, 0, 0, 0, 0) ", " LOOP("?", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) "}"},
};

static bool is_category_list(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, ","), i = 0;
        while (idea_categories[i] != NULL && (strlen(idea_categories[i]) != length ||
                                              memcmp(idea_categories[i], text, length) != 0))
            i++;
        if (idea_categories[i] == NULL)
            return false;
        text += length;
        text += strspn(text, ", ");
    }
    return true;
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
        assert_true(is_category_list(found.categories));
        assert_true(strcmp(found.limiter, "unknown") == 0 || *found.categories != '\0' ||
                    strcmp(found.limiter, DIAGNOSIS_NONE) == 0);
        arena_free(arena);
    }
}

static void test_place(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct diagnosis found =
        diagnosis_of(arena, "{" ROOFLINE("memory", 3.27, 26.15, 0.7516, 0.0068, 0.7516) "}", NULL);
    assert_string_equal(found.place,
                        "75 % of the memory roof (26.1 GB/s of 34.8 GB/s); 0.7 % of the compute "
                        "roof");
    found = diagnosis_of(arena, "{" ROOFLINE("memory", null, 12.16, 0.349, null, 0.349) "}", "");
    assert_string_equal(found.place, "35 % of the memory roof (12.2 GB/s of 34.8 GB/s)");
    found = diagnosis_of(arena, "{" ROOFLINE("compute", 305, 3.57, 0.08, 0.6187, 0.6187) "}", "7");
    assert_string_equal(found.place,
                        "62 % of the compute roof (305 Gflop/s of 493 Gflop/s); 8 % of the memory "
                        "roof");
    found = diagnosis_of(arena, "{}", "{}");
    assert_string_equal(found.place, "");
    assert_string_equal(found.categories, "");
    arena_free(arena);
}

/* Without facts nothing is said of the machine; with many cores, one thread is what weighs most. */
static void test_facts(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    static const char profile[] =
        "{" ROOFLINE("compute", 1.5, 0.02, 0.0005, 0.003, 0.003) ", " LOOP("kernel", 11, 16, 0, 1,
                                                                           2, 3, 0, 2, 0, 1) "}";
    struct diagnosis found = diagnosis_of(arena, profile, "");
    assert_string_equal(found.limiter, "not vectorized");
    assert_null(strstr(found.evidence, "cores"));
    found = diagnosis_of(arena, profile, "{\"cores\": 64, \"vector_bytes\": 64}");
    assert_string_equal(found.limiter, "parallelism");
    assert_non_null(strstr(found.evidence, "single numbers"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_place),
                                       cmocka_unit_test(test_facts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
