/* OpenAI's chat completions as a codec: requests, streams, whole answers, and every class of fault.
 */
#include "check.h"

#include "agents/providers/codec.h"
#include "base/value.h"

#define CHUNK(content) "data: {\"choices\":[{\"delta\":{\"content\":\"" content "\"}}]}\n\n"
#define END            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define CUT            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\n"
#define USAGE          "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":3}}\n\n"
#define DONE           "data: [DONE]\n\n"
#define WHOLE(more)    "{\"model\":\"m-1\",\"choices\":[{\"message\":{\"content\":\"hi\"}" more "}]}"

static const struct {
    const char *what, *stream, *text, *finish;
    int64_t prompt, completion;
    enum fault fault;
} answers[] = {
    {"stream", CHUNK("he") CHUNK("llo") END USAGE DONE, "hello", "stop", 11, 3, FAULT_NONE},
    {"no usage", CHUNK("a") END DONE, "a", "stop", -1, -1, FAULT_NONE},
    {"no [DONE]", CHUNK("a") END, "a", "stop", -1, -1, FAULT_NONE},
    {"no finish reason", CHUNK("a") DONE, "a", "stop", -1, -1, FAULT_NONE},
    {"cut off by the limit", CHUNK("a") CUT DONE, "a", "length", -1, -1, FAULT_NONE},
    {"nothing but the limit", CUT DONE, "", "length", -1, -1, FAULT_NONE},
    {"pings", ": ping\n\n" CHUNK("a") ": ping\n\n" END DONE, "a", "stop", -1, -1, FAULT_NONE},
    {"negative usage", CHUNK("a") END "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":-4}}\n\n",
     "a", "stop", -1, -1, FAULT_NONE},
    {"null content", "data: {\"choices\":[{\"delta\":{\"content\":null}}]}\n\n" CHUNK("a") END, "a",
     "stop", -1, -1, FAULT_NONE},
    {"after the end", CHUNK("a") END DONE CHUNK("b"), "a", "stop", -1, -1, FAULT_NONE},
    {"whole", WHOLE(",\"finish_reason\":\"stop\""), "hi", "stop", -1, -1, FAULT_NONE},
    {"whole, blanks before", "\r\n " WHOLE(""), "hi", "stop", -1, -1, FAULT_NONE},
    {"bad utf-8", CHUNK("a\xFF") END, "a\xEF\xBF\xBD", "stop", -1, -1, FAULT_NONE},
    {"lone surrogate", CHUNK("a\\ud800") END, "a\xEF\xBF\xBD", "stop", -1, -1, FAULT_NONE},
    {"ended early", CHUNK("a"), NULL, NULL, 0, 0, FAULT_RETRY},
    {"nothing at all", "", NULL, NULL, 0, 0, FAULT_RETRY},
    {"truncated whole", "{\"choices\":[{\"mess", NULL, NULL, 0, 0, FAULT_RETRY},
    {"truncated chunk", "data: {\"choices\":[{\"de\n\n" DONE, NULL, NULL, 0, 0, FAULT_RETRY},
    {"empty choices", "{\"choices\":[]}", NULL, NULL, 0, 0, FAULT_EMPTY},
    {"empty stream", END DONE, NULL, NULL, 0, 0, FAULT_EMPTY},
    {"refusal", "data: {\"choices\":[{\"delta\":{\"refusal\":\"no\"}}]}\n\n" END, NULL, NULL, 0, 0,
     FAULT_REFUSED},
    {"filter",
     CHUNK("a") "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"content_filter\"}]}"
                "\n\n",
     NULL, NULL, 0, 0, FAULT_REFUSED},
    {"error event",
     CHUNK("a") "data: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded\"}}\n\n", NULL, NULL,
     0, 0, FAULT_RETRY},
    {"rate limit event", "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n", NULL, NULL, 0,
     0, FAULT_LIMITED},
    {"error with a number", "data: {\"error\":{\"code\":402}}\n\n", NULL, NULL, 0, 0, FAULT_QUOTA},
    {"html", "<!doctype html>", NULL, NULL, 0, 0, FAULT_FATAL},
};

static void check_answer(size_t row, size_t piece)
{
    struct arena *arena = arena_new();
    struct codec_state *state = codec_openai.begin(arena);
    struct completion completion;
    struct err err = {0}, ended = {0};
    enum fault fault = FAULT_NONE;
    size_t length = strlen(answers[row].stream);
    int status = 0;
    for (size_t at = 0; at < length && status == 0; at += piece) {
        size_t size = length - at < piece ? length - at : piece;
        status = codec_openai.feed(state, answers[row].stream + at, size, &err);
    }
    int finished = codec_openai.finish(state, &completion, &fault, &ended);
    if (status != 0 && fault == FAULT_NONE)
        fault = FAULT_RETRY;
    if (fault != answers[row].fault)
        fail_msg("%s in pieces of %zu: fault %d (%s)", answers[row].what, piece, (int)fault,
                 err.message);
    assert_int_equal(fault == FAULT_NONE, finished == 0);
    if (answers[row].text != NULL) {
        assert_string_equal(completion.text, answers[row].text);
        assert_string_equal(completion.finish, answers[row].finish);
        assert_int_equal(completion.prompt_tokens, answers[row].prompt);
        assert_int_equal(completion.completion_tokens, answers[row].completion);
    }
    arena_free(arena);
}

