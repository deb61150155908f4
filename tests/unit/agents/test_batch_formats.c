/* Requests that go together: what each provider is sent, and what its answers mean. */
#include "check.h"

#include "agents/llm/providers/batch.h"

static const struct codec *const codecs[] = {&codec_openai, &codec_responses, &codec_anthropic,
                                             &codec_gemini};

static const struct value *parse(struct arena *arena, const char *text)
{
    struct value *root;
    assert_int_equal(value_parse_json(arena, "test", text, strlen(text), &root, NULL), 0);
    return root;
}

static void test_put(void **state)
{
    (void)state;
    const struct completion_request request = {
        .model = "m", .prompt = "a \"b\"\n", .temperature = -1};
    const struct batch_item items[] = {{"id-1", &request}, {"id-2", &request}};
    static const char *const wanted[] = {
        "{\"custom_id\":\"id-1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{"
        "\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a \\\"b\\\"\\n\"}]}}\n",
        "\"url\":\"/v1/responses\",\"body\":{\"model\":\"m\",\"input\":\"a \\\"b\\\"\\n\","
        "\"store\":false}}\n",
        "{\"requests\":[{\"custom_id\":\"id-1\",\"params\":{\"model\":\"m\",\"max_tokens\":32000,"
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \\\"b\\\"\\n\"}]}},{\"custom_id\"",
        "{\"batch\":{\"displayName\":\"ours\",\"inputConfig\":{\"requests\":{\"requests\":["
        "{\"request\":{\"contents\""};
    for (size_t i = 0; i < COUNT(codecs); i++) {
        ARENA_LOCAL(arena);
        BUF_LOCAL(body, 1 << 20);
        const struct batch_place place = {codecs[i], "http://h/v1", "key", "m", "ours"};
        batch_format_of(codecs[i])->put(arena, &place, items, 2, &body);
        if (strstr(buf_text(&body), wanted[i]) == NULL)
            fail_msg("%s: %s", codecs[i]->name, buf_text(&body));
        assert_null(strstr(buf_text(&body), "stream"));
        assert_null(strstr(buf_text(&body), "\"key\":\"key\""));
    }
}

