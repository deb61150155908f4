/* twagent diff ID ID: what two candidates differ in: figures, tune numbers, source. */
#include "base/value.h"
#include "cli/archive/archive.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "process/spawn.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A run or a problem stands for the best of it. */
static int best_of(const struct settings *settings, struct arena *arena, const char *word,
                   const char **id, struct err *err)
{
    struct candidate_record candidate;
    struct run_record run;
    struct store *store = NULL;
    int failed = history_open(settings, &store, err) ||
                 find_kernel(store, arena, word, &candidate, &run, err);
    store_close(store);
    if (failed)
        return -1;
    *id = candidate.id;
    return 0;
}

static int read_row(const struct settings *settings, struct arena *arena, const char *id,
                    struct kernel_row **row, struct err *err)
{
    if (!strstr(id, "-c") && !strstr(id, "-i") && best_of(settings, arena, id, &id, err))
        return -1;
    const char *dash = strchr(id, '-');
    const struct kernel_query query = {.run = dash ? arena_strndup(arena, id, (size_t)(dash - id))
                                                   : id,
                                       .candidate = id,
                                       .code = true,
                                       .evaluation = true};
    size_t count;
    return archive_read(settings, arena, &query, NULL, row, &count, err);
}

/* ---- figures ---- */

static void put_pair(const char *name, const char *one, const char *other, struct buf *out)
{
    struct buf left, right;
    if (strcmp(one, other) == 0 && *one == '\0')
        return;
    buf_init(&left, 4096);
    buf_init(&right, 4096);
    archive_visible(*one ? one : "-", 32, &left);
    archive_visible(*other ? other : "-", 32, &right);
    buf_addf(out, "%c %-12s %-32s %s\n", strcmp(one, other) == 0 ? ' ' : '*', name, buf_text(&left),
             buf_text(&right));
    buf_free(&left);
    buf_free(&right);
}

static const char *speedup_of(struct arena *arena, const struct kernel_row *row)
{
    char ratio[32], low[32], high[32];
    if (row->speedup <= 0)
        return "";
    return arena_printf(arena, "%sx (%s to %s)",
                        words_ratio(row->speedup, row->speedup_low, row->speedup_high, ratio),
                        words_ratio(row->speedup_low, row->speedup_low, row->speedup_high, low),
                        words_ratio(row->speedup_high, row->speedup_low, row->speedup_high, high));
}

static const char *time_of(struct arena *arena, const struct kernel_row *row)
{
    char time[32];
    if (row->latency_ns <= 0)
        return "";
    return arena_strdup(
        arena, words_time_in(row->latency_ns, row->latency_low_ns, row->latency_high_ns, time));
}

static const char *number_text(struct arena *arena, const struct value *tune, const char *key)
{
    const struct value *number = value_get(tune, key);
    return number == NULL ? "" : arena_printf(arena, "%lld", (long long)number->integer);
}

/* Each tune number of either one. */
static void put_tune(struct arena *arena, const struct kernel_row *one,
                     const struct kernel_row *other, struct buf *out)
{
    struct value *trees[2] = {NULL, NULL};
    struct err ignored;
    if (value_parse_json(arena, "tune", one->tune, strlen(one->tune), &trees[0], &ignored) ||
        value_parse_json(arena, "tune", other->tune, strlen(other->tune), &trees[1], &ignored))
        return;
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; trees[t]->kind == VALUE_MAP && i < trees[t]->count; i++)
            if (t == 0 || value_get(trees[0], trees[t]->keys[i]) == NULL)
                put_pair(trees[t]->keys[i], number_text(arena, trees[0], trees[t]->keys[i]),
                         number_text(arena, trees[1], trees[t]->keys[i]), out);
}

