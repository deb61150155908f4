/* C, C++ and CUDA: a passage is a declaration with the comment above it. Namespaces, linkage blocks
 * and Doxygen groups are headings; a body that is long is left out; small neighbours without words
 * of their own (runs of #defines, lists of typedefs) share a passage. Not a parser: braces,
 * strings and comments are all that it knows, so that nothing in a header can lead it astray. */
#include "agents/retrieve/rag/read/chunker.h"
#include "agents/retrieve/rag/read/source_scan.h"

#include <ctype.h>
#include <string.h>

enum { BODY_MOST = 1500, SMALL = 400, NAMESPACES_MOST = 4 };

struct state {
    struct chunker *chunker;
    const char *text;
    size_t length, at;
    uint32_t line;
    struct buf comment; /* above what comes, without its decoration */
    uint32_t comment_line;
    char group[HEADING_MOST];
    char names[NAMESPACES_MOST][64];
    int depth; /* of namespaces, named and other transparent braces */
    struct buf title;
    bool small_open; /* the open passage is of neighbours without comments */
};

static void count_lines(struct state *state, size_t to)
{
    for (; state->at < to; state->at++)
        state->line += state->text[state->at] == '\n';
}

/* Heading 1 is the file, 2 the group, 3 the namespaces, 4 the declaration's name. */
static void set_headings(struct state *state, const char *title, size_t length)
{
    char scope[NAMESPACES_MOST * 66] = "";
    for (int i = 0; i < state->depth && i < NAMESPACES_MOST; i++) {
        if (state->names[i][0] == '\0')
            continue;
        if (scope[0] != '\0')
            strcat(scope, "::");
        strcat(scope, state->names[i]);
    }
    chunker_heading(state->chunker, 2, state->group, strlen(state->group));
    chunker_heading(state->chunker, 3, scope, strlen(scope));
    chunker_heading(state->chunker, 4, title, length);
}

static void end_small(struct state *state)
{
    if (state->small_open)
        chunker_flush(state->chunker);
    state->small_open = false;
}

/* A comment's text without stars and slashes; groups and licences are noted or dropped. */
static void take_comment(struct state *state, const char *text, size_t length)
{
    const char *group;
    size_t group_length;
    if (source_group(text, length, &group, &group_length)) {
        end_small(state);
        if (group_length >= sizeof state->group)
            group_length = sizeof state->group - 1;
        if (group_length > 0) /* the end of a group has no name, and no text */
            memcpy(state->group, group, group_length);
        state->group[group_length] = '\0';
    }
    if (source_is_licence(text, length)) {
        buf_reset(&state->comment);
        return;
    }
    if (state->comment.length == 0)
        state->comment_line = state->line;
    else
        buf_add_char(&state->comment, '\n');
    source_plain_comment(text, length, &state->comment);
}

/* An enumeration that is long is worth its every line, but not in one passage. */
static void add_code(struct state *state, const char *code, size_t length, uint32_t line)
{
    size_t from = 0, at = 0;
    struct text_line ignored;
    while (length > PASSAGE_MOST && text_line_next(code, length, &at, &ignored)) {
        if (at - from < PASSAGE_GOOD)
            continue;
        chunker_code(state->chunker, code + from, at - from, line, false);
        for (; from < at; from++)
            line += code[from] == '\n';
    }
    chunker_code(state->chunker, code + from, length - from, line, false);
}

struct named {
    const char *name;
    size_t length;
};

static void emit_named(struct state *state, struct named name, const char *code, size_t length,
                       size_t body, bool type, uint32_t line)
{
    BUF_LOCAL(shown, PASSAGE_MOST * 64);
    if (body > 0 && length > BODY_MOST && !type) { /* the signature says what a prompt needs */
        buf_add(&shown, code, body);
        buf_add_text(&shown, "{ ... }");
    } else {
        buf_add(&shown, code, length);
    }
    bool alone = state->comment.length > 0 || shown.length > SMALL;
    if (alone || !state->small_open || state->chunker->text.length > PASSAGE_GOOD / 2) {
        end_small(state);
        set_headings(state, name.name, name.length);
        state->small_open = !alone;
    }
    if (state->comment.length > 0)
        chunker_prose(state->chunker, buf_text(&state->comment), state->comment.length,
                      state->comment_line);
    add_code(state, buf_text(&shown), shown.length, line);
    if (alone)
        chunker_flush(state->chunker);
    buf_reset(&state->comment);
}

static void emit(struct state *state, const char *code, size_t length, size_t body, bool type,
                 uint32_t line)
{
    struct named name;
    name.length = source_name(code, length, &name.name);
    emit_named(state, name, code, length, body, type, line);
}

/* A comment of substance that no declaration followed: an introduction. */
static void emit_comment(struct state *state)
{
    if (state->comment.length > 120) {
        end_small(state);
        set_headings(state, "", 0);
        chunker_prose(state->chunker, buf_text(&state->comment), state->comment.length,
                      state->comment_line);
        chunker_flush(state->chunker);
    }
    buf_reset(&state->comment);
}

static void open_scope(struct state *state, const char *head, size_t length)
{
    emit_comment(state);
    end_small(state);
    if (state->depth < NAMESPACES_MOST)
        source_scope_name(head, length, state->names[state->depth], sizeof state->names[0]);
    state->depth++;
}

