/* eval/measure/low_bits: whether a win sees the lowest bits of its inputs. Inside src/eval/measure.
 * Worker's measuring thread. */
#pragma once

#include "eval/check/response.h"
#include "eval/measure/measure.h"
#include "eval/sets/coarse.h"

enum { LOW_BITS_KEPT = 2 };

struct low_bits {
    struct kept {
        const struct set *set; /* NULL: none yet */
        uint64_t seed;
        struct set own; /* a copy of a view's small problem, which the next call has not */
        float *outputs[OUTPUTS_MAX];
    } kept[LOW_BITS_KEPT]; /* of normal numbers, of uniform ones */
};

/* --- low_bits_keep.c --- */
/* After each checked call that was right; of some sets the outputs are kept. */
void low_bits_keep(struct bench *bench, const struct set *set, const struct layout *layout);
void low_bits_free(struct bench *bench);

/* --- low_bits.c --- */
/* Of a claimed win: whether what was kept follows the lowest bits of its inputs. */
int low_bits_of_win(struct bench *bench, struct err *err) MUST_USE;

/* --- low_bits_terms.c --- */
struct terms_lost {
    size_t input, output;
    struct terms terms; /* the eighth of which the lowest `bits` are not seen */
    int bits;
    struct response response;
};
/* 1: *lost, on what was kept; 0: none, or it cannot be asked; -1 with *err. */
int low_bits_ask_terms(struct bench *bench, const struct kept *kept, struct terms_lost *lost,
                       struct err *err) MUST_USE;
