/* OpenAI's Responses API as a codec: requests, streams, whole answers, and what ends them. */
#include "agents/llm/providers/request.h"
#include "codec_check.h"

#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define BEGIN             EVENT("response.created", ",\"response\":{\"status\":\"in_progress\",\"output\":[]}")
#define TEXT(words)       EVENT("response.output_text.delta", ",\"delta\":\"" words "\"")
#define USAGE                                                                                      \
    ",\"usage\":{\"input_tokens\":11,\"input_tokens_details\":{\"cached_tokens\":4},"              \
    "\"output_tokens\":30,\"output_tokens_details\":{\"reasoning_tokens\":25},"                    \
    "\"total_tokens\":41}"
#define MESSAGE(part) "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[" part "]}"
#define SAID(words)   "{\"type\":\"output_text\",\"text\":\"" words "\"}"
#define THOUGHT                                                                                    \
    "{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"no\"}]},"
#define RESPONSE(status, output, more)                                                             \
    "{\"object\":\"response\",\"model\":\"m-1\",\"status\":\"" status "\",\"error\":null,"         \
    "\"output\":[" output "]" more "}"
#define LAST(type, response) EVENT(type, ",\"response\":" response)
#define DONE                                                                                       \
    LAST("response.completed", RESPONSE("completed", THOUGHT MESSAGE(SAID("hello")), USAGE))
#define CUT(why)                                                                                   \
    LAST("response.incomplete",                                                                    \
         RESPONSE("incomplete", "", ",\"incomplete_details\":{\"reason\":\"" why "\"}"))
#define FAILED(code)                                                                               \
    LAST("response.failed", "{\"status\":\"failed\",\"error\":{\"code\":\"" code                   \
                            "\",\"message\":\"no\"},\"output\":[]}")
#define NOTHING NULL, NULL, 0, 0

static const struct answer_row answers[] = {
    {"stream", BEGIN TEXT("he") TEXT("llo") DONE, "hello", "stop", 11, 30, FAULT_NONE},
    {"no deltas", BEGIN DONE, "hello", "stop", 11, 30, FAULT_NONE},
    {"other events",
     BEGIN EVENT("response.reasoning_summary_text.delta", ",\"delta\":\"hm\"")
         EVENT("response.output_text.done", ",\"text\":\"a\"") TEXT("a") DONE,
     "a", "stop", 11, 30, FAULT_NONE},
    {"cut off by the limit", TEXT("a") CUT("max_output_tokens"), "a", "length", -1, -1, FAULT_NONE},
    {"nothing but the limit", CUT("max_output_tokens"), "", "length", -1, -1, FAULT_NONE},
    {"cut off otherwise", TEXT("a") CUT("max_tool_calls"), "a", "max_tool_calls", -1, -1,
     FAULT_NONE},
    {"after the end", TEXT("a") DONE TEXT("b"), "a", "stop", 11, 30, FAULT_NONE},
    {"whole", RESPONSE("completed", THOUGHT MESSAGE(SAID("h") "," SAID("i")), USAGE), "hi", "stop",
     11, 30, FAULT_NONE},
    {"output that is none",
     RESPONSE("completed", "7,null,{\"type\":\"message\",\"content\":3}", ""), NOTHING,
     FAULT_EMPTY},
    {"bad usage",
     TEXT("a") LAST("response.completed", RESPONSE("completed", "",
                                                   ",\"usage\":{\"input_tokens\":-4,"
                                                   "\"output_tokens\":\"some\"}")),
     "a", "stop", -1, -1, FAULT_NONE},
    {"ended early", BEGIN TEXT("a"), NOTHING, FAULT_RETRY},
    {"an end without a response", TEXT("a") EVENT("response.completed", ""), "a", "stop", -1, -1,
     FAULT_NONE},
    {"empty", BEGIN LAST("response.completed", RESPONSE("completed", "", "")), NOTHING,
     FAULT_EMPTY},
    {"refusal", BEGIN EVENT("response.refusal.delta", ",\"delta\":\"no\"") DONE, NOTHING,
     FAULT_REFUSED},
    {"refusal, whole",
     RESPONSE("completed", MESSAGE("{\"type\":\"refusal\",\"refusal\":\"no\"}"), ""), NOTHING,
     FAULT_REFUSED},
    {"filter", TEXT("a") CUT("content_filter"), NOTHING, FAULT_REFUSED},
    {"failed", BEGIN FAILED("server_error"), NOTHING, FAULT_RETRY},
    {"failed for the rate", BEGIN FAILED("rate_limit_exceeded"), NOTHING, FAULT_LIMITED},
    {"error event", TEXT("a") EVENT("error", ",\"code\":\"insufficient_quota\",\"message\":\"x\""),
     NOTHING, FAULT_QUOTA},
    {"an error that is ours", EVENT("error", ",\"code\":\"invalid_prompt\",\"message\":\"x\""),
     NOTHING, FAULT_FATAL},
    {"html", "<!doctype html>", NOTHING, FAULT_FATAL},
};

