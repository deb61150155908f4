#include "eval/cuda/compile/ptx.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct word { /* not terminated */
    const char *at;
    size_t length;
};

struct names {
    struct word *words;
    size_t count, room;
};

struct reading {
    const char *at, *end;
    char before; /* the character before `word`, blanks and comments counted as one blank */
    struct word word;
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

static bool is_word(struct word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

static int compare(const void *left, const void *right)
{
    const struct word *a = (const struct word *)left, *b = (const struct word *)right;
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->at, b->at, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static void add(struct names *names, struct word word)
{
    MEM_MORE(names->words, names->count, names->room);
    names->words[names->count++] = word;
}

/* Past `stop`, which begins at `from` or later; the end where it is not there. */
static const char *past(const struct reading *r, size_t from, const char *stop)
{
    size_t left = (size_t)(r->end - r->at), length = strlen(stop);
    const char *at =
        left > from ? (const char *)memmem(r->at + from, left - from, stop, length) : NULL;
    return at != NULL ? at + length : r->end;
}

/* Past blanks, comments and strings; true where there were any. */
static bool skip_blank(struct reading *r)
{
    const char *begun = r->at;
    while (r->at < r->end) {
        bool slash = *r->at == '/' && r->at + 1 < r->end;
        if (isspace((unsigned char)*r->at))
            r->at++;
        else if (slash && r->at[1] == '/')
            r->at = past(r, 2, "\n");
        else if (slash && r->at[1] == '*')
            r->at = past(r, 2, "*/");
        else if (*r->at == '"')
            r->at = past(r, 1, "\"");
        else
            break;
    }
    return r->at > begun;
}

/* A name, a directive with its dot, or one other character. False at the end. */
static bool next(struct reading *r)
{
    char last = r->word.length > 0 ? r->word.at[r->word.length - 1] : ' ';
    r->before = skip_blank(r) ? ' ' : last;
    if (r->at >= r->end)
        return false;
    r->word = (struct word){r->at, 1};
    bool dot = *r->at == '.';
    if (!dot && !is_name(*r->at++))
        return true;
    r->at += dot;
    while (r->at < r->end && is_name(*r->at))
        r->at++;
    r->word.length = (size_t)(r->at - r->word.at);
    return true;
}

/* ".global", and not the middle of "ld.global". */
static bool declares(const struct reading *r)
{
    return !is_name(r->before) &&
           (is_word(r->word, ".global") || is_word(r->word, ".const") || is_word(r->word, ".tex"));
}

/* After such a word, up to the semicolon: the names before each "=", at no depth. */
static bool read_declaration(struct reading *r, struct names *names)
{
    int depth = 0;
    bool initial = false;
    while (next(r)) {
        char c = *r->word.at;
        if (c == ';' && depth == 0)
            return true;
        depth += (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
        initial = depth == 0 && c == '=' ? true : depth == 0 && c == ',' ? false : initial;
        if (depth == 0 && !initial && is_name(c) && !isdigit((unsigned char)c))
            add(names, r->word);
    }
    return false;
}

/* Inside of braces, up to theirs. */
static bool read_body(struct reading *r, struct names *names)
{
    for (int depth = 1; depth > 0;) {
        if (!next(r) || declares(r))
            return false;
        char c = *r->word.at;
        depth += (c == '{') - (c == '}');
        if (is_name(c) && !isdigit((unsigned char)c))
            add(names, r->word);
    }
    return true;
}

static bool any_of(struct names *declared, const struct names *named)
{
    bool found = false;
    if (declared->count == 0)
        return false;
    qsort(declared->words, declared->count, sizeof *declared->words, compare);
    for (size_t i = 0; i < named->count && !found; i++)
        found = bsearch(&named->words[i], declared->words, declared->count, sizeof *declared->words,
                        compare) != NULL;
    return found;
}

bool ptx_uses_variables(const char *text, size_t length)
{
    struct reading r = {.at = text, .end = text + length, .word = {"", 0}};
    struct names declared = {0}, named = {0};
    bool known = true;
    while (known && next(&r)) {
        if (declares(&r))
            known = read_declaration(&r, &declared);
        else if (*r.word.at == '{')
            known = read_body(&r, &named);
    }
    bool uses = !known || any_of(&declared, &named);
    mem_free(declared.words);
    mem_free(named.words);
    return uses;
}
