#include "base/hash.h"

#include <stdio.h>
#include <xxhash.h>

struct hash hash_bytes(const void *bytes, size_t length)
{
    XXH128_hash_t hash = XXH3_128bits(bytes, length);
    return (struct hash){.high = hash.high64, .low = hash.low64};
}

struct hash hash_combine(struct hash a, struct hash b)
{
    uint64_t words[4] = {a.high, a.low, b.high, b.low};
    return hash_bytes(words, sizeof words);
}

int hash_compare(struct hash a, struct hash b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    if (a.low != b.low)
        return a.low < b.low ? -1 : 1;
    return 0;
}

void hash_format(struct hash hash, char text[33])
{
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}

uint64_t hash_checksum(const void *bytes, size_t length, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, length, seed);
}
