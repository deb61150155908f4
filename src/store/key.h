/* store/key: keys as LMDB stores them, so that its byte order is the natural order of the text
 * (r3-c2 before r3-c10) and the text can be had back. Any thread; no state.
 *
 * A run of digits becomes: one byte '0'..'8' for 1..9 significant digits, or '9' and a count byte
 * for 10..255; the digits without leading zeros; then, only where there were leading zeros, a 0
 * byte and their number. The first byte is a digit, so a run sorts among other characters where
 * it did before. Equal numbers sort by their leading zeros, fewest first. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { STORE_KEY_MAX = 511 }; /* bytes of the text, and of the stored key: LMDB's own bound */

struct store_key {
    size_t length;
    unsigned char bytes[STORE_KEY_MAX];
};

/* ERR_LIMIT for an empty key, or one longer than STORE_KEY_MAX before or after encoding. */
int store_key_encode(const char *text, struct store_key *key, struct err *err) MUST_USE;

/* False where the bytes are not what store_key_encode() makes of any text. */
bool store_key_decode(const void *bytes, size_t length, char text[STORE_KEY_MAX + 1]);

/* The longest stored prefix that all keys beginning with the text `prefix` share. Keys that share
 * it may still not begin with `prefix`: compare the texts. Length 0 covers the whole table. */
int store_key_prefix(const char *prefix, struct store_key *key, struct err *err) MUST_USE;
