#include "agents/lessons/lesson.h"

#include "agents/ideas/ideas.h"
#include "base/fields.h"
#include "base/hash.h"
#include "base/value.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { ID_MOST = 64, WORD_MOST = 80, LINE_MOST = 240, TUNE_MOST = 1200, PART_MOST = 60 };

static const char format_name[] = "twagent lesson 1";

#define LESSON(name, type, most)                                                                   \
    {                                                                                              \
        FIELD(lesson, type, name), most                                                            \
    }
#define PLACE(name, type, most)                                                                    \
    {                                                                                              \
        FIELD_AS(lesson, type, place.name, #name), most                                            \
    }

static const struct {
    struct field field;
    size_t most; /* bytes of a text */
} fields[] = {
    LESSON(id, TEXT, ID_MOST),
    PLACE(family, TEXT, WORD_MOST),
    PLACE(problem, TEXT, WORD_MOST),
    PLACE(problem_hash, TEXT, WORD_MOST),
    PLACE(backend, TEXT, WORD_MOST),
    PLACE(language, TEXT, WORD_MOST),
    PLACE(shape, TEXT, LINE_MOST),
    PLACE(dtype, TEXT, WORD_MOST),
    PLACE(device, TEXT, WORD_MOST),
    PLACE(device_family, TEXT, WORD_MOST),
    PLACE(cores, INT, 0),
    LESSON(title, TEXT, LINE_MOST),
    LESSON(category, TEXT, WORD_MOST),
    LESSON(name, TEXT, WORD_MOST),
    LESSON(source, TEXT, ID_MOST),
    LESSON(tune, JSON, TUNE_MOST),
    LESSON(limiter_before, TEXT, WORD_MOST),
    LESSON(limiter_after, TEXT, WORD_MOST),
    LESSON(verdict, TEXT, WORD_MOST),
    LESSON(reason, TEXT, LINE_MOST),
    LESSON(baseline, TEXT, WORD_MOST),
    LESSON(change, REAL, 0),
    LESSON(change_low, REAL, 0),
    LESSON(change_high, REAL, 0),
    LESSON(speedup, REAL, 0),
    LESSON(speedup_low, REAL, 0),
    LESSON(speedup_high, REAL, 0),
    LESSON(time_ns, REAL, 0),
    LESSON(point, BOOL, 0),
    LESSON(ended_ms, INT, 0),
};

enum { COUNT = sizeof fields / sizeof fields[0] };

/* ---- writing ---- */

void lesson_encode(const struct lesson *lesson, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_text(&json, "format", format_name);
    for (size_t i = 0; i < COUNT; i++)
        fields_put(&fields[i].field, 1, lesson, &json);
    json_object_end(&json);
}

void lesson_content(const struct lesson *lesson, char text[33])
{
    struct lesson nameless = *lesson;
    nameless.id = "";
    BUF_LOCAL(whole, 1 << 16);
    lesson_encode(&nameless, &whole);
    hash_format(hash_bytes(buf_text(&whole), whole.length), text);
}

/* ---- reading ---- */

/* Somebody else's text: one line, no more than so much of it, nothing that ends a quotation. */
static const char *cleaned(struct arena *arena, const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    while (length > 0 && length == most && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--; /* not amid a character */
    char *copy = arena_strndup(arena, text, length);
    for (char *at = copy; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            *at = ' ';
        if (*at == '`')
            *at = '\'';
    }
    return copy;
}

/* Numbers by name, written anew; NULL where it is anything else. */
static const char *numbers_of(struct arena *arena, const struct value *map, size_t most)
{
    bool right = map->kind == VALUE_MAP;
    JSON_LOCAL(json, text, most);
    json_object(&json);
    for (size_t i = 0; right && i < map->count; i++) {
        right = map->items[i]->kind == VALUE_INT;
        if (right)
            json_put_int(&json, map->keys[i], map->items[i]->integer);
    }
    json_object_end(&json);
    return right && text.dropped == 0 ? arena_strdup(arena, buf_text(&text)) : NULL;
}

static int take_field(struct arena *arena, const struct value *root, const struct field *field,
                      size_t most, struct lesson *lesson, struct err *err)
{
    static const char *const expected[] = {"a text", "an object of whole numbers", "a whole number",
                                           "a number, 0 or more", "true or false"};
    const struct value *item = value_get(root, field->key);
    char *at = (char *)lesson + field->offset;
    bool right = true;
    if (field->type <= FIELD_JSON)
        *(const char **)(void *)at = field->type == FIELD_TEXT ? "" : "{}";
    if (!item)
        return 0;
    if (field->type == FIELD_TEXT) {
        right = item->kind == VALUE_TEXT;
        if (right)
            *(const char **)(void *)at = cleaned(arena, item->text, most);
    } else if (field->type == FIELD_JSON) {
        const char *text = numbers_of(arena, item, most);
        right = text != NULL;
        if (right)
            *(const char **)(void *)at = text;
    } else if (field->type == FIELD_INT) {
        right = item->kind == VALUE_INT;
        *(int64_t *)(void *)at = item->integer;
    } else if (field->type == FIELD_REAL) {
        right = (item->kind == VALUE_REAL || item->kind == VALUE_INT) && isfinite(item->real) &&
                item->real >= 0;
        *(double *)(void *)at = item->real;
    } else {
        right = item->kind == VALUE_BOOL;
        *(bool *)at = item->boolean;
    }
    return right ? 0
                 : err_set(err, ERR_USAGE, "%s: expected %s", field->key, expected[field->type]);
}

static int check(const struct lesson *lesson, struct err *err)
{
    static const char *const verdicts[] = {"kernel", "rejected", "failed", NULL};
    if (!*lesson->id || !*lesson->place.family || !*lesson->place.backend || !*lesson->title)
        return err_set(err, ERR_USAGE, "id, family, backend and title may not be missing");
    if (!value_word_among(lesson->category, idea_categories))
        return err_set(err, ERR_USAGE, "category: there is no \"%s\"", lesson->category);
    if (!value_word_among(lesson->verdict, verdicts))
        return err_set(err, ERR_USAGE, "verdict: expected kernel, rejected or failed");
    if (strcmp(lesson->verdict, "kernel") == 0 && lesson->time_ns <= 0)
        return err_set(err, ERR_USAGE, "time_ns: a kernel took some time");
    if (lesson->change_low > lesson->change_high || lesson->speedup_low > lesson->speedup_high)
        return err_set(err, ERR_USAGE, "an interval ends before it begins");
    return 0;
}

int lesson_decode(struct arena *arena, const char *text, size_t length, struct lesson *lesson,
                  struct err *err)
{
    struct value *root;
    memset(lesson, 0, sizeof *lesson);
    if (value_parse_json(arena, "lesson", text, length, &root, err))
        return -1;
    if (strcmp(value_text(root, "format", ""), format_name) != 0)
        return err_set(err, ERR_USAGE, "format: expected \"%s\"", format_name);
    for (size_t i = 0; i < COUNT; i++)
        if (take_field(arena, root, &fields[i].field, fields[i].most, lesson, err))
            return -1;
    return check(lesson, err);
}

bool lesson_same_problem(const struct lesson_place *one, const struct lesson_place *other)
{
    const char *hash = one->problem_hash ? one->problem_hash : "";
    return strcmp(one->problem, other->problem) == 0 &&
           strcmp(hash, other->problem_hash ? other->problem_hash : "") == 0;
}

bool lesson_is_win(const struct lesson *lesson)
{
    return strcmp(lesson->verdict, "kernel") == 0 && lesson->change_low > 1;
}

/* ---- in the store ---- */

static const char *part(struct arena *arena, const char *text)
{
    char *copy = arena_strndup(arena, text, strnlen(text, PART_MOST));
    for (char *at = copy; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
            *at = '_';
    return copy;
}

const char *lesson_prefix(struct arena *arena, const char *family, const char *backend)
{
    return backend ? arena_printf(arena, "%s/%s/", part(arena, family), part(arena, backend))
                   : arena_printf(arena, "%s/", part(arena, family));
}

const char *lesson_key(struct arena *arena, const struct lesson *lesson)
{
    const struct lesson_place *place = &lesson->place;
    return arena_printf(arena, "%s%s", lesson_prefix(arena, place->family, place->backend),
                        part(arena, lesson->id));
}

struct scan {
    lesson_visit *visit;
    void *context;
    struct err *err;
    bool failed;
};

static bool visit_one(void *context, const char *key, const char *text, size_t length)
{
    struct scan *scan = context;
    struct arena *arena = arena_new_sized(8192);
    struct lesson lesson;
    scan->failed = lesson_decode(arena, text, length, &lesson, scan->err) != 0;
    if (scan->failed)
        (void)err_wrap(scan->err, "lesson %s", key);
    bool more = !scan->failed && scan->visit(scan->context, &lesson);
    arena_free(arena);
    return more;
}

int lesson_scan(struct store *store, const char *prefix, lesson_visit *visit, void *context,
                struct err *err)
{
    struct scan scan = {.visit = visit, .context = context, .err = err};
    if (store_scan(store, STORE_LESSONS, prefix, visit_one, &scan, err) || scan.failed)
        return -1;
    return 0;
}
