/* YAML by libyaml's events. Plain scalars are resolved as YAML 1.2's core schema does, without
 * octal: `yes`, `no`, `on` and `off` stay text, and quoted scalars always do. */
#include "base/mem.h"
#include "base/utf8.h"
#include "base/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MOST = 64, NODES_MOST = 1000000 };

struct reader {
    struct arena *arena;
    const char *name;
    const char *text;
    size_t length;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one, owned */
    bool has_event;
    size_t nodes;
    struct err *err;
};

/* What a collection gathers before its size is known. */
struct gathered {
    struct value **items;
    const char **keys;
    int *lines;
    size_t count, capacity;
};

static int line_of(const struct reader *reader)
{
    return (int)reader->event.start_mark.line + 1;
}

/* The line of the last word before `index`: blank lines and comments between are passed over. */
static size_t line_before(const struct reader *reader, size_t index, size_t line)
{
    const char *text = reader->text;
    size_t at = index < reader->length ? index : reader->length;
    for (;;) {
        size_t start = at;
        while (start > 0 && text[start - 1] != '\n')
            start--;
        size_t word = start;
        while (word < at && strchr(" \t\r", text[word]) != NULL)
            word++;
        if ((word < at && text[word] != '#') || start == 0)
            return line;
        at = start - 1;
        line--;
    }
}

/* libyaml's mark is where it gave up: the next word, or the end, when something is missing before.
 */
static size_t line_of_problem(const struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *context = parser->context != NULL ? parser->context : "";
    const char *problem = parser->problem != NULL ? parser->problem : "";
    if (strcmp(context, "while scanning a simple key") == 0 ||
        strcmp(problem, "found unexpected end of stream") == 0)
        return parser->context_mark.line + 1;
    if (strncmp(context, "while parsing a flow", strlen("while parsing a flow")) == 0)
        return line_before(reader, parser->problem_mark.index, parser->problem_mark.line + 1);
    return parser->problem_mark.line + 1;
}

static int refuse_syntax(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        abort();
    size_t line = line_of_problem(reader);
    if (parser->error == YAML_READER_ERROR) { /* which knows only an offset */
        line = 1;
        for (size_t i = 0; i < parser->problem_offset && i < reader->length; i++)
            line += reader->text[i] == '\n';
    }
    return err_set(reader->err, ERR_USAGE, "%s:%d: expected YAML: %s%s%s", reader->name, (int)line,
                   parser->problem != NULL ? parser->problem : "cannot be read",
                   parser->context != NULL ? " " : "",
                   parser->context != NULL ? parser->context : "");
}

static int next_event(struct reader *reader)
{
    if (reader->has_event)
        yaml_event_delete(&reader->event);
    reader->has_event = false;
    if (!yaml_parser_parse(&reader->parser, &reader->event))
        return refuse_syntax(reader);
    reader->has_event = true;
    return 0;
}

static bool is_digits(const char *text, const char *end)
{
    if (text == end)
        return false;
    for (; text < end; text++)
        if (*text < '0' || *text > '9')
            return false;
    return true;
}

/* [0-9]+(\.[0-9]*)? or \.[0-9]+, then ([eE][-+]?[0-9]+)?; the sign is already past. */
static bool is_real(const char *text)
{
    const char *at = text;
    size_t digits = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        digits++;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            digits++;
    if (digits == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at++;
        if (*at == '-' || *at == '+')
            at++;
        return is_digits(at, at + strlen(at));
    }
    return *at == '\0';
}

