#include "agents/ideas.h"

#include "agents/extract.h"
#include "base/value.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { TITLE_BYTES_MAX = 160, WHY_BYTES_MAX = 800, PARENT_BYTES_MAX = 39 };

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

/* White space folded to single blanks; cut at a character's edge. */
static char *tidy(struct arena *arena, const char *text, size_t most)
{
    char *out = arena_alloc(arena, strlen(text) + 1);
    size_t length = 0;
    for (; *text != '\0'; text++) {
        bool blank = isspace((unsigned char)*text) || iscntrl((unsigned char)*text);
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

static bool read_idea(struct arena *arena, const struct value *item, struct idea *idea)
{
    const char *title = tidy(arena, value_text(item, "title", ""), TITLE_BYTES_MAX);
    if (*title == '\0')
        return false;
    const struct value *expected = value_get(item, "expected");
    double gain = 0;
    if (expected != NULL && (expected->kind == VALUE_INT || expected->kind == VALUE_REAL))
        gain = expected->real;
    *idea = (struct idea){.title = title,
                          .category = category_of(value_text(item, "category", "")),
                          .why = tidy(arena, value_text(item, "why", ""), WHY_BYTES_MAX),
                          .parent = tidy(arena, value_text(item, "parent", ""), PARENT_BYTES_MAX),
                          .expected = isfinite(gain) && gain > 0 && gain < 1e6 ? gain : 0};
    return true;
}

int ideas_parse(struct arena *arena, const char *text, struct idea *ideas, size_t most,
                size_t *count, struct err *err)
{
    const char *json;
    size_t length;
    struct value *root;
    *count = 0;
    if (extract_json(arena, text, &json, &length, err) != 0)
        return -1;
    if (value_parse_json(arena, "ideas", json, length, &root, err) != 0) {
        if (err != NULL)
            err->code = ERR_PARSE;
        return -1;
    }
    const struct value *list = root->kind == VALUE_LIST ? root : value_get(root, "ideas");
    if (list != NULL && list->kind != VALUE_LIST)
        list = NULL;
    for (size_t i = 0; list != NULL && i < list->count && *count < most; i++) {
        struct idea idea;
        if (!read_idea(arena, list->items[i], &idea))
            continue;
        bool known = false;
        for (size_t j = 0; j < *count; j++)
            known |= same_title(ideas[j].title, idea.title);
        if (!known)
            ideas[(*count)++] = idea;
    }
    if (*count == 0)
        return err_set(err, ERR_PARSE,
                       "expected {\"ideas\": [{\"title\": ...}, ...]} with at least one title");
    return 0;
}
