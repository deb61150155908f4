/* Anthropic's messages as a codec: requests, streams, whole answers, and every class of fault. */
#include "codec_check.h"

#define EVENT(name, members) "event: " name "\ndata: {\"type\":\"" name "\"" members "}\n\n"
#define STARTED(usage)                                                                             \
    EVENT("message_start", ",\"message\":{\"model\":\"claude-x\",\"content\":[],"                  \
                           "\"stop_reason\":null,\"usage\":{" usage "}}")
#define START STARTED("\"input_tokens\":11,\"output_tokens\":1")
#define OPEN                                                                                       \
    EVENT("content_block_start", ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":"     \
                                 "\"\"}")
#define TEXT(text)                                                                                 \
    EVENT("content_block_delta",                                                                   \
          ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define JSON(text)                                                                                 \
    EVENT("content_block_delta",                                                                   \
          ",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"" text "\"}")
#define CLOSE EVENT("content_block_stop", ",\"index\":0")
#define ENDED(reason, usage)                                                                       \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\"},\"usage\":{" usage "}")
#define END         ENDED("end_turn", "\"output_tokens\":3")
#define STOP        EVENT("message_stop", "")
#define PING        EVENT("ping", "")
#define ERROR(type) EVENT("error", ",\"error\":{\"type\":\"" type "\",\"message\":\"it is so\"}")
#define NOTHING     NULL, NULL, 0, 0

static const struct answer_row answers[] = {
    {"stream", START OPEN PING TEXT("he") TEXT("llo") CLOSE END STOP, "hello", "stop", 11, 3,
     FAULT_NONE},
    {"two blocks", START OPEN TEXT("a") CLOSE OPEN TEXT("b") CLOSE END STOP, "ab", "stop", 11, 3,
     FAULT_NONE},
    {"no message_stop", START OPEN TEXT("a") CLOSE END, "a", "stop", 11, 3, FAULT_NONE},
    {"no message_delta", START OPEN TEXT("a") CLOSE STOP, "a", "stop", 11, -1, FAULT_NONE},
    {"no data: prefix blanks, comments", ":\n\n" START ": x\n\n" OPEN TEXT("a") END STOP, "a",
     "stop", 11, 3, FAULT_NONE},
    {"names of events left out",
     "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":"
     "\"text_delta\",\"text\":\"a\"}}\n\n" END STOP,
     "a", "stop", -1, 3, FAULT_NONE},
    {"several data lines",
     START "event: content_block_delta\ndata: {\"type\":\n"
           "data: \"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
           "\ndata: \"text\":\"a\"}}\n\n" END STOP,
     "a", "stop", 11, 3, FAULT_NONE},
    {"stop sequence", START TEXT("a") ENDED("stop_sequence", "\"output_tokens\":3") STOP, "a",
     "stop", 11, 3, FAULT_NONE},
    {"max_tokens", START TEXT("a") ENDED("max_tokens", "\"output_tokens\":3") STOP, "a", "length",
     11, 3, FAULT_NONE},
    {"nothing but the limit", START ENDED("max_tokens", "\"output_tokens\":3") STOP, "", "length",
     11, 3, FAULT_NONE},
    {"the context is full",
     START TEXT("a") ENDED("model_context_window_exceeded", "\"output_tokens\":3") STOP, "a",
     "length", 11, 3, FAULT_NONE},
    {"another reason", START TEXT("a") ENDED("pause_turn", "\"output_tokens\":3") STOP, "a",
     "pause_turn", 11, 3, FAULT_NONE},
    {"a tool's input",
     START JSON("{\\\"a\\\":") JSON("1}") ENDED("tool_use", "\"output_tokens\":3") STOP,
     "{\"a\":1}", "stop", 11, 3, FAULT_NONE},
    {"a tool's input at once",
     START EVENT("content_block_start",
                 ",\"content_block\":{\"type\":\"tool_use\",\"input\":{\"a\":1}}")
         ENDED("tool_use", "\"output_tokens\":3") STOP,
     "{\"a\":1}", "stop", 11, 3, FAULT_NONE},
    {"thinking is no text",
     START EVENT("content_block_start",
                 ",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"hm\"}")
         EVENT("content_block_delta", ",\"delta\":{\"type\":\"thinking_delta\","
                                      "\"thinking\":\"hm\"}") TEXT("a") END STOP,
     "a", "stop", 11, 3, FAULT_NONE},
    {"cached prompt",
     STARTED("\"input_tokens\":1,\"cache_creation_input_tokens\":20,"
             "\"cache_read_input_tokens\":300") TEXT("a") END STOP,
     "a", "stop", 321, 3, FAULT_NONE},
    {"tries of several models", /* each is billed */
     START TEXT("a") ENDED("end_turn", "\"output_tokens\":3,\"iterations\":[{\"output_tokens\":5},"
                                       "{\"output_tokens\":3}]") STOP,
     "a", "stop", 11, 8, FAULT_NONE},
    {"a gateway that counts late",
     STARTED("\"input_tokens\":0") TEXT("a")
         ENDED("end_turn", "\"input_tokens\":9,\"output_tokens\":3") STOP,
     "a", "stop", 9, 3, FAULT_NONE},
    {"negative usage",
     STARTED("\"input_tokens\":-1") TEXT("a") ENDED("end_turn", "\"output_tokens\":-3") STOP, "a",
     "stop", -1, -1, FAULT_NONE},
    {"no usage", TEXT("a") ENDED("end_turn", "") STOP, "a", "stop", -1, -1, FAULT_NONE},
    {"bad utf-8, NUL, lone surrogate", START TEXT("\xFF\\u0000\\udc00") END STOP, BAD BAD BAD,
     "stop", 11, 3, FAULT_NONE},
    {"after the end", START TEXT("a") END STOP TEXT("b"), "a", "stop", 11, 3, FAULT_NONE},
    {"an event from the future", START EVENT("content_block_glow", "") TEXT("a") END STOP, "a",
     "stop", 11, 3, FAULT_NONE},
    {"whole",
     "{\"type\":\"message\",\"model\":\"claude-x\",\"content\":[{\"type\":\"thinking\","
     "\"thinking\":\"hm\"},{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"end_turn\","
     "\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}",
     "hi", "stop", 5, 2, FAULT_NONE},
    {"whole, a tool's input",
     "{\"type\":\"message\",\"content\":[{\"type\":\"tool_use\",\"input\":{\"a\":[1]}}],"
     "\"stop_reason\":\"tool_use\"}",
     "{\"a\":[1]}", "stop", -1, -1, FAULT_NONE},
    {"ended early", START OPEN TEXT("a"), NOTHING, FAULT_RETRY},
    {"pings alone", PING PING, NOTHING, FAULT_RETRY},
    {"truncated whole", "{\"type\":\"mess", NOTHING, FAULT_RETRY},
    {"truncated event", START "data: {\"type\":\"content_blo\n\n" END STOP, NOTHING, FAULT_RETRY},
    {"nothing in it", START END STOP, NOTHING, FAULT_EMPTY},
    {"empty content", "{\"type\":\"message\",\"content\":[]}", NOTHING, FAULT_EMPTY},
    {"null content", "{\"type\":\"message\",\"content\":null}", NOTHING, FAULT_EMPTY},
    {"refusal", START TEXT("I") ENDED("refusal", "\"output_tokens\":3") STOP, NOTHING,
     FAULT_REFUSED},
    {"overloaded", START TEXT("a") ERROR("overloaded_error"), NOTHING, FAULT_RETRY},
    {"overloaded, then more", START TEXT("a") ERROR("overloaded_error") END STOP, NOTHING,
     FAULT_RETRY},
    {"api_error", START ERROR("api_error"), NOTHING, FAULT_RETRY},
    {"timeout_error", START ERROR("timeout_error"), NOTHING, FAULT_RETRY},
    {"rate limit", START ERROR("rate_limit_error"), NOTHING, FAULT_LIMITED},
    {"key", START ERROR("authentication_error"), NOTHING, FAULT_KEY},
    {"billing", START ERROR("billing_error"), NOTHING, FAULT_QUOTA},
    {"model", START ERROR("not_found_error"), NOTHING, FAULT_MODEL},
    {"too large", START ERROR("request_too_large"), NOTHING, FAULT_TOO_LONG},
    {"html", "<html>", NOTHING, FAULT_FATAL},
};

static void test_answers(void **state)
{
    (void)state;
    check_answers(&codec_anthropic, answers, COUNT(answers));
    check_heard(&codec_anthropic, PING,
                EVENT("content_block_delta", ",\"delta\":{\"type\":\"thinking_delta\"}"));
}

static void test_cuts(void **state)
{
    (void)state;
    check_cuts(&codec_anthropic,
               START OPEN PING TEXT("```c\\n") TEXT("\xC3\xA9\\n```") CLOSE END STOP,
               "\"stop_reason\":\"end_turn\"", "```c\n\xC3\xA9\n```");
    check_cuts(&codec_anthropic, START OPEN TEXT("a") CLOSE STOP, "\"message_stop\"", "a");
    check_cuts(&codec_anthropic,
               "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}", "hi",
               "hi");
}

#define BODY(type, message)                                                                        \
    "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" message                  \
    "\"},\"request_id\":\"req_1\"}"

static const struct error_row errors[] = {
    {400, BODY("invalid_request_error", "bad"), FAULT_FATAL, "bad"},
    {400, BODY("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
     FAULT_TOO_LONG, "208310"},
    {400,
     BODY("invalid_request_error",
          "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
     FAULT_TOO_LONG, NULL},
    {400,
     BODY("invalid_request_error",
          "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens"),
     FAULT_FATAL, "8192"},
    {400,
     BODY("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
     FAULT_QUOTA, "credit balance"},
    {400,
     BODY("invalid_request_error",
          "You have reached your specified API usage limits. You will regain access on 2026-12-01"),
     FAULT_QUOTA, "2026-12-01"},
    {401, BODY("authentication_error", "invalid x-api-key sk-secret"), FAULT_KEY, NULL},
    {402, BODY("billing_error", "pay"), FAULT_QUOTA, "pay"},
    {403, BODY("permission_error", "sk-secret may not"), FAULT_KEY, NULL},
    {404, BODY("not_found_error", "model: claude-x"), FAULT_MODEL, "claude-x"},
    {413, BODY("request_too_large", "Request exceeds the maximum size"), FAULT_TOO_LONG, NULL},
    {429, BODY("rate_limit_error", "slow down"), FAULT_LIMITED, "slow down"},
    {500, BODY("api_error", "oops"), FAULT_RETRY, "oops"},
    {529, BODY("overloaded_error", "Overloaded"), FAULT_RETRY, "Overloaded"},
};

static void test_errors(void **state)
{
    (void)state;
    check_statuses(&codec_anthropic);
    check_errors(&codec_anthropic, errors, COUNT(errors));
}

static const char schema[] = "{\"type\":\"object\",\"additionalProperties\":false}";

static void test_encode(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct completion_request request = {.model = "claude-sonnet-4-5",
                                         .system = "be \"brief\"",
                                         .prompt = "hi\n",
                                         .temperature = 1.5,
                                         .max_tokens = 100,
                                         .json = true,
                                         .schema = schema};
    struct sent sent = sent_by(arena, &codec_anthropic, &request, codec_anthropic.default_url);
    assert_string_equal(sent.url, "https://api.anthropic.com/v1/messages");
    assert_true(has_header(&sent, "x-api-key: sk-secret"));
    assert_true(has_header(&sent, "anthropic-version: 2023-06-01"));
    assert_true(has_header(&sent, "content-type: application/json"));
    assert_string_equal(value_text(sent.root, "system", ""), "be \"brief\"");
    assert_int_equal(value_int(sent.root, "max_tokens", 0), 100);
    assert_true(value_bool(sent.root, "stream", false));
    assert_float_equal(value_real(sent.root, "temperature", 0), 1, 0); /* the most it takes */
    const struct value *messages = value_get(sent.root, "messages");
    assert_int_equal(messages->count, 1);
    assert_string_equal(value_text(messages->items[0], "content", ""), "hi\n");
    const struct value *format = value_at(sent.root, "output_config.format");
    assert_string_equal(value_text(format, "type", ""), "json_schema");
    assert_string_equal(value_text(value_get(format, "schema"), "type", ""), "object");
    assert_null(value_get(sent.root, "tools"));

    request.model = "claude-3-7-sonnet-latest"; /* knows no output_config */
    sent = sent_by(arena, &codec_anthropic, &request, "http://h:1/gateway/");
    assert_string_equal(sent.url, "http://h:1/gateway/v1/messages");
    assert_null(value_get(sent.root, "output_config"));
    assert_string_equal(value_text(value_get(sent.root, "tool_choice"), "name", ""), "answer");
    const struct value *tool = value_get(sent.root, "tools")->items[0];
    assert_string_equal(value_text(value_get(tool, "input_schema"), "type", ""), "object");

    request = (struct completion_request){.model = "m", .prompt = "hi", .temperature = -1};
    sent = sent_by(arena, &codec_anthropic, &request, codec_anthropic.default_url);
    assert_int_equal(value_int(sent.root, "max_tokens", 0), codec_anthropic.max_tokens);
    assert_null(value_get(sent.root, "temperature"));
    assert_null(value_get(sent.root, "system"));
    assert_null(value_get(sent.root, "output_config"));

    request = (struct completion_request){
        .model = "m", .prompt = "form\nidea", .temperature = -1, .shared = 5, .cache = "5m"};
    sent = sent_by(arena, &codec_anthropic, &request, codec_anthropic.default_url);
    const struct value *blocks = value_get(value_get(sent.root, "messages")->items[0], "content");
    assert_int_equal(blocks->count, 2);
    assert_string_equal(value_text(blocks->items[0], "text", ""), "form\n");
    const struct value *kept = value_get(blocks->items[0], "cache_control");
    assert_string_equal(value_text(kept, "type", ""), "ephemeral");
    assert_null(value_get(kept, "ttl"));
    assert_string_equal(value_text(blocks->items[1], "text", ""), "idea");
    assert_null(value_get(blocks->items[1], "cache_control"));
    request.cache = "1h";
    sent = sent_by(arena, &codec_anthropic, &request, codec_anthropic.default_url);
    blocks = value_get(value_get(sent.root, "messages")->items[0], "content");
    assert_string_equal(value_text(value_get(blocks->items[0], "cache_control"), "ttl", ""), "1h");

    const char thinks[] = "{\"thinking\": {\"type\": \"enabled\", \"budget_tokens\": 8000}}";
    struct value *body;
    assert_int_equal(value_parse_json(arena, "body", thinks, strlen(thinks), &body, NULL), 0);
    request.body = body;
    sent = sent_by(arena, &codec_anthropic, &request, codec_anthropic.default_url);
    assert_int_equal(value_int(value_at(sent.root, "thinking"), "budget_tokens", 0), 8000);
    sent = sent_by(arena, &codec_openai, &request, codec_openai.default_url);
    assert_string_equal(value_text(value_get(sent.root, "thinking"), "type", ""), "enabled");
    sent = sent_by(arena, &codec_gemini, &request, codec_gemini.default_url);
    assert_int_equal(
        value_int(value_at(sent.root, "generationConfig.thinking"), "budget_tokens", 0), 8000);
    arena_free(arena);
}

static struct sent sent_with(struct arena *arena, const char *model, const char *body,
                             const char *form)
{
    struct value *fields = NULL;
    if (body != NULL)
        assert_int_equal(value_parse_json(arena, "body", body, strlen(body), &fields, NULL), 0);
    const struct completion_request request = {
        .model = model, .prompt = "p", .temperature = 0.5, .schema = form, .body = fields};
    return sent_by(arena, &codec_anthropic, &request, codec_anthropic.default_url);
}

/* They answer 400 to a temperature. */
static void test_sampling(void **state)
{
    static const struct {
        const char *model;
        bool own;
    } rows[] = {{"claude-opus-4-7", true},
                {"claude-opus-4-10-20260901", true},
                {"claude-opus-5-5", true},
                {"claude-sonnet-5-5", true},
                {"claude-fable-5-1-20261001", true},
                {"claude-opus-4-6", false},
                {"claude-opus-4-20250514", false},
                {"claude-sonnet-4-5", false},
                {"claude-haiku-4-5", false},
                {"claude-3-7-sonnet-latest", false},
                {"claude-x", false},
                {"my-own", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ARENA_LOCAL(arena);
        struct sent sent = sent_with(arena, rows[i].model, NULL, NULL);
        if ((value_get(sent.root, "temperature") == NULL) != rows[i].own)
            fail_msg("%s", rows[i].model);
    }
}

/* An entry's effort and the form of an answer are members of one object. */
static void test_effort(void **state)
{
    static const char effort[] = "{\"output_config\": {\"effort\": \"high\", \"format\": 1}, "
                                 "\"thinking\": {\"type\": \"adaptive\"}}";
    ARENA_LOCAL(arena);
    (void)state;
    struct sent sent = sent_with(arena, "claude-opus-5-5", effort, "{\"type\":\"object\"}");
    assert_string_equal(value_text(value_get(sent.root, "output_config"), "effort", ""), "high");
    assert_string_equal(value_text(value_at(sent.root, "output_config.format"), "type", ""),
                        "json_schema");
    assert_string_equal(value_text(value_get(sent.root, "thinking"), "type", ""), "adaptive");
    size_t count = 0;
    for (size_t i = 0; i < sent.root->count; i++)
        count += strcmp(sent.root->keys[i], "output_config") == 0;
    assert_int_equal(count, 1);
    sent = sent_with(arena, "claude-opus-5-5", effort, NULL);
    assert_string_equal(value_text(value_get(sent.root, "output_config"), "effort", ""), "high");
}

static void test_describe(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct sent sent =
        described_by(arena, &codec_anthropic, "claude-x", codec_anthropic.default_url, "sk-secret");
    assert_string_equal(sent.url, "https://api.anthropic.com/v1/models/claude-x");
    assert_true(has_header(&sent, "x-api-key: sk-secret"));
    assert_true(has_header(&sent, "anthropic-version: 2023-06-01"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),  cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_encode),
        cmocka_unit_test(test_sampling), cmocka_unit_test(test_effort),
        cmocka_unit_test(test_describe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
