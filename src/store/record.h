/* store/record: what stands before every value: magic, schema, table, length, checksums.
 * Any thread; no state. Both checksums are XXH3 keyed by table and key, so that a value that turns
 * up under another key is as damaged as one with a flipped bit.
 *
 *   0 magic u32 | 4 schema u16 | 6 table u8 | 7 zero u8 | 8 length u64
 *   16 checksum of the value u64 | 24 checksum of bytes 0 to 23 u64 | 32 value, then one NUL */
#pragma once

#include "base/err.h"
#include "store/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STORE_SCHEMA = 1,         /* of everything in the store: tables, keys, headers, JSON members */
    STORE_RECORD_HEADER = 32, /* bytes */
    STORE_TABLE_SELF = 255,   /* the table of the store's own records: schema, counters */
};
#define STORE_VALUE_MAX ((size_t)64 << 20) /* bytes */

size_t store_record_size(size_t length); /* header, value, NUL */

/* Fills `record`, store_record_size(length) bytes. */
void store_record_write(unsigned char *record, unsigned table, const struct store_key *key,
                        const void *value, size_t length);

/* Puts another schema number into a record: for migrations, and for tests of other versions. */
void store_record_stamp(unsigned char *record, unsigned table, const struct store_key *key,
                        unsigned schema);

/* Checks the header alone: its first STORE_RECORD_HEADER bytes in `head`, the record's whole size
 * beside it. Sets *schema (of whatever version wrote it) where the rest holds. */
bool store_record_head(const void *head, size_t size, unsigned table, const void *key,
                       size_t key_length, unsigned *schema);

/* Checks all of it and points at the value, NUL-terminated, inside `record`. False: damaged. */
bool store_record_read(const void *record, size_t size, unsigned table, const void *key,
                       size_t key_length, const char **value, size_t *length);
