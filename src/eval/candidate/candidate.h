/* eval/candidate: one source text with its front matter: launch plan, workspaces, tune space.
 * Format: docs/candidate-format.md. Read-only once parsed. Any thread. */
#pragma once

#include "base/hash.h"
#include "eval/problem/problem.h"
#include "eval/problem/target.h"

enum { TUNE_MAX = 16, TUNE_VALUES_MAX = 64, WORKSPACES_MAX = 8, LAUNCHES_MAX = 8, FLAGS_MAX = 16 };
enum { CONSTANTS_MAX = 24, REQUIRES_MAX = 4 };
enum { TENSOR_MAPS_MAX = 8, TENSOR_MAP_RANK = 5, MEMSETS_MAX = 8 };

struct tune_parameter {
    const char *name;
    size_t count;
    int64_t values[TUNE_VALUES_MAX]; /* in the author's order */
};

struct launch {
    const char *entry;
    const struct expr *grid[3], *block[3], *cluster[3], *shared_bytes; /* NULL: absent */
    bool cooperative; /* all blocks are resident at once: a grid may wait for itself */
    size_t arg_count;
    const char *args[512]; /* 8 bytes each fill the 4 KiB of a launch; names of tensors, workspaces,
                              dims, tensor maps; numbers */
    size_t constant_count;
    struct {
        const char *name;
        const struct expr *value;
    } constants[CONSTANTS_MAX]; /* `constexpr`: what a compile is given besides tune numbers */
};

struct tensor_map { /* CUDA: a CUtensorMap that the runner makes and a launch gets by value */
    const char *name, *tensor;
    size_t rank; /* of `box` and `shape`, outermost first, as the tensor's own */
    const struct expr *shape[TENSOR_MAP_RANK]; /* the tensor seen in another shape; NULL: its own */
    const struct expr *box[TENSOR_MAP_RANK];
    const struct expr *strides[TENSOR_MAP_RANK]; /* element strides; NULL: 1 */
    int swizzle_bytes, l2_bytes;                 /* 0, 32, 64, 128; 0, 64, 128, 256 */
    bool tf32;                                   /* float32 rounded to tf32 on its way */
};
struct memset_spec { /* a tensor's bytes before the first launch; part of what is timed */
    const char *tensor;
    unsigned char byte;
};

struct candidate {
    struct arena *arena;
    const struct problem *problem; /* borrowed */
    const char *source; /* as given, front matter included; `length` bytes of UTF-8, no NUL */
    size_t length;
    struct hash hash;                /* of the text */
    const struct language *language; /* from the file name or front matter */
    const char *compiler;            /* "gcc", "clang" or NULL: the lane's default */
    size_t flag_count;
    const char *flags[FLAGS_MAX]; /* from an allow-list; others are refused with their line */
    size_t launch_count, workspace_count, tune_count, map_count, memset_count;
    struct launch launches[LAUNCHES_MAX];          /* empty on the CPU: the call itself */
    struct tensor_spec workspaces[WORKSPACES_MAX]; /* shapes over dims and tune parameters */
    struct tune_parameter tune[TUNE_MAX];
    struct tensor_map maps[TENSOR_MAPS_MAX];
    struct memset_spec memsets[MEMSETS_MAX];
    const char *requires[REQUIRES_MAX]; /* of the language's list, without repetition; then NULL */
    const struct expr *where;           /* over tune parameters, dims and device facts; NULL: all */
};

/* `name` gives the language by its suffix and stands in messages.
 * Errors: ERR_USAGE, "name:line: ...". Front matter may be absent. */
int candidate_parse(const struct problem *problem, const char *name, const char *text,
                    size_t length, struct candidate **candidate, struct err *err) MUST_USE;
struct value;
/* The same for a backend and at the point of its tune space that `given` (or NULL) says, for the
 * problem's main shape: ERR_USAGE where the target has not its language. */
int candidate_parse_for(const struct target *target, const struct problem *problem,
                        const char *name, const char *text, size_t length,
                        const struct value *given, const struct names *facts,
                        struct candidate **candidate, struct names *tune, struct err *err) MUST_USE;
void candidate_free(struct candidate *candidate); /* NULL is fine */

/* Whether a source is text at all: before it goes anywhere, since no JSON line holds other bytes.
 * ERR_USAGE, "name:line: ...". */
int candidate_check_text(const char *name, const char *text, size_t length,
                         struct err *err) MUST_USE;

/* The tensors that a launch may name, numbered as its pointers are: inputs, outputs, workspaces.
 * NULL where there is none of that number or name; `index` may be NULL. */
const struct tensor_spec *candidate_tensor(const struct problem *problem,
                                           const struct candidate *candidate, size_t index);
const struct tensor_spec *candidate_find_tensor(const struct problem *problem,
                                                const struct candidate *candidate, const char *name,
                                                size_t *index);

/* The tensor map of that name, -1: none. */
int candidate_find_map(const struct candidate *candidate, const char *name);

/* The tune space as a number line: 0 is every parameter's first value; 1 point without any. */
uint64_t tune_points(const struct candidate *candidate);
void tune_at(const struct candidate *candidate, uint64_t index, struct names *tune);
uint64_t tune_index(const struct candidate *candidate, const struct names *tune);
/* False where `where` refuses the point for these dims and facts, or cannot be computed. */
bool tune_valid(const struct candidate *candidate, const struct names *dims,
                const struct names *facts, const struct names *tune);
/* The point that an object (or NULL) says; what it leaves out is first. ERR_USAGE. */
int tune_given(const struct candidate *candidate, const struct value *given,
               const struct names *dims, const struct names *facts, struct names *tune,
               struct err *err) MUST_USE;

/* Identity of what is compiled and run: source text and tune numbers. */
struct hash candidate_identity(const struct candidate *candidate, const struct names *tune);
