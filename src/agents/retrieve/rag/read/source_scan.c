#include "agents/retrieve/rag/read/source_scan.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t line_end(const char *text, size_t length, size_t at)
{
    const char *newline = memchr(text + at, '\n', length - at);
    return newline ? (size_t)(newline - text) + 1 : length;
}

size_t source_comment_end(const char *text, size_t length, size_t at)
{
    if (at + 1 < length && text[at + 1] == '*') {
        const char *close =
            at + 2 < length ? memmem(text + at + 2, length - at - 2, "*/", 2) : NULL;
        return close ? (size_t)(close - text) + 2 : length;
    }
    for (;;) {
        at = line_end(text, length, at);
        size_t next = at;
        while (next < length && (text[next] == ' ' || text[next] == '\t'))
            next++;
        if (next + 1 >= length || text[next] != '/' || text[next + 1] != '/')
            return at;
        at = next;
    }
}

size_t source_directive_end(const char *text, size_t length, size_t at)
{
    for (;;) {
        at = line_end(text, length, at);
        size_t last = at;
        while (last > 0 && (text[last - 1] == '\n' || text[last - 1] == '\r'))
            last--;
        if (at >= length || last == 0 || text[last - 1] != '\\')
            return at;
    }
}

static size_t skip_blanks(const char *text, size_t length, size_t at)
{
    while (at < length && (text[at] == ' ' || text[at] == '\t' || text[at] == '#'))
        at++;
    return at;
}

bool source_directive_is(const char *line, size_t length, const char *name)
{
    size_t at = skip_blanks(line, length, 0), size = strlen(name);
    return length - at > size && memcmp(line + at, name, size) == 0 && !is_letter(line[at + size]);
}

bool source_define_says_something(const char *line, size_t length)
{
    size_t at = skip_blanks(line, length, 0);
    while (at < length && is_letter(line[at])) /* "define" */
        at++;
    while (at < length && isblank((unsigned char)line[at]))
        at++;
    while (at < length && is_letter(line[at]))
        at++;
    while (at < length && isspace((unsigned char)line[at]))
        at++;
    return at < length;
}

/* `at` is at a quote; past the closing one, or at the end of the line where there is none. */
static size_t quoted_end(const char *text, size_t length, size_t at)
{
    char quote = text[at++];
    for (; at < length && text[at] != quote && text[at] != '\n'; at++)
        if (text[at] == '\\' && at + 1 < length)
            at++;
    return at < length ? at + 1 : length;
}

static bool has_word(const char *text, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = text; (at = memmem(at, length - (size_t)(at - text), word, size)); at++) {
        bool before = at == text || !is_letter(at[-1]);
        bool after = at + size == text + length || !is_letter(at[size]);
        if (before && after)
            return true;
    }
    return false;
}

static bool opens_scope(const char *head, size_t length)
{
    if (memchr(head, '(', length) != NULL || memchr(head, '=', length) != NULL)
        return false;
    return has_word(head, length, "namespace") ||
           (has_word(head, length, "extern") && memmem(head, length, "\"C", 2) != NULL);
}

/* Past the ';' that ends a type's declaration; a function's body has none. */
static size_t after_body(const char *text, size_t length, size_t at, bool type)
{
    if (!type)
        return at;
    size_t near = length - at < 200 ? length - at : 200; /* so that an endless line is linear */
    const char *end = memchr(text + at, ';', near);
    if (end == NULL)
        return at;
    return (size_t)(end - text) + 1;
}

static bool is_type(const char *head, size_t length)
{
    if (memchr(head, '(', length) != NULL && !has_word(head, length, "alignas") &&
        !has_word(head, length, "__align__") && !has_word(head, length, "__attribute__"))
        return false;
    return has_word(head, length, "struct") || has_word(head, length, "class") ||
           has_word(head, length, "union") || has_word(head, length, "enum") ||
           has_word(head, length, "typedef") || memchr(head, '=', length) != NULL;
}

void source_declaration_end(const char *text, size_t length, size_t at,
                            struct source_declaration *found)
{
    size_t start = at, braces = 0, round = 0;
    bool flush = start == 0 || text[start - 1] == '\n';
    *found = (struct source_declaration){.end = length};
    while (at < length) {
        char c = text[at], next = at + 1 < length ? text[at + 1] : '\0';
        if (c == '/' && (next == '*' || next == '/')) {
            at = source_comment_end(text, length, at);
            continue;
        }
        if (c == '"' || c == '\'') {
            at = quoted_end(text, length, at);
            continue;
        }
        if (c == '#' && (at == 0 || text[at - 1] == '\n')) { /* #if within a declaration */
            at = source_directive_end(text, length, at);
            continue;
        }
        round += c == '(';
        round -= c == ')' && round > 0;
        if (c == '{' && braces++ == 0 && found->body == 0) {
            found->body = at;
            if (opens_scope(text + start, at - start)) {
                found->scope = true;
                found->end = at + 1;
                return;
            }
        }
        /* Both branches of an #if may open a brace: one at the start of a line ends it all the
         * same. */
        if (c == '}' && flush && at > 0 && text[at - 1] == '\n' && braces > 0)
            braces = 1;
        at++;
        if (c == '}' && (braces == 0 || --braces == 0)) {
            if (found->body == 0) { /* closes what was open around it */
                found->end = at - 1 > start ? at - 1 : at;
                return;
            }
            if (round > 0) /* an initializer among arguments */
                continue;
            found->type = is_type(text + start, found->body - start);
            found->end = after_body(text, length, at, found->type);
            return;
        }
        if (c == ';' && braces == 0 && round == 0) {
            found->end = at;
            return;
        }
    }
}

