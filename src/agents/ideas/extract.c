/* Code from an answer's fences. Two readings of the same text, each a function of the text alone:
 *
 *   strict  fences as Markdown has them, nested ones closed first
 *   loose   where the strict reading finds no definition: fences at any depth of indentation; one
 *           with a language inside an open one means that the open one was forgotten, and a closing
 *           one may have words after it ("``` (end)")
 *
 * Without a fence: what stands between <code> and </code>, or the source alone, between prose. A
 * block that is a diff is taken where it makes a whole file.
 */
#include "agents/ideas/extract.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

/* How well a block answers; of equals the last one wins. */
enum worth { WORTH_NONE, WORTH_ANY, WORTH_MATTER, WORTH_NAMED, WORTH_DEFINED };

struct span {
    const char *start;
    size_t length;
};

struct fence {
    char mark;
    size_t width;
    bool bare;        /* nothing follows the marks */
    bool spaced;      /* a blank, then words: no language */
    const char *body; /* what it opens */
};

struct line {
    const char *start, *end, *next; /* end is before the newline */
};

struct found {
    const char *entry;
    size_t blocks;
    enum worth worth; /* of the best one so far */
    struct span best;
    bool unclosed;
};

static struct line line_at(const char *text, const char *stop)
{
    struct line line = {.start = text};
    const char *end = memchr(text, '\n', (size_t)(stop - text));
    line.end = end != NULL ? end : stop;
    line.next = end != NULL ? end + 1 : stop;
    if (line.end > line.start && line.end[-1] == '\r')
        line.end--;
    return line;
}

static bool fence_line(const struct line *line, bool loose, struct fence *fence)
{
    const char *at = line->start;
    while (at < line->end && (*at == ' ' || (loose && *at == '\t')))
        at++;
    if ((!loose && at - line->start > 3) || at == line->end || (*at != '`' && *at != '~'))
        return false;
    const char *marks = at;
    while (at < line->end && *at == *marks)
        at++;
    *fence = (struct fence){.mark = *marks, .width = (size_t)(at - marks), .body = line->next};
    if (fence->width < 3 || (*marks == '`' && memchr(at, '`', (size_t)(line->end - at)) != NULL))
        return false; /* ```inline code``` is no fence */
    const char *info = at;
    while (at < line->end && isspace((unsigned char)*at))
        at++;
    fence->bare = at == line->end;
    fence->spaced = !fence->bare && at > info;
    return true;
}

/* ---- what a block holds ---- */

/* Past the parenthesis that closes the one at `at`; NULL where it never does, or where there are
 * more inside than a list of parameters has (which keeps the search linear, too). */
static const char *past_parenthesis(const char *at, const char *end)
{
    int depth = 0;
    for (; at < end && depth <= 4; at++) {
        depth += *at == '(';
        depth -= *at == ')';
        if (depth == 0)
            return at + 1;
    }
    return NULL;
}

static const char *past_blanks(const char *at, const char *end)
{
    for (;;) {
        const char *close = NULL;
        while (at < end && isspace((unsigned char)*at))
            at++;
        if (end - at >= 2 && at[0] == '/' && at[1] == '/')
            close = memchr(at, '\n', (size_t)(end - at));
        else if (end - at >= 2 && at[0] == '/' && at[1] == '*')
            close = memmem(at + 2, (size_t)(end - at) - 2, "*/", 2);
        if (close == NULL)
            return at;
        at = close + (*close == '\n' ? 1 : 2);
    }
}

static bool has_matter(struct span text)
{
    return memmem(text.start, text.length, "/*---", 5) != NULL ||
           memmem(text.start, text.length, "\"\"\"---", 6) != NULL;
}

/* Kernels of a GPU have any names, and a launch plan. */
static enum worth worth_of_device_code(struct span text, const char *entry)
{
    bool kernels = memmem(text.start, text.length, entry, strlen(entry)) != NULL;
    bool plan = has_matter(text);
    return !kernels ? WORTH_NONE : plan ? WORTH_DEFINED : WORTH_NAMED;
}

