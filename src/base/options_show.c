/* What is read from the table: --help, the man page, completion, "show config". */
#include "base/options.h"
#include "base/options_parse.h"

#include <string.h>

enum { LINE_WIDTH = 80, LEFT_LEAST = 16, LEFT_MOST = 30 };

static void write_left(const struct option *option, struct buf *out)
{
    const char *metavar = option_metavar(option);
    if (option->letter != 0)
        buf_addf(out, "  -%c, ", option->letter);
    else
        buf_add_text(out, "      ");
    bool negates = option->type == OPTION_BOOL && option->default_text != NULL &&
                   strcmp(option->default_text, "true") == 0;
    buf_addf(out, "--%s%s", negates ? "[no-]" : "", option->name);
    if (metavar != NULL)
        buf_addf(out, " %s", metavar);
}

/* The help with range, default and environment behind it, in brackets. */
static void write_right(const struct option *option, struct buf *out)
{
    BUF_LOCAL(range, 250);
    option_write_range(option, &range);
    bool bool_off = option->type == OPTION_BOOL &&
                    (option->default_text == NULL || strcmp(option->default_text, "true") != 0);
    bool has_default = option->default_text != NULL && option->default_text[0] != '\0' && !bool_off;
    buf_add_text(out, option->help);
    const char *separator = " [";
    if (range.length > 0) {
        buf_addf(out, "%s%s", separator, buf_text(&range));
        separator = "; ";
    }
    if (has_default) {
        buf_addf(out, "%sdefault %s", separator,
                 option->type == OPTION_BOOL ? "on" : option->default_text);
        separator = "; ";
    }
    if (option->environment != NULL) {
        buf_addf(out, "%s$%s", separator, option->environment);
        separator = "; ";
    }
    if (separator[0] == ';')
        buf_add_char(out, ']');
}

