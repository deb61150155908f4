/* eval/measure/guard: reads outside of an input. In every call each input lies on pages of its own,
 * and the one behind its last cannot be read. In some calls of the checks the inputs lie against
 * such pages: behind the end of each in one call, before its start in another. Where a tensor's end
 * is nearer to its last page's end than the alignment lets it come, and on the side that is not
 * guarded, numbers lie that spoil a result: NaN in the one call, the largest of both signs in the
 * other, since a maximum may pass a NaN over. */
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

/* Every call of such a subject, timed ones too: by what page an input ends at, nobody can tell
 * where it is safe to read on. A baseline that is called before there is a subject lies as it will.
 */
void guard_arrange(struct bench *bench, struct layout *layout)
{
    bool guards =
        bench->subject != NULL ? bench->subject->guards : !lane_is_apart(bench->session->lane);
    enum guard guard = bench->guarded != GUARD_NONE ? bench->guarded : GUARD_NEAR;
    if (guards)
        (void)layout_guard(layout, guard, bench->region, bench->slot, bench->shift);
}

/* Around each input, as far as anybody reads by mistake: not all that a larger shape would fill. */
void guard_visit(const struct layout *layout, void (*visit)(void *context, size_t from, size_t to),
                 void *context)
{
    enum { AROUND = 16 * PAGE_BYTES };
    size_t cursor = 0;
    for (size_t i = 0; i < layout->input_count; i++) {
        const struct placed *placed = &layout->inputs[i];
        size_t end = placed->offset + placed->bytes;
        size_t next = i + 1 < layout->input_count ? placed[1].offset : layout->inputs_bytes;
        size_t from = placed->offset > cursor + AROUND ? placed->offset - AROUND : cursor;
        cursor = end + AROUND < next ? end + AROUND : next;
        visit(context, from, placed->offset);
        visit(context, end, cursor);
    }
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
    bool filled = layout->guard == GUARD_END || layout->guard == GUARD_START;
    for (size_t i = 0; i < layout->input_count && filled; i++) {
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
static void describe(const struct problem *problem, const struct arrangement *arrangement,
                     size_t offset, struct buf *text)
{
    const struct layout *layout = &arrangement->layout;
    const size_t slot = arrangement->slot_offset;
    size_t nearest = 0, least = SIZE_MAX;
    for (size_t i = 0; i < layout->input_count; i++) {
        size_t start = slot + layout->inputs[i].offset + layout->alias_shift[i];
        size_t end = start + layout->inputs[i].bytes;
        size_t away = offset >= end ? offset - end : start - offset;
        nearest = away < least ? i : nearest;
        least = away < least ? away : least;
    }
    const struct placed *placed = &layout->inputs[nearest];
    int64_t bytes = (int64_t)dtype_bytes(problem->inputs[nearest].dtype);
    int64_t at = (int64_t)offset - (int64_t)(slot + placed->offset + layout->alias_shift[nearest]);
    buf_addf(text, "read out of bounds: element %lld of %s, which has elements 0 to %zu",
             (long long)(at >= 0 ? at / bytes : (at + 1) / bytes - 1),
             problem->inputs[nearest].name, placed->elements - 1);
}

bool guard_hit(struct bench *bench, const struct set *set, const struct arrangement *arrangement)
{
    if (arrangement->layout.guard == GUARD_NONE || bench->subject == NULL || !bench->subject->hit)
        return false;
    BUF_LOCAL(text, 400);
    describe(bench->session->problem, arrangement, bench->subject->hit_offset, &text);
    for (size_t i = 0; i < set->shape->dims.count; i++)
        buf_addf(&text, "%s%s=%lld", i > 0 ? ", " : " at ", set->shape->dims.name[i],
                 (long long)set->shape->dims.number[i]);
    bench_close(bench);
    bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, buf_text(&text)),
                 "The page behind each input's last one cannot be read. Loads may not touch "
                 "it, whatever becomes of the value.\n");
    return true;
}