/* Is `entry(` named, and is it defined: does a body follow? A longer name does not count. */
static enum worth worth_of_entry(struct span text, const char *entry)
{
    size_t size = strlen(entry);
    const char *end = text.start + text.length;
    enum worth worth = WORTH_NONE;
    if (strcmp(entry, EXTRACT_GPU) == 0 || strcmp(entry, EXTRACT_TRITON) == 0)
        return worth_of_device_code(text, entry);
    for (const char *at = text.start; (at = memmem(at, (size_t)(end - at), entry, size)) != NULL;
         at += size) {
        if (at > text.start && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            continue;
        const char *open = at + size;
        while (open < end && isspace((unsigned char)*open))
            open++;
        if (open == end || *open != '(')
            continue;
        worth = WORTH_NAMED;
        const char *body = past_parenthesis(open, end);
        body = body != NULL ? past_blanks(body, end) : end;
        if (body < end && *body == '{')
            return WORTH_DEFINED;
    }
    return worth;
}

static enum worth worth_of(struct span text, const char *entry)
{
    enum worth worth = worth_of_entry(text, entry);
    if (worth == WORTH_NONE)
        worth = has_matter(text) ? WORTH_MATTER : WORTH_ANY;
    return worth;
}

static void found_block(struct found *found, struct span span, enum worth worth)
{
    found->blocks++;
    if (worth >= found->worth) {
        found->worth = worth;
        found->best = span;
    }
}

/* ---- the two readings ---- */

static void read_strict(struct span text, struct found *found);

/* A block in another one's words ("```md") counts where what is around it lacks the entry. */
static void close_block(struct found *found, const char *start, const char *end,
                        const char *first_nested, const char *last_nested)
{
    struct span whole = {start, (size_t)(end - start)};
    if (first_nested != NULL) {
        struct span before = {start, (size_t)(first_nested - start)};
        struct span after = {last_nested, (size_t)(end - last_nested)};
        if (worth_of_entry(before, found->entry) < WORTH_NAMED &&
            worth_of_entry(after, found->entry) < WORTH_NAMED) {
            struct found inside = {.entry = found->entry};
            read_strict(whole, &inside);
            if (inside.worth >= WORTH_NAMED) {
                found_block(found, inside.best, inside.worth);
                return;
            }
        }
    }
    found_block(found, whole, worth_of(whole, found->entry));
}

static void read_strict(struct span text, struct found *found)
{
    struct fence open[DEPTH_MAX];
    size_t depth = 0;
    const char *end = text.start + text.length, *first_nested = NULL, *last_nested = NULL;
    struct line line;
    for (const char *at = text.start; at < end; at = line.next) {
        line = line_at(at, end);
        struct fence fence;
        if (!fence_line(&line, false, &fence))
            continue;
        if (depth == 0) {
            first_nested = last_nested = NULL;
            open[depth++] = fence;
        } else if (fence.bare && fence.mark == open[depth - 1].mark &&
                   fence.width >= open[depth - 1].width) {
            if (--depth == 0)
                close_block(found, open[0].body, line.start, first_nested, last_nested);
            else
                last_nested = line.next;
        } else if (!fence.bare && depth < DEPTH_MAX) {
            if (first_nested == NULL)
                first_nested = line.start;
            last_nested = line.next;
            open[depth++] = fence;
        }
    }
    found->unclosed = depth > 0;
}

static void read_loose(struct span text, struct found *found)
{
    struct fence open = {.body = NULL};
    const char *end = text.start + text.length;
    struct line line;
    for (const char *at = text.start; at < end; at = line.next) {
        line = line_at(at, end);
        struct fence fence;
        if (!fence_line(&line, true, &fence))
            continue;
        bool closes = open.body != NULL && fence.mark == open.mark && fence.width >= open.width &&
                      (fence.bare || fence.spaced);
        if (closes) {
            struct span span = {open.body, (size_t)(line.start - open.body)};
            found_block(found, span, worth_of(span, found->entry));
            open.body = NULL;
        } else if (open.body == NULL || (!fence.bare && !fence.spaced)) {
            open = fence;
        }
    }
    found->unclosed = open.body != NULL;
}

/* ---- without fences ---- */

/* The last line that can be code's: prose ends with other marks. */
static const char *end_of_code(const char *start, const char *end)
{
    const char *last = end;
    struct line line;
    bool any = false;
    for (const char *at = start; at < end; at = line.next) {
        line = line_at(at, end);
        const char *stop = line.end;
        while (stop > line.start && isspace((unsigned char)stop[-1]))
            stop--;
        bool ends = stop > line.start && strchr("};\\", stop[-1]) != NULL;
        bool comment = stop - line.start >= 2 && memcmp(stop - 2, "*/", 2) == 0;
        bool begins = line.start < stop && *line.start == '#' &&
                      (line.start + 1 == stop || !isspace((unsigned char)line.start[1]));
        if (ends || comment || begins || strncmp(line.start, "//", 2) == 0) {
            last = line.next;
            any = true;
        }
    }
    return any ? last : end;
}

/* Source without a fence, between prose at most: from the first line that can only be code. */
static bool bare_source(const char *text, const char *entry, struct span *span)
{
    static const char *const begins[] = {"/*",      "//",      "#include", "#define", "#pragma",
                                         "#if",     "static ", "void ",    "extern ", "typedef ",
                                         "inline ", "const ",  "struct ",  "enum ",   "\"\"\"---"};
    const char *end = text + strlen(text);
    struct line line;
    for (const char *at = text; at < end; at = line.next) {
        line = line_at(at, end);
        for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
            if (strncmp(line.start, begins[i], strlen(begins[i])) != 0)
                continue;
            bool python = *line.start == '"';
            const char *stop = python ? end : end_of_code(line.start, end);
            *span = (struct span){line.start, (size_t)(stop - line.start)};
            return worth_of_entry(*span, entry) == WORTH_DEFINED;
        }
    }
    return false;
}

