#include "store/record.h"

#include "base/hash.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are written as they lie in memory: little endian only"
#endif

static const uint32_t magic = 0x76615754; /* "TWav" */

struct header {
    uint32_t magic;
    uint16_t schema;
    uint8_t table, zero;
    uint64_t length;
    uint64_t checksum;
    uint64_t own_checksum; /* of the fields above */
};
_Static_assert(sizeof(struct header) == STORE_RECORD_HEADER, "header has holes");

static uint64_t seed_of(unsigned table, const void *key, size_t key_length)
{
    return hash_checksum(key, key_length, (uint64_t)magic << 8 | table);
}

size_t store_record_size(size_t length)
{
    return STORE_RECORD_HEADER + length + 1;
}

void store_record_write(unsigned char *record, unsigned table, const struct store_key *key,
                        const void *value, size_t length)
{
    uint64_t seed = seed_of(table, key->bytes, key->length);
    struct header header = {.magic = magic,
                            .schema = STORE_SCHEMA,
                            .table = (uint8_t)table,
                            .length = length,
                            .checksum = hash_checksum(value, length, seed)};
    header.own_checksum = hash_checksum(&header, offsetof(struct header, own_checksum), seed);
    memcpy(record, &header, sizeof header);
    if (length > 0)
        memcpy(record + sizeof header, value, length);
    record[sizeof header + length] = '\0';
}

void store_record_stamp(unsigned char *record, unsigned table, const struct store_key *key,
                        unsigned schema)
{
    struct header header;
    uint64_t seed = seed_of(table, key->bytes, key->length);
    memcpy(&header, record, sizeof header);
    header.schema = (uint16_t)schema;
    header.own_checksum = hash_checksum(&header, offsetof(struct header, own_checksum), seed);
    memcpy(record, &header, sizeof header);
}

static bool read_header(const void *head, size_t size, unsigned table, uint64_t seed,
                        struct header *header)
{
    if (size < sizeof *header + 1)
        return false;
    memcpy(header, head, sizeof *header);
    uint64_t own = hash_checksum(header, offsetof(struct header, own_checksum), seed);
    return own == header->own_checksum && header->magic == magic && header->table == table &&
           header->zero == 0 && header->length == size - sizeof *header - 1;
}

bool store_record_head(const void *head, size_t size, unsigned table, const void *key,
                       size_t key_length, unsigned *schema)
{
    struct header header;
    if (!read_header(head, size, table, seed_of(table, key, key_length), &header))
        return false;
    *schema = header.schema;
    return true;
}

bool store_record_read(const void *record, size_t size, unsigned table, const void *key,
                       size_t key_length, const char **value, size_t *length)
{
    struct header header;
    uint64_t seed = seed_of(table, key, key_length);
    if (!read_header(record, size, table, seed, &header))
        return false;
    const char *text = (const char *)record + sizeof header;
    size_t bytes = (size_t)header.length;
    if (text[bytes] != '\0' || hash_checksum(text, bytes, seed) != header.checksum)
        return false;
    *value = text;
    *length = bytes;
    return true;
}
