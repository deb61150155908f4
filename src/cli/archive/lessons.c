/* twagent lessons list|show|export|import: what finished evaluations have taught, as one reads it
 * and as a team shares it. */
#include "agents/lessons/words.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/options/command.h"
#include "cli/print/run_words.h"
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMPORT_MOST = 256 << 20 }; /* bytes of one file */

struct request {
    const struct settings *settings;
    const char *word; /* after the verb, or NULL */
    struct store *store;
    struct arena *arena;
};

/* ---- reading ---- */

struct shelf {
    const struct settings *settings;
    struct arena *arena;
    struct lesson *items;
    size_t count, capacity;
};

static bool keep(void *context, const struct lesson *lesson)
{
    struct shelf *shelf = context;
    if (shelf->settings->wins && !lesson_is_win(lesson))
        return true;
    MEM_MORE(shelf->items, shelf->count, shelf->capacity);
    lesson_copy(shelf->arena, lesson, &shelf->items[shelf->count++]);
    return true;
}

static int oldest_first(const void *left, const void *right)
{
    const struct lesson *a = left, *b = right;
    if (a->ended_ms != b->ended_ms)
        return a->ended_ms < b->ended_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

/* All that the options ask for, the oldest first; mem_free(shelf->items). */
static int gather(const struct request *request, struct shelf *shelf, struct err *err)
{
    const char *family = request->settings->family;
    const char *prefix = family ? lesson_prefix(request->arena, family, NULL) : "";
    *shelf = (struct shelf){.settings = request->settings, .arena = request->arena};
    if (lesson_scan(request->store, prefix, keep, shelf, err))
        return -1;
    if (shelf->count > 0)
        qsort(shelf->items, shelf->count, sizeof *shelf->items, oldest_first);
    return 0;
}

static void print_lesson(const struct lesson *lesson, FILE *out)
{
    BUF_LOCAL(text, 1 << 16);
    lesson_encode(lesson, &text);
    fputs(buf_text(&text), out);
}

/* ---- list, show ---- */

static int list(struct request *request, struct err *err)
{
    const struct settings *settings = request->settings;
    struct shelf shelf;
    if (gather(request, &shelf, err)) {
        mem_free(shelf.items);
        return -1;
    }
    size_t last = settings->last > 0 ? (size_t)settings->last : shelf.count;
    size_t first = shelf.count > last ? shelf.count - last : 0;
    if (settings->json)
        printf("[");
    else if (shelf.count == 0)
        printf("no lessons yet; every run leaves some\n");
    for (size_t i = first; i < shelf.count; i++) {
        const struct lesson *lesson = &shelf.items[i];
        if (settings->json) {
            printf("%s", i > first ? ",\n " : "");
            print_lesson(lesson, stdout);
            continue;
        }
        BUF_LOCAL(words, 4096);
        lesson_outcome(lesson, &words);
        printf("%-10s %-14s %-11s %s\n%-10s %s\n", lesson->id, lesson->place.problem,
               lesson->category, lesson->title, "", buf_text(&words));
    }
    if (settings->json)
        printf("]\n");
    else if (first > 0)
        printf("%zu earlier ones are not shown (--last 0 shows all)\n", first);
    mem_free(shelf.items);
    return 0;
}

static void print_row(const char *key, const char *text)
{
    if (*text)
        printf("%-12s %s\n", key, text);
}

static void print_whole(const struct request *request, const struct lesson *lesson)
{
    const struct lesson_place *place = &lesson->place;
    struct arena *arena = request->arena;
    char time[32], date[32];
    BUF_LOCAL(words, 4096);
    lesson_outcome(lesson, &words);
    printf("%s: %s (%s)\n", lesson->id, lesson->title, lesson->category);
    print_row("outcome", buf_text(&words));
    print_row("problem", arena_printf(arena, "%s (family %s), %s, %s", place->problem,
                                      place->family, place->shape, place->dtype));
    const char *cores =
        place->cores > 0 ? arena_printf(arena, ", %lld cores", (long long)place->cores) : "";
    print_row("device",
              arena_printf(arena, "%s: %s%s%s%s", place->backend, place->device,
                           *place->device_family ? ", " : "", place->device_family, cores));
    print_row("limited by",
              *lesson->limiter_after
                  ? arena_printf(arena, "%s before, %s after",
                                 *lesson->limiter_before ? lesson->limiter_before : "not known",
                                 lesson->limiter_after)
                  : lesson->limiter_before);
    print_row("source", lesson->name);
    print_row("with", strcmp(lesson->tune, "{}") == 0 ? "" : lesson->tune);
    if (lesson->time_ns > 0)
        print_row("time",
                  arena_printf(arena, "%s, %s",
                               words_time_by(lesson->time_ns, lesson->speedup, lesson->speedup_low,
                                             lesson->speedup_high, time),
                               run_words_speedup(arena, lesson->speedup, lesson->speedup_low,
                                                 lesson->speedup_high, lesson->baseline)));
    if (lesson->ended_ms > 0)
        print_row("measured", words_date((uint64_t)lesson->ended_ms, date));
}

static int show(struct request *request, struct err *err)
{
    struct shelf shelf;
    const struct lesson *found = NULL;
    if (gather(request, &shelf, err)) {
        mem_free(shelf.items);
        return -1;
    }
    for (size_t i = 0; i < shelf.count; i++)
        if (strcmp(shelf.items[i].id, request->word) == 0)
            found = &shelf.items[i];
    if (!found) {
        mem_free(shelf.items);
        return err_set(err, ERR_NOT_FOUND, "no lesson %s (twagent lessons list)", request->word);
    }
    if (request->settings->json) {
        print_lesson(found, stdout);
        printf("\n");
    } else {
        print_whole(request, found);
    }
    for (size_t i = 0; i < shelf.count && !request->settings->json; i++) {
        const struct lesson *other = &shelf.items[i];
        if (other == found || strcmp(other->place.family, found->place.family) != 0 ||
            !lesson_contradicts(found, other))
            continue;
        BUF_LOCAL(words, 4096);
        lesson_outcome(other, &words);
        printf("but %s: \"%s\" on %s %s: %s\n", other->id, other->title, other->place.problem,
               other->place.shape, buf_text(&words));
    }
    mem_free(shelf.items);
    return 0;
}

/* ---- export, import ---- */

static int export(struct request *request, struct err *err)
{
    const char *path = request->settings->output;
    struct shelf shelf;
    int failed = gather(request, &shelf, err);
    BUF_LOCAL(text, (size_t)1 << 31);
    for (size_t i = 0; !failed && i < shelf.count; i++) {
        lesson_encode(&shelf.items[i], &text);
        buf_add_char(&text, '\n');
    }
    if (!failed && path)
        failed = file_put(path, buf_text(&text), text.length, err);
    else if (!failed)
        fwrite(buf_text(&text), 1, text.length, stdout);
    if (!failed && path)
        printf("wrote %zu lessons to %s\n", shelf.count, path);
    mem_free(shelf.items);
    return failed;
}

struct importing {
    struct request *request;
    char (*known)[33]; /* sorted: contents that the store has */
    size_t known_count, capacity;
    struct store_batch *batch;
    size_t added, doubles;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool note_known(void *context, const struct lesson *lesson)
{
    struct importing *all = context;
    MEM_MORE(all->known, all->known_count, all->capacity);
    lesson_content(lesson, all->known[all->known_count++]);
    return true;
}

static int import_line(struct importing *all, const char *line, size_t length, struct err *err)
{
    struct arena *arena = arena_new_sized(8192);
    struct lesson lesson;
    struct buf text;
    char content[33];
    if (lesson_decode(arena, line, length, &lesson, err)) {
        arena_free(arena);
        return -1;
    }
    lesson_content(&lesson, content);
    if (all->known_count > 0 &&
        bsearch(content, all->known, all->known_count, sizeof *all->known, by_text)) {
        all->doubles++;
    } else {
        lesson.id = arena_printf(arena, "x%.16s", content);
        buf_init(&text, 1 << 16);
        lesson_encode(&lesson, &text);
        store_batch_put(all->batch, STORE_LESSONS, lesson_key(arena, &lesson), buf_text(&text),
                        text.length);
        buf_free(&text);
        all->added++;
    }
    arena_free(arena);
    return 0;
}

/* All of a file or nothing of it. */
static int import_lines(struct importing *all, const char *name, const char *text, struct err *err)
{
    int number = 1;
    for (; *text; number++) {
        size_t length = strcspn(text, "\n");
        if (length > strspn(text, " \t\r") && import_line(all, text, length, err))
            return err_wrap(err, "%s:%d", name, number);
        text += length + (text[length] == '\n');
    }
    return store_batch_empty(all->batch) ? 0 : store_commit(all->request->store, all->batch, err);
}

static int import(struct request *request, struct err *err)
{
    struct importing all = {.request = request, .batch = store_batch_new()};
    BUF_LOCAL(text, IMPORT_MOST);
    int failed = file_read(request->word, &text, err);
    if (!failed)
        failed = lesson_scan(request->store, "", note_known, &all, err);
    if (!failed && all.known_count > 0)
        qsort(all.known, all.known_count, sizeof *all.known, by_text);
    if (!failed)
        failed = import_lines(&all, request->word, buf_text(&text), err);
    if (!failed && request->settings->json)
        printf("{\"added\": %zu, \"known\": %zu}\n", all.added, all.doubles);
    else if (!failed)
        printf("%zu added, %zu known already\n", all.added, all.doubles);
    store_batch_free(all.batch);
    mem_free(all.known);
    return failed;
}

/* ---- the command ---- */

static const struct verb {
    const char *name, *arguments;
    bool writes;
    int (*run)(struct request *request, struct err *err);
} verbs[] = {
    {"list", "", false, list},
    {"show", "ID", false, show},
    {"export", "", false, export},
    {"import", "FILE", true, import},
};

int command_lessons(const struct settings *settings, const char *const *arguments, size_t count)
{
    const struct verb *verb = NULL;
    struct err err = {0};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, arguments[0]) == 0)
            verb = &verbs[i];
    if (!verb) {
        fprintf(stderr, "twagent: lessons: expected list, show, export or import, not \"%s\"\n",
                arguments[0]);
        return EXIT_USAGE;
    }
    if (count != (*verb->arguments ? 2u : 1u)) {
        fprintf(stderr, "twagent: usage: twagent lessons %s %s\n", verb->name, verb->arguments);
        return EXIT_USAGE;
    }
    struct request request = {
        .settings = settings, .word = count > 1 ? arguments[1] : NULL, .arena = arena_new()};
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    int failed = store_open(folder, verb->writes, !verb->writes, &request.store, &err);
    if (failed && err.code == ERR_NOT_FOUND && verb->run == list) {
        printf(settings->json ? "[]\n" : "no lessons yet; every run leaves some\n");
        failed = 0;
    } else if (!failed) {
        failed = verb->run(&request, &err);
    }
    store_close(request.store);
    mem_free(folder);
    arena_free(request.arena);
    return failed ? command_fail(&err) : 0;
}