static void test_calls(void **state)
{
    (void)state;
    ARENA_LOCAL(arena);
    static const struct {
        int codec;
        enum batch_step step;
        const char *what, *method, *url;
    } rows[] = {
        {0, BATCH_UPLOAD, NULL, "POST", "http://h/v1/files"},
        {0, BATCH_CREATE, NULL, "POST", "http://h/v1/batches"},
        {0, BATCH_LOOK, "b1", "GET", "http://h/v1/batches/b1"},
        {0, BATCH_FETCH, "f1", "GET", "http://h/v1/files/f1/content"},
        {1, BATCH_CANCEL, "b1", "POST", "http://h/v1/batches/b1/cancel"},
        {1, BATCH_LIST, NULL, "GET", "http://h/v1/batches?limit=100"},
        {2, BATCH_CREATE, NULL, "POST", "http://h/v1/messages/batches"},
        {2, BATCH_FETCH, "b1", "GET", "http://h/v1/messages/batches/b1/results"},
        {2, BATCH_CANCEL, "b1", "POST", "http://h/v1/messages/batches/b1/cancel"},
        {3, BATCH_CREATE, NULL, "POST", "http://h/v1beta/models/m:batchGenerateContent"},
        {3, BATCH_LOOK, "batches/7", "GET", "http://h/v1beta/batches/7"},
        {3, BATCH_CANCEL, "batches/7", "POST", "http://h/v1beta/batches/7:cancel"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct batch_place place = {codecs[rows[i].codec],
                                          rows[i].codec < 2 ? "http://h/v1/" : "http://h", "secret",
                                          "m", "ours"};
        struct batch_call call = batch_call_of(arena, &place, rows[i].step, rows[i].what);
        assert_string_equal(call.method, rows[i].method);
        assert_string_equal(call.url, rows[i].url);
        assert_non_null(strstr(call.headers[0], "secret"));
    }
}

static void test_views(void **state)
{
    (void)state;
    static const struct {
        int codec;
        const char *text;
        bool fits, ended;
        const char *left;
        enum fault fault;
        int64_t done;
    } rows[] = {
        {0, "{\"id\":\"batch_1\",\"status\":\"validating\"}", true, false, NULL, 0, 0},
        {0,
         "{\"id\":\"batch_1\",\"status\":\"in_progress\",\"output_file_id\":null,"
         "\"request_counts\":{\"total\":9,\"completed\":3,\"failed\":1}}",
         true, false, NULL, 0, 4},
        {0, "{\"id\":\"batch_1\",\"status\":\"finalizing\"}", true, false, NULL, 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"completed\",\"output_file_id\":\"file-1\"}", true,
         true, NULL, 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"expired\"}", true, true, "expired", 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"cancelled\"}", true, true, "cancelled", 0, 0},
        {0,
         "{\"id\":\"batch_1\",\"status\":\"failed\",\"errors\":{\"data\":[{\"code\":"
         "\"token_limit_exceeded\",\"message\":\"Enqueued token limit reached\"}]}}",
         true, true, NULL, FAULT_LIMITED, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"failed\",\"errors\":null}", true, true, NULL,
         FAULT_FATAL, 0},
        {0, "{\"id\":\"../files\",\"status\":\"completed\"}", false, false, NULL, 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"completed\",\"output_file_id\":\"x?y\"}", false,
         false, NULL, 0, 0},
        {0, "{\"status\":\"completed\"}", false, false, NULL, 0, 0},
        {2,
         "{\"id\":\"msgbatch_1\",\"processing_status\":\"canceling\",\"request_counts\":"
         "{\"processing\":3,\"succeeded\":2,\"errored\":1}}",
         true, false, NULL, 0, 3},
        {2,
         "{\"id\":\"msgbatch_1\",\"processing_status\":\"ended\",\"results_url\":"
         "\"http://elsewhere/\"}",
         true, true, NULL, 0, 0},
        {3,
         "{\"name\":\"batches/1\",\"metadata\":{\"state\":\"BATCH_STATE_PENDING\",\"batchStats\":"
         "{\"requestCount\":\"9\",\"successfulRequestCount\":\"4\"}}}",
         true, false, NULL, 0, 4},
        {3, "{\"name\":\"batches/1\",\"metadata\":{\"state\":\"JOB_STATE_EXPIRED\"}}", true, true,
         "expired", 0, 0},
        {3,
         "{\"name\":\"batches/1\",\"metadata\":{\"state\":\"BATCH_STATE_FAILED\"},\"error\":"
         "{\"code\":400,\"message\":\"API key expired\"}}",
         true, true, NULL, FAULT_KEY, 0},
        {3, "{\"name\":\"models/1\",\"metadata\":{\"state\":\"BATCH_STATE_PENDING\"}}", false,
         false, NULL, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ARENA_LOCAL(arena);
        struct batch_view view;
        struct err err;
        const struct batch_place place = {.codec = codecs[rows[i].codec], .name = "ours"};
        bool fits = batch_read_view(arena, &place, parse(arena, rows[i].text), &view, &err) == 0;
        assert_int_equal(fits, rows[i].fits);
        if (!fits)
            continue;
        assert_int_equal(view.ended, rows[i].ended);
        assert_int_equal(view.fault, rows[i].fault);
        assert_int_equal(view.done, rows[i].done);
        assert_string_equal(view.left ? view.left : "", rows[i].left ? rows[i].left : "");
        /* The key goes to no address that an answer names. */
        assert_string_equal(view.sources[0] && rows[i].codec == 2 ? view.sources[0] : "msgbatch_1",
                            "msgbatch_1");
    }
}

static void test_results(void **state)
{
    (void)state;
    static const struct {
        int codec;
        const char *text, *id;
        bool answer;
        enum fault fault;
        const char *reason;
    } rows[] = {
        {0, "{\"custom_id\":\"a\",\"response\":{\"status_code\":200,\"body\":{}},\"error\":null}",
         "a", true, FAULT_NONE, NULL},
        {0,
         "{\"custom_id\":\"a\",\"response\":{\"status_code\":400,\"body\":{\"error\":{\"code\":"
         "\"context_length_exceeded\",\"message\":\"too long\"}}}}",
         "a", false, FAULT_TOO_LONG, "too long"},
        {0, "{\"custom_id\":\"a\",\"response\":null,\"error\":{\"code\":\"batch_expired\"}}", "a",
         false, FAULT_NONE, "expired"},
        {0, "{\"custom_id\":\"a\"}", "a", false, FAULT_NONE, NULL},
        {2, "{\"custom_id\":\"a\",\"result\":{\"type\":\"succeeded\",\"message\":{}}}", "a", true,
         FAULT_NONE, NULL},
        {2,
         "{\"custom_id\":\"a\",\"result\":{\"type\":\"errored\",\"error\":{\"type\":\"error\","
         "\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}}}",
         "a", false, FAULT_RETRY, "busy"},
        {2, "{\"custom_id\":\"a\",\"result\":{\"type\":\"expired\"}}", "a", false, FAULT_NONE,
         "expired"},
        {3, "{\"response\":{\"candidates\":[]},\"metadata\":{\"key\":\"a\"}}", "a", true,
         FAULT_NONE, NULL},
        {3, "{\"error\":{\"code\":8,\"message\":\"slow\"},\"metadata\":{\"key\":\"a\"}}", "a",
         false, FAULT_LIMITED, "slow"},
        {3, "{\"error\":{\"code\":3,\"message\":\"bad\"},\"metadata\":{\"key\":\"a\"}}", "a", false,
         FAULT_FATAL, "bad"},
        {3, "{\"metadata\":7}", "", false, FAULT_NONE, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ARENA_LOCAL(arena);
        struct batch_result result = {.id = ""};
        batch_format_of(codecs[rows[i].codec])->result(arena, parse(arena, rows[i].text), &result);
        assert_string_equal(result.id, rows[i].id);
        assert_int_equal(result.answer != NULL, rows[i].answer);
        assert_int_equal(result.fault, rows[i].fault);
        assert_string_equal(result.reason ? result.reason : "",
                            rows[i].reason ? rows[i].reason : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
