/* Words, one after the other, comments left out: declarations are found by what they begin with. */
#include "eval/webgpu/source.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    int line;
    char word[WGSL_NAME_MOST]; /* a name, a number, or one other character */
    struct err *err;
};

static void skip_comment(struct reader *reader)
{
    int depth = 0;
    do {
        const char *two = reader->at;
        if (reader->end - two >= 2 && two[0] == '/' && two[1] == '*') {
            depth++;
            reader->at += 2;
        } else if (reader->end - two >= 2 && two[0] == '*' && two[1] == '/') {
            depth--;
            reader->at += 2;
        } else {
            reader->line += *reader->at++ == '\n';
        }
    } while (depth > 0 && reader->at < reader->end);
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end) {
        const char *at = reader->at;
        bool pair = reader->end - at >= 2 && at[0] == '/';
        if (pair && at[1] == '/') {
            while (reader->at < reader->end && *reader->at != '\n')
                reader->at++;
        } else if (pair && at[1] == '*') {
            skip_comment(reader);
        } else if (isspace((unsigned char)*at)) {
            reader->line += *at == '\n';
            reader->at++;
        } else {
            return;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80) != 0;
}

/* False at the end. A word that is too long is cut, and then is nobody's name. */
static bool next(struct reader *reader)
{
    size_t length = 0;
    skip_blanks(reader);
    reader->word[0] = '\0';
    if (reader->at >= reader->end)
        return false;
    if (!is_word(*reader->at)) {
        reader->word[length++] = *reader->at++;
    } else {
        for (; reader->at < reader->end && is_word(*reader->at); reader->at++)
            if (length < sizeof reader->word - 1)
                reader->word[length++] = *reader->at;
    }
    reader->word[length] = '\0';
    return true;
}

static bool is(const struct reader *reader, const char *word)
{
    return strcmp(reader->word, word) == 0;
}

/* "( N )", the word before it read already. */
static bool number(struct reader *reader, uint32_t *into)
{
    if (!next(reader) || !is(reader, "(") || !next(reader))
        return false;
    char *stop;
    unsigned long value = strtoul(reader->word, &stop, 0);
    if (!isdigit((unsigned char)reader->word[0]) || strspn(stop, "uUiI") != strlen(stop))
        return false;
    *into = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    return next(reader) && is(reader, ")");
}

/* From "var" on: "< storage , read_write > name". */
static int read_variable(struct reader *reader, struct wgsl_binding *binding)
{
    bool storage = false;
    if (!next(reader) || !is(reader, "<"))
        return err_set(reader->err, ERR_LIMIT,
                       "line %d: expected var<storage, ...> or var<uniform> at a binding: "
                       "a kernel has neither textures nor samplers",
                       reader->line);
    while (next(reader) && !is(reader, ">")) {
        storage = storage || is(reader, "storage");
        binding->uniform = binding->uniform || is(reader, "uniform");
        binding->writes = binding->writes || is(reader, "read_write") || is(reader, "write");
    }
    if (!next(reader) || storage == binding->uniform)
        return err_set(reader->err, ERR_LIMIT,
                       "line %d: expected var<storage, ...> or var<uniform> at a binding",
                       reader->line);
    memcpy(binding->name, reader->word, sizeof binding->name);
    return 0;
}

/* From a "@" on, up to the variable, where it is a binding's. */
static int read_attributes(struct reader *reader, struct wgsl_source *source)
{
    struct wgsl_binding binding = {.line = reader->line};
    bool group = false, place = false;
    do {
        if (!next(reader))
            return 0;
        if (is(reader, "group"))
            group = number(reader, &binding.group);
        else if (is(reader, "binding"))
            place = number(reader, &binding.binding);
        else
            return 0; /* another attribute: what follows is no binding of ours */
    } while (next(reader) && is(reader, "@"));
    if (!group || !place || !is(reader, "var"))
        return 0;
    if (source->binding_count == WGSL_BINDINGS_MOST)
        return err_set(reader->err, ERR_LIMIT, "more than %d bindings", WGSL_BINDINGS_MOST);
    if (read_variable(reader, &binding) != 0)
        return -1;
    source->bindings[source->binding_count++] = binding;
    return 0;
}

/* "override NAME": one with an @id is set by its number, not by its name, and keeps its own. */
static int read_override(struct reader *reader, struct wgsl_source *source)
{
    if (source->override_count == WGSL_OVERRIDES_MOST)
        return err_set(reader->err, ERR_LIMIT, "more than %d overrides", WGSL_OVERRIDES_MOST);
    if (next(reader))
        memcpy(source->overrides[source->override_count++], reader->word, sizeof reader->word);
    return 0;
}

static void read_enable(struct reader *reader, const char *text, struct wgsl_source *source)
{
    const char *from = reader->at - strlen(reader->word);
    bool subgroups = false;
    while (next(reader) && !is(reader, ";")) {
        source->f16 = source->f16 || is(reader, "f16");
        subgroups = subgroups || is(reader, "subgroups");
    }
    if (subgroups && !source->subgroups) {
        source->subgroups_from = (size_t)(from - text);
        source->subgroups_to = (size_t)(reader->at - text);
    }
    source->subgroups = source->subgroups || subgroups;
}

int wgsl_read(const char *text, size_t length, struct wgsl_source *source, struct err *err)
{
    struct reader reader = {.at = text, .end = text + length, .line = 1, .err = err};
    int status = 0;
    *source = (struct wgsl_source){0};
    while (status == 0 && next(&reader)) {
        if (is(&reader, "@"))
            status = read_attributes(&reader, source);
        else if (is(&reader, "override"))
            status = read_override(&reader, source);
        else if (is(&reader, "enable"))
            read_enable(&reader, text, source);
        else if (is(&reader, "arrayLength"))
            source->measures_arrays = true;
    }
    return status;
}

bool wgsl_requires(const struct candidate *candidate, const char *feature)
{
    for (size_t i = 0; i < REQUIRES_MAX && candidate->requires[i] != NULL; i++)
        if (strcmp(candidate->requires[i], feature) == 0)
            return true;
    return false;
}

void wgsl_compiled(const struct candidate *candidate, bool browser, struct buf *into)
{
    const char *text = candidate->source;
    struct wgsl_source source;
    struct err ignored = {0};
    if (wgsl_read(text, candidate->length, &source, &ignored) != 0)
        source = (struct wgsl_source){0};
    if (wgsl_requires(candidate, "shader-f16") && !source.f16)
        buf_add_text(into, "enable f16; ");
    if (browser && wgsl_requires(candidate, "subgroups") && !source.subgroups)
        buf_add_text(into, "enable subgroups; ");
    size_t from = browser ? 0 : source.subgroups_from, to = browser ? 0 : source.subgroups_to;
    buf_add(into, text, from);
    if (source.f16 && from < to)
        buf_add_text(into, "enable f16;"); /* it may have stood there, too; twice does no harm */
    for (size_t i = from; i < to; i++)
        buf_add_char(into, text[i] == '\n' ? '\n' : ' ');
    buf_add(into, text + to, candidate->length - to);
}
