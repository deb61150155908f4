/* OpenAI's chat completions as a codec: requests, streams, whole answers, and every class of fault.
 */
#include "codec_check.h"

#define CHUNK(content) "data: {\"choices\":[{\"delta\":{\"content\":\"" content "\"}}]}\n\n"
#define LAST(reason)                                                                               \
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" reason "\"}],\"usage\":null}\n\n"
#define END         LAST("stop")
#define USED(usage) "data: {\"choices\":[],\"usage\":{" usage "}}\n\n"
#define USAGE       USED("\"prompt_tokens\":11,\"completion_tokens\":3,\"total_tokens\":14")
#define DONE        "data: [DONE]\n\n"
#define WHOLE(more) "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"hi\"}" more "}]}"
#define NOTHING     NULL, NULL, 0, 0

static const struct answer_row answers[] = {
    {"stream", CHUNK("he") CHUNK("llo") END USAGE DONE, "hello", "stop", 11, 3, FAULT_NONE},
    {"no usage", CHUNK("a") END DONE, "a", "stop", -1, -1, FAULT_NONE},
    {"no [DONE]", CHUNK("a") END, "a", "stop", -1, -1, FAULT_NONE},
    {"no finish reason", CHUNK("a") DONE, "a", "stop", -1, -1, FAULT_NONE},
    {"cut off by the limit", CHUNK("a") LAST("length") DONE, "a", "length", -1, -1, FAULT_NONE},
    {"nothing but the limit", LAST("length") DONE, "", "length", -1, -1, FAULT_NONE},
    {"another reason", CHUNK("a") LAST("eos") DONE, "a", "eos", -1, -1, FAULT_NONE},
    {"pings", ": ping\n\n" CHUNK("a") ": ping\n\n" END DONE, "a", "stop", -1, -1, FAULT_NONE},
    {"several data lines", "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\n" END,
     "a", "stop", -1, -1, FAULT_NONE},
    {"ids and events", "id: 1\nevent: chunk\nretry: 5\n" CHUNK("a") END DONE, "a", "stop", -1, -1,
     FAULT_NONE},
    {"negative usage", CHUNK("a") END USED("\"prompt_tokens\":-4,\"completion_tokens\":3"), "a",
     "stop", -1, 3, FAULT_NONE},
    {"usage beyond numbers",
     CHUNK("a") END USED("\"prompt_tokens\":1e999,\"completion_tokens\":NaN,"
                         "\"x\":99999999999999999999,\"y\":-Infinity") DONE,
     "a", "stop", -1, -1, FAULT_NONE},
    {"usage in words", CHUNK("a") END USED("\"prompt_tokens\":\"many\",\"completion_tokens\":1.5"),
     "a", "stop", -1, -1, FAULT_NONE},
    {"reasoning inside",
     CHUNK("a") END USED("\"prompt_tokens\":10,\"completion_tokens\":30,"
                         "\"total_tokens\":40,\"completion_tokens_details\":{"
                         "\"reasoning_tokens\":25}"),
     "a", "stop", 10, 30, FAULT_NONE},
    {"reasoning beside, in the total",
     CHUNK("a") END USED("\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":40"), "a",
     "stop", 10, 30, FAULT_NONE},
    {"reasoning beside, in the details",
     CHUNK("a") END USED("\"prompt_tokens\":10,\"completion_tokens\":5,"
                         "\"completion_tokens_details\":{\"reasoning_tokens\":25}"),
     "a", "stop", 10, 30, FAULT_NONE},
    {"a total that cannot be",
     CHUNK("a") END USED("\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":-7"), "a",
     "stop", 10, 5, FAULT_NONE},
    {"null content", "data: {\"choices\":[{\"delta\":{\"content\":null}}]}\n\n" CHUNK("a") END, "a",
     "stop", -1, -1, FAULT_NONE},
    {"reasoning is no text",
     "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n" CHUNK("a") END, "a",
     "stop", -1, -1, FAULT_NONE},
    {"content in parts",
     "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"text\":\"no\"},"
     "{\"type\":\"text\",\"text\":\"a\"}]}}]}\n\n" END,
     "a", "stop", -1, -1, FAULT_NONE},
    {"after the end", CHUNK("a") END DONE CHUNK("b"), "a", "stop", -1, -1, FAULT_NONE},
    {"whole", WHOLE(",\"finish_reason\":\"stop\""), "hi", "stop", -1, -1, FAULT_NONE},
    {"whole, blanks before", "\n\n " WHOLE(""), "hi", "stop", -1, -1, FAULT_NONE},
    {"bad utf-8", CHUNK("a\xFF") END, "a" BAD, "stop", -1, -1, FAULT_NONE},
    {"a surrogate's bytes", CHUNK("\xED\xA0\x80") END, BAD BAD BAD, "stop", -1, -1, FAULT_NONE},
    {"lone surrogate", CHUNK("a\\ud800") END, "a" BAD, "stop", -1, -1, FAULT_NONE},
    {"NUL", CHUNK("a\\u0000b") END, "a" BAD "b", "stop", -1, -1, FAULT_NONE},
    {"a pair", CHUNK("\\ud83d\\ude00") END, "\xF0\x9F\x98\x80", "stop", -1, -1, FAULT_NONE},
    {"ended early", CHUNK("a"), NOTHING, FAULT_RETRY},
    {"nothing at all", "", NOTHING, FAULT_RETRY},
    {"pings alone", ": ping\n\n: ping\n\n", NOTHING, FAULT_RETRY},
    {"truncated whole", "{\"choices\":[{\"mess", NOTHING, FAULT_RETRY},
    {"truncated chunk", "data: {\"choices\":[{\"de\n\n" DONE, NOTHING, FAULT_RETRY},
    {"no object", "data: 7\n\n" DONE, NOTHING, FAULT_RETRY},
    {"empty choices", "{\"choices\":[]}", NOTHING, FAULT_EMPTY},
    {"null content alone", "{\"choices\":[{\"message\":{\"content\":null}}]}", NOTHING,
     FAULT_EMPTY},
    {"empty stream", END DONE, NOTHING, FAULT_EMPTY},
    {"no choices", "{}", NOTHING, FAULT_EMPTY},
    {"refusal", "data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"}}]}\n\n" END, NOTHING,
     FAULT_REFUSED},
    {"filter", CHUNK("a") LAST("content_filter"), NOTHING, FAULT_REFUSED},
    {"error event",
     CHUNK("a") "data: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded\"}}\n\n", NOTHING,
     FAULT_RETRY},
    {"error event, then more", "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n" END DONE,
     NOTHING, FAULT_LIMITED},
    {"quota event", "data: {\"error\":{\"type\":\"insufficient_quota\"}}\n\n", NOTHING,
     FAULT_QUOTA},
    {"error with a number", "data: {\"error\":{\"code\":402}}\n\n", NOTHING, FAULT_QUOTA},
    {"no error", "data: {\"error\":null}\n\ndata: {\"error\":\"\"}\n\n" CHUNK("a") END, "a", "stop",
     -1, -1, FAULT_NONE},
    {"error in words", "data: {\"error\":\"oops\"}\n\n", NOTHING, FAULT_RETRY},
    {"error of a choice", "data: {\"choices\":[{\"error\":{\"code\":502},\"delta\":{}}]}\n\n" DONE,
     NOTHING, FAULT_RETRY},
    {"whole error", "{\"error\":{\"code\":\"context_length_exceeded\"}}", NOTHING, FAULT_TOO_LONG},
    {"html", "<!doctype html>", NOTHING, FAULT_FATAL},
    {"html, blanks before", "\n <html>", NOTHING, FAULT_FATAL},
};