/* The best of what stands between <code> and </code>. */
static bool tagged_source(const char *text, const char *entry, struct span *span)
{
    struct found found = {.entry = entry};
    for (const char *at = text; (at = strcasestr(at, "<code")) != NULL;) {
        const char *open = strchr(at, '>'), *close = strcasestr(at, "</code>");
        if (open == NULL || close == NULL || close < open)
            break;
        open += strspn(open + 1, "\r\n") + 1;
        struct span inside = {open, (size_t)(close - open)};
        if (worth_of_entry(inside, entry) == WORTH_DEFINED)
            found_block(&found, inside, WORTH_DEFINED);
        at = close;
    }
    *span = found.best;
    return found.blocks > 0;
}

/* As HTML has it, where it is HTML: "&lt;" is no C. */
static struct span without_entities(struct arena *arena, struct span code)
{
    static const struct {
        const char *entity;
        char plain;
    } entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&amp;", '&'}};
    if (memmem(code.start, code.length, "&lt;", 4) == NULL &&
        memmem(code.start, code.length, "&gt;", 4) == NULL &&
        memmem(code.start, code.length, "&amp;", 5) == NULL)
        return code;
    char *plain = arena_alloc(arena, code.length + 1);
    size_t used = 0;
    for (size_t at = 0, step; at < code.length; at += step) {
        char mark = code.start[at];
        step = 1;
        for (size_t i = 0; mark == '&' && i < sizeof entities / sizeof entities[0]; i++) {
            size_t length = strlen(entities[i].entity);
            if (length <= code.length - at &&
                memcmp(code.start + at, entities[i].entity, length) == 0) {
                mark = entities[i].plain;
                step = length;
                break;
            }
        }
        plain[used++] = mark;
    }
    return (struct span){plain, used};
}

/* ---- a diff ---- */

