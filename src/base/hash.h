/* base/hash: 128-bit content identity and 64-bit checksums (XXH3, from libxxhash).
 * Any thread. Not for secrets. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hash {
    uint64_t high, low;
};

struct hash hash_bytes(const void *bytes, size_t length);
struct hash hash_combine(struct hash a, struct hash b); /* order matters */
int hash_compare(struct hash a, struct hash b);         /* <0, 0, >0 */
void hash_format(struct hash hash, char text[33]);      /* 32 hex digits and NUL */

/* Keyed by `seed`, so that whoever does not know it cannot aim at a collision. */
uint64_t hash_checksum(const void *bytes, size_t length, uint64_t seed);
