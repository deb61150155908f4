/* eval/reference/private: what the two kinds of reference share. Inside src/eval/reference. */
#pragma once

#include "eval/reference/reference.h"

enum { REFERENCE_TIMEOUT_MS = 120000 }; /* one call of the user's function */

struct reference_ops {
    int (*compute)(struct reference *reference, const struct layout *layout,
                   const struct call *call, enum reference_precision precision, void **out,
                   struct err *err);
    void (*close)(struct reference *reference);
    /* Both NULL where it is ready once it is open. */
    bool (*pending)(const struct reference *reference);
    int (*ready)(struct reference *reference, struct err *err);
    /* All NULL where one process is all there can be. */
    struct reference *(*again)(struct reference *reference, const struct region *region,
                               size_t threads, struct err *err);
    /* reference_aside(); NULL: never. */
    struct reference *(*aside)(struct reference *reference, const char *baseline,
                               const struct layout *layout, struct err *err);
    int (*send)(struct reference *reference, const struct layout *layout, const struct call *call,
                enum reference_precision precision, struct err *err);
    int (*take)(struct reference *reference, const struct layout *layout, void **out,
                struct err *err);
    /* NULL where there is no other baseline, and where inputs stay as they are drawn */
    struct subject *(*baseline)(struct reference *reference, const char *name);
    int (*compute_baseline)(struct reference *reference, const char *name,
                            const struct layout *layout, const struct call *call, void **out,
                            struct err *err);
    void (*shape_input)(const struct reference *reference, size_t input,
                        enum distribution distribution, const struct placed *placed, void *values);
    /* NULL: nothing can be said. */
    const char *(*double_steps)(struct reference *reference, bool rounded, struct arena *arena);
    /* NULL: the definition has no inputs of its own. */
    int (*draw_given)(struct reference *reference, const struct layout *layout, uint64_t seed,
                      unsigned char *const *values, struct err *err);
    /* NULL: any numbers do. */
    int (*draw_own)(struct reference *reference, const struct layout *layout, uint64_t seed,
                    unsigned char *const *values, struct err *err);
    int (*draw_ahead)(struct reference *reference, const uint64_t *seeds, size_t count,
                      struct err *err);
};

struct reference { /* embedded first by each kind */
    const struct reference_ops *ops;
    struct subject *subject;
    const char *versions;
};

/* Explicit mantissa bits that inputs are rounded to for `precision`; -1: they stay as they are. */
int reference_bits(const struct problem *problem, enum reference_precision precision);
