#include "agents/completion_record.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/value.h"

#include <string.h>

static void put_request(struct json *json, const struct completion_request *request)
{
    json_object(json);
    json_put_text(json, "model", request->model);
    json_put_text(json, "system", request->system);
    json_put_text(json, "prompt", request->prompt);
    json_put_real(json, "temperature", request->temperature);
    json_put_int(json, "max_tokens", request->max_tokens);
    json_put_bool(json, "json", request->json);
    json_object_end(json);
}

void completion_key(const char *codec, const char *base_url,
                    const struct completion_request *request, int64_t sample, char key[33])
{
    struct buf text;
    struct json json;
    buf_init(&text, 64 << 20);
    json_init(&json, &text);
    json_array(&json);
    json_text(&json, codec);
    json_text(&json, base_url);
    json_int(&json, sample);
    put_request(&json, request);
    json_array_end(&json);
    hash_format(hash_bytes(buf_text(&text), text.length), key);
    buf_free(&text);
}

void completion_encode(const struct completion_request *request,
                       const struct completion *completion, const char *purpose, int64_t sample,
                       int tries, uint64_t elapsed_ns, struct buf *out)
{
    struct json json;
    json_init(&json, out);
    json_object(&json);
    json_put_text(&json, "purpose", purpose);
    json_put_int(&json, "sample", sample);
    json_put_int(&json, "tries", tries);
    json_put_int(&json, "ended_ms", (int64_t)clock_wall_ms());
    json_put_real(&json, "elapsed_ms", (double)elapsed_ns / 1e6);
    json_key(&json, "request");
    put_request(&json, request);
    json_key(&json, "answer");
    json_object(&json);
    json_put_text(&json, "text", completion->text);
    json_put_text(&json, "finish", completion->finish);
    json_put_text(&json, "model", completion->model);
    json_put_int(&json, "prompt_tokens", completion->prompt_tokens);
    json_put_int(&json, "completion_tokens", completion->completion_tokens);
    json_object_end(&json);
    json_object_end(&json);
}

int completion_decode(struct arena *arena, const char *text, size_t length,
                      struct completion *completion, struct err *err)
{
    struct value *root;
    if (value_parse_json(arena, "completion", text, length, &root, err) != 0)
        return -1;
    const struct value *answer = value_get(root, "answer");
    const char *words = value_text(answer, "text", NULL);
    if (words == NULL)
        return err_set(err, ERR_CORRUPT, "a stored completion has no answer");
    *completion =
        (struct completion){.text = arena_strdup(arena, words),
                            .finish = value_text(answer, "finish", "stop"),
                            .model = value_text(answer, "model", ""),
                            .prompt_tokens = value_int(answer, "prompt_tokens", -1),
                            .completion_tokens = value_int(answer, "completion_tokens", -1)};
    return 0;
}
