#include "cli/mcp/results.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 64,
    KEPT_BYTES = 4 << 20, /* of one */
    PART = 500,           /* a member that is no longer is whole */
    ITEMS = 14000,        /* of a list that is cut: all problems that ship fit */
    TEXT = 2400,          /* of a text that is */
    PART_MOST = 60000,    /* of what `more` returns */
    MEMBERS_FEW = 8,      /* then the members are records, and shortened themselves */
    MESSAGE_MOST = 2000
};

struct results {
    unsigned long count;
    char *kept[KEPT]; /* JSON */
};

struct results *results_new(void)
{
    return MEM_NEW(struct results);
}

void results_free(struct results *results)
{
    for (size_t i = 0; i < KEPT; i++)
        mem_free(results->kept[i]);
    mem_free(results);
}

/* ---- shortening ---- */

struct shortening {
    struct json *out;
    struct json left; /* ["metrics", "device.flags"] */
};

static void leave(struct shortening *shortening, const char *path)
{
    if (shortening->left.depth == 0)
        json_array(&shortening->left);
    json_text(&shortening->left, path);
}

static size_t text_cut(const char *text, size_t length, size_t most)
{
    size_t cut = length < most ? length : most;
    while (cut > 0 && cut < length && ((unsigned char)text[cut] & 0xC0) == 0x80)
        cut--;
    return cut;
}

static bool says_nothing(const struct value *value)
{
    return value->kind == VALUE_NULL || (value->kind == VALUE_TEXT && value->length == 0) ||
           (value->kind == VALUE_MAP && value->count == 0);
}

/* Nobody reads more digits than these; `more` has them all. */
static void round_reals(struct value *value)
{
    char text[40];
    if (value->kind == VALUE_REAL) {
        snprintf(text, sizeof text, "%.5g", value->real);
        value->real = strtod(text, NULL);
    }
    for (size_t i = 0; i < value->count; i++)
        round_reals(value->items[i]);
}

static void put_list(struct shortening *shortening, const struct value *list)
{
    size_t begin = shortening->out->out->length;
    json_array(shortening->out);
    for (size_t i = 0; i < list->count; i++) {
        JSON_LOCAL(json, text, PART_MOST);
        json_value(&json, list->items[i]);
        if (text.dropped || shortening->out->out->length - begin + text.length > ITEMS)
            break;
        json_raw(shortening->out, buf_text(&text));
    }
    json_array_end(shortening->out);
}

static void put_members(struct shortening *shortening, const struct value *map, const char *path,
                        bool deeper);

static void put_member(struct shortening *shortening, const char *key, const struct value *value,
                       const char *path, bool deeper)
{
    BUF_LOCAL(text, PART);
    BUF_LOCAL(name, 200);
    struct json json = {.out = &text};
    json_value(&json, value);
    buf_addf(&name, "%s%s%s", path, *path ? "." : "", key);
    if (!text.dropped) {
        json_put_raw(shortening->out, key, buf_text(&text));
    } else if (value->kind == VALUE_TEXT) {
        size_t cut = text_cut(value->text, value->length, TEXT);
        json_key(shortening->out, key);
        json_text_n(shortening->out, value->text, cut);
        if (cut < value->length)
            leave(shortening, buf_text(&name));
    } else if (value->kind == VALUE_LIST) {
        json_key(shortening->out, key);
        put_list(shortening, value);
        leave(shortening, buf_text(&name));
    } else if (deeper) {
        json_put_object(shortening->out, key);
        put_members(shortening, value, buf_text(&name), false);
        json_object_end(shortening->out);
    } else {
        leave(shortening, buf_text(&name));
    }
}

static void put_members(struct shortening *shortening, const struct value *map, const char *path,
                        bool deeper)
{
    for (size_t i = 0; i < map->count; i++)
        if (!says_nothing(map->items[i]))
            put_member(shortening, map->keys[i], map->items[i], path, deeper);
}

static unsigned long keep(struct results *results, const char *text, size_t length)
{
    char **slot = &results->kept[results->count % KEPT];
    mem_free(*slot);
    *slot = length <= KEPT_BYTES ? mem_strdup(text) : NULL;
    return ++results->count;
}

/* The result as an object, at most a few thousand bytes; "more" says what else there is. Where a
 * person's words are there as well, they are the text beside it. */
static void shorten(struct results *results, struct value *root, const char *whole, size_t length,
                    struct buf *words, struct buf *out)
{
    BUF_LOCAL(left, 4000);
    struct json json = {.out = out};
    struct shortening shortening = {.out = &json, .left = {.out = &left}};
    const struct value *text = value_get(root, "text");
    bool apart = text && text->kind == VALUE_TEXT && root->count > 2;
    round_reals(root);
    json_object(&json);
    for (size_t i = 0; i < root->count; i++)
        if (!(apart && root->items[i] == text) && !says_nothing(root->items[i]))
            put_member(&shortening, root->keys[i], root->items[i], "", root->count <= MEMBERS_FEW);
    if (apart)
        buf_add(words, text->text, text_cut(text->text, text->length, ITEMS));
    if (apart && text->length > ITEMS)
        leave(&shortening, "text");
    if (shortening.left.depth > 0) {
        char id[32];
        snprintf(id, sizeof id, "e%lu", keep(results, whole, length));
        json_array_end(&shortening.left);
        json_put_object(&json, "more");
        json_put_text(&json, "result", id);
        json_put_raw(&json, "parts", buf_text(&left));
        json_object_end(&json);
        if (apart)
            buf_addf(words, "(the tool more has the rest: result %s, part one of %s)\n", id,
                     buf_text(&left));
    }
    json_object_end(&json);
    if (!apart)
        buf_add(words, buf_text(out), out->length);
}

/* ---- answers ---- */

