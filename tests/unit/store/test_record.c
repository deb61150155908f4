#include "support.h"

#include "store/record.h"

static const char value[] = "{\"state\":\"kept\"}";
enum { LENGTH = sizeof value - 1, SIZE = STORE_RECORD_HEADER + sizeof value };

static void make(unsigned char record[SIZE], struct store_key *key)
{
    struct err err;
    must(store_key_encode("r3-c17", key, &err), &err);
    assert_int_equal(store_record_size(LENGTH), SIZE);
    store_record_write(record, STORE_CANDIDATES, key, value, LENGTH);
}

static bool reads(const void *record, size_t size, unsigned table, const struct store_key *key)
{
    const char *text;
    size_t length;
    return store_record_read(record, size, table, key->bytes, key->length, &text, &length);
}

static void test_whole(void **state)
{
    (void)state;
    unsigned char record[SIZE];
    struct store_key key;
    make(record, &key);
    const char *text;
    size_t length;
    assert_true(
        store_record_read(record, SIZE, STORE_CANDIDATES, key.bytes, key.length, &text, &length));
    assert_int_equal(length, LENGTH);
    assert_string_equal(text, value);
    unsigned schema;
    assert_true(store_record_head(record, SIZE, STORE_CANDIDATES, key.bytes, key.length, &schema));
    assert_int_equal(schema, STORE_SCHEMA);
}

static void test_every_bit(void **state)
{
    (void)state;
    unsigned char record[SIZE];
    struct store_key key;
    make(record, &key);
    for (size_t bit = 0; bit < SIZE * 8; bit++) {
        record[bit / 8] ^= (unsigned char)(1 << bit % 8);
        if (reads(record, SIZE, STORE_CANDIDATES, &key))
            fail_msg("bit %zu of byte %zu is not missed", bit % 8, bit / 8);
        unsigned schema;
        bool head =
            store_record_head(record, SIZE, STORE_CANDIDATES, key.bytes, key.length, &schema);
        assert_int_equal(head, bit / 8 >= STORE_RECORD_HEADER);
        record[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (size_t bit = 0; bit < key.length * 8; bit++) {
        key.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(reads(record, SIZE, STORE_CANDIDATES, &key));
        key.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_true(reads(record, SIZE, STORE_CANDIDATES, &key));
}

static void test_wrong_place(void **state)
{
    (void)state;
    unsigned char record[SIZE + 1] = {0};
    struct store_key key, other;
    struct err err;
    make(record, &key);
    must(store_key_encode("r3-c18", &other, &err), &err);
    assert_false(reads(record, SIZE, STORE_CANDIDATES, &other));
    assert_false(reads(record, SIZE, STORE_EVALUATIONS, &key));
    assert_false(reads(record, SIZE + 1, STORE_CANDIDATES, &key));
    for (size_t size = 0; size < SIZE; size++)
        assert_false(reads(record, size, STORE_CANDIDATES, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_wrong_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