static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        check_answer(i, 1);
        check_answer(i, 7);
        check_answer(i, 1 << 20);
    }
}

static const struct {
    int status;
    const char *body;
    enum fault fault;
    const char *word; /* must stand in the reason, or NULL */
} faults[] = {
    {400, "{\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\"}}", FAULT_FATAL,
     "bad"},
    {400, "{\"error\":{\"code\":\"context_length_exceeded\"}}", FAULT_TOO_LONG, NULL},
    {401, "{\"error\":{\"message\":\"wrong key sk-secret\"}}", FAULT_KEY, NULL},
    {402, "", FAULT_QUOTA, "402"},
    {403, "{}", FAULT_KEY, NULL},
    {404, "{\"error\":{\"code\":\"model_not_found\",\"message\":\"no m\"}}", FAULT_MODEL, "no m"},
    {408, "", FAULT_RETRY, NULL},
    {409, "", FAULT_RETRY, NULL},
    {413, "", FAULT_TOO_LONG, NULL},
    {429, "{\"error\":{\"code\":\"rate_limit_exceeded\"}}", FAULT_LIMITED, NULL},
    {429, "{\"error\":{\"type\":\"insufficient_quota\"}}", FAULT_QUOTA, NULL},
    {429, "not json", FAULT_LIMITED, "429"},
    {500, "{\"error\":\"plain words\"}", FAULT_RETRY, "plain words"},
    {502, "<html>", FAULT_RETRY, NULL},
    {503, "", FAULT_RETRY, NULL},
    {504, "", FAULT_RETRY, NULL},
    {529, "", FAULT_RETRY, NULL},
    {302, "", FAULT_FATAL, "302"},
    {418, "[1]", FAULT_FATAL, NULL},
};

static void test_classes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(faults); i++) {
        struct buf reason;
        buf_init(&reason, 400);
        enum fault fault = codec_openai.classify(faults[i].status, faults[i].body,
                                                 strlen(faults[i].body), &reason);
        if (fault != faults[i].fault)
            fail_msg("row %zu, status %d: fault %d", i, faults[i].status, (int)fault);
        if (faults[i].word != NULL)
            assert_non_null(strstr(buf_text(&reason), faults[i].word));
        assert_null(strstr(buf_text(&reason), "sk-secret"));
        buf_free(&reason);
    }
}

static const struct value *encoded(struct arena *arena, const struct completion_request *request,
                                   const char *base, const char **url, const char *const **headers)
{
    struct buf body;
    struct value *root;
    struct err err;
    buf_init(&body, 10000);
    codec_openai.encode(arena, request, base, "sk-secret", url, headers, &body);
    assert_int_equal(value_parse_json(arena, "body", buf_text(&body), body.length, &root, &err), 0);
    assert_null(strstr(buf_text(&body), "sk-secret"));
    buf_free(&body);
    return root;
}

static void test_encode(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct completion_request request = {.model = "m",
                                         .system = "be \"brief\"",
                                         .prompt = "hi\n",
                                         .temperature = 0.5,
                                         .max_tokens = 100,
                                         .json = true};
    const char *url;
    const char *const *headers;
    const struct value *root = encoded(arena, &request, "http://h:1/v1///", &url, &headers);
    assert_string_equal(url, "http://h:1/v1/chat/completions");
    bool bearer = false;
    for (; *headers != NULL; headers++)
        bearer |= strcmp(*headers, "authorization: Bearer sk-secret") == 0;
    assert_true(bearer);
    assert_string_equal(value_text(root, "model", ""), "m");
    assert_true(value_bool(root, "stream", false));
    assert_true(value_bool(value_at(root, "stream_options"), "include_usage", false));
    assert_int_equal(value_int(root, "max_tokens", 0), 100);
    assert_string_equal(value_text(value_get(root, "response_format"), "type", ""), "json_object");
    const struct value *messages = value_get(root, "messages");
    assert_int_equal(messages->count, 2);
    assert_string_equal(value_text(messages->items[0], "content", ""), "be \"brief\"");
    assert_string_equal(value_text(messages->items[1], "role", ""), "user");

    request = (struct completion_request){.model = "m", .prompt = "hi", .temperature = -1};
    root = encoded(arena, &request, "https://api.openai.com/v1", &url, &headers);
    assert_null(value_get(root, "temperature"));
    assert_null(value_get(root, "max_completion_tokens"));
    assert_null(value_get(root, "response_format"));
    assert_int_equal(value_get(root, "messages")->count, 1);
    request.max_tokens = 5;
    root = encoded(arena, &request, "https://api.openai.com/v1", &url, &headers);
    assert_int_equal(value_int(root, "max_completion_tokens", 0), 5);
    assert_null(value_get(root, "max_tokens"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_encode)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