/* Whether the fence before a block says so. */
static bool is_diff(const char *text, const char *block)
{
    const char *at = block - (block > text);
    while (at > text && at[-1] != '\n')
        at--;
    at += strspn(at, " \t`~");
    return strncasecmp(at, "diff", 4) == 0 || strncasecmp(at, "patch", 5) == 0;
}

/* What a diff makes of a file of which it holds all: one without that is no file. */
static bool apply_diff(struct arena *arena, struct span diff, const char *entry, struct span *whole)
{
    char *out = arena_alloc(arena, diff.length + 1);
    const char *end = diff.start + diff.length;
    size_t used = 0, hunks = 0;
    struct line line;
    for (const char *at = diff.start; at < end; at = line.next) {
        line = line_at(at, end);
        size_t length = (size_t)(line.end - line.start);
        bool header = length >= 3 &&
                      (memcmp(line.start, "+++", 3) == 0 || memcmp(line.start, "---", 3) == 0) &&
                      hunks == 0;
        if (length >= 2 && memcmp(line.start, "@@", 2) == 0)
            hunks++;
        else if (!header && length > 0 && *line.start != '-' && *line.start != '\\') {
            size_t skip = *line.start == '+' || *line.start == ' ';
            memcpy(out + used, line.start + skip, length - skip);
            used += length - skip;
            out[used++] = '\n';
        } else if (length == 0)
            out[used++] = '\n';
    }
    *whole = (struct span){out, used};
    return hunks <= 1 && worth_of_entry(*whole, entry) == WORTH_DEFINED;
}

/* ---- the bytes ---- */

static int check_code(struct span code, struct err *err)
{
    const char *mark = memmem(code.start, code.length, "\xEF\xBF\xBD", 3);
    size_t at = utf8_valid_up_to(code.start, code.length);
    if (mark != NULL && (size_t)(mark - code.start) < at)
        at = (size_t)(mark - code.start);
    if (at == code.length)
        return 0;
    return err_set(err, ERR_PROTOCOL,
                   "the code holds bytes that are not text (at byte %zu); send plain ASCII", at);
}

/* A copy with newlines alone: the same source is the same bytes, whoever ended its lines. */
static const char *copy_lines(struct arena *arena, struct span code, size_t *length)
{
    char *copy = arena_alloc(arena, code.length + 1);
    *length = 0;
    for (size_t i = 0; i < code.length; i++)
        if (code.start[i] != '\r' || i + 1 == code.length || code.start[i + 1] != '\n')
            copy[(*length)++] = code.start[i];
    *length = utf8_plain(copy, *length, copy);
    copy[*length] = '\0';
    return copy;
}

int extract_code(struct arena *arena, const char *text, const char *entry, const char **code,
                 size_t *length, struct err *err)
{
    struct span whole = {text, strlen(text)}, chosen;
    struct found found = {.entry = entry}, loose = {.entry = entry};
    read_strict(whole, &found);
    if (found.worth < WORTH_DEFINED)
        read_loose(whole, &loose);
    if (loose.worth > found.worth && loose.worth >= WORTH_NAMED)
        found = loose;
    chosen = found.best;
    if (found.worth < WORTH_DEFINED && found.unclosed)
        return err_set(err, ERR_NOT_FOUND,
                       "the code block was not closed: the answer seems to be cut off; send the "
                       "whole file in one fenced block");
    if (found.blocks == 0 && tagged_source(text, entry, &chosen))
        chosen = without_entities(arena, chosen);
    else if (found.blocks == 0 && !bare_source(text, entry, &chosen))
        return err_set(err, ERR_NOT_FOUND,
                       "no code block found; send the whole file in one fenced block");
    else if (found.blocks > 0 && is_diff(text, chosen.start) &&
             !apply_diff(arena, chosen, entry, &chosen))
        return err_set(err, ERR_NOT_FOUND,
                       "the code block is a diff, of which parts are left out; send the whole file "
                       "in one fenced block");
    if (check_code(chosen, err) != 0)
        return -1;
    *code = copy_lines(arena, chosen, length);
    return 0;
}
