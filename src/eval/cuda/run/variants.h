/* eval/cuda/run/variants: what a compiler that decides on blocks by itself says of a candidate's
 * launches: each is compiled several times, for what is known of its whole-number arguments. As
 * Triton's own launcher does, numbers that are one, or multiples of 16, are told to the compiler;
 * unlike there a variant may know less than is so. Plain values. Any thread. */
#pragma once

#include "eval/backend/backend.h"

enum { KERNEL_ARGS_MAX = 32, VARIANTS_MAX = SHAPES_MAX + 1, SCRATCH_ARGS = 2 };

/* Of a number: it is one, a multiple of 16, needs more than 32 bits. */
enum known { KNOWN_ONE = 1, KNOWN_16 = 2, KNOWN_WIDE = 4 };

unsigned known_of(int64_t number);

/* How a kernel takes a tensor map's tiles: what its instructions were made for. */
struct kernel_map {
    uint32_t rank, box[TENSOR_MAP_RANK]; /* outermost first; at most what the candidate asked for */
    uint32_t swizzle;                    /* 0 to 3, as CUtensorMapSwizzle */
};

struct kernel {
    unsigned known[KERNEL_ARGS_MAX]; /* of each of the launch's args; of tensors 0 */
    uint32_t threads, shared_bytes;
    uint32_t cluster;                      /* blocks that a program is run by; 1: no cluster */
    uint32_t scratch_bytes, scratch_align; /* global, a block */
    size_t offset, bytes;                  /* where its cubin lies in the artifact */
    size_t map_count;
    struct kernel_map maps[TENSOR_MAPS_MAX]; /* of the tensor maps among its args, in order */
};

struct variants {
    size_t launch_count;
    struct {
        size_t count;
        struct kernel variants[VARIANTS_MAX];
    } launches[LAUNCHES_MAX];
};

/* Of the report beside a build's artifact. *variants is NULL where the front matter says it all. */
int variants_read(struct arena *arena, const char *log, struct variants **variants,
                  struct err *err) MUST_USE;

/* The same of the report beside an artifact, where the candidate's language has one. */
int variants_beside(struct arena *arena, const struct candidate *candidate, const char *artifact,
                    struct variants **variants, struct err *err) MUST_USE;

/* The variant of a launch that knows most of what is so; NULL: none that is right. */
const struct kernel *variants_find(const struct variants *variants, size_t launch,
                                   const unsigned *actual, size_t count);
