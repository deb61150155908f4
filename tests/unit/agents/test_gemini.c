/* Gemini's generateContent as a codec: requests, streams, whole answers, and every class of fault.
 */
#include "codec_check.h"

#define PARTS(parts, more)                                                                         \
    "{\"candidates\":[{\"content\":{\"parts\":[" parts "],\"role\":\"model\"}" more "}],"          \
    "\"modelVersion\":\"gemini-x\"}"
#define DATA(json) "data: " json "\n\n"
#define TEXT(text) DATA(PARTS("{\"text\":\"" text "\"}", ""))
#define ENDED(reason, usage)                                                                       \
    DATA("{\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"" reason                 \
         "\"}],\"usageMetadata\":{" usage "}}")
#define USAGE "\"promptTokenCount\":11,\"candidatesTokenCount\":3,\"totalTokenCount\":14"
#define END   ENDED("STOP", USAGE)
#define ERROR(code, status, message)                                                               \
    "{\"error\":{\"code\":" code ",\"message\":\"" message "\",\"status\":\"" status "\"}}"
#define NOTHING NULL, NULL, 0, 0

static const struct answer_row answers[] = {
    {"stream", TEXT("he") TEXT("llo") END, "hello", "stop", 11, 3, FAULT_NONE},
    {"the end with the text",
     TEXT("a") DATA(PARTS("{\"text\":\"b\"}", ",\"finishReason\":\"STOP\"")), "ab", "stop", -1, -1,
     FAULT_NONE},
    {"usage so far, in each",
     DATA("{\"usageMetadata\":{\"promptTokenCount\":11,\"candidatesTokenCount\":1}}") TEXT("a") END,
     "a", "stop", 11, 3, FAULT_NONE},
    {"thinking counts",
     TEXT("a") ENDED("STOP", "\"promptTokenCount\":5,\"candidatesTokenCount\":3,"
                             "\"thoughtsTokenCount\":40"),
     "a", "stop", 5, 43, FAULT_NONE},
    {"the total has more",
     TEXT("a") ENDED("STOP", "\"promptTokenCount\":5,\"candidatesTokenCount\":3,"
                             "\"thoughtsTokenCount\":40,\"totalTokenCount\":100"),
     "a", "stop", 5, 95, FAULT_NONE},
    {"a total that is less",
     TEXT("a") ENDED("STOP", "\"promptTokenCount\":5,\"candidatesTokenCount\":3,"
                             "\"totalTokenCount\":7"),
     "a", "stop", 5, 3, FAULT_NONE},
    {"nothing but thinking",
     ENDED("MAX_TOKENS", "\"promptTokenCount\":5,\"thoughtsTokenCount\":40"), "", "length", 5, 40,
     FAULT_NONE},
    {"thoughts are no text",
     DATA(PARTS("{\"text\":\"hm\",\"thought\":true},{\"text\":\"a\"}", "")) END, "a", "stop", 11, 3,
     FAULT_NONE},
    {"several parts", DATA(PARTS("{\"text\":\"a\"},{\"text\":\"b\"}", "")) END, "ab", "stop", 11, 3,
     FAULT_NONE},
    {"negative usage",
     TEXT("a") ENDED("STOP", "\"promptTokenCount\":-1,\"candidatesTokenCount\":-3,"
                             "\"thoughtsTokenCount\":4"),
     "a", "stop", -1, -1, FAULT_NONE},
    {"no usage", TEXT("a") ENDED("STOP", ""), "a", "stop", -1, -1, FAULT_NONE},
    {"usage too large to add",
     TEXT("a") ENDED("STOP", "\"candidatesTokenCount\":9223372036854775807,"
                             "\"thoughtsTokenCount\":9"),
     "a", "stop", -1, -1, FAULT_NONE},
    {"MAX_TOKENS", TEXT("a") ENDED("MAX_TOKENS", USAGE), "a", "length", 11, 3, FAULT_NONE},
    {"OTHER", TEXT("a") ENDED("OTHER", USAGE), "a", "OTHER", 11, 3, FAULT_NONE},
    {"comments", ": x\n\n" TEXT("a") ": x\n\n" END, "a", "stop", 11, 3, FAULT_NONE},
    {"several data lines",
     "data: {\"candidates\":[{\"content\":\ndata: {\"parts\":[{\"text\":\"a\"}]}}]}\n\n" END, "a",
     "stop", 11, 3, FAULT_NONE},
    {"bad utf-8, NUL, lone surrogate", TEXT("\xFF\\u0000\\udc00") END, BAD BAD BAD, "stop", 11, 3,
     FAULT_NONE},
    {"whole", PARTS("{\"text\":\"hi\"}", ",\"finishReason\":\"STOP\""), "hi", "stop", -1, -1,
     FAULT_NONE},
    {"a list, from a gateway that drops alt=sse",
     "[" PARTS("{\"text\":\"h\"}", "") ",\n" PARTS("{\"text\":\"i\"}",
                                                   ",\"finishReason\":\"STOP\"") "]",
     "hi", "stop", -1, -1, FAULT_NONE},
    {"ended early", TEXT("a"), NOTHING, FAULT_RETRY},
    {"no reason yet", TEXT("a") ENDED("FINISH_REASON_UNSPECIFIED", USAGE), NOTHING, FAULT_RETRY},
    {"pings alone", ": ping\n\n", NOTHING, FAULT_RETRY},
    {"truncated whole", "{\"candidates\":[{\"con", NOTHING, FAULT_RETRY},
    {"truncated list", "[" PARTS("{\"text\":\"h\"}", "") ",", NOTHING, FAULT_RETRY},
    {"truncated event", "data: {\"candidates\":[{\"co\n\n" END, NOTHING, FAULT_RETRY},
    {"nothing in it", END, NOTHING, FAULT_EMPTY},
    {"no candidates", "{\"candidates\":[]}", NOTHING, FAULT_EMPTY},
    {"null content", "{\"candidates\":[{\"content\":null,\"finishReason\":\"STOP\"}]}", NOTHING,
     FAULT_EMPTY},
    {"empty list", "[]", NOTHING, FAULT_EMPTY},
    {"SAFETY", TEXT("a") ENDED("SAFETY", USAGE), NOTHING, FAULT_REFUSED},
    {"RECITATION", ENDED("RECITATION", USAGE), NOTHING, FAULT_REFUSED},
    {"PROHIBITED_CONTENT", ENDED("PROHIBITED_CONTENT", USAGE), NOTHING, FAULT_REFUSED},
    {"BLOCKLIST", ENDED("BLOCKLIST", USAGE), NOTHING, FAULT_REFUSED},
    {"SPII", ENDED("SPII", USAGE), NOTHING, FAULT_REFUSED},
    {"the prompt is blocked", DATA("{\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}"), NOTHING,
     FAULT_REFUSED},
    {"UNAVAILABLE", TEXT("a") DATA(ERROR("503", "UNAVAILABLE", "overloaded")), NOTHING,
     FAULT_RETRY},
    {"UNAVAILABLE, then more", DATA(ERROR("503", "UNAVAILABLE", "")) TEXT("a") END, NOTHING,
     FAULT_RETRY},
    {"INTERNAL", DATA(ERROR("500", "INTERNAL", "")), NOTHING, FAULT_RETRY},
    {"RESOURCE_EXHAUSTED", DATA(ERROR("429", "RESOURCE_EXHAUSTED", "")), NOTHING, FAULT_LIMITED},
    {"PERMISSION_DENIED", DATA(ERROR("403", "PERMISSION_DENIED", "")), NOTHING, FAULT_KEY},
    {"NOT_FOUND", DATA(ERROR("404", "NOT_FOUND", "")), NOTHING, FAULT_MODEL},
    {"INVALID_ARGUMENT", DATA(ERROR("400", "INVALID_ARGUMENT", "bad")), NOTHING, FAULT_FATAL},
    {"an error in a list", "[" ERROR("503", "UNAVAILABLE", "") "]", NOTHING, FAULT_RETRY},
    {"html", "<html>", NOTHING, FAULT_FATAL},
};

