/* eval/sets/excuse: numbers that are not the definition's, and right all the same, since they hang
 * on a tie: an exact result, too, is another one there when the inputs move by their last bits. */
#include "eval/sets/excuse.h"
#include "base/mem.h"
#include "eval/sets/session.h"
#include "eval/sets/shake.h"

#include <math.h>
#include <string.h>

static double row_rms(const double *exact, size_t count)
{
    double squares = 0.0;
    for (size_t i = 0; i < count; i++)
        squares += isfinite(exact[i]) ? exact[i] * exact[i] : 0.0;
    return sqrt(squares / (double)count);
}

/* Whether a row moves by more than a part of its scale that no rounding explains. */
static bool row_moves(const double *exact, const double *shaken, size_t count)
{
    static const double much = 1.0 / 16.0;
    double rms = row_rms(exact, count);
    for (size_t i = 0; i < count; i++)
        if (fabs(shaken[i] - exact[i]) > much * fmax(fabs(exact[i]), rms))
            return true;
    return false;
}

/* A number that was rounded to a grid is a whole step away, however little moved. Where one has
 * jumped so, and what is there is what was given, but for what the grid itself has moved, it is
 * right. */
static void mend_jumps(const struct tensor_spec *tensor, const double *exact, const double *given,
                       size_t first, size_t row, void *mended)
{
    static const double jump = 0x1p-12, grid = 0x1p-16;
    double rms = row_rms(exact + first, row);
    for (size_t i = first; i < first + row; i++) {
        double off = fabs(dtype_load(tensor->dtype, mended, i) - given[i]);
        double scale = fmax(fabs(exact[i]), rms);
        if (fabs(given[i] - exact[i]) > jump * scale && off <= grid * scale)
            dtype_store(tensor->dtype, mended, i, exact[i]);
    }
}

/* A row that moves is taken for right where it is finite. */
static void mend_row(const struct tensor_spec *tensor, const double *exact, const double *given,
                     size_t first, size_t row, void *mended)
{
    bool moves = row_moves(exact + first, given + first, row);
    for (size_t i = first; i < first + row && moves; i++)
        if (isfinite(dtype_load(tensor->dtype, mended, i)))
            dtype_store(tensor->dtype, mended, i, exact[i]);
}

/* By what the definition gives for numbers that move by `size`, up and down. */
struct mending {
    double size;
    const double *by_type;
    size_t pairs;
    void (*how)(const struct tensor_spec *tensor, const double *exact, const double *given,
                size_t first, size_t row, void *mended);
};

/* Whether all the rest is right. */
static bool mend(struct session *session, const struct set *set, size_t output,
                 const struct mending *mending, void *mended)
{
    const struct placed *placed = &set->shape->layout.outputs[output];
    const struct tensor_spec *tensor = &session->problem->outputs[output];
    const double *exact = set->exact[output];
    size_t row = tensor_row(tensor, placed);
    struct shake shake = {.by_type = mending->by_type};
    struct mismatch mismatch = {.passed = false};
    for (size_t i = 0; i < 2 * mending->pairs && row > 0 && !mismatch.passed; i++) {
        void *given[OUTPUTS_MAX];
        struct err ignored;
        shake.key = i % 2 == 0 ? random_next(&session->random) : shake.key;
        shake.size = i % 2 == 0 ? mending->size : -mending->size;
        if (session_shake(session, set, &shake, given, &ignored) != 0)
            return false;
        for (size_t first = 0; first + row <= placed->elements; first += row)
            mending->how(tensor, exact, (const double *)given[output], first, row, mended);
        check_compare(tensor, placed->extents, placed->elements, &set->bounds[output], exact,
                      mended, &mismatch);
    }
    return mismatch.passed;
}

bool session_excuses(struct session *session, const struct set *set, size_t output, const void *got)
{
    static const double slow_ns = 1e9;
    static const double alike[DTYPES] = {1.0, 1.0, 1.0, 1.0, 1.0};
    static const struct mending ways[] = {{0x1p-17, NULL, 1, mend_row},
                                          {0x1p-18, alike, 4, mend_jumps}};
    const struct bound *bound = &set->bounds[output];
    const struct placed *placed = &set->shape->layout.outputs[output];
    if (bound->exact_equality)
        return session_excuses_integers(session, set, output, got);
    if (bound->fixed || (set->shape == &session->shapes[0] && session->exact_ns > slow_ns))
        return false;
    MEM_LOCAL unsigned char *mended = (unsigned char *)mem_alloc(placed->bytes + 1);
    bool passes = false;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !passes; i++) {
        memcpy(mended, got, placed->bytes);
        passes = mend(session, set, output, &ways[i], mended);
    }
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL)
        subject->ops->pause(subject);
    return passes;
}