/* Columns, not bytes: help texts may hold UTF-8. */
static size_t width_of(const char *text, size_t length)
{
    size_t width = 0;
    for (size_t i = 0; i < length; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

static void write_wrapped(const char *text, size_t column, size_t indent, struct buf *out)
{
    bool first = true;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        size_t width = width_of(text, length);
        if (!first && column + 1 + width > LINE_WIDTH) {
            buf_addf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add(out, text, length);
        column += width;
        text += length;
        text += strspn(text, " ");
        first = false;
    }
    buf_add_char(out, '\n');
}

static void write_help_entry(const struct option *option, size_t indent, struct buf *out)
{
    BUF_LOCAL(left, 200);
    BUF_LOCAL(right, 2000);
    write_left(option, &left);
    write_right(option, &right);
    size_t width = width_of(buf_text(&left), left.length);
    buf_add_text(out, buf_text(&left));
    if (width + 2 > indent)
        buf_addf(out, "\n%*s", (int)indent, "");
    else
        buf_addf(out, "%*s", (int)(indent - width), "");
    write_wrapped(buf_text(&right), indent, indent, out);
}

/* Options that every command takes stand apart, so that a command's own are not lost in them. */
static uint32_t common_commands(const struct option_table *table)
{
    uint32_t all = 0;
    for (size_t i = 0; i < table->count; i++)
        all |= table->options[i].commands;
    return all;
}

static size_t left_width(const struct option_table *table, uint32_t mask)
{
    size_t widest = LEFT_LEAST;
    BUF_LOCAL(left, 200);
    for (size_t i = 0; i < table->count; i++) {
        if (!(table->options[i].commands & mask))
            continue;
        buf_reset(&left);
        write_left(&table->options[i], &left);
        size_t width = width_of(buf_text(&left), left.length) + 2;
        if (width > widest && width <= LEFT_MOST)
            widest = width;
    }
    return widest;
}

void options_help(const struct option_table *table, uint32_t mask, struct buf *out)
{
    uint32_t all = common_commands(table);
    bool one_command = (all & (all - 1)) == 0; /* nothing to tell apart */
    size_t indent = left_width(table, mask);
    for (int common = 0; common < 2; common++) {
        bool opened = false;
        for (size_t i = 0; i < table->count; i++) {
            const struct option *option = &table->options[i];
            bool is_common = !one_command && option->commands == all;
            if (!(option->commands & mask) || is_common != (common == 1))
                continue;
            if (!opened && common == 1 && out->length > 0)
                buf_add_char(out, '\n');
            if (!opened)
                buf_add_text(out, common == 1 ? "Options of every command:\n" : "Options:\n");
            opened = true;
            write_help_entry(option, indent, out);
        }
    }
}

static bool is_yaml_plain(const struct option *option, const char *text)
{
    if (option->type != OPTION_TEXT && option->choices == NULL)
        return true;
    size_t length = strlen(text);
    size_t safe = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "_/.+-");
    bool null = strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
    return length > 0 && safe == length && text[0] != '-' && text[0] != '.' && !null;
}

/* A double-quoted YAML scalar; bytes above 0x7f are UTF-8 and stand as they are. */
static void write_yaml_quoted(const char *text, struct buf *out)
{
    buf_add_char(out, '"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_addf(out, "\\x%02x", c);
        else
            buf_add_char(out, *text);
    }
    buf_add_char(out, '"');
}

bool option_write_yaml(const struct option *option, const void *target, struct buf *out)
{
    struct buf value;
    buf_init(&value, 1 << 17); /* no argument of execve() is longer */
    bool set = option_write(option, target, &value);
    if (set && is_yaml_plain(option, buf_text(&value)))
        buf_add_text(out, buf_text(&value));
    else if (set)
        write_yaml_quoted(buf_text(&value), out);
    buf_free(&value);
    return set;
}

void option_show(const struct option *option, const void *target, struct buf *out)
{
    enum { COLUMN = 40 };
    BUF_LOCAL(value, 1 << 18);
    bool set = option_write_yaml(option, target, &value);
    size_t width = width_of(buf_text(&value), value.length) + strlen(option->name) + 2;
    if (set)
        buf_addf(out, "%s: %s%*s", option->name, buf_text(&value),
                 width < COLUMN ? (int)(COLUMN - width) : 1, "");
    else
        buf_addf(out, "# %s: %-*s", option->name, COLUMN - 4 - (int)strlen(option->name),
                 "not set");
}

static void write_roff(const char *text, struct buf *out)
{
    if (*text == '.' || *text == '\'') /* would be a request at the start of a line */
        buf_add_text(out, "\\&");
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            buf_add_text(out, "\\e");
        else if (*text == '-')
            buf_add_text(out, "\\-");
        else
            buf_add_char(out, *text);
    }
}

void options_man(const struct option_table *table, uint32_t mask, struct buf *out)
{
    BUF_LOCAL(right, 2000);
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->options[i];
        if (!(option->commands & mask))
            continue;
        const char *metavar = option_metavar(option);
        buf_add_text(out, ".TP\n");
        if (option->letter != 0)
            buf_addf(out, "\\fB\\-%c\\fR, ", option->letter);
        buf_add_text(out, "\\fB\\-\\-");
        write_roff(option->name, out);
        buf_add_text(out, "\\fR");
        if (metavar != NULL) {
            buf_add_text(out, " \\fI");
            write_roff(metavar, out);
            buf_add_text(out, "\\fR");
        } else {
            buf_add_text(out, ", \\fB\\-\\-no\\-");
            write_roff(option->name, out);
            buf_add_text(out, "\\fR");
        }
        buf_add_char(out, '\n');
        buf_reset(&right);
        write_right(option, &right);
        write_roff(buf_text(&right), out);
        buf_add_char(out, '\n');
    }
}

void options_completion(const struct option_table *table, uint32_t mask, struct buf *out)
{
    const char *separator = "";
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->options[i];
        if (!(option->commands & mask))
            continue;
        buf_addf(out, "%s--%s", separator, option->name);
        separator = " ";
        if (option->type == OPTION_BOOL)
            buf_addf(out, " --no-%s", option->name);
        if (option->letter != 0)
            buf_addf(out, " -%c", option->letter);
    }
}