static void test_answers(void **state)
{
    (void)state;
    check_answers(&codec_gemini, answers, COUNT(answers));
    check_heard(&codec_gemini, ": ping\n\n", TEXT("a"));
}

static void test_cuts(void **state)
{
    (void)state;
    check_cuts(&codec_gemini, TEXT("```c\\n") ": x\n\n" TEXT("\xC3\xA9\\n```") END,
               "\"finishReason\":\"STOP\"", "```c\n\xC3\xA9\n```");
    check_cuts(&codec_gemini, PARTS("{\"text\":\"hi\"}", ",\"finishReason\":\"STOP\""), "hi", "hi");
    check_cuts(&codec_gemini, "[" PARTS("{\"text\":\"hi\"}", ",\"finishReason\":\"STOP\"") "]",
               "hi", "hi");
}

#define QUOTA(id, more)                                                                            \
    "{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota, please check your "   \
    "plan and billing details.\\n* Quota exceeded for metric: x\\nPlease retry in 36.4s.\","       \
    "\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"@type\":\"type.googleapis.com/"             \
    "google.rpc.QuotaFailure\",\"violations\":[{\"quotaId\":\"" id "\"}]}" more "]}}"
#define RETRY(delay)                                                                               \
    ",{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"" delay "\"}"

static const struct error_row errors[] = {
    {400, ERROR("400", "INVALID_ARGUMENT", "bad"), FAULT_FATAL, "bad"},
    {400,
     ERROR("400", "INVALID_ARGUMENT",
           "The input token count (1200000) exceeds the maximum number "
           "of tokens allowed (1048576)."),
     FAULT_TOO_LONG, "1200000"},
    {400, ERROR("400", "INVALID_ARGUMENT", "API key not valid: sk-secret"), FAULT_KEY, NULL},
    {400, ERROR("400", "FAILED_PRECONDITION", "Please enable billing on your project"), FAULT_QUOTA,
     "billing"},
    {403, ERROR("403", "PERMISSION_DENIED", "sk-secret"), FAULT_KEY, NULL},
    {404, ERROR("404", "NOT_FOUND", "models/gemini-y is not found"), FAULT_MODEL, "gemini-y"},
    {429, ERROR("429", "RESOURCE_EXHAUSTED", "slow"), FAULT_LIMITED, "slow"},
    {429, ERROR("429", "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted"), FAULT_QUOTA,
     "depleted"},
    {429, ERROR("429", "RESOURCE_EXHAUSTED", "the project exceeded its monthly spending cap"),
     FAULT_QUOTA, "cap"},
    {429, QUOTA("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", RETRY("36s")),
     FAULT_LIMITED, "36.4s"},
    {429, QUOTA("GenerateRequestsPerDayPerProjectPerModel-FreeTier", RETRY("36s")), FAULT_QUOTA,
     "quota"},
    {429, "[" QUOTA("GenerateRequestsPerDayPerProjectPerModel", "") "]", FAULT_QUOTA, "quota"},
    {500, ERROR("500", "INTERNAL", "oops"), FAULT_RETRY, "oops"},
    {503, ERROR("503", "UNAVAILABLE", "The model is overloaded."), FAULT_RETRY, "overloaded"},
    {504, ERROR("504", "DEADLINE_EXCEEDED", ""), FAULT_RETRY, NULL},
};

