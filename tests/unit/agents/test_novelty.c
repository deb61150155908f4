/* What counts as the same idea in other words: a table of pairs that people would call so, or not.
 */
#include "check.h"

#include "agents/ideas/novelty.h"

#include "novelty_pairs.h"

#define NEAR 0.62

static const struct pair plain_pairs[] = {
    {true, "Tile k loop with block of 64", "Block the K loop in chunks of 64"},
    {true, "Tile the K loop by 64", "Tile the K loop by 128"},
    {true, "Vectorize the inner loop", "Use SIMD in the inner loop"},
    {true, "Vectorise inner loop with AVX-512", "Vectorize the inner loop using AVX512 intrinsics"},
    {true, "Pack B into contiguous panels", "Repack B into panels"},
    {true, "Pack B", "Pack B into contiguous panels before the loop"},
    {true, "Software prefetching of A rows", "Prefetch next rows of A"},
    {true, "Non-temporal stores for the output", "Use streaming stores to write the output"},
    {true, "Parallelize over rows with OpenMP", "OpenMP threads across the rows"},
    {true, "Multi-threaded rows", "Parallelise rows"},
    {true, "Fuse max and sum into one pass", "Merge the max and sum passes"},
    {true, "Online softmax", "Online softmax in one pass"},
    {true, "Unroll the k loop 4 times", "Unrolling k loop by a factor of 8"},
    {true, "Multiple independent accumulators", "Use several accumulators to hide latency"},
    {true, "Approximate exp by a polynomial", "Polynomial approximation of exp"},
    {true, "Replace division by multiplication with the reciprocal",
     "Multiply by the reciprocal instead of division"},
    {true, "Register tiling of C", "Register blocking for C"},
    {true, "Transpose B in a workspace", "Transposed copy of B in scratch memory"},
    {true, "Handle remainders with masks", "Masked tail handling"},
    {true, "Align buffers to cache lines", "Aligning the buffer to a cache line"},
    {true, "Swap the i and j loops", "Interchange loops i and j"},
    {true, "Hoist the load of A out of the inner loop", "Hoisting loads of A from the inner loop"},
    {true, "Use huge pages for the workspace", "Workspace in hugepages"},
    {true, "Dynamic scheduling of rows", "Schedule the rows dynamically"},
    {true, "Reduce with a tree of vector adds", "Vector adds as a reduction tree"},
    {true, "Accumulate in registers", "Keep accumulators in registers"},
    {true, "Prefetch B", "prefetch b!"},
    {true, "Split K across threads", "K split over threads"},
    {true, "Micro-kernel of 8x32 in registers", "A 6x16 register microkernel"},
    {true, "Winograd transform for 3x3 filters", "Winograd F(2x2, 3x3) filter transform"},
    {true, "Use im2col and a GEMM", "im2col then GEMM"},
    {true, "Branchless clamp with max intrinsics", "Clamp without branches: branchless max"},

    {false, "Vectorize inner loop", "Vectorize outer loop"},
    {false, "Prefetch loads of packed B panels", "Prefetch stores of packed B panels"},
    {false, "Double-buffer tiles of A with cp.async", "Double-buffer tiles of A with TMA"},
    {false, "Pack A", "Pack B"},
    {false, "Pack A into panels", "Pack B into panels"},
    {false, "Tile the M loop", "Tile the K loop"},
    {false, "Prefetch loads of X", "Prefetch stores of Y"},
    {false, "Parallelize over rows", "Parallelize over columns"},
    {false, "Pack B into panels", "Prefetch B"},
    {false, "Unroll the k loop", "Tile the k loop"},
    {false, "Non-temporal stores", "Non-temporal prefetch of loads"},
    {false, "Block for L1", "Block for L2"},
    {false, "Tile for the L2 cache", "Prefetch into the L2 cache"},
    {false, "Fuse max and sum", "Fuse exp and store"},
    {false, "Polynomial exp", "Table lookup for exp"},
    {false, "Use more accumulators", "Use more threads"},
    {false, "Row-wise softmax in registers", "Parallel rows"},
    {false, "Align rows to 64 bytes", "Pad rows to avoid bank conflicts"},
    {false, "Masked remainder loop", "Scalar remainder loop"},
    {false, "Static scheduling of tiles over threads", "Pin one row block to each thread's L2"},
    {false, "Strassen's algorithm", "Winograd's algorithm"},
    {false, "Transpose B first", "Broadcast A instead of transposing"},
    {false, "Split K across threads", "Split N across threads"},
    {false, "Compute in bf16", "Compute in fp16"},
    {false, "Huge pages", "Streaming stores"},
    {false, "Two-pass softmax", "Online softmax"},
    {false, "Hoist bounds checks", "Hoist the division"},
    {false, "Software pipelining of loads", "Unrolled loads"},
    {false, "Copy tiles through a small buffer", "Copy tiles in registers with shuffles"},
    {false, "Reorder loops i, k, j", "Tile loops i, k, j"},
    {false, "Fast path for full tiles", "Fast path for a single row"},
    {false, "Kahan summation", "Pairwise summation"},

    /* written after the tables were, to see how they do */
    {true, "Pack panels of B once per K block and share them among threads",
     "Share packed B panels between threads"},
    {true, "Increase the register tile to 14x32", "Use a larger 12x32 register block"},
    {true, "Software prefetch of the next B panel", "Prefetch next panel of B into L1"},
    {true, "Write output with streaming (non-temporal) stores",
     "Bypass the cache on output using nontemporal stores"},
    {true, "Keep the row in L1 between passes", "Cache each row in L1 so the second pass hits"},
    {true, "Break the dependency chain with four accumulators",
     "Use 4 independent accumulators to break dependency chains"},
    {true, "Collapse loops for better load balance across threads",
     "Balance threads by collapsing the outer two loops"},
    {true, "Use _mm512_fmadd_ps with 8 accumulators", "AVX-512 FMA with eight accumulators"},
    {true, "In-register 16x16 transpose with shuffles",
     "Transpose 16x16 blocks in registers via AVX-512 shuffles"},
    {true, "Cache blocking for M and N", "Block M and N for the caches"},
    {false, "Cache blocking for M and N", "Cache blocking for K"},
    {false, "Prefetch next panel of B", "Prefetch next rows of C"},
    {false, "Use 4 accumulators", "Use 4 threads"},
    {false, "In-register transpose with shuffles", "Gather-based transpose"},
    {false, "Specialize for N=64", "Specialize for contiguous rows"},
    {false, "Overlap packing with compute", "Overlap loads with stores"},
    {false, "Use float16 storage for B", "Use huge pages for B"},
    {false, "Larger register tile", "Larger L2 tile"},
    {false, "Polynomial exp of degree 5", "Table-based exp"},
    {false, "Vectorize the reduction", "Parallelize the reduction"},
    {false, "Streaming stores for full lines", "Streaming loads for full lines"},
};

