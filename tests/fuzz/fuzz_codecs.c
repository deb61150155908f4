/* Any bytes are an answer or a fault, for every format (the first byte says which), and however
 * they are cut the same one. The bytes are also an error's body, a batch, and a batch's result. */
#include "fuzz.h"

#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/batch.h"
#include "agents/llm/providers/fault.h"

#include <string.h>

static const struct codec *const codecs[] = {&codec_openai, &codec_anthropic, &codec_gemini};

struct outcome {
    struct completion completion;
    enum fault fault;
    bool fed; /* to the end */
};

static struct outcome answer_of(struct arena *arena, const struct codec *codec, const char *bytes,
                                size_t length, size_t piece)
{
    struct outcome outcome = {.fed = true};
    struct err err = {0};
    struct codec_state *state = answer_begin(arena, codec);
    for (size_t at = 0; at < length && outcome.fed; at += piece)
        outcome.fed =
            answer_feed(state, bytes + at, length - at < piece ? length - at : piece, &err) == 0;
    REQUIRE(outcome.fed || err.code == ERR_PROTOCOL || err.code == ERR_LIMIT);
    int status = answer_finish(state, &outcome.completion, &outcome.fault, &err);
    REQUIRE((status == 0) == (outcome.fault == FAULT_NONE));
    REQUIRE(status == 0 || (err.message[0] != '\0' && strchr(err.message, '\n') == NULL));
    return outcome;
}

static bool is_utf8(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
        int more = *at < 0x80 ? 0 : *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : *at >= 0xC2 ? 1 : -1;
        if (more < 0)
            return false;
        for (at++; more > 0; more--, at++)
            if ((*at & 0xC0) != 0x80)
                return false;
    }
    return true;
}

static void check_answer(const struct codec *codec, const char *bytes, size_t length)
{
    struct arena *arena = arena_new();
    struct outcome whole = answer_of(arena, codec, bytes, length, length + 1);
    struct outcome cut = answer_of(arena, codec, bytes, length, 1 + length % 5);
    REQUIRE(whole.fed == cut.fed && whole.fault == cut.fault);
    if (whole.fed) {
        REQUIRE(strcmp(whole.completion.text, cut.completion.text) == 0);
        REQUIRE(strcmp(whole.completion.finish, cut.completion.finish) == 0);
        REQUIRE(whole.completion.prompt_tokens == cut.completion.prompt_tokens);
        REQUIRE(whole.completion.completion_tokens == cut.completion.completion_tokens);
    }
    REQUIRE(is_utf8(whole.completion.text));
    REQUIRE(whole.completion.prompt_tokens >= -1 && whole.completion.completion_tokens >= -1);
    arena_free(arena);
}

static void check_error(int status, const char *bytes, size_t length)
{
    struct buf reason;
    buf_init(&reason, 479);
    enum fault fault = fault_classify(status, bytes, length, &reason);
    REQUIRE(fault != FAULT_NONE && fault != FAULT_EMPTY);
    REQUIRE(strchr(buf_text(&reason), '\n') == NULL);
    buf_reset(&reason);
    (void)fault_described("m", status, bytes, length, &reason);
    int64_t patience = fault_patience_ms(bytes, length);
    REQUIRE(patience >= -1 && patience <= 86400000);
    buf_free(&reason);
}

/* What a batch says of itself stands in no address but as an id does. */
static void check_batch(const struct codec *codec, const char *bytes, size_t length)
{
    struct arena *arena = arena_new();
    const struct batch_place place = {codec, "http://h/v1", "k", "m", "ours"};
    const struct batch_format *format = batch_format_of(codec);
    struct batch_view view;
    struct value *root;
    struct err err;
    if (value_parse_json(arena, "fuzz", bytes, length, &root, NULL) == 0) {
        if (batch_read_view(arena, &place, root, &view, &err) == 0) {
            const char *url = batch_call_of(arena, &place, BATCH_CANCEL, view.id).url;
            REQUIRE(strncmp(url, "http://h/v1", 11) == 0 && strpbrk(url, "?# @\r\n") == NULL);
            REQUIRE(view.fault == FAULT_NONE || (view.ended && *view.reason != '\0'));
        }
        (void)batch_find(arena, &place, root);
        struct batch_result result = {.id = ""};
        format->result(arena, root, &result);
        REQUIRE(result.id != NULL && (result.fault == FAULT_NONE || result.reason != NULL));
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {400, 401, 404, 429, 500};
    if (size == 0)
        return 0;
    const struct codec *codec = codecs[data[0] % 3];
    const char *bytes = (const char *)data + 1;
    check_answer(codec, bytes, size - 1);
    check_batch(codec, bytes, size - 1);
    check_error(statuses[size % 5], bytes, size - 1);
    return 0;
}