static void test_answers(void **state)
{
    (void)state;
    check_answers(&codec_openai, answers, COUNT(answers));
    check_heard(&codec_openai, ": ping\n\n", CHUNK("a"));
}

static void test_cuts(void **state)
{
    (void)state;
    static const char head[] =
        "data: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\","
        "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
        "\"finish_reason\":null}]}\n\n" CHUNK("```c\\n") ": keep-alive\n\n" CHUNK("\xC3\xA9\\n```");
    char stream[2000];
    snprintf(stream, sizeof stream, "%s%s", head, END USAGE DONE);
    check_cuts(&codec_openai, stream, "\"finish_reason\":\"stop\"", "```c\n\xC3\xA9\n```");
    snprintf(stream, sizeof stream, "%s%s", head, USAGE DONE);
    check_cuts(&codec_openai, stream, "[DONE]", "```c\n\xC3\xA9\n```");
    check_cuts(&codec_openai, WHOLE(""), "hi", "hi");
}

static const struct error_row errors[] = {
    {400, "{\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\"}}", FAULT_FATAL,
     "bad"},
    {400, "{\"error\":{\"code\":\"context_length_exceeded\"}}", FAULT_TOO_LONG, NULL},
    {400,
     "{\"object\":\"error\",\"message\":\"This model's maximum context length is 8192 tokens.\","
     "\"type\":\"BadRequestError\",\"code\":400}",
     FAULT_TOO_LONG, "8192"}, /* vLLM */
    {400, "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\"}}", FAULT_TOO_LONG,
     NULL},
    {400, "{\"error\":{\"message\":\"x/y is not a valid model ID\",\"code\":400}}", FAULT_MODEL,
     "x/y"},
    {400, "{\"error\":{\"code\":\"content_policy_violation\"}}", FAULT_REFUSED, NULL},
    {401, "{\"error\":{\"message\":\"wrong key sk-secret\"}}", FAULT_KEY, NULL},
    {404, "{\"error\":{\"code\":\"model_not_found\",\"message\":\"no m\"}}", FAULT_MODEL, "no m"},
    {429, "{\"error\":{\"code\":\"rate_limit_exceeded\"}}", FAULT_LIMITED, NULL},
    {429, "{\"error\":{\"type\":\"insufficient_quota\",\"code\":null}}", FAULT_QUOTA, NULL},
    {429, "{\"error\":{\"code\":\"billing_hard_limit_reached\"}}", FAULT_QUOTA, NULL},
    {429,
     "{\"error\":{\"message\":\"the project's spend limit is reached\",\"type\":\"rate_limit"
     "\"}}",
     FAULT_QUOTA, "spend limit"},
    {429,
     "{\"error\":{\"message\":\"Request too large for m on tokens per min: Limit 30000, Requested "
     "45000.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
     FAULT_TOO_LONG, NULL}, /* no wait can help */
    {500, "{\"error\":\"plain words\"}", FAULT_RETRY, "plain words"},
    {500, "{\"error\":{\"code\":\"insufficient_quota\"}}", FAULT_RETRY, NULL},
    {400, "{\"detail\":\"two\\nlines\"}", FAULT_FATAL, "two lines"},
};

