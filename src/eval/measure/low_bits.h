/* eval/measure/low_bits: whether a win sees the lowest bits of its inputs. Inside src/eval/measure.
 * Worker's measuring thread. */
#pragma once

#include "eval/measure/measure.h"

enum { LOW_BITS_KEPT = 2 };

struct low_bits {
    struct kept {
        const struct set *set; /* NULL: none yet */
        uint64_t seed;
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