static size_t identifier(const char *code, size_t end, const char **name)
{
    size_t start = end;
    while (start > 0 &&
           (is_letter(code[start - 1]) || code[start - 1] == ':' || code[start - 1] == '~'))
        start--;
    while (start < end && code[start] == ':')
        start++;
    *name = code + start;
    return end - start;
}

static bool is_noise(const char *name, size_t length)
{
    static const char *const noise[] = {"__attribute__",
                                        "__declspec",
                                        "alignas",
                                        "__align__",
                                        "noexcept",
                                        "decltype",
                                        "requires",
                                        "enable_if",
                                        "__launch_bounds__",
                                        "defined",
                                        "__device_builtin__",
                                        "__dv",
                                        "operator",
                                        "int",
                                        "if",
                                        "void",
                                        "static_assert",
                                        "sizeof"};
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++)
        if (strlen(noise[i]) == length && memcmp(noise[i], name, length) == 0)
            return true;
    return length == 0 || isdigit((unsigned char)name[0]);
}

static size_t name_after(const char *code, size_t length, const char *word, const char **name)
{
    size_t size = strlen(word);
    const char *at = memmem(code, length, word, size);
    if (at == NULL || (at > code && is_letter(at[-1])) || at + size >= code + length ||
        is_letter(at[size]))
        return 0;
    size_t from = (size_t)(at - code) + size;
    for (int words = 0; words < 4; words++) { /* past attributes, which carry parentheses */
        while (from < length && !is_letter(code[from]) && code[from] != '{' && code[from] != ';')
            from++;
        size_t end = from;
        while (end < length && (is_letter(code[end]) || code[end] == ':'))
            end++;
        while (end > from && code[end - 1] == ':')
            end--;
        *name = code + from;
        if (end == from)
            return 0;
        if ((end < length && code[end] == '(') || is_noise(*name, end - from) ||
            (end - from == 5 && memcmp(*name, "class", 5) == 0)) {
            from = end;
            continue;
        }
        return end - from;
    }
    return 0;
}

bool source_has_members(const char *head, size_t length)
{
    return memchr(head, '=', length) == NULL && !has_word(head, length, "enum") &&
           (has_word(head, length, "struct") || has_word(head, length, "class"));
}

bool source_is_enum(const char *head, size_t length)
{
    return memchr(head, '=', length) == NULL && has_word(head, length, "enum");
}

size_t source_enumerator_end(const char *text, size_t length, size_t at)
{
    size_t round = 0;
    while (at < length && (round > 0 || text[at] != ',')) {
        if (text[at] == '/' && at + 1 < length && (text[at + 1] == '*' || text[at + 1] == '/')) {
            at = source_comment_end(text, length, at);
            continue;
        }
        if (text[at] == '"' || text[at] == '\'') {
            at = quoted_end(text, length, at);
            continue;
        }
        round += text[at] == '(' || text[at] == '{';
        round -= (text[at] == ')' || text[at] == '}') && round > 0;
        at++;
    }
    return at;
}

static size_t last_name(const char *code, size_t length, const char **name)
{
    size_t end = length;
    while (end > 0 && !is_letter(code[end - 1]))
        end--;
    return identifier(code, end, name);
}

/* "template <typename T, int N = (1 > 0)>": past it; `at` is behind the word. */
static size_t template_end(const char *text, size_t length, size_t at)
{
    size_t angles = 0, round = 0;
    for (; at < length; at++) {
        round += text[at] == '(';
        round -= text[at] == ')' && round > 0;
        angles += text[at] == '<' && round == 0;
        if (text[at] == '>' && round == 0 && angles > 0 && --angles == 0)
            return at + 1;
        if (angles == 0 && !isspace((unsigned char)text[at]))
            return at;
    }
    return length;
}

/* Of the same length, with blanks where comments, strings and template parameters stand. */
static void blank_out(char *copy, const char *code, size_t length)
{
    memcpy(copy, code, length);
    for (size_t at = 0, end; at < length; at = end) {
        end = at + 1;
        if (code[at] == '/' && end < length && (code[end] == '*' || code[end] == '/'))
            end = source_comment_end(code, length, at);
        else if (code[at] == '"' || code[at] == '\'')
            end = quoted_end(code, length, at);
        else if (length - at > 8 && memcmp(code + at, "template", 8) == 0)
            end = template_end(code, length, at + 8);
        if (end > at + 1)
            memset(copy + at, ' ', end - at);
    }
}

