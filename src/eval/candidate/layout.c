/* Where tensors lie, and the shared memory that they lie in. */
#include "eval/candidate/layout.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { PAGE = 4096, LARGE_PAGE = 2 << 20 };
static const size_t region_most = (size_t)1 << 40;

static size_t alignment = TENSOR_ALIGN;

void layout_align(size_t bytes)
{
    assert(bytes >= TENSOR_ALIGN && bytes <= PAGE && (bytes & (bytes - 1)) == 0);
    alignment = bytes;
}

size_t layout_alignment(void)
{
    return alignment;
}

static size_t round_to(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

/* One red zone lies between two neighbours: it is after the one and before the other. */
static int put(const struct tensor_spec *tensor, const struct names *scope, size_t *cursor,
               struct placed *placed, struct err *err)
{
    if (tensor_extents(tensor, scope, placed->extents, &placed->elements, err) != 0)
        return -1;
    placed->bytes = placed->elements * dtype_bytes(tensor->dtype);
    placed->offset = round_to(*cursor, alignment) + REDZONE_BYTES;
    *cursor = placed->offset + placed->bytes;
    if (*cursor > region_most)
        return err_set(err, ERR_LIMIT, "expected at most 2^40 bytes of tensors");
    return 0;
}

/* Workspace shapes may use tune parameters; those that `tune` lacks have their first value. */
static int make_scope(const struct names *dims, const struct candidate *candidate,
                      const struct names *tune, struct names *scope, struct err *err)
{
    struct names first;
    *scope = *dims;
    if (candidate == NULL)
        return 0;
    tune_at(candidate, 0, &first);
    for (size_t i = 0; i < first.count; i++) {
        int64_t number = first.number[i];
        if (tune != NULL)
            expr_lookup_names((void *)(uintptr_t)tune, first.name[i], &number);
        if (names_set(scope, first.name[i], number, err) != 0)
            return -1;
    }
    return 0;
}

int layout_make(const struct problem *problem, const struct names *dims,
                const struct candidate *candidate, const struct names *tune, size_t shift,
                struct layout *layout, struct err *err)
{
    assert(shift % alignment == 0 && shift < PAGE);
    struct names scope;
    size_t cursor = shift;
    *layout = (struct layout){
        .dims = *dims,
        .input_count = problem->input_count,
        .output_count = problem->output_count,
        .workspace_count = candidate != NULL ? candidate->workspace_count : 0,
    };
    if (make_scope(dims, candidate, tune, &scope, err) != 0)
        return -1;
    for (size_t i = 0; i < layout->input_count; i++)
        if (put(&problem->inputs[i], &scope, &cursor, &layout->inputs[i], err) != 0)
            return -1;
    layout->inputs_bytes = round_to(cursor + REDZONE_BYTES, PAGE);
    cursor = shift;
    for (size_t i = 0; i < layout->output_count; i++)
        if (put(&problem->outputs[i], &scope, &cursor, &layout->outputs[i], err) != 0)
            return -1;
    for (size_t i = 0; candidate != NULL && i < candidate->workspace_count; i++)
        if (put(&candidate->workspaces[i], &scope, &cursor, &layout->workspaces[i], err) != 0)
            return -1;
    layout->outputs_bytes = round_to(cursor + REDZONE_BYTES, PAGE);
    return 0;
}

/* Nearer to a guard than a page, each input at another distance: what is read behind that page is
 * seen, and no alignment tells where the page ends that cannot be read. One that fills its pages
 * has guards on both sides, and is near to either. */
static size_t place_near(size_t last, size_t shift, size_t input)
{
    size_t away = shift * (2 * input + 1) % PAGE, most = PAGE - alignment;
    most = last < most ? last / alignment * alignment : most;
    away = away < most ? away : most;
    bool other_side = last < (size_t)2 * PAGE && shift / alignment % 2 == 1;
    return other_side ? last - most + away - alignment * (away > 0) : last - away;
}

static bool fits(const struct layout *layout, const struct alias *aliases, bool tight)
{
    for (size_t i = 0; i < layout->input_count; i++)
        if (layout->inputs[i].bytes > aliases[i].bytes ||
            (tight && layout->inputs[i].bytes + 2 * PAGE <= aliases[i].bytes))
            return false;
    return true;
}

static const struct alias *choose(const struct layout *layout, const struct region *region,
                                  size_t slot)
{
    if (layout->input_count > region->alias_count || slot >= region->alias_slots)
        return NULL;
    if (fits(layout, region->aliases[ALIAS_SLOTS + slot], true))
        return region->aliases[ALIAS_SLOTS + slot];
    return fits(layout, region->aliases[slot], false) ? region->aliases[slot] : NULL;
}

bool layout_guard(struct layout *layout, enum guard guard, const struct region *region, size_t slot,
                  size_t shift)
{
    const struct alias *aliases = choose(layout, region, slot);
    if (aliases == NULL)
        return false;
    layout->guard = guard;
    for (size_t i = 0; i < layout->input_count; i++) {
        struct placed *placed = &layout->inputs[i];
        const struct alias *alias = &aliases[i];
        size_t from = alias->offset - slot * region->alias_slot_bytes;
        size_t last = (alias->bytes - placed->bytes) / alignment * alignment;
        placed->offset = from + (guard == GUARD_START ? 0
                                 : guard == GUARD_END ? last
                                                      : place_near(last, shift, i));
        layout->alias_shift[i] = alias->address - alias->offset;
        layout->inputs_bytes = from + alias->bytes;
    }
    return true;
}

/* From `address` on; where it ends. */
static size_t alias_slot(const struct region *region, const size_t *bytes, size_t slot,
                         size_t address, struct alias *aliases)
{
    size_t offset = slot * region->alias_slot_bytes;
    for (size_t i = 0; i < region->alias_count; i++) {
        address = round_to(address, LARGE_PAGE) + slot * PAGE;
        aliases[i] = (struct alias){
            offset, round_to(bytes[i] > 0 ? bytes[i] : 1, PAGE) + slot * PAGE, address};
        offset += aliases[i].bytes;
        address += aliases[i].bytes + PAGE;
    }
    assert(offset <= region->inputs_bytes);
    return address;
}

void region_alias(struct region *region, const size_t *most, const size_t *main, size_t count,
                  size_t slots, size_t slot_bytes)
{
    size_t address = region->inputs_bytes + PAGE;
    region->alias_count = count;
    region->alias_slots = slots;
    region->alias_slot_bytes = slot_bytes;
    for (size_t slot = 0; slot < slots; slot++) {
        address = alias_slot(region, most, slot, address, region->aliases[slot]);
        address = alias_slot(region, main, slot, address, region->aliases[ALIAS_SLOTS + slot]);
    }
    region->alias_end = address;
}

size_t region_alias_end(const struct region *region)
{
    return region->alias_count == 0 ? region->inputs_bytes : region->alias_end;
}

/* A memory file that nobody can shorten under our mapping. */
static int open_memory(const char *name, size_t bytes, int *fd, unsigned char **mapping,
                       struct err *err)
{
    void *mapped;
    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "memfd_create");
    if (ftruncate(*fd, (off_t)bytes) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "%zu bytes of shared memory", bytes);
    if (fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "sealing shared memory");
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (mapped == MAP_FAILED)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "mapping %zu bytes", bytes);
    *mapping = (unsigned char *)mapped;
    return 0;
}

