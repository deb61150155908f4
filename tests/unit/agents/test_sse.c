/* Server-sent events, cut at every place a network could cut them. */
#include "check.h"

#include "agents/llm/providers/sse.h"
#include "base/mem.h"

static int note(void *context, const char *event, const char *data, size_t length, struct err *err)
{
    (void)err;
    assert_int_equal(strlen(data), length);
    buf_addf(context, "[%s|%s]", event, data);
    return 0;
}

static const struct {
    const char *stream, *events;
} rows[] = {
    {"data: a\n\n", "[message|a]"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "[message|a][message|b]"},
    {"data: a\r\rdata: b\r\r", "[message|a][message|b]"},
    {"data: a\ndata: b\n\n", "[message|a\nb]"},
    {"data: a\r\ndata: b\r\n\r\n", "[message|a\nb]"},
    {"event: error\ndata: x\n\ndata: y\n\n", "[error|x][message|y]"},
    {": ping\n\n: ping\n\ndata: a\n\n", "[message|a]"},
    {"data\n\n", "[message|]"},
    {"data:a\ndata:  b\n\n", "[message|a\n b]"},
    {"id: 7\nretry: 10\ndata: a\n\n", "[message|a]"},
    {"\xEF\xBB\xBF"
     "data: a\n\n",
     "[message|a]"},
    {"data: unfinished", ""},
    {"data: unfinished\n", ""},
    {"dataset: a\nevent: lonely\n\ndata: b\n\n", "[message|b]"},
    {"data: a:b: c\n\n", "[message|a:b: c]"},
    {"data: a\r\n\ndata: b\n\r\n", "[message|a][message|b]"},
};

static void test_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t length = strlen(rows[i].stream);
        for (size_t piece = 1; piece <= length; piece++) {
            struct sse sse;
            struct buf out;
            struct err err = {0};
            buf_init(&out, 1000);
            sse_init(&sse, note, &out);
            for (size_t at = 0; at < length; at += piece) {
                size_t size = length - at < piece ? length - at : piece;
                assert_int_equal(sse_feed(&sse, rows[i].stream + at, size, &err), 0);
            }
            if (strcmp(buf_text(&out), rows[i].events) != 0)
                fail_msg("row %zu in pieces of %zu: %s", i, piece, buf_text(&out));
            sse_free(&sse);
            buf_free(&out);
        }
    }
}

static void test_limits(void **state)
{
    (void)state;
    struct sse sse;
    struct buf out;
    struct err err = {0};
    size_t length = SSE_EVENT_BYTES_MAX / 2;
    char *line = mem_alloc(length + 2);
    memset(line, 'a', length);
    memcpy(line, "data: ", 6);
    line[length] = '\n';
    buf_init(&out, 16);
    sse_init(&sse, note, &out);
    assert_int_equal(sse_feed(&sse, line, length + 1, &err), 0);
    assert_int_equal(sse_feed(&sse, line, length + 1, &err), 0);
    assert_int_equal(sse_feed(&sse, line, length + 1, &err), -1); /* an event of many lines */
    assert_int_equal(err.code, ERR_LIMIT);
    sse_free(&sse);
    sse_init(&sse, note, &out);
    int status = 0;
    for (int i = 0; i < 4 && status == 0; i++) /* a line without end */
        status = sse_feed(&sse, line, length, &err);
    assert_int_equal(status, -1);
    sse_free(&sse);
    buf_free(&out);
    mem_free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuts), cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
