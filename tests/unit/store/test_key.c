#include "support.h"

static void round_trip(const char *text)
{
    struct store_key key;
    struct err err;
    char back[STORE_KEY_MAX + 1];
    must(store_key_encode(text, &key, &err), &err);
    assert_true(store_key_decode(key.bytes, key.length, back));
    assert_string_equal(back, text);
}

static int order(const char *a, const char *b)
{
    struct store_key x, y;
    struct err err;
    must(store_key_encode(a, &x, &err), &err);
    must(store_key_encode(b, &y, &err), &err);
    int result = memcmp(x.bytes, y.bytes, x.length < y.length ? x.length : y.length);
    if (result != 0)
        return result;
    return x.length < y.length ? -1 : x.length > y.length;
}

static const char *const ascending[] = {
    "!",
    "-",
    "0",
    "00",
    "1",
    "01",
    "1-a",
    "2",
    "9",
    "10",
    "99",
    "123456789",
    "999999999",
    "1000000000",
    "9999999999999999999999",
    "10000000000000000000000",
    ":",
    "a",
    "a0",
    "a1",
    "a2",
    "a10",
    "a10b",
    "a11",
    "aa",
    "r2-c100",
    "r3",
    "r3-000000042",
    "r3-c2",
    "r3-c2-x",
    "r3-c10",
    "r10-c1",
    "\xc3\xa9",
};

static void test_natural_order(void **state)
{
    (void)state;
    size_t count = sizeof ascending / sizeof *ascending;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            int got = order(ascending[i], ascending[j]);
            if ((got > 0) - (got < 0) != (i > j) - (i < j))
                fail_msg("%s against %s: %d", ascending[i], ascending[j], got);
        }
}

static void test_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ascending / sizeof *ascending; i++)
        round_trip(ascending[i]);
    round_trip("0f00a1b2c3d4e5f60718293a4b5c6d7e"); /* a hash */
    round_trip("machine/roofline");
    round_trip("0000000000000000000000000000000000000000000000000000000000000000000000000000000");
    struct random random;
    random_init(&random, 1);
    static const char letters[] = "0011234569-:/ra\x01\xff";
    for (int i = 0; i < 20000; i++) {
        char text[65];
        size_t length = 1 + random_below(&random, 64);
        for (size_t j = 0; j < length; j++)
            text[j] = letters[random_below(&random, sizeof letters - 1)];
        text[length] = '\0';
        round_trip(text);
    }
}

static void test_limits(void **state)
{
    (void)state;
    char text[1024];
    struct store_key key;
    struct err err;
    memset(text, 'a', sizeof text);
    text[511] = '\0';
    round_trip(text);
    text[511] = 'a';
    text[512] = '\0';
    assert_int_equal(store_key_encode(text, &key, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_int_equal(store_key_encode("", &key, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    memset(text, '7', 300); /* more digits than a count byte says */
    text[300] = '\0';
    assert_int_equal(store_key_encode(text, &key, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    for (size_t i = 0; i < 400; i += 2) { /* 400 bytes of text, 800 as stored */
        text[i] = '1';
        text[i + 1] = 'a';
    }
    text[400] = '\0';
    assert_int_equal(store_key_encode(text, &key, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
}

/* Bytes that no text is encoded to are damage, and must not be taken for a key. */
static void test_not_keys(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"", 0},
        {"0", 1},
        {"1"
         "3",
         2},
        {"1"
         "03",
         3},
        {"\0", 1},
        {"a\0b", 3},
        {"03"
         "4",
         3},
        {"03\0", 3},
        {"03\0\0", 4},
        {"9\5"
         "12345",
         7},
        {"9", 1},
        {"9\12"
         "123",
         5},
        {"0a", 2},
        {"03\0\1"
         "03",
         6},
    };
    char text[STORE_KEY_MAX + 1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (store_key_decode(cases[i].bytes, cases[i].length, text))
            fail_msg("case %zu reads as %s", i, text);
}

/* Whatever bytes decode, encode back to the same: no two stored keys are one text. */
static void test_decode_is_strict(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 2);
    static const char letters[] = {0, 1, 2, 9, 10, 11, '0', '1', '2', '3', '8', '9', 'a', '-'};
    int read = 0;
    for (int i = 0; i < 200000; i++) {
        char bytes[12], text[STORE_KEY_MAX + 1];
        size_t length = 1 + random_below(&random, sizeof bytes);
        for (size_t j = 0; j < length; j++)
            bytes[j] = letters[random_below(&random, sizeof letters)];
        if (!store_key_decode(bytes, length, text))
            continue;
        struct store_key key;
        struct err err;
        must(store_key_encode(text, &key, &err), &err);
        assert_int_equal(key.length, length);
        assert_memory_equal(key.bytes, bytes, length);
        read++;
    }
    assert_true(read > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_natural_order),    cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_limits),           cmocka_unit_test(test_not_keys),
        cmocka_unit_test(test_decode_is_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
