/* fake_provider: OpenAI's /embeddings. A text's vector is made of its words, some of which mean the
 * same, so that what is near in meaning is near: the same text always gets the same vector. */
#include "fake_provider.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 64, WORD_MOST = 63 };

static const char *meaning(const char *word)
{
    static const char *const same[][2] = {{"velocity", "speed"},   {"rapid", "speed"},
                                          {"gemmatic", "matmul"},  {"antagonistic", "adversarial"},
                                          {"assaults", "attacks"}, {"tiny", "small"},
                                          {"processor", "cpu"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(word, same[i][0]) == 0)
            return same[i][1];
    return word;
}

static json_t *vector_of(const char *text)
{
    double values[DIMENSIONS];
    char word[WORD_MOST + 1];
    size_t length = 0;
    for (size_t i = 0; i < DIMENSIONS; i++)
        values[i] = 0.01;
    for (;; text++) {
        if (isalpha((unsigned char)*text) && length < WORD_MOST) {
            word[length++] = (char)tolower((unsigned char)*text);
        } else if (length > 0) {
            word[length] = '\0';
            const char *known = meaning(word);
            values[bytes_hash(0, known, strlen(known)) % DIMENSIONS] += 1;
            length = 0;
        }
        if (*text == '\0')
            break;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < DIMENSIONS; i++)
        json_array_append_new(list, json_real(values[i]));
    return list;
}

static void add_line(struct bytes *lines, const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        bytes_add(lines, *text == '\n' ? " " : text, 1);
    bytes_add(lines, "\n", 1);
}

/* One text, or a list of them: a line each. */
static const char *read_request(const json_t *document, const struct request *request,
                                struct chat *chat)
{
    const json_t *input = json_object_get(document, "input"), *text;
    size_t index;
    (void)request;
    bool listed = json_is_array(input) && json_array_size(input) > 0;
    if (!json_is_string(json_object_get(document, "model")) || !(listed || json_is_string(input)))
        return "model and input are needed";
    struct bytes *lines = bytes_new();
    if (!listed)
        add_line(lines, json_string_value(input));
    for (index = 0; listed && (text = json_array_get(input, index)) != NULL; index++)
        add_line(lines, json_string_value(text));
    bytes_add(lines, "", 1);
    chat->text = strdup(lines->data);
    bytes_release(lines);
    chat->as_tool = true; /* built anew for each */
    return NULL;
}

/* The vectors the wrong way round: their index counts. */
static json_t *plain(const struct answer *answer)
{
    json_t *data = json_array();
    char *text = strdup(answer->text), *rest = text, *line;
    json_int_t prompt, completion;
    for (int index = 0; (line = strsep(&rest, "\n")) != NULL && rest != NULL; index++)
        if (!answer->empty)
            json_array_insert_new(data, 0,
                                  json_pack("{s:s,s:i,s:o}", "object", "embedding", "index", index,
                                            "embedding",
                                            answer->null_content ? json_null() : vector_of(line)));
    free(text);
    json_t *document =
        json_pack("{s:s,s:s,s:o}", "object", "list", "model", "fake-embedder", "data", data);
    usage_tokens(answer, &prompt, &completion);
    if (answer->usage == USAGE_TEXT)
        json_object_set_new(document, "usage", json_pack("{s:s}", "prompt_tokens", "many"));
    else if (answer->usage != USAGE_MISSING)
        json_object_set_new(document, "usage",
                            json_pack("{s:I,s:I}", "prompt_tokens",
                                      answer->usage == USAGE_NEGATIVE ? -prompt
                                      : answer->usage == USAGE_HUGE   ? completion
                                                                      : prompt,
                                      "total_tokens", prompt));
    return document;
}

static json_t *error(long code, const char *kind)
{
    return format_openai.error(code, kind);
}

const struct format format_embeddings = {.name = "embeddings",
                                         .key_header = "authorization",
                                         .key_prefix = "Bearer ",
                                         .read = read_request,
                                         .plain = plain,
                                         .error = error};
