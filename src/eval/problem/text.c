#include "eval/problem/text.h"

#include "base/buf.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Names become parameters or macros of a candidate in C, C++, CUDA or WGSL, so that none may mean
 * something else there; `kernel` is the entry's name. */
static const char *const taken_names[] = {
    "alignas",      "alignof",  "asm",       "auto",     "bool",     "break",
    "case",         "catch",    "char",      "class",    "const",    "constexpr",
    "continue",     "decltype", "default",   "delete",   "do",       "double",
    "else",         "enum",     "explicit",  "export",   "extern",   "false",
    "float",        "for",      "friend",    "goto",     "if",       "inline",
    "int",          "kernel",   "long",      "main",     "mutable",  "namespace",
    "new",          "noexcept", "nullptr",   "operator", "private",  "protected",
    "public",       "register", "restrict",  "return",   "short",    "signed",
    "sizeof",       "static",   "struct",    "switch",   "template", "this",
    "thread_local", "throw",    "true",      "try",      "typedef",  "typeid",
    "typename",     "typeof",   "union",     "unsigned", "using",    "virtual",
    "void",         "volatile", "wchar_t",   "while",    "min",      "max",
    "ceil_div",     "round_up", "next_pow2", NULL};

int document_refuse(const struct document *document, int line, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return err_set(document->err, ERR_USAGE, "%s:%d: %s", document->name, line, message);
}

int document_key_line(const struct value *map, const char *key)
{
    for (size_t i = 0; map != NULL && map->kind == VALUE_MAP && i < map->count; i++)
        if (strcmp(map->keys[i], key) == 0)
            return map->key_lines != NULL ? map->key_lines[i] : map->line;
    return map != NULL ? map->line : 1;
}

int document_check_name(const struct document *document, int line, const char *what,
                        const char *name)
{
    bool fine = isalpha((unsigned char)name[0]) && strlen(name) <= 63;
    for (const char *at = name; *at != '\0'; at++)
        fine = fine && (isalnum((unsigned char)*at) || *at == '_') && !(*at & 0x80);
    if (!fine)
        return document_refuse(document, line,
                               "expected %s (letters, digits, _; at most 63), not \"%.80s\"", what,
                               name);
    for (size_t i = 0; taken_names[i] != NULL; i++)
        if (strcmp(taken_names[i], name) == 0)
            return document_refuse(document, line, "expected %s, not the reserved word \"%s\"",
                                   what, name);
    return 0;
}

struct name_search {
    const struct document *document;
    char unknown[64];
};

static void note_unknown(void *context, const char *name)
{
    struct name_search *search = (struct name_search *)context;
    if (search->unknown[0] == '\0' && !search->document->known(search->document->context, name))
        snprintf(search->unknown, sizeof search->unknown, "%s", name);
}

static int parse_text(const struct document *document, int line, const char *text,
                      const struct expr **expr)
{
    if (expr_parse(document->arena, text, expr, document->err) != 0) {
        if (document->err != NULL)
            document->err->code = ERR_USAGE;
        return err_wrap(document->err, "%s:%d", document->name, line);
    }
    struct name_search search = {.document = document};
    if (document->known != NULL)
        expr_names(*expr, note_unknown, &search);
    if (search.unknown[0] != '\0')
        return document_refuse(document, line, "expected %s, not \"%s\"", document->known_as,
                               search.unknown);
    return 0;
}

static bool is_scalar(const struct value *value)
{
    return value != NULL && (value->kind == VALUE_INT || value->kind == VALUE_TEXT ||
                             value->kind == VALUE_REAL || value->kind == VALUE_BOOL);
}

int document_expr(const struct document *document, const struct value *value,
                  const struct expr **expr, const char **text)
{
    assert(value != NULL);
    if (!is_scalar(value))
        return document_refuse(document, value->line, "expected a number or an expression");
    if (text != NULL)
        *text = value->text;
    return parse_text(document, value->line, value->text, expr);
}

/* Cuts at commas outside parentheses. */
static int cut_pieces(const struct document *document, int line, const char *text, const char *what,
                      size_t max, const char **pieces, size_t *count)
{
    size_t cut = 0;
    int depth = 0;
    const char *begin = text;
    for (const char *at = text;; at++) {
        depth += (*at == '(') - (*at == ')');
        if (*at != '\0' && (*at != ',' || depth > 0))
            continue;
        if (cut == max)
            return document_refuse(document, line, "expected at most %zu expressions for %s", max,
                                   what);
        const char *end = at;
        while (begin < end && isspace((unsigned char)*begin))
            begin++;
        while (end > begin && isspace((unsigned char)end[-1]))
            end--;
        pieces[cut++] = arena_strndup(document->arena, begin, (size_t)(end - begin));
        if (*at == '\0')
            break;
        begin = at + 1;
    }
    *count = cut;
    return 0;
}