static bool is_hex(const char *text)
{
    if (text[0] != '0' || text[1] != 'x' || text[2] == '\0')
        return false;
    return text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0';
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static int resolve_number(struct reader *reader, struct value *value)
{
    const char *text = value->text;
    const char *unsigned_text = text + (*text == '-' || *text == '+');
    bool hex = is_hex(unsigned_text);
    errno = 0;
    if (hex || is_digits(unsigned_text, text + value->length)) {
        value->kind = VALUE_INT;
        value->integer = strtoll(text, NULL, hex ? 16 : 10);
        value->real = (double)value->integer;
    } else if (is_real(unsigned_text)) {
        value->kind = VALUE_REAL;
        value->real = strtod(text, NULL);
        if (value->real > -1.0 && value->real < 1.0)
            errno = 0; /* too small is as good as zero */
    } else if (is_one_of(unsigned_text, ".inf", ".Inf", ".INF")) {
        value->kind = VALUE_REAL;
        value->real = *text == '-' ? -__builtin_inf() : __builtin_inf();
    } else if (is_one_of(text, ".nan", ".NaN", ".NAN")) {
        value->kind = VALUE_REAL;
        value->real = __builtin_nan("");
    }
    if (errno == ERANGE)
        return err_set(reader->err, ERR_USAGE, "%s:%d: expected a number of 64 bits, not \"%.80s\"",
                       reader->name, value->line, text);
    return 0;
}

static int resolve_plain(struct reader *reader, struct value *value)
{
    const char *text = value->text;
    if (*text == '\0' || strcmp(text, "~") == 0 || is_one_of(text, "null", "Null", "NULL")) {
        value->kind = VALUE_NULL;
    } else if (is_one_of(text, "true", "True", "TRUE")) {
        value->kind = VALUE_BOOL;
        value->boolean = true;
    } else if (is_one_of(text, "false", "False", "FALSE")) {
        value->kind = VALUE_BOOL;
    } else {
        return resolve_number(reader, value);
    }
    return 0;
}

/* Texts are C strings everywhere after this, so a NUL inside one is refused here. */
static const char *scalar_text(struct reader *reader)
{
    const char *bytes = (const char *)reader->event.data.scalar.value;
    size_t length = reader->event.data.scalar.length;
    if (memchr(bytes, '\0', length) != NULL) {
        err_set(reader->err, ERR_USAGE, "%s:%d: expected text without a NUL byte", reader->name,
                line_of(reader));
        return NULL;
    }
    return arena_strndup(reader->arena, bytes, length);
}

static int refuse_tag(struct reader *reader, const yaml_char_t *tag)
{
    return err_set(reader->err, ERR_USAGE, "%s:%d: expected no tag, not \"%.80s\"", reader->name,
                   line_of(reader), (const char *)tag);
}

static int refuse_anchor(struct reader *reader, const char *what)
{
    return err_set(reader->err, ERR_USAGE, "%s:%d: expected a value, not %s", reader->name,
                   line_of(reader), what);
}

static int read_scalar(struct reader *reader, struct value *value)
{
    const yaml_char_t *tag = reader->event.data.scalar.tag;
    bool text_tag = tag != NULL && (strcmp((const char *)tag, YAML_STR_TAG) == 0 ||
                                    strcmp((const char *)tag, "!") == 0);
    if (reader->event.data.scalar.anchor != NULL)
        return refuse_anchor(reader, "an anchor");
    if (tag != NULL && !text_tag)
        return refuse_tag(reader, tag);
    value->text = scalar_text(reader);
    if (value->text == NULL)
        return -1;
    value->length = reader->event.data.scalar.length;
    value->kind = VALUE_TEXT;
    if (text_tag || reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return 0;
    return resolve_plain(reader, value);
}

static void gather(struct gathered *gathered, const char *key, int line, struct value *item)
{
    if (gathered->count == gathered->capacity) {
        size_t capacity = gathered->capacity == 0 ? 8 : gathered->capacity * 2;
        gathered->items =
            (struct value **)mem_resize(gathered->items, capacity * sizeof(struct value *));
        gathered->keys =
            (const char **)mem_resize(gathered->keys, capacity * sizeof *gathered->keys);
        gathered->lines = (int *)mem_resize(gathered->lines, capacity * sizeof *gathered->lines);
        gathered->capacity = capacity;
    }
    gathered->items[gathered->count] = item;
    gathered->keys[gathered->count] = key;
    gathered->lines[gathered->count++] = line;
}

static void free_gathered(struct gathered *gathered)
{
    mem_free(gathered->items);
    mem_free(gathered->keys);
    mem_free(gathered->lines);
}

struct placed_key {
    const char *key;
    int line;
};

static int compare_keys(const void *left, const void *right)
{
    const struct placed_key *a = (const struct placed_key *)left;
    const struct placed_key *b = (const struct placed_key *)right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/* By sorting: a document of a million keys must not take a million squared. */
static int check_unique(struct reader *reader, const struct gathered *gathered)
{
    if (gathered->count < 2)
        return 0;
    struct placed_key *keys =
        (struct placed_key *)mem_array(gathered->count, sizeof(struct placed_key));
    for (size_t i = 0; i < gathered->count; i++)
        keys[i] = (struct placed_key){gathered->keys[i], gathered->lines[i]};
    qsort(keys, gathered->count, sizeof *keys, compare_keys);
    int result = 0;
    for (size_t i = 1; i < gathered->count && result == 0; i++)
        if (strcmp(keys[i - 1].key, keys[i].key) == 0)
            result = err_set(reader->err, ERR_USAGE,
                             "%s:%d: expected each key once, not \"%.80s\" again (line %d)",
                             reader->name, keys[i].line, keys[i].key, keys[i - 1].line);
    mem_free(keys);
    return result;
}

static struct value *read_node(struct reader *reader, int depth);

static int read_key(struct reader *reader, const char **key)
{
    if (reader->event.type == YAML_ALIAS_EVENT)
        return refuse_anchor(reader, "an alias");
    if (reader->event.type != YAML_SCALAR_EVENT)
        return err_set(reader->err, ERR_USAGE, "%s:%d: expected a key, not a list or a map",
                       reader->name, line_of(reader));
    if (reader->event.data.scalar.anchor != NULL)
        return refuse_anchor(reader, "an anchor");
    if (reader->event.data.scalar.tag != NULL)
        return refuse_tag(reader, reader->event.data.scalar.tag);
    *key = scalar_text(reader);
    return *key != NULL ? 0 : -1;
}

static int gather_items(struct reader *reader, struct gathered *gathered, bool map, int depth)
{
    yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    for (;;) {
        if (next_event(reader) != 0)
            return -1;
        if (reader->event.type == end)
            return 0;
        const char *key = NULL;
        int line = line_of(reader);
        if (map && (read_key(reader, &key) != 0 || next_event(reader) != 0))
            return -1;
        struct value *item = read_node(reader, depth);
        if (item == NULL)
            return -1;
        gather(gathered, key, line, item);
    }
}

static int read_items(struct reader *reader, struct value *value, bool map, int depth)
{
    struct gathered gathered = {0};
    int result = gather_items(reader, &gathered, map, depth);
    if (result == 0 && map)
        result = check_unique(reader, &gathered);
    if (result == 0) {
        size_t count = gathered.count;
        value->kind = map ? VALUE_MAP : VALUE_LIST;
        value->count = count;
        value->items = (struct value **)arena_array(reader->arena, count, sizeof(struct value *));
        if (count > 0)
            memcpy(value->items, gathered.items, count * sizeof(struct value *));
        if (map) {
            value->keys = (const char **)arena_array(reader->arena, count, sizeof *value->keys);
            value->key_lines = (int *)arena_array(reader->arena, count, sizeof(int));
            if (count > 0) {
                memcpy(value->keys, gathered.keys, count * sizeof *value->keys);
                memcpy(value->key_lines, gathered.lines, count * sizeof(int));
            }
        }
    }
    free_gathered(&gathered);
    return result;
}

static int read_collection(struct reader *reader, struct value *value, int depth)
{
    bool map = reader->event.type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag =
        map ? reader->event.data.mapping_start.tag : reader->event.data.sequence_start.tag;
    const yaml_char_t *anchor =
        map ? reader->event.data.mapping_start.anchor : reader->event.data.sequence_start.anchor;
    if (anchor != NULL)
        return refuse_anchor(reader, "an anchor");
    if (tag != NULL)
        return refuse_tag(reader, tag);
    return read_items(reader, value, map, depth + 1);
}

/* The node that the current event begins. */
static struct value *read_node(struct reader *reader, int depth)
{
    if (depth > DEPTH_MOST || ++reader->nodes > NODES_MOST) {
        err_set(reader->err, ERR_USAGE, "%s:%d: expected at most %d %s", reader->name,
                line_of(reader), depth > DEPTH_MOST ? DEPTH_MOST : NODES_MOST,
                depth > DEPTH_MOST ? "levels" : "values");
        return NULL;
    }
    struct value *value = ARENA_NEW(reader->arena, struct value);
    value->line = line_of(reader);
    int result;
    if (reader->event.type == YAML_ALIAS_EVENT)
        result = refuse_anchor(reader, "an alias");
    else if (reader->event.type == YAML_SCALAR_EVENT)
        result = read_scalar(reader, value);
    else
        result = read_collection(reader, value, depth);
    return result == 0 ? value : NULL;
}

static int next_events(struct reader *reader, int count)
{
    for (int i = 0; i < count; i++)
        if (next_event(reader) != 0)
            return -1;
    return 0;
}

static struct value *read_document(struct reader *reader)
{
    if (next_events(reader, 2) != 0) /* the starts of stream and document */
        return NULL;
    if (reader->event.type == YAML_STREAM_END_EVENT) { /* nothing at all is null, as in YAML */
        struct value *nothing = ARENA_NEW(reader->arena, struct value);
        nothing->line = 1;
        nothing->text = "";
        return nothing;
    }
    if (next_event(reader) != 0)
        return NULL;
    struct value *root = read_node(reader, 1);
    if (root == NULL || next_events(reader, 2) != 0) /* the document's end, and what follows */
        return NULL;
    if (reader->event.type != YAML_STREAM_END_EVENT) {
        err_set(reader->err, ERR_USAGE, "%s:%d: expected one document, not another one",
                reader->name, line_of(reader));
        return NULL;
    }
    return root;
}

int value_parse_yaml(struct arena *arena, const char *name, const char *text, size_t length,
                     struct value **root, struct err *err)
{
    MEM_LOCAL char *plain = mem_alloc(length + 1);
    length = utf8_plain(text, length, plain);
    text = plain;
    struct reader reader = {
        .arena = arena, .name = name, .text = text, .length = length, .err = err};
    if (!yaml_parser_initialize(&reader.parser))
        abort(); /* out of memory */
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
    struct value *tree = read_document(&reader);
    if (reader.has_event)
        yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (tree == NULL)
        return -1;
    *root = tree;
    return 0;
}
