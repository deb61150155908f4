/* eval/candidate/layout: where a shape's tensors lie in the shared regions, red zones included, and
 * the region itself: two memfds, inputs that a runner can only read, outputs and workspaces that it
 * can write. Worker's measuring thread. */
#pragma once

#include "eval/candidate/candidate.h"
#include "eval/data/draw.h"

enum { REDZONE_BYTES = 4096, TENSOR_ALIGN = 64 };
enum { CALL_POINTERS_MAX = INPUTS_MAX + OUTPUTS_MAX + WORKSPACES_MAX };

struct placed {
    size_t offset, bytes, elements; /* offset from the region's start */
    int64_t extents[RANK_MAX];
};

/* Where memory that a runner cannot read meets every input: nowhere; behind its end (less than
 * layout_alignment() bytes behind where its size is not a multiple of that); before its start; at
 * the end of the page that its last byte lies in, wherever that is there. */
enum guard { GUARD_NONE, GUARD_END, GUARD_START, GUARD_NEAR };

/* One shape's tensors: inputs relative to a slot of the input region; outputs, then workspaces, in
 * the output region. Every tensor is 64-byte aligned with a red zone before and after. `shift`
 * (a multiple of 64 below 4096) moves all of it, so that addresses differ while bytes stay. */
struct layout {
    struct names dims;
    enum guard guard; /* of the inputs */
    size_t input_count, output_count, workspace_count;
    struct placed inputs[INPUTS_MAX], outputs[OUTPUTS_MAX], workspaces[WORKSPACES_MAX];
    size_t inputs_bytes, outputs_bytes; /* extents of the whole, red zones and shift included */
    size_t alias_shift[INPUTS_MAX];     /* guarded: from an input's bytes to its alias */
};

/* What tensors of this process are aligned to: a power of two from TENSOR_ALIGN to 4096. */
void layout_align(size_t bytes);
size_t layout_alignment(void);

/* `candidate` and `tune` may be NULL (no workspaces). */
int layout_make(const struct problem *problem, const struct names *dims,
                const struct candidate *candidate, const struct names *tune, size_t shift,
                struct layout *layout, struct err *err) MUST_USE;

/* A second way for a runner to the same bytes: `bytes` from `offset` on are at `address`, too, both
 * from the start of the inputs; the pages before and behind cannot be read there. */
struct alias {
    uint64_t offset, bytes, address;
};

/* Of each slot two: as large as an input ever is, and as the main shape's are. */
enum { ALIAS_SLOTS = 2, ALIAS_SETS = 2 * ALIAS_SLOTS };

struct region {
    int inputs_fd;      /* ours: read and write */
    int inputs_read_fd; /* the same memory opened O_RDONLY: all that a runner is given */
    int outputs_fd;
    unsigned char *inputs, *outputs; /* our mappings */
    size_t inputs_bytes, outputs_bytes;
    size_t alias_count, alias_slots, alias_slot_bytes, alias_end;
    struct alias aliases[ALIAS_SETS][INPUTS_MAX]; /* of the inputs, in order */
};
/* Gives every input whole pages in each slot: for the `most` bytes that it ever has, and for those
 * of the `main` shape, so that a guard is on both of its sides. In the first slot at a multiple of
 * 2 MiB, in the second with a page more, 4 KiB off such a multiple. Before it is first used. */
void region_alias(struct region *region, const size_t *most, const size_t *main, size_t count,
                  size_t slots, size_t slot_bytes);
/* Bytes of the inputs' addresses, aliases and the pages around them included. */
size_t region_alias_end(const struct region *region);
/* Places the inputs of a layout of this slot anew, where the region has aliases: against the end or
 * the start of each, or, by `shift` (as layout_make()), nearer to its end than a page. False: one
 * does not fit. */
bool layout_guard(struct layout *layout, enum guard guard, const struct region *region, size_t slot,
                  size_t shift);
int region_open(size_t inputs_bytes, size_t outputs_bytes, struct region *region,
                struct err *err) MUST_USE;
void region_close(struct region *region);

/* What a subject is told to do: flat, so that it can lie in a control page. Offsets are from the
 * regions' starts; pointer order is inputs, outputs, workspaces; then the dims as int64_t. */
struct call {
    uint32_t input_count, output_count, workspace_count, dim_count;
    int64_t dims[DIMS_MAX];
    uint64_t timeout_ms;
    /* For a runner with memory of its own: what of the regions belongs to this call, and how. */
    uint64_t inputs_from, inputs_bytes, outputs_bytes;
    bool cold, timed;
    /* The program stays loaded, from the call before to the next, where both say so; a device's is
     * launched `rounds` times before the launch that counts, without a pause, on these bytes and on
     * others, and once before all of it `behind` kernels that do nothing run. */
    bool stays;
    uint32_t rounds, behind;
    bool earlier; /* only brings what the first of the last call's rounds gave: subject.differs */
    bool guarded;
    bool crowded; /* a device computes and copies something else meanwhile */
    /* 0, or: outputs and workspaces are filled with these bits, and what lies between them comes
     * with the region. Inputs have bytes alone, where their numbers may change places. */
    uint64_t poison_seed;
    /* Of where in a memory of its own a runner places the tensors; the same places where the seed
     * and the sizes are those of the call before. */
    uint64_t place_seed;
    /* From here on as many of each as there are: call_copy(). */
    uint64_t offsets[CALL_POINTERS_MAX];
    uint64_t sizes[CALL_POINTERS_MAX]; /* bytes */
    struct call_poison {
        uint64_t bytes;
        struct poison_bits bits;
    } poison[CALL_POINTERS_MAX];        /* by the pointers' numbers */
    uint64_t alias_offsets[INPUTS_MAX]; /* of a guarded call's inputs, for who has aliases */
};
void call_make(const struct layout *layout, size_t slot_offset, uint64_t timeout_ms,
               struct call *call);
/* What counts of it: few calls have as many tensors as there is room for. */
void call_copy(const struct call *from, struct call *to);