static void test_errors(void **state)
{
    (void)state;
    check_statuses(&codec_gemini);
    check_errors(&codec_gemini, errors, COUNT(errors));
}

static void test_patience(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t ms;
    } rows[] = {{QUOTA("PerMinute", RETRY("36s")), 36000},
                {QUOTA("PerMinute", RETRY("36.4297s")), 36430},
                {QUOTA("PerMinute", RETRY("0s")), 0},
                {QUOTA("PerMinute", RETRY("-5s")), 0},
                {QUOTA("PerMinute", RETRY("1e99s")), 86400000},
                {QUOTA("PerMinute", RETRY("nans")), -1},
                {QUOTA("PerMinute", RETRY("infs")), -1},
                {QUOTA("PerMinute", RETRY("36")), -1},
                {QUOTA("PerMinute", RETRY("soon")), -1},
                {QUOTA("PerMinute", ""), -1},
                {"{\"error\":{\"details\":{\"retryDelay\":\"1s\"}}}", -1},
                {"{}", -1},
                {"", -1},
                {"<html>", -1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = fault_patience_ms(rows[i].body, strlen(rows[i].body));
        if (ms != rows[i].ms)
            fail_msg("row %zu: %lld ms", i, (long long)ms);
    }
}

static const char schema[] = "{\"type\":\"object\",\"additionalProperties\":false}";

