/* eval/cuda/run/plan: a launch plan as plain numbers, computed by the worker for one shape and read
 * by the runner in its control page. No pointers: tensors are numbers of struct call's offsets. Any
 * thread. */
#pragma once

#include "eval/backend/backend.h"

enum { PLAN_ENTRY_MAX = 128, PLAN_ARGS_MAX = 512 };

enum plan_arg_kind { PLAN_POINTER, PLAN_NUMBER, PLAN_MAP, PLAN_SCRATCH };

struct plan_arg {
    uint32_t kind;
    uint32_t index; /* of the offset, or of the tensor map */
    int64_t number; /* a dim, passed as 8 bytes; of scratch memory where it begins */
};

struct plan_launch {
    char entry[PLAN_ENTRY_MAX];
    uint32_t grid[3], block[3], cluster[3]; /* cluster[0] 0: none */
    uint32_t shared_bytes;                  /* dynamic */
    uint32_t cooperative, arg_count;
    uint64_t image_at; /* its cubin in the artifact */
    struct plan_arg args[PLAN_ARGS_MAX];
};

struct plan_map { /* cuTensorMapEncodeTiled()'s arguments, innermost axis first */
    uint32_t pointer, type, swizzle, promotion;
    uint32_t rank; /* 0: the hardware has no map for these strides; the kernel gets zeros */
    uint32_t box[TENSOR_MAP_RANK], element_strides[TENSOR_MAP_RANK];
    uint64_t extents[TENSOR_MAP_RANK], strides[TENSOR_MAP_RANK]; /* bytes, from axis 1 on */
};

struct plan_memset {
    uint32_t pointer, byte;
    uint64_t bytes;
};

struct plan {
    uint32_t launch_count, map_count, memset_count;
    uint64_t scratch_bytes; /* that the compiler wants for itself; the runner's own */
    struct plan_launch launches[LAUNCHES_MAX];
    struct plan_map maps[TENSOR_MAPS_MAX];
    struct plan_memset memsets[MEMSETS_MAX];
};

/* For the dims of `call`. ERR_LIMIT, naming the entry, where an expression cannot be computed or
 * its number is none that the device of `facts` can launch: the candidate's own fault. */
int plan_make(const struct program *program, const struct names *facts, const struct call *call,
              struct plan *plan, struct err *err) MUST_USE;
/* The same with what a build says of launches (variants.h); NULL: of a language that decides on
 * blocks by itself no block is known then, which is enough for an interpreter. */
struct variants;
int plan_make_of(const struct program *program, const struct variants *variants,
                 const struct names *facts, const struct call *call, struct plan *plan,
                 struct err *err) MUST_USE;

/* Some launch is cooperative: the driver hands it the address of a workspace of its own, which it
 * clears for nobody. */
bool plan_cooperates(const struct plan *plan);

/* What of it runs: nothing, the launch of this number less one, or any (it is a graph). */
enum { RUNNING_NONE = 0, RUNNING_ANY = 0xffff };

enum { PLAN_ENTRIES_TEXT = 200 };
/* "a, b or c": each of the plan's entries once, as many as fit. */
void plan_entries(const struct plan *plan, char text[PLAN_ENTRIES_TEXT]);
