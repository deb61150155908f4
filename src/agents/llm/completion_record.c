#include "agents/llm/completion_record.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/value.h"

#include <stdio.h>
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
    if (request->schema != NULL) /* those of earlier versions had none, and keep their keys */
        json_put_text(json, "schema", request->schema);
    if (request->body != NULL) {
        json_put_value(json, "body", request->body);
    }
    json_object_end(json);
}

void completion_key(const char *provider, const char *place,
                    const struct completion_request *request, int64_t sample, char key[33])
{
    JSON_LOCAL(json, text, 64 << 20);
    json_array(&json);
    json_text(&json, provider);
    json_text(&json, place);
    json_int(&json, sample);
    put_request(&json, request);
    json_array_end(&json);
    hash_format(hash_bytes(buf_text(&text), text.length), key);
}

void completion_draw_key(const char *asker, const char *purpose, int64_t step, char key[256])
{
    snprintf(key, 256, "draw/%.100s/%.60s/%lld", asker, purpose, (long long)step);
}

static void put_use(struct json *json, const struct completion_use *use)
{
    json_put_text(json, "run", use->run);
    json_put_text(json, "asker", use->asker);
    json_put_text(json, "purpose", use->purpose);
    json_put_int(json, "step", use->step);
}

void completion_encode(const struct completion_request *request,
                       const struct completion *completion, const struct completion_origin *origin,
                       struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    put_use(&json, &origin->use);
    json_put_int(&json, "sample", origin->sample);
    json_put_text(&json, "provider", origin->provider);
    json_put_text(&json, "model", origin->model);
    json_put_int(&json, "tries", origin->tries);
    json_put_int(&json, "cost_micro_dollars", origin->cost_micro_dollars);
    json_put_int(&json, "ended_ms", (int64_t)clock_wall_ms());
    json_put_real(&json, "elapsed_ms", (double)origin->elapsed_ns / 1e6);
    if (origin->reason != NULL && *origin->reason != '\0')
        json_put_text(&json, "reason", origin->reason);
    json_key(&json, "request");
    put_request(&json, request);
    json_put_object(&json, "answer");
    json_put_text(&json, "text", completion->text != NULL ? completion->text : "");
    json_put_text(&json, "finish", completion->finish);
    json_put_text(&json, "model", completion->model);
    json_put_int(&json, "prompt_tokens", completion->prompt_tokens);
    json_put_int(&json, "completion_tokens", completion->completion_tokens);
    if (completion->cached_tokens > 0)
        json_put_int(&json, "cached_tokens", completion->cached_tokens);
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

static struct completion_use read_use(const struct value *map)
{
    return (struct completion_use){.run = value_text(map, "run", ""),
                                   .asker = value_text(map, "asker", ""),
                                   .purpose = value_text(map, "purpose", ""),
                                   .step = value_int(map, "step", -1)};
}

void completion_uses(const struct value *root, completion_visit *visit, void *context)
{
    struct completion_use use = read_use(root);
    const struct value *also = value_get(root, "also");
    visit(context, &use);
    for (size_t i = 0; also != NULL && also->kind == VALUE_LIST && i < also->count; i++) {
        use = read_use(also->items[i]);
        visit(context, &use);
    }
}

struct finding {
    const struct completion_use *wanted;
    bool found;
};

static void compare(void *context, const struct completion_use *use)
{
    struct finding *finding = context;
    const struct completion_use *wanted = finding->wanted;
    if (strcmp(use->run, wanted->run) == 0 && strcmp(use->asker, wanted->asker) == 0 &&
        strcmp(use->purpose, wanted->purpose) == 0 && use->step == wanted->step)
        finding->found = true;
}

static void put_with_use(struct json *json, const struct value *root,
                         const struct completion_use *use)
{
    const struct value *also = value_get(root, "also");
    json_object(json);
    for (size_t i = 0; i < root->count; i++) {
        if (root->items[i] == also)
            continue;
        json_put_value(json, root->keys[i], root->items[i]);
    }
    json_put_array(json, "also");
    for (size_t i = 0; also != NULL && also->kind == VALUE_LIST && i < also->count; i++)
        json_value(json, also->items[i]);
    json_object(json);
    put_use(json, use);
    json_object_end(json);
    json_array_end(json);
    json_object_end(json);
}

bool completion_adopt(const char *text, size_t length, const struct completion_use *use,
                      struct buf *out)
{
    ARENA_LOCAL(arena);
    struct finding finding = {.wanted = use, .found = true};
    struct value *root;
    struct json json;
    if (value_parse_json(arena, "completion", text, length, &root, NULL) == 0 &&
        root->kind == VALUE_MAP) {
        finding.found = false;
        completion_uses(root, compare, &finding);
    }
    if (!finding.found) {
        json_init(&json, out);
        put_with_use(&json, root, use);
    }
    return !finding.found;
}
