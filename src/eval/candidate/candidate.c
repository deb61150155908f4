/* Where the front matter lies in a source, and the candidate around it. */
#include "eval/candidate/candidate.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "eval/candidate/read.h"

#include <string.h>

enum { SOURCE_BYTES_MOST = 1 << 20 };

/* Front matter of a file whose name says nothing. */
static const struct language unknown = {.open = "/*---", .close = "---*/", .comment_end = "*/"};

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

static const char *line_end(const char *at, const char *end)
{
    const char *newline = (const char *)memchr(at, '\n', (size_t)(end - at));
    return newline != NULL ? newline : end;
}

/* The line at `at`, blanks at both ends aside, is `mark`. */
static bool line_is(const char *at, const char *end, const char *mark)
{
    const char *stop = line_end(at, end);
    size_t length = strlen(mark);
    while (at < stop && strchr(" \t\r", *at) != NULL)
        at++;
    while (stop > at && strchr(" \t\r", stop[-1]) != NULL)
        stop--;
    return (size_t)(stop - at) == length && memcmp(at, mark, length) == 0;
}

static bool line_is_blank(const char *at, const char *end)
{
    return line_is(at, end, "");
}

/* *begin, *stop: the YAML between the marks; both NULL where there is no front matter. */
static int find_front_matter(const struct document *document, const struct candidate *candidate,
                             const char **begin, const char **stop)
{
    const char *text = candidate->source, *end = text + candidate->length, *at = text;
    const struct language *marks = candidate->language;
    *begin = *stop = NULL;
    if (marks == NULL) /* which front matter itself may say */
        marks = &unknown;
    while (at < end && line_is_blank(at, end) && line_end(at, end) < end)
        at = line_end(at, end) + 1;
    if (!line_is(at, end, marks->open)) {
        for (; at < end && line_end(at, end) < end; at = line_end(at, end) + 1)
            if (line_is(at, end, marks->open))
                return document_refuse(document, line_of(text, at),
                                       "expected the front matter at the start of the file");
        return 0;
    }
    const char *yaml = line_end(at, end);
    const char *close =
        memmem(yaml, (size_t)(end - yaml), marks->comment_end, strlen(marks->comment_end));
    size_t dashes = strlen(marks->close) - strlen(marks->comment_end);
    if (close == NULL)
        return document_refuse(document, line_of(text, at), "expected \"%s\" after \"%s\"",
                               marks->close, marks->open);
    const char *line = close;
    while (line > yaml && line[-1] != '\n')
        line--;
    if (!line_is(line, end, marks->close) || (size_t)(close - line) < dashes)
        return document_refuse(document, line_of(text, close),
                               "expected the comment to end with \"%s\" on a line of its own",
                               marks->close);
    *begin = yaml;
    *stop = line;
    return 0;
}

int candidate_check_text(const char *name, const char *text, size_t length, struct err *err)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t at = utf8_valid_up_to(text, length);
    if (at == length)
        return 0;
    if (length >= 2 &&
        ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
        return err_set(err, ERR_USAGE, "%s:1: expected UTF-8 text, not UTF-16", name);
    int line = line_of(text, text + at);
    if (bytes[at] == 0) /* where a compiler would stop reading is not for it to say */
        return err_set(err, ERR_USAGE, "%s:%d: expected text without NUL bytes", name, line);
    return err_set(err, ERR_USAGE, "%s:%d: expected UTF-8 text, not a byte 0x%02X", name, line,
                   bytes[at]);
}

static int check_bytes(const struct document *document, const char *text, size_t length)
{
    if (length == 0)
        return document_refuse(document, 1, "expected a source text, not an empty one");
    if (length > SOURCE_BYTES_MOST)
        return document_refuse(document, 1, "expected at most %d bytes, not %zu", SOURCE_BYTES_MOST,
                               length);
    return candidate_check_text(document->name, text, length, document->err);
}

