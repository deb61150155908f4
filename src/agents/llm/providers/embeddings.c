/* A vector is kept as its components in 1/127 of the largest, two hexadecimal digits each: a
 * passage's own vector has no more (rag/vectors), and a ranking does not notice the rest. */
#include "agents/llm/providers/embeddings.h"

#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/fault.h"
#include "agents/llm/providers/request.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { VECTORS_MOST = 64, DIMENSIONS_MOST = 8192, TEXT_MOST = 6000 };

/* ---- the request ---- */

void embeddings_add(struct buf *prompt, const char *text)
{
    size_t length = strnlen(text, TEXT_MOST);
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--; /* not amid a letter */
    if (prompt->length > 0)
        buf_add_char(prompt, '\n');
    for (size_t i = 0; i < length; i++)
        buf_add_char(prompt, (unsigned char)text[i] < ' ' ? ' ' : text[i]);
}

static void encode(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body)
{
    static const char *const more[] = {"content-type: application/json", NULL};
    *url = request_url(arena, base_url, NULL, "embeddings");
    *headers = request_headers(arena, "authorization: Bearer ", key, more);

    struct json json = {.out = body};
    json_object(&json);
    json_put_text(&json, "model", request->model);
    json_put_text(&json, "encoding_format", "float");
    json_put_array(&json, "input");
    for (const char *line = request->prompt; line != NULL;) {
        size_t length = strcspn(line, "\n");
        json_text_n(&json, line, length);
        line = line[length] == '\n' ? line + length + 1 : NULL;
    }
    json_array_end(&json);
    json_object_end(&json);
}

/* ---- the answer ---- */

static bool is_number(const struct value *value)
{
    return (value->kind == VALUE_INT || value->kind == VALUE_REAL) && isfinite(value->real);
}

/* The largest component's size; 0 where this is no vector. */
static double scale_of(const struct value *list, size_t dimensions)
{
    double most = 0;
    if (list == NULL || list->kind != VALUE_LIST || list->count != dimensions)
        return 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!is_number(list->items[i]))
            return 0;
        most = fmax(most, fabs(list->items[i]->real));
    }
    return most;
}

static void put_vector(const struct value *list, double scale, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < list->count; i++) {
        unsigned byte = (unsigned)(lrint(list->items[i]->real / scale * 127) & 0xff);
        buf_add_char(out, digits[byte >> 4]);
        buf_add_char(out, digits[byte & 0xf]);
    }
    buf_add_char(out, '\n');
}

/* {"data": [{"index": 0, "embedding": [...]}, ...], "usage": {...}}, in any order. One that is not
 * so leaves no text, and counts as an empty answer. */
static void read_object(struct codec_state *state, const struct value *object)
{
    const struct value *lists[VECTORS_MOST] = {NULL}, *data = value_get(object, "data");
    const struct value *usage = value_get(object, "usage");
    size_t count = data != NULL && data->kind == VALUE_LIST ? data->count : 0;
    answer_set_model(state, value_text(object, "model", NULL));
    state->prompt_tokens = answer_count(usage, "prompt_tokens");
    if (state->prompt_tokens < 0)
        state->prompt_tokens = answer_count(usage, "total_tokens");
    state->completion_tokens = state->prompt_tokens >= 0 ? 0 : -1;
    if (count == 0 || count > VECTORS_MOST)
        return;
    for (size_t i = 0; i < count; i++) {
        int64_t index = value_int(data->items[i], "index", (int64_t)i);
        if (index < 0 || (size_t)index >= count || lists[index] != NULL)
            return;
        lists[index] = value_get(data->items[i], "embedding");
        if (lists[index] == NULL)
            return;
    }
    size_t dimensions = lists[0]->kind == VALUE_LIST ? lists[0]->count : 0;
    for (size_t i = 0; i < count; i++)
        if (dimensions == 0 || dimensions > DIMENSIONS_MOST ||
            !(scale_of(lists[i], dimensions) > 0))
            return;
    for (size_t i = 0; i < count; i++)
        put_vector(lists[i], scale_of(lists[i], dimensions), &state->text);
}

const struct codec codec_embeddings = {.name = "openai embeddings",
                                       .default_url = "https://api.openai.com/v1",
                                       .key_variable = "OPENAI_API_KEY",
                                       .encode = encode,
                                       .read = read_object,
                                       .max_tokens = 1, /* none is sent; a reservation needs one */
                                       .embeds = true};

/* ---- the vectors ---- */

static int digit(char letter)
{
    return letter >= '0' && letter <= '9'   ? letter - '0'
           : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
                                            : -1;
}

static bool read_line(const char *line, size_t dimensions, float *vector)
{
    double square = 0;
    for (size_t i = 0; i < dimensions; i++) {
        int high = digit(line[2 * i]), low = high < 0 ? -1 : digit(line[2 * i + 1]);
        if (low < 0)
            return false;
        int byte = high << 4 | low, component = byte < 128 ? byte : byte - 256;
        vector[i] = (float)component;
        square += (double)component * component;
    }
    for (size_t i = 0; i < dimensions && square > 0; i++)
        vector[i] = (float)((double)vector[i] / sqrt(square));
    return square > 0;
}

const float *embeddings_read(struct arena *arena, const char *text, size_t count,
                             size_t *dimensions)
{
    size_t length = strcspn(text, "\n"), line = length + 1;
    *dimensions = length / 2;
    if (count == 0 || count > VECTORS_MOST || length == 0 || length % 2 != 0 ||
        *dimensions > DIMENSIONS_MOST || strlen(text) != count * line)
        return NULL;
    float *vectors = arena_array(arena, count * *dimensions, sizeof *vectors);
    for (size_t i = 0; i < count; i++)
        if (text[i * line + length] != '\n' ||
            !read_line(text + i * line, *dimensions, vectors + i * *dimensions))
            return NULL;
    return vectors;
}
