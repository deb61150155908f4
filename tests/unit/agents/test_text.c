/* What a provider sent, made safe to parse: every way in which bytes can be no text. */
#include "check.h"

#include "agents/llm/providers/text.h"
#include "base/buf.h"

static const struct {
    const char *json, *clean;
} texts[] = {
    {"\"a\xC3\xA9\"", "\"a\xC3\xA9\""},
    {"\"a\xFF\"", "\"a\xEF\xBF\xBD\""},
    {"\"\xED\xA0\x80\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""}, /* a surrogate in UTF-8 */
    {"\"\xF0\x9F\x98\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
    {"\"\\ud83d\"", "\"\xEF\xBF\xBD\""},
    {"\"\\ude00x\"", "\"\xEF\xBF\xBDx\""},
    {"\"\\ud83d\\n\"", "\"\xEF\xBF\xBD\\n\""},
    {"\"\\u0000\"", "\"\xEF\xBF\xBD\""},
    {"\"\\\\u0000\"", "\"\\\\u0000\""},
    {"\"\\u12", "\"\\u12"},
    {"\"\\", "\"\\"},
};

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct buf out;
        buf_init(&out, 100);
        text_clean_json(texts[i].json, strlen(texts[i].json), &out);
        if (strcmp(buf_text(&out), texts[i].clean) != 0)
            fail_msg("row %zu: %s", i, buf_text(&out));
        buf_free(&out);
    }
    struct buf out;
    buf_init(&out, 100);
    text_clean_json("a\0b", 3, &out);
    assert_string_equal(buf_text(&out), "a\xEF\xBF\xBD"
                                        "b");
    buf_free(&out);
}

/* However long, and wherever it is cut short, what comes out is whole characters. */
static void test_cuts(void **state)
{
    (void)state;
    static const char json[] = "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\\ud83d\\ude00\"";
    for (size_t length = 0; length < sizeof json; length++) {
        struct buf out;
        buf_init(&out, 200);
        text_clean_json(json, length, &out);
        const unsigned char *at = (const unsigned char *)buf_text(&out);
        for (const unsigned char *end = at + out.length; at < end;) {
            size_t size = *at < 0x80 ? 1 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;
            assert_true(*at < 0x80 || *at >= 0xC2);
            assert_true((size_t)(end - at) >= size);
            for (size_t i = 1; i < size; i++)
                assert_int_equal(at[i] & 0xC0, 0x80);
            at += size;
        }
        buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
