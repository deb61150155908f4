/* HTML: tags are dropped, headings and <pre> keep their meaning, blocks are paragraphs; what is no
 * content (scripts, styles, navigation) is left out. No tree is built, so that no nesting costs
 * anything. */
#include "agents/retrieve/rag/read/chunker.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct state {
    struct chunker *chunker;
    const char *text;
    size_t length, at;
    uint32_t line, first; /* now; where the open block starts */
    struct buf block;
    bool pre;
};

struct tag {
    char name[16];
    bool closes;
};

static const char *const left_out[] = {"script", "style", "nav",    "head",  "noscript",
                                       "svg",    "form",  "footer", "aside", "template"};
static const char *const blocks[] = {
    "p",       "div",   "li",      "ul",   "ol",         "dl",    "dt",     "dd",     "tr",
    "section", "table", "br",      "hr",   "blockquote", "h1",    "h2",     "h3",     "h4",
    "h5",      "h6",    "article", "main", "body",       "title", "figure", "caption"};

static bool one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}
#define ONE_OF(name, names) one_of((name), (names), sizeof(names) / sizeof(names)[0])

/* state->at is at '<'; moves past the tag or comment. A '<' that begins none is text. */
static bool read_tag(struct state *state, struct tag *tag)
{
    const char *at = state->text + state->at, *end = state->text + state->length;
    size_t used = 0;
    *tag = (struct tag){0};
    if (end - at >= 4 && memcmp(at, "<!--", 4) == 0) {
        const char *close = memmem(at, (size_t)(end - at), "-->", 3);
        const char *to = close ? close + 3 : end;
        for (; at < to; at++)
            state->line += *at == '\n';
        state->at = (size_t)(at - state->text);
        return true;
    }
    const char *name = at + 1;
    if (name < end && *name == '/') {
        tag->closes = true;
        name++;
    }
    if (name >= end || !(isalpha((unsigned char)*name) || *name == '!' || *name == '?'))
        return false;
    for (; name < end && isalnum((unsigned char)*name) && used + 1 < sizeof tag->name; name++)
        tag->name[used++] = (char)tolower((unsigned char)*name);
    char quote = 0;
    for (at = name; at < end && (quote || *at != '>'); at++) {
        state->line += *at == '\n';
        if (quote ? *at == quote : *at == '"' || *at == '\'')
            quote = quote ? 0 : *at;
    }
    state->at = (size_t)(at - state->text) + (at < end);
    return true;
}

static size_t put_code_point(unsigned long code, char *to)
{
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        to[0] = (char)(code < ' ' && code != '\n' && code != '\t' ? ' ' : code);
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)((length == 2 ? 0xc0 : length == 3 ? 0xe0 : 0xf0) | code);
    return length;
}

/* state->at is at '&'. */
static void read_entity(struct state *state)
{
    static const struct {
        const char *name, *text;
    } names[] = {{"amp", "&"},    {"lt", "<"},    {"gt", ">"},    {"quot", "\""}, {"apos", "'"},
                 {"nbsp", " "},   {"ndash", "-"}, {"mdash", "-"}, {"times", "x"}, {"hellip", "..."},
                 {"rarr", "->"},  {"le", "<="},   {"ge", ">="},   {"lsquo", "'"}, {"rsquo", "'"},
                 {"ldquo", "\""}, {"rdquo", "\""}};
    const char *at = state->text + state->at + 1;
    size_t left = state->length - state->at - 1, length = 0;
    char name[12] = "", letter[4];
    while (length < left && length + 1 < sizeof name && at[length] != ';' && at[length] > ' ')
        length++;
    if (length < left && at[length] == ';') {
        memcpy(name, at, length);
        if (name[0] == '#') {
            bool hex = name[1] == 'x' || name[1] == 'X';
            size_t size =
                put_code_point(strtoul(name + (hex ? 2 : 1), NULL, hex ? 16 : 10), letter);
            buf_add(&state->block, letter, size);
            state->at += length + 2;
            return;
        }
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (strcmp(names[i].name, name) != 0)
                continue;
            buf_add_text(&state->block, names[i].text);
            state->at += length + 2;
            return;
        }
    }
    buf_add_char(&state->block, '&');
    state->at++;
}

static void end_block(struct state *state, const char *closed)
{
    const char *text = buf_text(&state->block);
    size_t length = state->block.length;
    while (!state->pre && length > 0 && (unsigned char)text[0] <= ' ') {
        text++;
        length--;
    }
    bool heading = closed[0] == 'h' && closed[1] >= '1' && closed[1] <= '6' && closed[2] == '\0';
    if (length > 0 && state->pre)
        chunker_code(state->chunker, text, length, state->first, true);
    else if (length > 0 && heading)
        chunker_heading(state->chunker, closed[1] - '0', text, length);
    else if (length > 0 && strcmp(closed, "title") != 0)
        chunker_prose(state->chunker, text, length, state->first);
    buf_reset(&state->block);
    state->first = state->line;
}

/* Past the next "</name"; a '<' in a script begins nothing. */
static void skip_to_end_of(struct state *state, const char *name)
{
    size_t size = strlen(name);
    struct tag tag;
    while (state->at < state->length) {
        const char *here = state->text + state->at;
        size_t left = state->length - state->at;
        if (*here == '<' && left > size + 2 && here[1] == '/' &&
            strncasecmp(here + 2, name, size) == 0 && !isalnum((unsigned char)here[2 + size])) {
            (void)read_tag(state, &tag);
            return;
        }
        state->line += *here == '\n';
        state->at++;
    }
}

static void take_tag(struct state *state, const struct tag *tag)
{
    if (!tag->closes && ONE_OF(tag->name, left_out)) {
        skip_to_end_of(state, tag->name);
    } else if (strcmp(tag->name, "pre") == 0) {
        if (state->pre == tag->closes) { /* a second <pre> inside of one changes nothing */
            end_block(state, "");
            state->pre = !tag->closes;
        }
    } else if (!state->pre && ONE_OF(tag->name, blocks)) {
        end_block(state, tag->closes ? tag->name : "");
    }
}

void chunk_html(struct chunker *chunker, const char *text, size_t length)
{
    struct state state = {
        .chunker = chunker, .text = text, .length = length, .line = 1, .first = 1};
    buf_init(&state.block, (size_t)64 << 20);
    while (state.at < length) {
        struct tag tag;
        char c = text[state.at];
        if (c == '<' && read_tag(&state, &tag)) {
            take_tag(&state, &tag);
        } else if (c == '&') {
            read_entity(&state);
        } else {
            bool blank = (unsigned char)c <= ' ' && !state.pre;
            state.line += c == '\n';
            if (state.block.length == 0)
                state.first = state.line;
            if (!blank)
                buf_add_char(&state.block, c);
            else if (state.block.length > 0 && state.block.data[state.block.length - 1] != ' ')
                buf_add_char(&state.block, ' ');
            state.at++;
        }
    }
    end_block(&state, "");
    buf_free(&state.block);
}
