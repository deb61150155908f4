/* base/random: seeds from the kernel, and a fast generator (xoshiro256++) for everything else.
 * A struct random has one owner; random_seed() is for any thread. */
#pragma once

#include <stdint.h>

struct random {
    uint64_t state[4];
};

uint64_t random_seed(void); /* getrandom(2); aborts if the kernel has none */
void random_init(struct random *random, uint64_t seed); /* splitmix64 expands the seed */
uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t bound); /* [0, bound), unbiased; bound > 0 */
double random_unit(struct random *random);                    /* [0, 1), 53 bits */