/* What goes before the YAML becomes empty lines, so that lines in messages are the source's. */
static int parse_front_matter(struct candidate_reading *reading, const char *begin,
                              const char *stop)
{
    const struct document *document = &reading->document;
    const char *text = reading->candidate->source;
    size_t blank = (size_t)line_of(text, begin) - 1;
    size_t length = blank + (size_t)(stop - begin);
    char *yaml = (char *)mem_alloc(length + 1);
    struct value *root;
    memset(yaml, '\n', blank);
    memcpy(yaml + blank, begin, (size_t)(stop - begin));
    int result =
        value_parse_yaml(document->arena, document->name, yaml, length, &root, document->err);
    mem_free(yaml);
    if (result != 0)
        return -1;
    if (root->kind == VALUE_NULL)
        return 0;
    return candidate_read(reading, root);
}

static int refuse_name(const struct document *document)
{
    BUF_LOCAL(suffixes, 400);
    languages_list(true, &suffixes);
    return document_refuse(document, 1,
                           "expected a name that ends with %s, or the key \"language\"",
                           buf_text(&suffixes));
}

static int parse(struct candidate_reading *reading, const char *text, size_t length)
{
    struct candidate *candidate = reading->candidate;
    const struct document *document = &reading->document;
    const char *begin, *stop;
    if (check_bytes(document, text, length) != 0)
        return -1;
    char *source = arena_strndup(candidate->arena, text, length);
    candidate->length = utf8_plain(text, length, source);
    source[candidate->length] = '\0';
    candidate->source = source;
    candidate->hash = hash_bytes(source, candidate->length);
    candidate->language = language_of_file(document->name);
    if (find_front_matter(document, candidate, &begin, &stop) != 0)
        return -1;
    if (begin != NULL && parse_front_matter(reading, begin, stop) != 0)
        return -1;
    if (candidate->language == NULL)
        return refuse_name(document);
    if (candidate->language->plan && candidate->launch_count == 0)
        return document_refuse(document, begin != NULL ? line_of(candidate->source, begin) : 1,
                               "expected launch: in the front matter, a list of {entry, grid, "
                               "block, args}");
    return 0;
}

int candidate_parse(const struct problem *problem, const char *name, const char *text,
                    size_t length, struct candidate **candidate, struct err *err)
{
    struct err mine; /* the readers build on the message, so that there must be one */
    struct arena *arena = arena_new();
    struct candidate *parsed = ARENA_NEW(arena, struct candidate);
    struct candidate_reading reading = {
        .document = {.arena = arena, .name = name, .err = &mine},
        .problem = problem,
        .candidate = parsed,
    };
    parsed->arena = arena;
    parsed->problem = problem;
    if (parse(&reading, text, length) != 0) {
        arena_free(arena);
        if (err != NULL)
            *err = mine;
        return -1;
    }
    *candidate = parsed;
    return 0;
}

int candidate_parse_for(const struct target *target, const struct problem *problem,
                        const char *name, const char *text, size_t length,
                        const struct value *given, const struct names *facts,
                        struct candidate **candidate, struct names *tune, struct err *err)
{
    if (candidate_parse(problem, name, text, length, candidate, err) != 0)
        return -1;
    const struct language *language = (*candidate)->language;
    if (!target_has(target, language))
        return err_set(err, ERR_USAGE,
                       "a source in %s does not run on the backend %s: give --backend %s",
                       language->name, target->name, language_target(language)->name);
    return tune_given(*candidate, given, &problem->shapes[0], facts, tune, err);
}

void candidate_free(struct candidate *candidate)
{
    if (candidate != NULL)
        arena_free(candidate->arena);
}

const struct tensor_spec *candidate_tensor(const struct problem *problem,
                                           const struct candidate *candidate, size_t index)
{
    if (index < problem->input_count)
        return &problem->inputs[index];
    index -= problem->input_count;
    if (index < problem->output_count)
        return &problem->outputs[index];
    index -= problem->output_count;
    return index < candidate->workspace_count ? &candidate->workspaces[index] : NULL;
}

const struct tensor_spec *candidate_find_tensor(const struct problem *problem,
                                                const struct candidate *candidate, const char *name,
                                                size_t *index)
{
    const struct tensor_spec *spec;
    for (size_t i = 0; (spec = candidate_tensor(problem, candidate, i)) != NULL; i++)
        if (strcmp(spec->name, name) == 0) {
            if (index != NULL)
                *index = i;
            return spec;
        }
    return NULL;
}