static void test_encode(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct completion_request request = {.model = "gemini-x",
                                         .system = "be \"brief\"",
                                         .prompt = "hi\n",
                                         .temperature = 0.5,
                                         .max_tokens = 100,
                                         .schema = schema};
    struct sent sent = sent_by(arena, &codec_gemini, &request, codec_gemini.default_url);
    assert_string_equal(sent.url, "https://generativelanguage.googleapis.com/v1beta/models/"
                                  "gemini-x:streamGenerateContent?alt=sse");
    assert_true(has_header(&sent, "x-goog-api-key: sk-secret"));
    const struct value *system = value_at(sent.root, "systemInstruction.parts");
    assert_string_equal(value_text(system->items[0], "text", ""), "be \"brief\"");
    const struct value *contents = value_get(sent.root, "contents");
    assert_int_equal(contents->count, 1);
    assert_string_equal(value_text(contents->items[0], "role", ""), "user");
    const struct value *config = value_get(sent.root, "generationConfig");
    assert_float_equal(value_real(config, "temperature", 0), 0.5, 0);
    assert_int_equal(value_int(config, "maxOutputTokens", 0), 100);
    assert_string_equal(value_text(config, "responseMimeType", ""), "application/json");
    assert_string_equal(value_text(value_get(config, "responseJsonSchema"), "type", ""), "object");

    request = (struct completion_request){
        .model = "models/gemini-x", .prompt = "hi", .temperature = -1, .json = true};
    sent = sent_by(arena, &codec_gemini, &request, "http://h:1");
    assert_string_equal(sent.url,
                        "http://h:1/v1beta/models/gemini-x:streamGenerateContent?alt=sse");
    sent = sent_by(arena, &codec_gemini, &request,
                   "https://aiplatform.googleapis.com/v1/publishers/google");
    assert_string_equal(sent.url, "https://aiplatform.googleapis.com/v1/publishers/google/models/"
                                  "gemini-x:streamGenerateContent?alt=sse");
    assert_null(value_get(sent.root, "systemInstruction"));
    config = value_get(sent.root, "generationConfig");
    assert_null(value_get(config, "temperature"));
    assert_null(value_get(config, "maxOutputTokens"));
    assert_null(value_get(config, "responseJsonSchema"));
    assert_string_equal(value_text(config, "responseMimeType", ""), "application/json");
    arena_free(arena);
}

static void test_describe(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct sent sent =
        described_by(arena, &codec_gemini, "gemini-x", codec_gemini.default_url, "sk-secret");
    assert_string_equal(sent.url,
                        "https://generativelanguage.googleapis.com/v1beta/models/gemini-x");
    assert_true(has_header(&sent, "x-goog-api-key: sk-secret"));
    arena_free(arena);
}

static void test_find(void **state)
{
    (void)state;
    assert_ptr_equal(codec_find("openai"), &codec_openai);
    assert_ptr_equal(codec_find("anthropic"), &codec_anthropic);
    assert_ptr_equal(codec_find("gemini"), &codec_gemini);
    assert_null(codec_find("mailbox"));
    assert_null(codec_find(""));
    assert_string_equal(codec_gemini.key_variable, "GOOGLE_API_KEY");
    assert_string_equal(codec_anthropic.key_variable, "ANTHROPIC_API_KEY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_errors),  cmocka_unit_test(test_patience),
        cmocka_unit_test(test_encode),  cmocka_unit_test(test_describe),
        cmocka_unit_test(test_find)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
