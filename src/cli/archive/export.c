/* twagent export [PROBLEM]: every candidate that was evaluated, as JSON lines, CSV, SQL or Parquet.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/archive/archive.h"
#include "cli/options/command.h"
#include "process/python_probe.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const sql_types[] = {
    [COLUMN_TEXT] = "VARCHAR", [COLUMN_BOOL] = "BOOLEAN", [COLUMN_INT] = "BIGINT",
    [COLUMN_MS] = "DOUBLE",    [COLUMN_REAL] = "DOUBLE",  [COLUMN_TIME] = "TIMESTAMP"};

/* Text between `quote`s, which are doubled within. What is no UTF-8 becomes U+FFFD, as in JSON. */
static void put_quoted(const char *text, char quote, struct buf *out)
{
    size_t left = strlen(text);
    buf_add_char(out, quote);
    while (left > 0) {
        size_t length = utf8_length(text, left);
        if (*text == quote)
            buf_add_char(out, quote);
        if (length == 0)
            buf_add_text(out, "\xEF\xBF\xBD");
        else
            buf_add(out, text, length);
        length = length != 0 ? length : 1;
        text += length;
        left -= length;
    }
    buf_add_char(out, quote);
}

static void put_number(const struct column *column, double number, struct buf *out)
{
    struct json json = {.out = out};
    if (column->type == COLUMN_BOOL)
        json_bool(&json, number != 0);
    else if (column->type == COLUMN_INT)
        json_int(&json, (int64_t)number);
    else
        json_real(&json, number);
}

static void put_csv(const struct kernel_row *row, struct buf *out)
{
    char text[32];
    for (size_t i = 0; i < kernel_column_count; i++) {
        const struct column *column = &kernel_columns[i];
        struct cell cell = kernel_cell(row, column, text);
        if (i > 0)
            buf_add_char(out, ',');
        if (cell.text != NULL && *cell.text)
            put_quoted(cell.text, '"', out);
        else if (cell.text == NULL && !isnan(cell.number))
            put_number(column, cell.number, out);
    }
    buf_add_text(out, "\r\n");
}

static void put_sql(const struct kernel_row *row, struct buf *out)
{
    char text[32];
    buf_add_text(out, "INSERT INTO kernels VALUES (");
    for (size_t i = 0; i < kernel_column_count; i++) {
        const struct column *column = &kernel_columns[i];
        struct cell cell = kernel_cell(row, column, text);
        buf_add_text(out, i > 0 ? ", " : "");
        if (cell.text != NULL)
            put_quoted(cell.text, '\'', out);
        else if (isnan(cell.number))
            buf_add_text(out, "NULL");
        else
            put_number(column, cell.number, out);
    }
    buf_add_text(out, ");\n");
}

static void put_row(const char *format, const struct kernel_row *row, struct buf *out)
{
    struct json json;
    if (strcmp(format, "csv") == 0) {
        put_csv(row, out);
    } else if (strcmp(format, "sql") == 0) {
        put_sql(row, out);
    } else {
        json_init(&json, out);
        kernel_json(row, &json);
        buf_add_char(out, '\n');
    }
}

static void put_head(const char *format, struct buf *out)
{
    bool sql = strcmp(format, "sql") == 0;
    if (!sql && strcmp(format, "csv") != 0)
        return;
    buf_add_text(out, sql ? "BEGIN TRANSACTION;\nCREATE TABLE kernels (" : "");
    for (size_t i = 0; i < kernel_column_count; i++)
        buf_addf(out, sql ? "%s%s %s%s" : "%s%s", i > 0 ? sql ? ", " : "," : "",
                 kernel_columns[i].name, sql_types[kernel_columns[i].type],
                 i == 0 ? " PRIMARY KEY" : "");
    buf_add_text(out, sql ? ");\n" : "\r\n");
}

/* ---- Parquet ---- */