/* After our mapping stands, nobody may write to the inputs any more by any descriptor, not even by
 * opening /proc/self/fd/N again. Kernels before 5.1 lack the seal, and there the read-only
 * descriptor and the sandbox are what holds. */
static int seal_inputs(struct region *region, struct err *err)
{
    char path[64];
    if (fcntl(region->inputs_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno != EINVAL)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "sealing the inputs");
    snprintf(path, sizeof path, "/proc/self/fd/%d", region->inputs_fd);
    region->inputs_read_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (region->inputs_read_fd < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "opening the inputs to be read");
    fcntl(region->inputs_fd, F_ADD_SEALS, F_SEAL_SEAL);
    fcntl(region->outputs_fd, F_ADD_SEALS, F_SEAL_SEAL);
    return 0;
}

int region_open(size_t inputs_bytes, size_t outputs_bytes, struct region *region, struct err *err)
{
    *region = (struct region){
        .inputs_fd = -1,
        .inputs_read_fd = -1,
        .outputs_fd = -1,
        .inputs_bytes = round_to(inputs_bytes > 0 ? inputs_bytes : 1, PAGE),
        .outputs_bytes = round_to(outputs_bytes > 0 ? outputs_bytes : 1, PAGE),
    };
    if (open_memory("inputs", region->inputs_bytes, &region->inputs_fd, &region->inputs, err) !=
            0 ||
        open_memory("outputs", region->outputs_bytes, &region->outputs_fd, &region->outputs, err) !=
            0 ||
        seal_inputs(region, err) != 0) {
        region_close(region);
        return -1;
    }
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void region_close(struct region *region)
{
    if (region->inputs != NULL)
        munmap(region->inputs, region->inputs_bytes);
    if (region->outputs != NULL)
        munmap(region->outputs, region->outputs_bytes);
    region->inputs = region->outputs = NULL;
    close_fd(&region->inputs_fd);
    close_fd(&region->inputs_read_fd);
    close_fd(&region->outputs_fd);
}

static void call_put(struct call *call, size_t pointer, const struct placed *placed, size_t from)
{
    call->offsets[pointer] = from + placed->offset;
    call->sizes[pointer] = placed->bytes;
}

void call_make(const struct layout *layout, size_t slot_offset, uint64_t timeout_ms,
               struct call *call)
{
    size_t pointer = 0;
    *call = (struct call){
        .input_count = (uint32_t)layout->input_count,
        .output_count = (uint32_t)layout->output_count,
        .workspace_count = (uint32_t)layout->workspace_count,
        .dim_count = (uint32_t)layout->dims.count,
        .timeout_ms = timeout_ms,
        .inputs_from = slot_offset,
        .inputs_bytes = layout->inputs_bytes,
        .outputs_bytes = layout->outputs_bytes,
    };
    assert(layout->dims.count <= DIMS_MAX);
    for (size_t i = 0; i < layout->input_count; i++)
        call_put(call, pointer++, &layout->inputs[i], slot_offset);
    for (size_t i = 0; i < layout->output_count; i++)
        call_put(call, pointer++, &layout->outputs[i], 0);
    for (size_t i = 0; i < layout->workspace_count; i++)
        call_put(call, pointer++, &layout->workspaces[i], 0);
    for (size_t i = 0; i < layout->dims.count; i++)
        call->dims[i] = layout->dims.number[i];
    call->guarded = layout->guard != GUARD_NONE;
    for (size_t i = 0; i < layout->input_count; i++)
        call->alias_offsets[i] = slot_offset + layout->inputs[i].offset + layout->alias_shift[i];
}

void call_copy(const struct call *from, struct call *to)
{
    size_t pointers = (size_t)from->input_count + from->output_count + from->workspace_count;
    assert(pointers <= CALL_POINTERS_MAX);
    memcpy(to, from, offsetof(struct call, offsets));
    memcpy(to->offsets, from->offsets, pointers * sizeof from->offsets[0]);
    memcpy(to->sizes, from->sizes, pointers * sizeof from->sizes[0]);
    memcpy(to->poison, from->poison, pointers * sizeof from->poison[0]);
    memcpy(to->alias_offsets, from->alias_offsets,
           from->input_count * sizeof from->alias_offsets[0]);
}