/* A function's: what stands before a parenthesis that is in no other. */
static size_t function_name(const char *code, size_t length, const char **name)
{
    size_t depth = 0;
    for (size_t i = 0; i < length; i++) {
        size_t end = i;
        depth -= code[i] == ')' && depth > 0;
        if (code[i] != '(' || depth++ > 0)
            continue;
        while (end > 0 && isspace((unsigned char)code[end - 1]))
            end--;
        size_t found = identifier(code, end, name);
        if (found > 0 && !is_noise(*name, found))
            return found;
    }
    return last_name(code, length, name);
}

static size_t find_name(const char *code, size_t length, const char **name)
{
    static const char *const words[] = {"struct", "class", "union", "enum", "using", "concept"};
    const char *brace = memchr(code, '{', length);
    size_t head = brace ? (size_t)(brace - code) : length, found;
    if (length > 0 && code[0] == '#')
        return name_after(code, length, "define", name);
    if (has_word(code, head, "typedef"))
        return last_name(code, head, name);
    for (size_t i = 0; is_type(code, head) && i < sizeof words / sizeof words[0]; i++)
        if ((found = name_after(code, head, words[i], name)) > 0)
            return found;
    return function_name(code, head, name);
}

size_t source_name(const char *code, size_t length, const char **name)
{
    enum { LOOKED_AT = 4000 };
    char copy[LOOKED_AT];
    size_t part = length < LOOKED_AT ? length : LOOKED_AT;
    const char *brace = memchr(code, '{', part);
    size_t head = brace ? (size_t)(brace - code) : part;
    blank_out(copy, code, part);
    if (has_word(copy, head, "typedef") && (brace != NULL || memchr(copy, '(', head) == NULL))
        return last_name(code, length, name); /* behind the braces, however far that is */
    size_t found = find_name(copy, part, name);
    if (found > 0)
        *name = code + (*name - copy);
    return found;
}

void source_scope_name(const char *head, size_t length, char *name, size_t size)
{
    const char *found = head;
    size_t count = name_after(head, length, "namespace", &found);
    if (count == 0 && !(count = name_after(head, length, "struct", &found)))
        count = name_after(head, length, "class", &found);
    if (count >= size)
        count = size - 1;
    if (count > 0)
        memcpy(name, found, count);
    name[count] = '\0';
}

/* Where a line's own words begin: past blanks, slashes, stars, and what Doxygen adds to them. */
static size_t decoration(const char *line, size_t length)
{
    size_t at = 0;
    while (at < length && (isblank((unsigned char)line[at]) || line[at] == '*' || line[at] == '/' ||
                           line[at] == '!'))
        at++;
    return at > 0 && at < length && line[at] == '<' ? at + 1 : at;
}

void source_plain_comment(const char *text, size_t length, struct buf *out)
{
    while (length > 0 && (text[length - 1] == '/' || text[length - 1] == '*' ||
                          isspace((unsigned char)text[length - 1])))
        length--;
    for (size_t at = 0; at < length;) {
        size_t end = line_end(text, length, at), stop = end;
        while (stop > at && isspace((unsigned char)text[stop - 1]))
            stop--;
        size_t from = at + decoration(text + at, stop - at);
        static const char *const marks[] = {"\\brief ", "@brief ", "\\details ", "\\p "};
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
            if (stop - from > strlen(marks[i]) &&
                memcmp(text + from, marks[i], strlen(marks[i])) == 0)
                from += strlen(marks[i]);
        if (stop > from || (out->length > 0 && out->data[out->length - 1] != '\n')) {
            buf_add(out, text + from, stop - from);
            buf_add_char(out, '\n');
        }
        at = end;
    }
}

bool source_group(const char *text, size_t length, const char **title, size_t *title_length)
{
    const char *at = memmem(text, length, "defgroup ", 9), *end = text + length;
    if (at == NULL && memmem(text, length, "@}", 2) != NULL) { /* the group's end */
        *title_length = 0;
        return true;
    }
    if (at == NULL || memmem(text, length, "@{", 2) == NULL)
        return false; /* none, or one that is only described here */
    for (at += 9; at < end && !isspace((unsigned char)*at);)
        at++;
    while (at < end && *at == ' ')
        at++;
    const char *stop = at;
    while (stop < end && *stop != '\n' && *stop != '*')
        stop++;
    while (stop > at && isspace((unsigned char)stop[-1]))
        stop--;
    *title = at;
    *title_length = (size_t)(stop - at);
    return true;
}

static bool holds(const char *text, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++)
        if (strncasecmp(text + i, word, size) == 0)
            return true;
    return false;
}

bool source_is_licence(const char *text, size_t length)
{
    if (length > 8000)
        length = 8000;
    return holds(text, length, "copyright") || holds(text, length, "SPDX-License") ||
           holds(text, length, "all rights reserved");
}
