#include "agents/ideas/ideas.h"

#include "agents/ideas/extract.h"
#include "base/value.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { TITLE_BYTES_MAX = 160, WHY_BYTES_MAX = 800, PARENT_BYTES_MAX = 39, DOCUMENTS_MAX = 16 };

const char *const idea_categories[] = {"memory",    "compute", "parallelism",
                                       "algorithm", "fusion",  "asynchrony",
                                       "precision", "tuning",  NULL};

const char ideas_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"ideas\"],"
    "\"properties\":{\"ideas\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"additionalProperties\":false,"
    "\"required\":[\"title\",\"category\",\"why\",\"expected\",\"parent\"],\"properties\":{"
    "\"title\":{\"type\":\"string\"},\"category\":{\"type\":\"string\",\"enum\":[\"memory\","
    "\"compute\",\"parallelism\",\"algorithm\",\"fusion\",\"asynchrony\",\"precision\","
    "\"tuning\"]},\"why\":{\"type\":\"string\"},\"expected\":{\"type\":\"number\"},"
    "\"parent\":{\"type\":\"string\"}}}}}}";

/* White space, and what no screen should be told, folded to single blanks; cut at a character's
 * edge. */
static char *tidy(struct arena *arena, const char *words, size_t most)
{
    char *text = arena_strdup(arena, words), *out = text;
    size_t length = 0;
    err_one_line(text);
    for (; *text != '\0'; text++) {
        bool blank = isspace((unsigned char)*text);
        if (blank && (length == 0 || out[length - 1] == ' '))
            continue;
        out[length++] = blank ? ' ' : *text;
    }
    while (length > 0 && out[length - 1] == ' ')
        length--;
    if (length > most) {
        length = most;
        while (length > 0 && ((unsigned char)out[length] & 0xC0) == 0x80)
            length--;
    }
    out[length] = '\0';
    return out;
}

static const char *category_of(const char *text)
{
    for (size_t i = 0; idea_categories[i] != NULL; i++)
        if (strncasecmp(text, idea_categories[i], strlen(idea_categories[i])) == 0)
            return idea_categories[i];
    return "compute";
}