static void test_errors(void **state)
{
    (void)state;
    check_statuses(&codec_openai);
    check_errors(&codec_openai, errors, COUNT(errors));
    /* A text is cut at a character's edge, and what is cut is still UTF-8. */
    char body[2000] = "{\"error\":{\"message\":\"";
    for (int i = 0; i < 300; i++)
        strcat(body, "\xC3\xA9");
    strcat(body, "x\"}}");
    struct buf reason;
    buf_init(&reason, 479);
    assert_int_equal(fault_classify(400, body, strlen(body), &reason), FAULT_FATAL);
    assert_int_equal(reason.length, strlen("HTTP 400: ") + 300);
    buf_free(&reason);
}

static const char schema[] = "{\"type\":\"object\"}";

static void test_encode(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct completion_request request = {.model = "m",
                                         .system = "be \"brief\"",
                                         .prompt = "hi\n",
                                         .temperature = 0.5,
                                         .max_tokens = 100,
                                         .json = true,
                                         .schema = schema};
    struct sent sent = sent_by(arena, &codec_openai, &request, "http://h:1/v1///");
    assert_string_equal(sent.url, "http://h:1/v1/chat/completions");
    assert_true(has_header(&sent, "authorization: Bearer sk-secret"));
    assert_true(has_header(&sent, "content-type: application/json"));
    assert_string_equal(value_text(sent.root, "model", ""), "m");
    assert_true(value_bool(sent.root, "stream", false));
    assert_true(value_bool(value_at(sent.root, "stream_options"), "include_usage", false));
    assert_int_equal(value_int(sent.root, "max_tokens", 0), 100);
    const struct value *format = value_get(sent.root, "response_format");
    assert_string_equal(value_text(format, "type", ""), "json_object"); /* it may know no schema */
    const struct value *messages = value_get(sent.root, "messages");
    assert_int_equal(messages->count, 2);
    assert_string_equal(value_text(messages->items[0], "content", ""), "be \"brief\"");
    assert_string_equal(value_text(messages->items[1], "role", ""), "user");

    request = (struct completion_request){.model = "m", .prompt = "hi", .temperature = -1};
    sent = sent_by(arena, &codec_openai, &request, "https://api.openai.com/v1");
    assert_null(value_get(sent.root, "temperature"));
    assert_null(value_get(sent.root, "max_completion_tokens"));
    assert_null(value_get(sent.root, "response_format"));
    assert_int_equal(value_get(sent.root, "messages")->count, 1);
    request.max_tokens = 5;
    request.schema = schema;
    sent = sent_by(arena, &codec_openai, &request, "https://api.openai.com/v1");
    assert_int_equal(value_int(sent.root, "max_completion_tokens", 0), 5);
    assert_null(value_get(sent.root, "max_tokens"));
    format = value_get(sent.root, "response_format");
    assert_string_equal(value_text(format, "type", ""), "json_schema");
    assert_true(value_bool(value_get(format, "json_schema"), "strict", false));
    assert_string_equal(
        value_text(value_at(sent.root, "response_format.json_schema.schema"), "type", ""),
        "object");
    static const struct {
        const char *url;
        bool openai;
    } addresses[] = {{"https://eu.api.openai.com/v1", true},
                     {"https://API.openai.com:443", true},
                     {"https://mine.openai.azure.com/openai/v1", true},
                     {"https://api.openai.com.example.net/v1", false},
                     {"https://notapi.openai.com/v1", false},
                     {"https://example.net/api.openai.com", false}};
    for (size_t i = 0; i < COUNT(addresses); i++) {
        sent = sent_by(arena, &codec_openai, &request, addresses[i].url);
        assert_int_equal(value_get(sent.root, "max_tokens") == NULL, addresses[i].openai);
    }
    arena_free(arena);
}