static void test_answers(void **state)
{
    (void)state;
    check_answers(&codec_responses, answers, COUNT(answers));
    check_heard(&codec_responses, ": ping\n\n", TEXT("a"));
    check_statuses(&codec_responses);
    check_cuts(&codec_responses, BEGIN TEXT("\xC3\xA9") DONE, "\"status\":\"completed\"",
               "\xC3\xA9");
    struct arena *arena = arena_new();
    static const char stream[] = BEGIN TEXT("a") DONE;
    struct outcome outcome = outcome_of(arena, &codec_responses, stream, sizeof stream - 1, 9);
    assert_int_equal(outcome.completion.cached_tokens, 4);
    assert_string_equal(outcome.completion.model, "m-1");
    arena_free(arena);
}

static void test_encode(void **state)
{
    (void)state;
    static const char more[] = "{\"reasoning\":{\"effort\":\"high\"},\"service_tier\":\"flex\"}";
    struct arena *arena = arena_new();
    struct value *body;
    struct err err;
    assert_int_equal(value_parse_json(arena, "body", more, sizeof more - 1, &body, &err), 0);
    struct completion_request request = {.model = "m",
                                         .system = "be brief",
                                         .prompt = "format and problem, then this",
                                         .shared = 18,
                                         .temperature = 0.5,
                                         .max_tokens = 100,
                                         .schema = "{\"type\":\"object\"}",
                                         .body = body};
    struct sent sent = sent_by(arena, &codec_responses, &request, "https://api.openai.com/v1/");
    assert_string_equal(sent.url, "https://api.openai.com/v1/responses");
    assert_true(has_header(&sent, "authorization: Bearer sk-secret"));
    assert_string_equal(value_text(sent.root, "instructions", ""), "be brief");
    assert_string_equal(value_text(sent.root, "input", ""), "format and problem, then this");
    assert_int_equal(value_int(sent.root, "max_output_tokens", 0), 100);
    assert_string_equal(value_text(value_at(sent.root, "reasoning"), "effort", ""), "high");
    assert_string_equal(value_text(sent.root, "service_tier", ""), "flex");
    assert_true(value_bool(sent.root, "stream", false));
    assert_false(value_bool(sent.root, "store", true));
    const struct value *format = value_at(sent.root, "text.format");
    assert_string_equal(value_text(format, "type", ""), "json_schema");
    assert_true(value_bool(format, "strict", false));
    assert_non_null(value_get(value_get(format, "schema"), "type"));
    char *key = arena_strdup(arena, value_text(sent.root, "prompt_cache_key", ""));
    assert_int_equal(strlen(key), 32);

    request = (struct completion_request){
        .model = "m", .prompt = "format and problem, and that", .shared = 18, .temperature = -1};
    sent = sent_by(arena, &codec_responses, &request, "https://api.openai.com/v1");
    assert_string_equal(value_text(sent.root, "prompt_cache_key", ""), key);
    request.shared = 0;
    sent = sent_by(arena, &codec_responses, &request, "https://api.openai.com/v1");
    static const char *const absent[] = {"prompt_cache_key", "text", "temperature",
                                         "max_output_tokens", "instructions"};
    for (size_t i = 0; i < COUNT(absent); i++)
        assert_null(value_get(sent.root, absent[i]));
    sent = described_by(arena, &codec_responses, "m", "http://h/v1", "sk-secret");
    assert_string_equal(sent.url, "http://h/v1/models/m");
    arena_free(arena);
}

/* Thoughts that the provider alone can read go back to it with the turn that they belong to. */
static void test_turns(void **state)
{
    (void)state;
    static const char stream[] = BEGIN TEXT("one") LAST(
        "response.completed",
        RESPONSE("completed",
                 "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],"
                 "\"encrypted_content\":\"gAAA\"}," MESSAGE(SAID("one")) ",{\"type\":\"other\"}",
                 ""));
    static const char plain[] = BEGIN TEXT("one") DONE;
    struct arena *arena = arena_new();
    struct outcome outcome = outcome_of(arena, &codec_responses, plain, sizeof plain - 1, 11);
    assert_null(outcome.completion.turn);
    assert_null(request_turns(arena, NULL, "q", outcome.completion.turn));
    outcome = outcome_of(arena, &codec_responses, stream, sizeof stream - 1, 11);
    const char *turns = request_turns(arena, NULL, "first \"q\"", outcome.completion.turn);
    turns = request_turns(arena, turns, "second", outcome.completion.turn);
    struct completion_request request = {
        .model = "m", .prompt = "third", .temperature = -1, .earlier = turns};
    struct sent sent = sent_by(arena, &codec_responses, &request, "http://h/v1");
    const struct value *input = value_get(sent.root, "input");
    assert_int_equal(input->count, 7);
    assert_string_equal(value_text(input->items[0], "content", ""), "first \"q\"");
    assert_string_equal(value_text(input->items[1], "encrypted_content", ""), "gAAA");
    assert_string_equal(value_text(input->items[2], "type", ""), "message");
    assert_string_equal(value_text(input->items[3], "content", ""), "second");
    assert_string_equal(value_text(input->items[6], "content", ""), "third");
    assert_string_equal(value_text(input->items[6], "role", ""), "user");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_encode), cmocka_unit_test(test_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
