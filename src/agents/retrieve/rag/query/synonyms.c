#include "agents/retrieve/rag/query/synonyms.h"

#include "base/arena.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

/* One meaning a line. Abbreviations stand beside the words that documents spell out. */
static const char *const meanings[] = {
    "gemm matmul matmult",
    "smem shared",
    "gmem dram hbm",
    "sm multiprocessor SMs",
    "cta block",
    "sync synchronize synchronization barrier",
    "async asynchronous LDGSTS",
    "tma bulk",
    "mma wmma wgmma",
    "bf16 bfloat16",
    "fp16 half f16 float16",
    "fp32 float f32 float32 single",
    "fp64 double f64 float64",
    "tf32 tensorfloat",
    "conv convolution conv2d",
    "sum reduction reduce",
    "scan prefix",
    "max maximum largest",
    "min minimum smallest",
    "argmax index",
    "mean average",
    "init initialize setup",
    "alloc allocate malloc allocation",
    "exp exponential",
    "sqrt root",
    "fma multiply-add",
    "rng random",
    "norm normalize normalization",
    "layernorm layer",
    "rmsnorm rms",
    "batchnorm batch",
    "vectorize simd avx avx2 avx512",
    "omp openmp",
    "tlb huge page",
    "spill local",
    "occupancy resident active",
    "stall wait latency",
    "bandwidth throughput roof saturate",
    "fuse fusion epilogue",
    "swizzle permute xor",
    "tile blocking",
    "transpose transposition",
    "attr attribute",
    "param parameter argument",
    "dim dimension shape",
    "ptr pointer address",
    "regs register",
    "nvrtc runtime",
    "deterministic reproducible nondeterministic same",
    "accuracy precision error",
    "wave tail",
    "launch grid",
    "percent peak",
    "cost overhead",
    "slow bottleneck limiter",
    "unroll unrolling",
    "kv cache",
    "flash attention",
    "wgsl webgpu",
    "nanosleep sleep pause backoff", /* what intrinsics do, in words */
    "shfl shuffle exchange",
    "ballot vote",
    "popc popcount bits",
    "clz leading",
    "ffs lowest",
    "brev reverse",
    "ldg readonly",
    "prmt permute",
    "dp4a dot",
    "rcp reciprocal",
    "saturatef clamp",
    "clock64 cycles",
    "globaltimer nanoseconds",
    "activemask active",
};

struct meaning {
    const char *terms[8];
    size_t count;
};

struct synonyms {
    struct arena *arena;
    struct meaning meanings[sizeof meanings / sizeof meanings[0]];
};

struct reading {
    struct arena *arena;
    struct meaning *meaning;
};

static void take(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct reading *reading = context;
    (void)kind;
    if (reading->meaning->count < sizeof reading->meaning->terms / sizeof(char *))
        reading->meaning->terms[reading->meaning->count++] =
            arena_strndup(reading->arena, term, length);
}

struct synonyms *synonyms_new(struct words *words)
{
    struct synonyms *synonyms = MEM_NEW(struct synonyms);
    synonyms->arena = arena_new();
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        struct reading reading = {synonyms->arena, &synonyms->meanings[i]};
        words_each(words, meanings[i], strlen(meanings[i]), take, &reading);
    }
    return synonyms;
}

void synonyms_free(struct synonyms *synonyms)
{
    if (synonyms == NULL)
        return;
    arena_free(synonyms->arena);
    mem_free(synonyms);
}

static bool is_term(const char *term, size_t length, const char *other)
{
    return strncmp(term, other, length) == 0 && other[length] == '\0';
}

void synonyms_each(const struct synonyms *synonyms, const char *term, size_t length,
                   word_visit *visit, void *context)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        const struct meaning *meaning = &synonyms->meanings[i];
        size_t at = 0;
        while (at < meaning->count && !is_term(term, length, meaning->terms[at]))
            at++;
        for (size_t other = 0; at < meaning->count && other < meaning->count; other++)
            if (other != at)
                visit(context, meaning->terms[other], strlen(meaning->terms[other]), WORD_PLAIN);
    }
}
