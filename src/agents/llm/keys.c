#include "agents/llm/keys.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ENV_BYTES_MAX = 1 << 20 };

struct reader {
    const char *path, *at, *end;
    int line;
    struct arena *arena;
    struct err *err;
};

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t'))
        reader->at++;
}

static bool at_line_end(const struct reader *reader)
{
    const char *at = reader->at + (reader->at < reader->end && *reader->at == '\r');
    return at == reader->end || *at == '\n';
}

static void next_line(struct reader *reader)
{
    while (reader->at < reader->end && *reader->at != '\n')
        reader->at++;
    if (reader->at < reader->end)
        reader->at++;
    reader->line++;
}

static bool takes(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

/* To the closing quote, which may stand some lines further on; false where there is none. */
static bool read_quoted(struct reader *reader, struct buf *value)
{
    char quote = *reader->at++;
    for (; reader->at < reader->end; reader->at++) {
        char c = *reader->at;
        if (c == quote) {
            reader->at++;
            return true;
        }
        reader->line += c == '\n';
        bool escaped = c == '\\' && quote == '"' && reader->at + 1 < reader->end;
        if (escaped && strchr("\"\\$nt", reader->at[1]) != NULL) {
            c = *++reader->at;
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
        }
        buf_add_char(value, c);
    }
    return false;
}

static void read_plain(struct reader *reader, struct buf *value)
{
    const char *begin = reader->at;
    while (!at_line_end(reader) &&
           !(*reader->at == '#' && (reader->at == begin || isspace((unsigned char)reader->at[-1]))))
        reader->at++;
    const char *stop = reader->at;
    while (stop > begin && isspace((unsigned char)stop[-1]))
        stop--;
    buf_add(value, begin, (size_t)(stop - begin));
}

static bool rest_is_comment(struct reader *reader)
{
    skip_blanks(reader);
    return at_line_end(reader) || *reader->at == '#';
}

static int refuse(const struct reader *reader, int line, const char *variable)
{
    return err_set(reader->err, ERR_USAGE, "%s:%d: expected %s=VALUE, the value on one line",
                   reader->path, line, variable);
}

/* A value, whosever it is: a quoted one may span lines, and must not be taken for assignments. */
static bool read_value(struct reader *reader, struct buf *value)
{
    skip_blanks(reader);
    if (reader->at < reader->end && (*reader->at == '"' || *reader->at == '\'')) {
        struct reader before = *reader;
        if (read_quoted(reader, value) && rest_is_comment(reader))
            return true;
        *reader = before; /* no quotation after all, but an apostrophe */
        return false;
    }
    read_plain(reader, value);
    return true;
}

static bool is_printable(const struct buf *value)
{
    for (size_t i = 0; i < value->length; i++)
        if (!isgraph((unsigned char)value->data[i]))
            return false;
    return true;
}

/* One line; sets *key where it assigns the variable. */
static int read_line(struct reader *reader, const char *variable, const char **key)
{
    int line = reader->line;
    skip_blanks(reader);
    if (takes(reader, "export ") || takes(reader, "export\t"))
        skip_blanks(reader);
    const char *name = reader->at;
    while (reader->at < reader->end && (isalnum((unsigned char)*reader->at) || *reader->at == '_'))
        reader->at++;
    size_t length = (size_t)(reader->at - name);
    bool ours = length == strlen(variable) && memcmp(name, variable, length) == 0;
    skip_blanks(reader);
    bool assigns = length > 0 && reader->at < reader->end && *reader->at == '=';
    BUF_LOCAL(value, ENV_BYTES_MAX);
    bool read = false;
    if (assigns) {
        reader->at++;
        read = read_value(reader, &value);
    }
    int status = 0;
    if (ours && (!read || value.dropped > 0 || !is_printable(&value)))
        status = refuse(reader, line, variable);
    else if (ours)
        *key = value.length > 0 ? arena_strdup(reader->arena, buf_text(&value)) : NULL;
    next_line(reader);
    return status;
}

static void warn_if_others_read(const char *path)
{
    static bool warned; /* every model asks for its key anew */
    struct stat status;
    if (stat(path, &status) != 0 || (status.st_mode & (S_IRGRP | S_IROTH)) == 0 ||
        __atomic_exchange_n(&warned, true, __ATOMIC_RELAXED))
        return;
    log_event(LOG_WARN, "keys.readable", "",
              "%s holds a key and others may read it (mode %03o): chmod 600 %s", path,
              (unsigned)status.st_mode & 0777, path);
}

static int find_in_file(struct arena *arena, const char *variable, const char *path,
                        const char **key, struct err *err)
{
    BUF_LOCAL(text, ENV_BYTES_MAX);
    int status = file_read(path, &text, err);
    struct reader reader = {path, buf_text(&text), buf_text(&text) + text.length, 1, arena, err};
    (void)takes(&reader, "\xEF\xBB\xBF");
    while (status == 0 && reader.at < reader.end)
        status = read_line(&reader, variable, key);
    if (status == 0 && *key != NULL)
        warn_if_others_read(path);
    return status;
}

/* A .env by its usual name is looked into where there is one, also where a resumed run remembers
 * where that would be. */
static bool is_usual(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, ".env") == 0;
}

int key_find(struct arena *arena, const char *variable, const char *file, const char **key,
             struct err *err)
{
    *key = NULL;
    const char *value = getenv(variable);
    if (value != NULL && *value != '\0') {
        BUF_LOCAL(text, ENV_BYTES_MAX);
        buf_add_text(&text, value);
        bool fine = text.dropped == 0 && is_printable(&text);
        if (!fine)
            return err_set(err, ERR_USAGE, "%s: expected a key, without blanks or line ends",
                           variable);
        *key = arena_strdup(arena, value);
        return 0;
    }
    if (file == NULL && (!file_exists(".env") || file_is_dir(".env"))) /* some call a venv so */
        return 0;
    if (find_in_file(arena, variable, file != NULL ? file : ".env", key, err) == 0)
        return 0;
    if (err->code == ERR_NOT_FOUND && file != NULL && is_usual(file))
        return 0;
    if (err->code != ERR_USAGE)
        err->code = file != NULL ? ERR_USAGE : ERR_ENVIRONMENT;
    return -1;
}
