/* rag/postings: which passages hold a term, and how much of it: ids and one-byte impacts, packed in
 * blocks of 128 behind a directory, read where they lie in the map. Any thread.
 *
 *   u32 count | u8 max | per block: u32 last id, u32 offset, u8 max | blocks
 *   block: impacts, then the ids' distances as varints
 *
 * Numbers are little-endian and unaligned. Reading trusts nothing: damaged bytes give ERR_CORRUPT
 * or an empty block, never a stray read. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { POSTINGS_BLOCK = 128 };

struct postings {
    uint32_t count, blocks;
    uint8_t max; /* no impact in the list is higher: the term's bound */
    const unsigned char *directory, *data;
    size_t data_length;
};

/* Ids ascending, without doubles. Appends. */
void postings_encode(const uint32_t *ids, const uint8_t *impacts, size_t count, struct buf *out);

/* Borrows the bytes. */
int postings_open(const void *bytes, size_t length, struct postings *postings,
                  struct err *err) MUST_USE;

/* Unpacks one block; returns how many there are, 0 where it is damaged. */
size_t postings_block(const struct postings *postings, uint32_t block, uint32_t ids[POSTINGS_BLOCK],
                      const uint8_t **impacts);
