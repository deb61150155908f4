#include "agents/retrieve/rag/query/postings.h"

#include <assert.h>

enum { HEADER = 5, ENTRY = 9 };

static void put_u32(unsigned char *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(number >> (8 * i));
}

static uint32_t get_u32(const unsigned char *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

static void put_varint(struct buf *out, uint32_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_add_char(out, (char)(unsigned char)(number | 0x80));
    buf_add_char(out, (char)(unsigned char)number);
}

static uint8_t highest(const uint8_t *impacts, size_t count)
{
    uint8_t max = 0;
    for (size_t i = 0; i < count; i++)
        max = impacts[i] > max ? impacts[i] : max;
    return max;
}

void postings_encode(const uint32_t *ids, const uint8_t *impacts, size_t count, struct buf *out)
{
    unsigned char entry[ENTRY];
    size_t blocks = (count + POSTINGS_BLOCK - 1) / POSTINGS_BLOCK;
    put_u32(entry, (uint32_t)count);
    entry[4] = highest(impacts, count);
    buf_add(out, entry, HEADER);
    size_t directory = out->length;
    for (size_t block = 0; block < blocks; block++)
        buf_add(out, entry, ENTRY); /* filled in below */
    size_t data = out->length;
    uint32_t previous = 0;
    for (size_t block = 0; block < blocks; block++) {
        size_t from = block * POSTINGS_BLOCK;
        size_t most = count - from < POSTINGS_BLOCK ? count - from : POSTINGS_BLOCK;
        put_u32(entry, ids[from + most - 1]);
        put_u32(entry + 4, (uint32_t)(out->length - data));
        entry[8] = highest(impacts + from, most);
        for (size_t i = 0; i < ENTRY; i++)
            out->data[directory + block * ENTRY + i] = (char)entry[i];
        buf_add(out, impacts + from, most);
        for (size_t i = from; i < from + most; i++) {
            assert(i == 0 || ids[i] > previous);
            put_varint(out, ids[i] - previous);
            previous = ids[i];
        }
    }
}

int postings_open(const void *bytes, size_t length, struct postings *postings, struct err *err)
{
    const unsigned char *from = bytes;
    if (length < HEADER)
        return err_set(err, ERR_CORRUPT, "a list of postings of %zu bytes", length);
    postings->count = get_u32(from);
    postings->max = from[4];
    uint64_t blocks = ((uint64_t)postings->count + POSTINGS_BLOCK - 1) / POSTINGS_BLOCK;
    if (HEADER + blocks * ENTRY + postings->count > length)
        return err_set(err, ERR_CORRUPT, "a list of %u postings in %zu bytes", postings->count,
                       length);
    postings->blocks = (uint32_t)blocks;
    postings->directory = from + HEADER;
    postings->data = from + HEADER + blocks * ENTRY;
    postings->data_length = length - HEADER - (size_t)blocks * ENTRY;
    return 0;
}

static uint32_t postings_block_last(const struct postings *postings, uint32_t block)
{
    return get_u32(postings->directory + (size_t)block * ENTRY);
}

size_t postings_block(const struct postings *postings, uint32_t block, uint32_t ids[POSTINGS_BLOCK],
                      const uint8_t **impacts)
{
    if (block >= postings->blocks)
        return 0;
    size_t from = (size_t)block * POSTINGS_BLOCK;
    size_t count =
        postings->count - from < POSTINGS_BLOCK ? postings->count - from : POSTINGS_BLOCK;
    uint32_t offset = get_u32(postings->directory + (size_t)block * ENTRY + 4);
    if (offset > postings->data_length || postings->data_length - offset < 2 * count)
        return 0;
    const unsigned char *at = postings->data + offset;
    const unsigned char *end = postings->data + postings->data_length;
    uint32_t id = block > 0 ? postings_block_last(postings, block - 1) : 0;
    *impacts = at;
    at += count;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = 0;
        unsigned shift = 0;
        do {
            if (at == end || shift > 28)
                return 0;
            number |= (uint32_t)(*at & 0x7f) << shift;
            shift += 7;
        } while (*at++ & 0x80);
        if ((*impacts)[i] == 0 || number > UINT32_MAX - id || (number == 0 && (i > 0 || block > 0)))
            return 0; /* ids ascend */
        id += number;
        ids[i] = id;
    }
    return count;
}