int document_exprs(const struct document *document, const struct value *value, const char *what,
                   size_t max, const struct expr **exprs, const char **texts, size_t *count)
{
    const char *pieces[16] = {NULL};
    assert(max <= sizeof pieces / sizeof pieces[0]);
    *count = 0;
    if (value->kind == VALUE_LIST && value->count == 0)
        return 0;
    bool scalars = value->kind == VALUE_LIST;
    for (size_t i = 0; scalars && i < value->count; i++)
        scalars = is_scalar(value->items[i]);
    if (!scalars && !is_scalar(value))
        return document_refuse(document, value->line, "expected expressions for %s", what);
    BUF_LOCAL(joined, 8192);
    if (value->kind == VALUE_LIST)
        for (size_t i = 0; i < value->count; i++)
            buf_addf(&joined, "%s%s", i > 0 ? ", " : "", value->items[i]->text);
    else
        buf_add_text(&joined, value->text);
    int result = 0;
    if (joined.dropped > 0)
        result = document_refuse(document, value->line, "expected at most 8192 bytes for %s", what);
    else
        result = cut_pieces(document, value->line, buf_text(&joined), what, max, pieces, count);
    for (size_t i = 0; result == 0 && i < *count; i++) {
        result = parse_text(document, value->line, pieces[i], &exprs[i]);
        if (texts != NULL)
            texts[i] = pieces[i];
    }
    return result;
}

static int read_dtype(const struct document *document, const struct value *map, const char *name,
                      int line, enum dtype *dtype)
{
    const struct value *value = value_get(map, "dtype");
    if (value != NULL && value->text != NULL && dtype_parse(value->text, dtype))
        return 0;
    return document_refuse(document, value != NULL ? value->line : line,
                           "expected a dtype for \"%s\": float32, float64, int32, float16 or "
                           "bfloat16",
                           name);
}

static bool is_number(const struct value *value)
{
    return (value->kind == VALUE_INT || value->kind == VALUE_REAL) && isfinite(value->real);
}

static int read_range(const struct document *document, const struct value *map,
                      struct tensor_spec *tensor)
{
    const struct value *range = value_get(map, "range");
    tensor->low = 1.0; /* low > high: no bounds */
    tensor->high = -1.0;
    if (range == NULL)
        return 0;
    for (size_t i = 0; range->kind == VALUE_LIST && i < range->count; i++)
        if (range->items[i]->kind == VALUE_REAL && isinf(range->items[i]->real))
            return document_refuse(document, range->line,
                                   "expected finite numbers in a range: leave it out where nothing "
                                   "bounds an input, `non_finite: propagate` draws infinities");
    if (range->kind != VALUE_LIST || range->count != 2 || !is_number(range->items[0]) ||
        !is_number(range->items[1]) || range->items[0]->real > range->items[1]->real)
        return document_refuse(document, range->line, "expected range: [low, high]");
    tensor->low = range->items[0]->real;
    tensor->high = range->items[1]->real;
    double most = dtype_max(tensor->dtype);
    if (tensor->low < -most || tensor->high > most)
        return document_refuse(document, range->line, "expected a range inside %s's",
                               dtype_name(tensor->dtype));
    return 0;
}

int document_tensor(const struct document *document, const char *name, int line,
                    const struct value *map, bool ranged, struct tensor_spec *tensor)
{
    static const char *const with_range[] = {"shape", "dtype", "range", NULL};
    static const char *const without[] = {"shape", "dtype", NULL};
    if (document_check_name(document, line, "a tensor's name", name) != 0)
        return -1;
    if (map->kind != VALUE_MAP)
        return document_refuse(document, line, "expected {shape: [...], dtype: ...} for \"%s\"",
                               name);
    if (value_check_keys(map, document->name, ranged ? with_range : without, document->err) != 0)
        return -1;
    const struct value *shape = value_get(map, "shape");
    if (shape == NULL || shape->kind == VALUE_NULL)
        return document_refuse(document, line, "expected a shape for \"%s\"", name);
    tensor->name = arena_strdup(document->arena, name);
    if (document_exprs(document, shape, "a shape", RANK_MAX, tensor->shape, tensor->shape_text,
                       &tensor->rank) != 0)
        return -1;
    if (read_dtype(document, map, name, line, &tensor->dtype) != 0)
        return -1;
    return read_range(document, map, tensor);
}