/* A preprocessor line: #define is a declaration, the others are nothing. */
static void directive(struct state *state)
{
    size_t end = source_directive_end(state->text, state->length, state->at);
    const char *start = state->text + state->at;
    uint32_t line = state->line;
    size_t length = end - state->at;
    bool define = source_directive_is(start, length, "define");
    count_lines(state, end);
    if (define && source_define_says_something(start, length))
        emit(state, start, length, 0, false, line);
    else if (!define)
        return;
    else
        buf_reset(&state->comment);
}

static void comment(struct state *state)
{
    size_t end = source_comment_end(state->text, state->length, state->at);
    const char *start = state->text + state->at;
    take_comment(state, start, end - state->at);
    count_lines(state, end);
}

/* Comments behind the enumerator's comma, on its line, are its own. */
static size_t trailing_comment(struct state *state, size_t at, size_t end)
{
    while (at < end && (state->text[at] == ' ' || state->text[at] == '\t'))
        at++;
    if (at + 1 >= end || state->text[at] != '/' ||
        (state->text[at + 1] != '*' && state->text[at + 1] != '/'))
        return at;
    size_t stop = source_comment_end(state->text, end, at);
    if (state->text[at + 1] == '/') { /* the next line's is the next one's */
        const char *newline = memchr(state->text + at, '\n', end - at);
        stop = newline ? (size_t)(newline - state->text) + 1 : end;
    }
    take_comment(state, state->text + at, stop - at);
    return stop;
}

/* What the system says of an error, a flag or a mode stands above its enumerator: a passage each.
 * From past the opening brace to before the closing one. */
static void enumerators(struct state *state, size_t end)
{
    while (state->at < end) {
        size_t at = state->at;
        char c = state->text[at], next = at + 1 < end ? state->text[at + 1] : '\0';
        if (isspace((unsigned char)c) || c == ',') {
            count_lines(state, at + 1);
        } else if (c == '/' && (next == '*' || next == '/')) {
            comment(state);
        } else if (c == '#') {
            count_lines(state, source_directive_end(state->text, end, at));
        } else {
            uint32_t line = state->line;
            size_t stop = source_enumerator_end(state->text, end, at);
            size_t after = trailing_comment(state, stop + (stop < end), end);
            size_t name = at;
            while (name < stop &&
                   (isalnum((unsigned char)state->text[name]) || state->text[name] == '_'))
                name++;
            emit_named(state, (struct named){state->text + at, name - at}, state->text + at,
                       stop - at, 0, false, line);
            count_lines(state, after > at ? after : at + 1);
        }
    }
    buf_reset(&state->comment);
}

static bool are_explained(const char *body, size_t length)
{
    return memmem(body, length, "/*", 2) != NULL || memmem(body, length, "//", 2) != NULL;
}

static void enumeration(struct state *state, const struct source_declaration *found)
{
    const char *start = state->text + state->at;
    struct named name;
    size_t body = found->body - state->at, end = found->end, braces = end;
    while (braces > found->body && state->text[braces - 1] != '}')
        braces--;
    size_t length = name.length = source_name(start, end - state->at, &name.name);
    emit_named(state, name, start, body, 0, true, state->line);
    end_small(state);
    if (state->depth < NAMESPACES_MOST) {
        size_t room = sizeof state->names[0] - 1;
        length = length < room ? length : room;
        memcpy(state->names[state->depth], name.name, length);
        state->names[state->depth][length] = '\0';
    }
    state->depth++;
    count_lines(state, found->body + 1);
    enumerators(state, braces > found->body ? braces - 1 : end);
    end_small(state);
    state->depth--;
    count_lines(state, end);
}

static void declaration(struct state *state)
{
    const char *start = state->text + state->at;
    uint32_t line = state->line;
    struct source_declaration found;
    source_declaration_end(state->text, state->length, state->at, &found);
    if (found.scope) {
        open_scope(state, start, found.body - state->at);
        count_lines(state, found.end);
        return;
    }
    size_t length = found.end - state->at;
    size_t body = found.body ? found.body - state->at : 0;
    if (found.type && body > 0 && length > SMALL && source_is_enum(start, body) &&
        are_explained(start + body, length - body)) {
        enumeration(state, &found);
        return;
    }
    if (found.type && length > BODY_MOST && source_has_members(start, body)) {
        emit(state, start, body, 0, true, line); /* its members are declarations of their own */
        open_scope(state, start, body);
        count_lines(state, found.body + 1);
        return;
    }
    count_lines(state, found.end);
    if (length > 1)
        emit(state, start, length, body, found.type, line);
}

/* Blank lines after a comment say that it belongs to nothing below. */
static void blanks(struct state *state)
{
    size_t at = state->at, lines = 0;
    while (at < state->length && isspace((unsigned char)state->text[at]))
        lines += state->text[at++] == '\n';
    if (lines >= 3 && state->comment.length > 0)
        emit_comment(state);
    count_lines(state, at);
}

void chunk_source(struct chunker *chunker, const char *text, size_t length)
{
    struct state state = {.chunker = chunker, .text = text, .length = length, .line = 1};
    buf_init(&state.comment, 1 << 20);
    while (state.at < length) {
        char c = text[state.at];
        char next = state.at + 1 < length ? text[state.at + 1] : '\0';
        if (isspace((unsigned char)c)) {
            blanks(&state);
        } else if (c == '/' && (next == '*' || next == '/')) {
            comment(&state);
        } else if (c == '#') {
            directive(&state);
        } else if (c == '}') {
            emit_comment(&state);
            end_small(&state);
            state.depth -= state.depth > 0;
            state.at++;
        } else if (c == ';') {
            state.at++;
        } else {
            declaration(&state);
        }
    }
    emit_comment(&state);
    end_small(&state);
    buf_free(&state.comment);
}