/* Letters and digits alone, lower case: what makes two titles the same. */
static bool same_title(const char *a, const char *b)
{
    for (;;) {
        while (*a != '\0' && !isalnum((unsigned char)*a))
            a++;
        while (*b != '\0' && !isalnum((unsigned char)*b))
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

/* A number, or a text that is one: "1.3", "1.3x". */
static double number_of(struct arena *arena, const struct value *value)
{
    struct value *number;
    struct err ignored;
    if (value == NULL)
        return 0;
    if (value->kind == VALUE_TEXT) {
        size_t length = value->length;
        if (length > 1 && tolower((unsigned char)value->text[length - 1]) == 'x')
            length--;
        if (value_parse_json(arena, "number", value->text, length, &number, &ignored) != 0)
            return 0;
        value = number;
    }
    bool known = value->kind == VALUE_INT || value->kind == VALUE_REAL;
    return known && isfinite(value->real) && value->real > 0 && value->real < 1e6 ? value->real : 0;
}

static bool read_idea(struct arena *arena, const struct value *item, struct idea *idea)
{
    const char *title = tidy(arena, value_text(item, "title", ""), TITLE_BYTES_MAX);
    if (*title == '\0')
        return false;
    *idea = (struct idea){.title = title,
                          .category = category_of(value_text(item, "category", "")),
                          .why = tidy(arena, value_text(item, "why", ""), WHY_BYTES_MAX),
                          .parent = tidy(arena, value_text(item, "parent", ""), PARENT_BYTES_MAX),
                          .expected = number_of(arena, value_get(item, "expected"))};
    return true;
}

static size_t read_list(struct arena *arena, const struct value *list, struct idea *ideas,
                        size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count && count < most; i++) {
        struct idea idea;
        if (!read_idea(arena, list->items[i], &idea))
            continue;
        bool known = false;
        for (size_t j = 0; j < count; j++)
            known |= same_title(ideas[j].title, idea.title);
        if (!known)
            ideas[count++] = idea;
    }
    return count;
}

/* ---- what was wrong, in words that the model can do something with ---- */

static const char *kind_of(const struct value *value)
{
    static const char *const words[] = {
        [VALUE_NULL] = "null",     [VALUE_BOOL] = "a truth value", [VALUE_INT] = "a number",
        [VALUE_REAL] = "a number", [VALUE_TEXT] = "a text",        [VALUE_LIST] = "a list",
        [VALUE_MAP] = "an object"};
    return words[value->kind];
}

static int complain_object(const struct value *root, struct err *err)
{
    const struct value *ideas = value_get(root, "ideas");
    if (ideas != NULL)
        return err_set(err, ERR_PARSE, "\"ideas\" is %s, where a list of objects was expected",
                       kind_of(ideas));
    if (root->count == 0)
        return err_set(err, ERR_PARSE,
                       "the object is empty, where {\"ideas\": [...]} was expected");
    return err_set(err, ERR_PARSE,
                   "the object has no key \"ideas\" (its first key is \"%.40s\"); expected "
                   "{\"ideas\": [{\"title\": ...}, ...]}",
                   root->keys[0]);
}

static int complain_list(const struct value *list, struct err *err)
{
    if (list->count == 0)
        return err_set(err, ERR_PARSE, "the list of ideas is empty");
    const struct value *first = list->items[0];
    if (first->kind != VALUE_MAP)
        return err_set(err, ERR_PARSE,
                       "item 1 of %zu is %s, where an object with a \"title\" was expected",
                       list->count, kind_of(first));
    const struct value *title = value_get(first, "title");
    if (title == NULL)
        return err_set(err, ERR_PARSE, "none of the %zu items has a \"title\"", list->count);
    if (title->kind != VALUE_TEXT)
        return err_set(err, ERR_PARSE, "the \"title\" of item 1 is %s, where a text was expected",
                       kind_of(title));
    return err_set(err, ERR_PARSE, "the \"title\" of item 1 is empty");
}

/* One document of the answer; what is wrong with it is ERR_PARSE. */
static int read_document(struct arena *arena, const char *json, size_t length, struct idea *ideas,
                         size_t most, size_t *count, struct err *err)
{
    struct value *root;
    *count = 0;
    if (value_parse_json(arena, "line", extract_json_text(arena, json, length), length, &root,
                         err) != 0) {
        if (err != NULL)
            err->code = ERR_PARSE;
        return -1;
    }
    const struct value *list = root->kind == VALUE_LIST ? root : value_get(root, "ideas");
    if (list == NULL || list->kind != VALUE_LIST)
        return complain_object(root, err);
    *count = read_list(arena, list, ideas, most);
    return *count > 0 ? 0 : complain_list(list, err);
}

/* The first document that holds an idea counts. Where none does, the complaint is about the longest
 * one: the others are what prose has in brackets. */
int ideas_parse(struct arena *arena, const char *text, struct idea *ideas, size_t most,
                size_t *count, struct err *err)
{
    const char *at = text, *json;
    size_t length, longest = 0;
    struct err wrong = {0};
    *count = 0;
    for (int i = 0; i < DOCUMENTS_MAX && extract_json_next(&at, &json, &length); i++) {
        struct err found = {0};
        if (read_document(arena, json, length, ideas, most, count, &found) == 0)
            return 0;
        /* What is left of a list that was cut off: its first items, one by one. */
        if (longest == 0 && memmem(text, (size_t)(json - text), "\"ideas\"", 7) != NULL)
            return err_set(err, ERR_PARSE,
                           "the JSON never closes: it is cut off, or its brackets and quotes do "
                           "not match");
        if (length > longest) {
            longest = length;
            wrong = found;
        }
    }
    if (longest == 0) /* says why there is none */
        return extract_json(arena, text, &json, &length, err);
    return err_set(err, ERR_PARSE, "%s", wrong.message);
}
