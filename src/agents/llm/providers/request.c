#include "agents/llm/providers/request.h"

#include <ctype.h>
#include <string.h>

enum { TURN_MOST = 16 << 20 };

/* "v" and a digit begin the last part of the path. */
static bool ends_with_version(const char *base, size_t length)
{
    size_t at = length;
    while (at > 0 && base[at - 1] != '/')
        at--;
    return length - at >= 2 && base[at] == 'v' && isdigit((unsigned char)base[at + 1]);
}

const char *request_url(struct arena *arena, const char *base, const char *version,
                        const char *rest)
{
    size_t length = strlen(base);
    while (length > 0 && base[length - 1] == '/')
        length--;
    if (version == NULL || ends_with_version(base, length))
        return arena_printf(arena, "%.*s/%s", (int)length, base, rest);
    return arena_printf(arena, "%.*s/%s/%s", (int)length, base, version, rest);
}

const char *request_escape(struct arena *arena, const char *name)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = arena_alloc(arena, strlen(name) * 3 + 1), *at = out;
    for (; *name != '\0'; name++) {
        unsigned char byte = (unsigned char)*name;
        if ((byte < 0x80 && isalnum(byte)) || strchr("-._~/:@", byte) != NULL) {
            *at++ = *name;
            continue;
        }
        *at++ = '%';
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 15];
    }
    return out;
}

const char *const *request_headers(struct arena *arena, const char *prefix, const char *key,
                                   const char *const *more)
{
    size_t count = 0, filled = 0;
    while (more[count] != NULL)
        count++;
    const char **headers = arena_array(arena, count + 2, sizeof *headers);
    static const char *const whole[] = {"Bearer ", "AWS4-HMAC-SHA256 "}; /* the second one signs */
    bool authorizes = false;
    for (size_t i = 0; key != NULL && i < sizeof whole / sizeof whole[0]; i++)
        authorizes = authorizes || strncmp(key, whole[i], strlen(whole[i])) == 0;
    if (authorizes)
        headers[filled++] = arena_printf(arena, "authorization: %s", key);
    else if (key != NULL && *key != '\0')
        headers[filled++] = arena_printf(arena, "%s%s", prefix, key);
    memcpy(headers + filled, more, count * sizeof *more);
    return headers;
}

bool request_is_at(const char *url, const char *host)
{
    const char *begin = strstr(url, "://");
    if (begin == NULL)
        return false;
    begin += 3;
    size_t length = strcspn(begin, "/:?#"), wanted = strlen(host);
    if (length < wanted || strncasecmp(begin + length - wanted, host, wanted) != 0)
        return false;
    return length == wanted || begin[length - wanted - 1] == '.';
}

void request_more(struct json *json, const struct value *body, const char *merged)
{
    for (size_t i = 0; body != NULL && i < body->count; i++)
        if (merged == NULL || strcmp(body->keys[i], merged) != 0)
            json_put_value(json, body->keys[i], body->items[i]);
}

const char *request_turns(struct arena *arena, const char *earlier, const char *prompt,
                          const char *turn)
{
    if (turn == NULL)
        return NULL;
    JSON_LOCAL(json, item, TURN_MOST);
    request_message(&json, "user", prompt);
    return arena_printf(arena, "%s%s%s,%s", earlier != NULL ? earlier : "",
                        earlier != NULL ? "," : "", buf_text(&item), turn);
}

void request_message(struct json *json, const char *role, const char *content)
{
    json_object(json);
    json_put_text(json, "role", role);
    json_put_text(json, "content", content);
    json_object_end(json);
}

bool request_has(const char *name)
{
    static const char *const ours[] = {"model",
                                       "messages",
                                       "contents",
                                       "system",
                                       "stream",
                                       "stream_options",
                                       "max_tokens",
                                       "max_completion_tokens",
                                       "tools",
                                       "tool_choice",
                                       "response_format",
                                       "temperature",
                                       "maxOutputTokens",
                                       "responseMimeType",
                                       "responseJsonSchema",
                                       "n",
                                       "candidateCount",
                                       "input",
                                       "instructions",
                                       "text",
                                       "store",
                                       "max_output_tokens"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return false;
}