static void put_content(struct json *json, const char *text)
{
    json_put_array(json, "content");
    json_object(json);
    json_put_text(json, "type", "text");
    json_put_text(json, "text", text);
    json_object_end(json);
    json_array_end(json);
}

void results_say(const char *facts, struct json *json)
{
    put_content(json, facts);
    json_put_raw(json, "structuredContent", facts);
    json_put_bool(json, "isError", false);
}

void results_refuse(const char *message, struct json *json)
{
    put_content(json, message);
    json_put_bool(json, "isError", true);
}

/* The last words, without whose they are. */
static void add_errors(const char *errors, struct buf *out)
{
    static const char prefix[] = "twagent: ";
    size_t length = strlen(errors);
    while (length > 0 && strchr(" \n", errors[length - 1]))
        length--;
    const char *at = errors + (length > MESSAGE_MOST ? length - MESSAGE_MOST : 0);
    if (strncmp(at, prefix, sizeof prefix - 1) == 0)
        at += sizeof prefix - 1;
    buf_add(out, at, (size_t)(errors + length - at));
}

static bool is_ours(const char *key)
{
    return strcmp(key, "more") == 0 || strcmp(key, "exit_code") == 0 || strcmp(key, "message") == 0;
}

/* An object: a list becomes its items, a text its text. A person's words, where the command printed
 * them too, stand before a NUL. */
static void as_object(const struct mcp_call *call, struct arena *arena, struct buf *out,
                      struct value **root)
{
    struct value *value = NULL;
    struct json json = {.out = out};
    const char *nul = memchr(call->output, '\0', call->output_length);
    const char *begin = nul ? nul + 1 : call->output;
    size_t length = call->output_length - (size_t)(begin - call->output);
    bool parsed = !call->output_dropped &&
                  value_parse_json(arena, "output", begin, length, &value, NULL) == 0;
    BUF_LOCAL(message, MESSAGE_MOST + 1);
    if (call->status != 0)
        add_errors(call->errors, &message);
    json_object(&json);
    for (size_t i = 0; parsed && value->kind == VALUE_MAP && i < value->count; i++)
        if (!is_ours(value->keys[i])) {
            json_put_value(&json, value->keys[i], value->items[i]);
        }
    if (parsed && value->kind != VALUE_MAP) {
        json_put_value(&json, "items", value);
    }
    if (!parsed || nul) {
        json_key(&json, "text");
        json_text_n(&json, nul ? call->output : begin, nul ? (size_t)(nul - call->output) : length);
    }
    json_put_int(&json, "exit_code", call->status);
    if (message.length > 0)
        json_put_text(&json, "message", buf_text(&message));
    json_object_end(&json);
    *root = NULL;
    if (value_parse_json(arena, "result", buf_text(out), out->length, &value, NULL) == 0)
        *root = value;
}

void results_answer(struct results *results, const struct mcp_call *call, struct json *json)
{
    BUF_LOCAL(text, 1 << 16);
    if (!call->exited) {
        buf_addf(&text, "the command was %s\n", call->how);
        add_errors(call->errors, &text);
        results_refuse(buf_text(&text), json);
        return;
    }
    if (call->output_length == 0 && call->status != 0) {
        add_errors(call->errors, &text);
        results_refuse(text.length ? buf_text(&text) : call->how, json);
        return;
    }
    ARENA_LOCAL(arena);
    BUF_LOCAL(whole, 64 << 20);
    BUF_LOCAL(words, 1 << 16);
    struct value *root;
    as_object(call, arena, &whole, &root);
    if (root)
        shorten(results, root, buf_text(&whole), whole.length, &words, &text);
    if (!root || text.dropped) {
        results_refuse("the result is too long", json);
        return;
    }
    put_content(json, buf_text(&words));
    json_put_raw(json, "structuredContent", buf_text(&text));
    json_put_bool(json, "isError", false);
}

/* ---- the rest ---- */

/* "evaluation.metrics": a key may have a point in it, so that the longest one that fits counts. */
static const struct value *part_of(const struct value *map, const char *part)
{
    for (size_t i = 0; map && map->kind == VALUE_MAP && i < map->count; i++) {
        size_t length = strlen(map->keys[i]);
        if (strncmp(map->keys[i], part, length) != 0)
            continue;
        if (part[length] == '\0')
            return map->items[i];
        const struct value *inner =
            part[length] == '.' ? part_of(map->items[i], part + length + 1) : NULL;
        if (inner)
            return inner;
    }
    return NULL;
}

int results_more(struct results *results, const char *id, const char *part, struct json *json,
                 struct err *err)
{
    ARENA_LOCAL(arena);
    JSON_LOCAL(out, text, PART_MOST);
    struct value *root = NULL;
    char *end = NULL;
    unsigned long number = *id == 'e' ? strtoul(id + 1, &end, 10) : 0;
    bool is = end && *end == '\0' && number >= 1 && number <= results->count &&
              number + KEPT > results->count;
    const char *kept = is ? results->kept[(number - 1) % KEPT] : NULL;
    if (!kept || value_parse_json(arena, "result", kept, strlen(kept), &root, NULL) != 0)
        return err_set(err, ERR_USAGE,
                       "no result \"%.40s\" is kept: the last %d that were "
                       "shortened are",
                       id, KEPT);
    const struct value *value = part_of(root, part);
    if (!value)
        return err_set(err, ERR_USAGE, "%.40s has no part \"%.80s\"", id, part);
    json_object(&out);
    json_put_value(&out, "part", value);
    json_object_end(&out);
    if (text.dropped)
        return err_set(err, ERR_USAGE,
                       "\"%.80s\" takes more than %d bytes: name a part of it (%.80s.KEY)", part,
                       PART_MOST, part);
    results_say(buf_text(&text), json);
    return 0;
}