/* pyarrow writes it: JSON lines go in by a memory file. */
static int write_parquet(const struct settings *settings, struct arena *arena, FILE *lines,
                         struct err *err)
{
    struct interpreter python;
    struct buf types, errors;
    if (settings->output == NULL)
        return err_set(err, ERR_USAGE, "export: Parquet is written to a file: -o kernels.parquet");
    if (interpreter_find(settings->search.python, "pyarrow", arena, &python, err))
        return err_wrap(err, "export: Parquet needs a Python with pyarrow (pip install pyarrow)");
    buf_init(&types, 1 << 16);
    for (size_t i = 0; i < kernel_column_count; i++)
        buf_addf(&types, "%s%s:%s", i > 0 ? "," : "", kernel_columns[i].name,
                 sql_types[kernel_columns[i].type]);
    char *script = file_data_path("libexec/export_parquet.py");
    const char *const argv[] = {python.path,      "-I", script ? script : "", settings->output,
                                buf_text(&types), NULL};
    int fd = fileno(lines);
    const struct spawn_spec spec = {
        .argv = argv, .name = "pyarrow", .folder = ".", .fds = &fd, .fd_count = 1};
    buf_init(&errors, 1 << 16);
    int failed = spawn_run(&spec, 10 * 60 * 1000, 0, NULL, &errors, err);
    if (failed && errors.length > 0)
        failed = err_set(err, ERR_ENVIRONMENT, "export: %s", buf_text(&errors));
    buf_free(&errors);
    buf_free(&types);
    mem_free(script);
    return failed ? -1 : 0;
}

/* ---- the command ---- */

/* Where rows go first: the output, or for pyarrow a file without a name. */
static FILE *open_rows(const struct settings *settings, bool parquet, struct err *err)
{
    int fd = parquet            ? memfd_create("kernels", 0)
             : settings->output ? file_open_through(settings->output)
                                : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    FILE *file = fd < 0 ? NULL : fdopen(fd, parquet ? "w+" : "w");
    if (file == NULL)
        err_set(err, ERR_ENVIRONMENT, "export: cannot write %s: %s",
                settings->output ? settings->output : "the output", strerror(errno));
    return file;
}

static int write_rows(const struct settings *settings, struct arena *arena,
                      const struct kernel_row *rows, size_t count, struct err *err)
{
    const char *format = settings->format;
    bool parquet = strcmp(format, "parquet") == 0;
    FILE *file = open_rows(settings, parquet, err);
    struct buf line;
    if (file == NULL)
        return -1;
    buf_init(&line, (size_t)256 << 20);
    put_head(format, &line);
    for (size_t i = 0; i < count; i++) {
        put_row(format, &rows[i], &line);
        fwrite(line.data, 1, line.length, file);
        buf_reset(&line);
    }
    buf_free(&line);
    if (strcmp(format, "sql") == 0)
        fputs("COMMIT;\n", file);
    bool failed = fflush(file) != 0 || ferror(file) != 0;
    if (failed && errno != EPIPE) /* whoever reads has seen enough */
        err_set(err, ERR_ENVIRONMENT, "export: cannot write %s: %s",
                settings->output ? settings->output : "the output", strerror(errno));
    else
        failed = parquet && (lseek(fileno(file), 0, SEEK_SET) < 0 ||
                             write_parquet(settings, arena, file, err) != 0);
    fclose(file);
    return failed && err->code ? -1 : 0;
}

int command_export(const struct settings *settings, const char *const *arguments, size_t count)
{
    const struct kernel_query query = {.code = true, .evaluation = true};
    const char *problem = count != 0 ? arguments[0] : NULL;
    struct arena *arena = arena_new();
    struct kernel_row *rows = NULL;
    struct err err = {0};
    int failed = archive_read(settings, arena, &query, problem, &rows, &count, &err) ||
                 write_rows(settings, arena, rows, count, &err);
    if (!failed && settings->output)
        fprintf(stderr, "wrote %zu kernels and refused candidates to %s\n", count,
                settings->output);
    arena_free(arena);
    return failed ? command_fail(&err) : 0;
}