/* How many of the pairs it judges otherwise than people do. */
static int judge_pairs(const struct pair *pairs, size_t count)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        double like = novelty_likeness(pairs[i].a, pairs[i].b);
        assert_true(like >= 0 && like <= 1);
        assert_true(like == novelty_likeness(pairs[i].a, pairs[i].b));
        double back = novelty_likeness(pairs[i].b, pairs[i].a);
        assert_true(like - back < 1e-9 && back - like < 1e-9);
        if ((like >= NEAR) != pairs[i].same) {
            print_message("%.3f %s: \"%s\" | \"%s\"\n", like, pairs[i].same ? "same" : "different",
                          pairs[i].a, pairs[i].b);
            wrong++;
        }
    }
    return wrong;
}

static void test_pairs(void **state)
{
    (void)state;
    int wrong = judge_pairs(plain_pairs, COUNT(plain_pairs));
    wrong += judge_pairs(gpu_pairs, COUNT(gpu_pairs));
    wrong += judge_pairs(cpu_pairs, COUNT(cpu_pairs));
    assert_int_equal(wrong, 0);
    assert_true(judge_pairs(late_pairs, COUNT(late_pairs)) <= 1); /* rows for K: "Spread ..." */
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        double like;
        const char *a, *b;
    } rows[] = {
        {1, "Pack B panels", "panels B: pack!"},
        {1, "Tiling of K", "Blocked K"},
        {0, "Pack B", "Streaming stores"},
        {0, "", ""},
        {0, "", "Pack B"},
        {0, "of the and", "of the and"},
        {1, "\xE5\x88\x86\xE5\x9D\x97", "\xE5\x88\x86\xE5\x9D\x97"},
        {1, "\xFF\xFE", "\xFF\xFE"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (novelty_likeness(rows[i].a, rows[i].b) != rows[i].like)
            fail_msg("\"%s\" and \"%s\": %.17g", rows[i].a, rows[i].b,
                     novelty_likeness(rows[i].a, rows[i].b));
    /* more words than are looked at, and a word longer than is kept */
    char *text = malloc(200000);
    assert_non_null(text);
    for (size_t i = 0; i < 199999; i++)
        text[i] = i < 100000 ? (char)('a' + i % 7) : i % 5 == 0 ? ' ' : (char)('a' + i % 23);
    text[199999] = '\0';
    assert_true(novelty_likeness(text, text) == 1);
    free(text);
}

static void test_keep(void **state)
{
    (void)state;
    static const struct prompt_attempt history[] = {
        {.id = "r1-c4", .title = "Pack B into panels", .category = "memory", .state = "kept"},
        {.id = "r1-c5", .title = "packed.c: MC 96 -> 168", .category = "tuning", .state = "kept"},
        {.id = "r1-c6", .title = "Streaming stores", .category = "memory", .state = "failed"},
    };
    const struct idea given[] = {
        {.title = "Unroll the k loop", .category = "compute"},
        {.title = "Repack B in panels", .category = "memory"},
        {.title = "MC of 168 for packed.c", .category = "memory"},
        {.title = "packed.c: MC 96 -> 192", .category = "tuning"},
        {.title = "Unrolling of the k loop by 8", .category = "compute"},
        {.title = "Parallelize over rows", .category = "parallelism"},
        {.title = "Non-temporal stores", .category = "compute"},
    };
    static const char *const kept[] = {"Unroll the k loop", "MC of 168 for packed.c",
                                       "Parallelize over rows"};
    struct idea ideas[COUNT(given)];
    struct buf dropped;
    for (int round = 0; round < 2; round++) {
        buf_init(&dropped, 4096);
        memcpy(ideas, given, sizeof given);
        assert_int_equal(novelty_keep(ideas, COUNT(given), history, COUNT(history), &dropped),
                         COUNT(kept));
        for (size_t i = 0; i < COUNT(kept); i++)
            assert_string_equal(ideas[i].title, kept[i]);
        assert_string_equal(
            buf_text(&dropped),
            "\"Repack B in panels\" repeats \"Pack B into panels\" (r1-c4)\n"
            "\"packed.c: MC 96 -> 192\" repeats \"packed.c: MC 96 -> 168\" (r1-c5)\n"
            "\"Unrolling of the k loop by 8\" repeats \"Unroll the k loop\" (this list)\n"
            "\"Non-temporal stores\" repeats \"Streaming stores\" (r1-c6)\n");
        buf_free(&dropped);
    }
    buf_init(&dropped, 64);
    assert_int_equal(novelty_keep(ideas, 0, history, COUNT(history), &dropped), 0);
    assert_int_equal(novelty_keep(ideas, 1, NULL, 0, &dropped), 1);
    buf_free(&dropped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs), cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_keep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
