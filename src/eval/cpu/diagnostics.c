/* What a candidate's author may read of a compiler's words. The compilers are told to quote no
 * source and run where they can read little; here a line is passed on only if it is about the
 * candidate, and the source lines beside it are taken from the candidate itself. */
#include "eval/cpu/compile.h"

#include "eval/backend/lines.h"
#include "eval/cpu/source.h"
#include "process/clean.h"
#include "process/sandbox.h"

#include <ctype.h>
#include <string.h>

enum { TOTAL_MAX = 3000 };

struct reading {
    const struct candidate *candidate;
    struct buf *out;
    size_t start; /* out->length when we began */
    bool told;
    bool linked_none; /* something was asked for that no library is there for */
};

/* Bytes from `at` to the first of `stops`, or to `end`. */
static size_t until(const char *at, const char *end, const char *stops)
{
    size_t length = 0;
    while (at + length < end && strchr(stops, at[length]) == NULL)
        length++;
    return length;
}

/* "candidate.c:12:5: error: ..." */
static bool about_source(struct reading *reading, const struct line *line, const char *kind)
{
    if (!line_begins(line, "candidate.c") || line_find(line, kind) == NULL)
        return false;
    const char *colon = memchr(line->text, ':', line->length);
    if (colon == NULL)
        return false;
    clean_line(reading->out, line->text, line->length);
    long number = 0;
    for (const char *at = colon + 1;
         at < line->text + line->length && isdigit((unsigned char)*at) && number < 10000000; at++)
        number = number * 10 + (*at - '0');
    line_quote(reading->candidate, number, reading->out);
    return true;
}

/* An error of a template or a macro is in a system's header, which may be quoted to anybody; the
 * compiler says afterwards which line of the candidate's it came from. */
static bool about_header(struct reading *reading, const struct line *line)
{
    const char *error = line_find(line, " error: ");
    if (!line_begins(line, "/usr/") || error == NULL)
        return false;
    buf_add_text(reading->out, "in a header:");
    clean_line(reading->out, error, (size_t)(line->text + line->length - error));
    return true;
}

/* A linker's or an assembler's word, without what it may quote of elsewhere. */
static bool about_symbols(struct reading *reading, const struct line *line)
{
    static const char missing[] = "undefined reference to ", lld[] = "undefined symbol: ";
    const char *end = line->text + line->length, *at = line_find(line, missing);
    at = at != NULL ? at : line_find(line, lld);
    if (at != NULL) {
        buf_add_text(reading->out, "link: ");
        clean_line(reading->out, at, (size_t)(end - at));
        reading->linked_none = true;
        return true;
    }
    at = line_find(line, "multiple definition of ");
    if (at != NULL) {
        buf_add_text(reading->out, "link: ");
        clean_line(reading->out, at, until(at, end, ";"));
        return true;
    }
    return false;
}

/* "candidate.c:12: Error: no such instruction: `foo'": the quoted part only if it is in the
 * source, since .include makes an assembler read files. */
static bool about_assembly(struct reading *reading, const struct line *line)
{
    const char *end = line->text + line->length, *error = line_find(line, "Error: ");
    if (error == NULL)
        return false;
    const char *tick = memchr(error, '`', (size_t)(end - error));
    size_t plain = (size_t)((tick != NULL ? tick : end) - error);
    const char *close = tick != NULL ? memrchr(tick, '\'', (size_t)(end - tick)) : NULL;
    buf_add_text(reading->out, "inline assembly: ");
    if (close != NULL && close > tick + 1 &&
        memmem(reading->candidate->source, reading->candidate->length, tick + 1,
               (size_t)(close - tick - 1)) != NULL)
        plain = (size_t)(close + 1 - error);
    if (tick == NULL) /* and then nothing after a second colon */
        plain = 7 + until(error + 7, end, ":");
    clean_line(reading->out, error, plain);
    return true;
}

/* The compiler itself gave up. */
static bool about_limits(struct reading *reading, const struct line *line)
{
    static const struct {
        const char *word, *meaning;
    } ends[] = {
        {"virtual memory exhausted", "the compiler ran out of memory (2 GiB)"},
        {"out of memory", "the compiler ran out of memory (2 GiB)"},
        {"cannot allocate memory", "the compiler ran out of memory (2 GiB)"},
        {"bad_alloc", "the compiler ran out of memory (2 GiB)"},
        {"File size limit", "the compiler wrote more than 64 MiB"},
        {"File too large", "the compiler wrote more than 64 MiB"},
        {"CPU time limit", "the compile took more than 30 s of CPU time: too much is unrolled, or "
                           "templates or constants grow without end"},
        {"Killed signal terminated", "the compiler was killed, by no limit of ours"},
        {"internal compiler error", "internal compiler error"},
        {"#include nested depth", "headers include each other more than 64 deep"},
    };
    _Static_assert(COMPILE_CPU_S == 30, "what is said above");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (line_find(line, ends[i].word) != NULL) {
            buf_addf(reading->out, "%s\n", ends[i].meaning);
            return true;
        }
    return false;
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

static bool errors(struct reading *reading, const struct line *line)
{
    return about_source(reading, line, "error: ") ||
           about_source(reading, line, "required from here") ||
           about_source(reading, line, "in instantiation of") || about_limits(reading, line) ||
           about_header(reading, line) || about_symbols(reading, line) ||
           about_assembly(reading, line);
}

/* What a wrong signature looks like, or none. */
static bool signature(struct reading *reading, const struct line *line)
{
    (void)reading;
    bool ours = line_begins(line, "prologue:") || line_begins(line, "shim:");
    return (ours && (line_find(line, "previous declaration") != NULL ||
                     line_find(line, "error: ") != NULL)) ||
           line_find(line, "undefined reference to `kernel'") != NULL ||
           line_find(line, "undefined symbol: kernel") != NULL;
}

static bool warnings(struct reading *reading, const struct line *line)
{
    return about_source(reading, line, "warning: ");
}

void cpu_diagnostics(const struct candidate *candidate, const char *text, size_t length,
                     struct buf *out)
{
    struct reading reading = {.candidate = candidate, .out = out, .start = out->length};
    each_line(&reading, text, length, errors);
    if (!reading.told)
        buf_add_text(out, "the compiler failed, and said nothing about the source\n");
    if (reading.linked_none)
        buf_add_text(out, "candidates are linked with no library but the compiler's own, libm and "
                          "the OpenMP runtime: what is called has to be in the source\n");
    struct reading quiet = {.candidate = candidate, .out = out, .start = out->length};
    each_line(&quiet, text, length, signature);
    if (quiet.told) {
        buf_add_text(out, "the signature has to be the one that the problem gives: ");
        source_signature(candidate->problem, candidate, out);
        buf_add_char(out, '\n');
    }
    each_line(&quiet, text, length, warnings);
}
