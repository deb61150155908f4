/* What a candidate's author may read of NVRTC's words. The child prints the log as it is; here a
 * line is passed on only if it is about the candidate or its PTX, and the source lines beside it
 * are taken from the candidate itself, so that nothing of this machine can be quoted. */
#include "eval/cuda/compile/compile.h"

#include "eval/backend/lines.h"
#include "process/clean.h"

#include <ctype.h>
#include <string.h>

enum { TOTAL_MAX = 3000, LINE_NUMBER_MAX = 10000000, CONTEXT_MAX = 3 };

struct reading {
    const struct candidate *candidate;
    struct buf *out;
    size_t start; /* out->length when we began */
    bool told;
    size_t context; /* lines about where from that the last error may still have */
};

/* Not why a file cannot be opened: whether it is there is nobody's business. */
static size_t shown_length(const struct line *line)
{
    const char *at = line_find(line, "cannot open source file \"");
    const char *end = line->text + line->length;
    if (at == NULL)
        return line->length;
    at += strlen("cannot open source file \"");
    const char *close = (const char *)memchr(at, '"', (size_t)(end - at));
    return close != NULL ? (size_t)(close + 1 - line->text) : line->length;
}

/* "candidate.cu(12): error: ...". A header's own line, "cub/block/x.cuh(40): error: ...", is passed
 * on without a quote: the child has made the toolkit's paths relative, and others are absolute. */
static bool about_source(struct reading *reading, const struct line *line, const char *kind)
{
    const char *brace = (const char *)memchr(line->text, '(', line->length);
    const char *word = line_find(line, kind);
    if (brace == NULL || word == NULL || brace > word || !isalpha((unsigned char)line->text[0]))
        return false;
    const char *at = brace + 1, *end = line->text + line->length;
    long number = 0;
    for (; at < end && isdigit((unsigned char)*at) && number < LINE_NUMBER_MAX; at++)
        number = number * 10 + (*at - '0');
    if (at == brace + 1 || end - at < 2 || memcmp(at, "):", 2) != 0)
        return false;
    for (const char *name = line->text; name < brace; name++)
        if (!isalnum((unsigned char)*name) && strchr("_./-", *name) == NULL)
            return false;
    clean_line(reading->out, line->text, shown_length(line));
    if (line_begins(line, "candidate.cu("))
        line_quote(reading->candidate, number, reading->out);
    return true;
}

/* "ptxas application ptx input, line 140; error   : Unknown modifier '.bar'", "ptxas error   :
 * Entry function 'k' uses too much shared data (...)". Its line numbers are of a text that nobody
 * has seen. */
static bool about_assembly(struct reading *reading, const struct line *line)
{
    if (!line_begins(line, "ptxas"))
        return false;
    static const char *const kinds[] = {"error   : ", "fatal   : "};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *at = line_find(line, kinds[i]);
        if (at == NULL)
            continue;
        at += strlen(kinds[i]);
        size_t rest = (size_t)(line->text + line->length - at);
        if (memmem(at, rest, "aborted due to errors", 21) != NULL)
            return false;
        buf_add_text(reading->out, "PTX assembly: ");
        clean_line(reading->out, at, rest);
        return true;
    }
    return false;
}

/* What our own child says, and what the compiler says when it gives up. */
static bool about_limits(struct reading *reading, const struct line *line)
{
    static const struct {
        const char *word, *meaning; /* NULL: the rest of the line, after the word */
    } ends[] = {
        {"cuda-compile: ", NULL},
        {"bad_alloc", "the compiler ran out of memory"},
        {"out of memory", "the compiler ran out of memory"},
        {"OUT_OF_MEMORY", "the compiler ran out of memory"},
        {"nvrtc: error: ", NULL},
        {"nternal error", "internal compiler error"},
        {"Internal Compiler Error", "internal compiler error"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *at = line_find(line, ends[i].word);
        if (at == NULL || (ends[i].meaning == NULL && at != line->text))
            continue;
        at += strlen(ends[i].word);
        if (ends[i].meaning != NULL)
            buf_addf(reading->out, "%s\n", ends[i].meaning);
        else
            clean_line(reading->out, at, (size_t)(line->text + line->length - at));
        return true;
    }
    return false;
}

/* "            instantiation of class "A<N>" at line 12": the innermost ones. */
static bool about_context(struct reading *reading, const struct line *line)
{
    size_t blanks = 0;
    while (blanks < line->length && line->text[blanks] == ' ')
        blanks++;
    const struct line rest = {line->text + blanks, line->length - blanks};
    if (reading->context == 0 || blanks == 0 || !line_begins(&rest, "instantiation of "))
        return false;
    reading->context--;
    buf_add_text(reading->out, "    in ");
    clean_line(reading->out, rest.text, rest.length);
    return true;
}

static bool errors(struct reading *reading, const struct line *line)
{
    if (about_context(reading, line))
        return true;
    bool source = about_source(reading, line, "error: ") ||
                  about_source(reading, line, "error #") ||
                  about_source(reading, line, "catastrophic error");
    if (source)
        reading->context = CONTEXT_MAX;
    return source || about_assembly(reading, line) || about_limits(reading, line);
}

static bool warnings(struct reading *reading, const struct line *line)
{
    return line_begins(line, "candidate.cu(") && about_source(reading, line, "warning #");
}

static void each_line(struct reading *reading, const char *text, size_t length,
                      bool (*take)(struct reading *reading, const struct line *line))
{
    const char *at = text;
    struct line line;
    while (reading->out->length - reading->start < TOTAL_MAX &&
           line_next(&at, text + length, &line))
        reading->told |= take(reading, &line);
}

void cuda_diagnostics(const struct candidate *candidate, const char *text, size_t length,
                      struct buf *out)
{
    struct reading reading = {.candidate = candidate, .out = out, .start = out->length};
    each_line(&reading, text, length, errors);
    if (!reading.told)
        buf_add_text(out, "the compiler failed, and said nothing about the source\n");
    struct reading quiet = {.candidate = candidate, .out = out, .start = out->length};
    each_line(&quiet, text, length, warnings);
}
