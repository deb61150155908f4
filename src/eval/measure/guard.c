/* eval/measure/guard: reads outside of an input. In some calls of the checks the inputs lie against
 * pages that the subject cannot read: behind the end of each in one call, before its start in
 * another. Where a tensor's end is nearer to its last page's end than the alignment lets it come,
 * and on the side that is not guarded, numbers lie that spoil a result: NaN in the one call, the
 * largest of both signs in the other, since a maximum may pass a NaN over. */
#include "eval/measure/guard.h"

#include "eval/measure/session_private.h"

#include <string.h>

/* The first set of a shape that the cases hold has its ends guarded, the second its starts. Edge
 * cases and all repeats lie as timed calls do. */
enum guard guard_of_case(const struct session *session, size_t index)
{
    size_t before = 0;
    if (index >= session->edge_case)
        return GUARD_NONE;
    for (size_t i = 0; i < index; i++)
        before += session->cases[i].shape == session->cases[index].shape;
    return before == 0 ? GUARD_END : before == 1 ? GUARD_START : GUARD_NONE;
}

enum guard guard_of_main(size_t slot)
{
    return slot == 0 ? GUARD_END : GUARD_START;
}

/* The aliases are of the first slot. */
void guard_arrange(struct bench *bench, struct layout *layout)
{
    if (bench->guarded != GUARD_NONE && bench->subject != NULL && bench->subject->guards &&
        layout_guard(layout, bench->guarded, bench->region))
        bench->slot = 0;
}

/* --- what lies between a tensor and its guards --- */

static void fill_largest(enum dtype dtype, size_t count, unsigned char *at)
{
    static const uint64_t largest[] = {[DTYPE_FLOAT16] = 0x7bff,
                                       [DTYPE_BFLOAT16] = 0x7f7f,
                                       [DTYPE_FLOAT32] = 0x7f7fffff,
                                       [DTYPE_FLOAT64] = 0x7fefffffffffffff,
                                       [DTYPE_INT32] = 0x7fffffff};
    size_t bytes = dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = largest[dtype] ^ (uint64_t)(i & 1) << (8 * bytes - 1);
        memcpy(at + i * bytes, &bits, bytes); /* little-endian, as every machine that we run on */
    }
}

static void fill_behind(enum guard guard, enum dtype dtype, size_t bytes, unsigned char *at)
{
    size_t count = bytes / dtype_bytes(dtype);
    if (guard == GUARD_END)
        draw_poison(random_seed(), dtype, count, at);
    else
        fill_largest(dtype, count, at);
}

/* Where no page can be taken from a subject, all that lies behind an input is such numbers. */
static void fill_gaps(struct bench *bench, const struct layout *layout, unsigned char *base)
{
    for (size_t i = 0; i < layout->input_count; i++) {
        const struct placed *placed = &layout->inputs[i];
        size_t end = placed->offset + placed->bytes;
        size_t next = i + 1 < layout->input_count ? placed[1].offset : layout->inputs_bytes;
        fill_behind(bench->guarded, bench->session->problem->inputs[i].dtype, next - end,
                    base + end);
    }
}

void guard_fill(struct bench *bench, const struct layout *layout, unsigned char *base)
{
    struct session *session = bench->session;
    bool apart = bench->subject != NULL && !bench->subject->guards && bench->subject->device_clock;
    if (bench->guarded != GUARD_NONE && apart)
        fill_gaps(bench, layout, base);
    for (size_t i = 0; i < layout->input_count && layout->guard != GUARD_NONE; i++) {
        enum dtype dtype = session->problem->inputs[i].dtype;
        const struct placed *placed = &layout->inputs[i];
        size_t end = placed->offset + placed->bytes, bytes = dtype_bytes(dtype);
        size_t before = placed->offset % PAGE_BYTES;
        size_t after = (PAGE_BYTES - end % PAGE_BYTES) % PAGE_BYTES;
        fill_behind(layout->guard, dtype, after, base + end);
        fill_largest(dtype, before / bytes, base + placed->offset - before);
    }
}

/* --- the verdict --- */

/* "element 64 of B, which has elements 0 to 63", of the input that is nearest. */
static void describe(const struct problem *problem, const struct layout *layout, size_t offset,
                     struct buf *text)
{
    size_t nearest = 0, least = SIZE_MAX;
    for (size_t i = 0; i < layout->input_count; i++) {
        size_t start = layout->inputs[i].offset + layout->alias_shift[i];
        size_t end = start + layout->inputs[i].bytes;
        size_t away = offset >= end ? offset - end : start - offset;
        nearest = away < least ? i : nearest;
        least = away < least ? away : least;
    }
    const struct placed *placed = &layout->inputs[nearest];
    int64_t bytes = (int64_t)dtype_bytes(problem->inputs[nearest].dtype);
    int64_t at = (int64_t)offset - (int64_t)(placed->offset + layout->alias_shift[nearest]);
    buf_addf(text, "read out of bounds: element %lld of %s, which has elements 0 to %zu",
             (long long)(at >= 0 ? at / bytes : (at + 1) / bytes - 1),
             problem->inputs[nearest].name, placed->elements - 1);
}

bool guard_hit(struct bench *bench, const struct set *set, const struct arrangement *arrangement)
{
    if (arrangement->layout.guard == GUARD_NONE || bench->subject == NULL || !bench->subject->hit)
        return false;
    BUF_LOCAL(text, 400);
    describe(bench->session->problem, &arrangement->layout, bench->subject->hit_offset, &text);
    for (size_t i = 0; i < set->shape->dims.count; i++)
        buf_addf(&text, "%s%s=%lld", i > 0 ? ", " : " at ", set->shape->dims.name[i],
                 (long long)set->shape->dims.number[i]);
    bench_close(bench);
    bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, buf_text(&text)),
                 "In some calls the memory next to each input cannot be read. Loads may not touch "
                 "it, whatever becomes of the value.\n");
    return true;
}