static void put_figures(struct arena *arena, const struct kernel_row *one,
                        const struct kernel_row *other, struct buf *out)
{
    put_pair("", one->id, other->id, out);
    put_pair("problem", one->problem, other->problem, out);
    put_pair("size", one->size, other->size, out);
    put_pair("device", one->device, other->device, out);
    put_pair("model", one->model, other->model, out);
    put_pair("idea", one->idea, other->idea, out);
    put_pair("file", one->file, other->file, out);
    put_tune(arena, one, other, out);
    put_pair("verdict", one->verdict, other->verdict, out);
    put_pair("reason", one->reason, other->reason, out);
    put_pair("time", time_of(arena, one), time_of(arena, other), out);
    put_pair("speed-up", speedup_of(arena, one), speedup_of(arena, other), out);
    put_pair("against", one->baseline, other->baseline, out);
    put_pair("held by", one->limiter, other->limiter, out);
    if (one->correct && other->correct && kernels_alike(one, other))
        buf_addf(out, "%s\n",
                 other->speedup_low > one->speedup_high
                     ? "the second is faster: the intervals do not meet"
                 : one->speedup_low > other->speedup_high
                     ? "the first is faster: the intervals do not meet"
                     : "the intervals meet: no difference is shown");
    else if (one->correct && other->correct)
        buf_add_text(out, "not comparable: another problem, size, device or baseline\n");
}

/* ---- sources ---- */

static int memory_file(const char *text)
{
    int fd = memfd_create("source", 0);
    size_t length = strlen(text);
    if (fd >= 0 && (write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* diffutils' own answer; "" where the sources are the same. */
static int source_diff(const struct kernel_row *one, const struct kernel_row *other,
                       struct buf *out, struct err *err)
{
    const char *const argv[] = {"/usr/bin/diff", "-u",        "--label",   one->id, "--label",
                                other->id,       "/dev/fd/3", "/dev/fd/4", NULL};
    int fds[2] = {memory_file(one->code ? one->code : ""),
                  memory_file(other->code ? other->code : "")};
    struct buf errors;
    const struct spawn_spec spec = {.argv = argv, .name = "diff", .fds = fds, .fd_count = 2};
    bool same = strcmp(one->code ? one->code : "", other->code ? other->code : "") == 0;
    buf_init(&errors, 1 << 16);
    int failed = fds[0] < 0 || fds[1] < 0
                     ? err_set(err, ERR_ENVIRONMENT, "no memory file for the sources")
                 : same ? 0
                        : spawn_run(&spec, 60000, 1, out, &errors, err);
    for (size_t i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    buf_free(&errors);
    return failed ? -1 : 0;
}

/* With colours for a terminal. */
static void put_diff(struct arena *arena, const char *diff, bool colours, struct buf *out)
{
    while (*diff) {
        size_t length = strcspn(diff, "\n");
        char *line = arena_strndup(arena, diff, length);
        const char *colour = *line == '+'   ? "\x1b[32m"
                             : *line == '-' ? "\x1b[31m"
                             : *line == '@' ? "\x1b[36m"
                                            : "";
        buf_add_text(out, colours ? colour : "");
        archive_visible(line, 0, out);
        buf_add_text(out, colours && *colour ? "\x1b[0m\n" : "\n");
        diff += length + (diff[length] == '\n');
    }
}

int command_diff(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct arena *arena = arena_new();
    struct kernel_row *one = NULL, *other = NULL;
    struct buf diff, text;
    struct json json;
    struct err err = {0};
    (void)count;
    buf_init(&diff, (size_t)64 << 20);
    buf_init(&text, (size_t)256 << 20);
    int failed = read_row(settings, arena, arguments[0], &one, &err) ||
                 read_row(settings, arena, arguments[1], &other, &err) ||
                 source_diff(one, other, &diff, &err);
    if (!failed && settings->json) {
        json_init(&json, &text);
        json_object(&json);
        json_key(&json, "one");
        kernel_json(one, &json);
        json_key(&json, "other");
        kernel_json(other, &json);
        json_put_bool(&json, "comparable", kernels_alike(one, other));
        json_put_text(&json, "diff", buf_text(&diff));
        json_object_end(&json);
        buf_add_char(&text, '\n');
    } else if (!failed) {
        put_figures(arena, one, other, &text);
        put_diff(arena, diff.length ? buf_text(&diff) : "the sources are the same\n",
                 print_colours(STDOUT_FILENO), &text);
    }
    if (!failed)
        fputs(buf_text(&text), stdout);
    buf_free(&diff);
    buf_free(&text);
    arena_free(arena);
    return failed ? command_fail(&err) : 0;
}