static void test_describe(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct sent sent =
        described_by(arena, &codec_openai, "meta-llama/Llama 3?", "http://h/v1/", "sk-secret");
    assert_string_equal(sent.url, "http://h/v1/models/meta-llama/Llama%203%3F");
    assert_true(has_header(&sent, "authorization: Bearer sk-secret"));
    sent = described_by(arena, &codec_openai, "m", "http://h/v1", NULL);
    assert_false(has_header(&sent, "authorization: Bearer "));
    arena_free(arena);
}

static const struct error_row described[] = {
    {200, "{\"id\":\"m-1\"}", FAULT_NONE, NULL},
    {401, "{\"error\":{\"message\":\"sk-secret\"}}", FAULT_KEY, NULL},
    {404, "{\"error\":{\"message\":\"The model 'm-1' does not exist\"}}", FAULT_MODEL, NULL},
    {404, "{\"error\":{\"code\":\"model_not_found\"}}", FAULT_MODEL, NULL},
    {404, "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\"}}", FAULT_MODEL, NULL},
    {404, "{\"error\":{\"code\":404,\"status\":\"NOT_FOUND\"}}", FAULT_MODEL, NULL},
    {404, "{\"detail\":\"Not Found\"}", FAULT_NONE, NULL}, /* no such route */
    {404, "404 page not found", FAULT_NONE, NULL},
    {405, "", FAULT_NONE, NULL},
    {501, "", FAULT_NONE, NULL},
    {500, "", FAULT_RETRY, NULL},
};

static void test_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(described); i++) {
        struct buf reason;
        buf_init(&reason, 479);
        enum fault fault = fault_described("m-1", described[i].status, described[i].body,
                                           strlen(described[i].body), &reason);
        if (fault != described[i].fault)
            fail_msg("row %zu: fault %d", i, (int)fault);
        assert_null(strstr(buf_text(&reason), "sk-secret"));
        buf_free(&reason);
    }
}

/* In dollars, as a gateway says it: a number, a sum, beside what a key of one's own paid. */
static void test_bills(void **state)
{
    (void)state;
    static const struct {
        const char *stream;
        int64_t micro;
    } rows[] = {
        {CHUNK("a") END USED("\"cost\":0.0123401") DONE, 12341},
        {CHUNK("a") END USED("\"cost\":0.001,\"is_byok\":true,\"cost_details\":{"
                             "\"upstream_inference_cost\":0.02}") DONE,
         21000},
        {CHUNK("a") END USED("\"cost\":{\"total_cost\":0.5}") DONE, 500000},
        {CHUNK("a") END USED("\"cost\":-3") DONE, 0},
        {CHUNK("a") END USED("\"cost\":1e300") DONE, 0},
        {CHUNK("a") END USED("\"cost\":\"much\"") DONE, 0},
        {CHUNK("a") END DONE, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena *arena = arena_new();
        struct outcome outcome =
            outcome_of(arena, &codec_openai, rows[i].stream, strlen(rows[i].stream), 7);
        if (outcome.completion.billed_micro != rows[i].micro)
            fail_msg("row %zu: %lld", i, (long long)outcome.completion.billed_micro);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bills),    cmocka_unit_test(test_answers),
        cmocka_unit_test(test_cuts),     cmocka_unit_test(test_errors),
        cmocka_unit_test(test_encode),   cmocka_unit_test(test_describe),
        cmocka_unit_test(test_described)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
