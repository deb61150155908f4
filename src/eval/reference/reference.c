/* eval/reference: what both kinds have in common. */
#include "eval/reference/private.h"

#include <string.h>

/* Mantissa bits of each step down: what an honest kernel may be tempted to use instead. */
static const struct {
    const char *name;
    int bits, lower;
} precisions[] = {
    {"float64", 52, 23}, {"float32", 23, 10}, {"tf32", 10, 7},
    {"float16", 10, 7},  {"bfloat16", 7, 3},
};

static int row_of(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof precisions / sizeof precisions[0]; i++)
        if (strcmp(precisions[i].name, name) == 0)
            return (int)i;
    return -1;
}

int reference_bits(const struct problem *problem, enum reference_precision precision)
{
    int own = row_of(dtype_name(problem_precise(problem)->dtype));
    int allowed = row_of(problem->precision);
    if (precision == PRECISION_EXACT || precision == PRECISION_WIDE || own < 0)
        return -1;
    bool less = allowed >= 0 && precisions[allowed].bits < precisions[own].bits;
    if (precision == PRECISION_SPEC)
        return less ? precisions[allowed].bits : -1;
    return precisions[less ? allowed : own].lower;
}

int reference_compute(struct reference *reference, const struct layout *layout,
                      const struct call *call, enum reference_precision precision, void **out,
                      struct err *err)
{
    return reference->ops->compute(reference, layout, call, precision, out, err);
}

struct reference *reference_again(struct reference *reference, const struct region *region,
                                  size_t threads)
{
    struct err ignored;
    return reference->ops->again != NULL
               ? reference->ops->again(reference, region, threads, &ignored)
               : NULL;
}

struct reference *reference_aside(struct reference *reference, const char *baseline,
                                  const struct layout *layout)
{
    struct err ignored;
    return reference->ops->aside != NULL
               ? reference->ops->aside(reference, baseline, layout, &ignored)
               : NULL;
}

int reference_send(struct reference *reference, const struct layout *layout,
                   const struct call *call, enum reference_precision precision, struct err *err)
{
    return reference->ops->send(reference, layout, call, precision, err);
}

int reference_take(struct reference *reference, const struct layout *layout, void **out,
                   struct err *err)
{
    return reference->ops->take(reference, layout, out, err);
}

struct subject *reference_baseline(struct reference *reference, const char *name)
{
    return reference->ops->baseline != NULL ? reference->ops->baseline(reference, name) : NULL;
}

int reference_compute_baseline(struct reference *reference, const char *name,
                               const struct layout *layout, const struct call *call, void **out,
                               struct err *err)
{
    return reference->ops->compute_baseline(reference, name, layout, call, out, err);
}

void reference_shape_input(const struct reference *reference, size_t input,
                           enum distribution distribution, const struct placed *placed,
                           void *values)
{
    if (reference->ops->shape_input != NULL)
        reference->ops->shape_input(reference, input, distribution, placed, values);
}

struct subject *reference_subject(struct reference *reference)
{
    return reference->subject;
}

bool reference_pending(const struct reference *reference)
{
    return reference->ops->pending != NULL && reference->ops->pending(reference);
}

int reference_ready(struct reference *reference, struct err *err)
{
    return reference->ops->ready != NULL ? reference->ops->ready(reference, err) : 0;
}

const char *reference_versions(const struct reference *reference)
{
    return reference->versions;
}

void reference_close(struct reference *reference)
{
    if (reference != NULL)
        reference->ops->close(reference);
}

void reference_draw_given(struct reference *reference, const struct layout *layout, uint64_t seed,
                          unsigned char *const *values)
{
    struct err ignored;
    if (reference->ops->draw_given != NULL)
        (void)!reference->ops->draw_given(reference, layout, seed, values, &ignored);
}

void reference_draw_own(struct reference *reference, const struct layout *layout, uint64_t seed,
                        unsigned char *const *values)
{
    struct err ignored;
    if (reference->ops->draw_own != NULL)
        (void)!reference->ops->draw_own(reference, layout, seed, values, &ignored);
}

bool reference_draw_ahead(struct reference *reference, const uint64_t *seeds, size_t count)
{
    struct err ignored;
    return reference->ops->draw_ahead != NULL &&
           reference->ops->draw_ahead(reference, seeds, count, &ignored) == 0;
}

const char *reference_double_steps(struct reference *reference, bool rounded, struct arena *arena)
{
    if (reference->ops->double_steps == NULL)
        return "";
    return reference->ops->double_steps(reference, rounded, arena);
}
