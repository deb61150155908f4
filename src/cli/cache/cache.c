/* twagent cache list|show|run|clear: verdicts that are told again instead of measured. */
#include "cache/cache.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/archive/archive.h"
#include "cli/cache/execute.h"
#include "cli/cache/use.h"
#include "cli/find/control.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = 64 << 20 };

struct request {
    const struct settings *settings;
    struct arena *arena;
    const char *const *words; /* after the verb */
    size_t count;
    const char *store; /* folder */
    struct cache *cache;
    struct cache_entry *entries; /* all that --status and --older-than ask for */
    size_t entry_count, damaged;
};

static bool is_asked(const struct request *request, const struct cache_entry *entry)
{
    const struct settings *settings = request->settings;
    uint64_t now = clock_wall_ms(), age = (uint64_t)settings->older_than_ms;
    return (!settings->status || (*settings->status == 'c') == entry->accepted) &&
           (age == 0 || entry->written_ms + age < now);
}

static int read_entries(struct request *request, struct err *err)
{
    size_t kept = 0;
    if (cache_list(request->cache, request->arena, &request->entries, &request->entry_count,
                   &request->damaged, err))
        return -1;
    for (size_t i = 0; i < request->entry_count; i++)
        if (is_asked(request, &request->entries[i]))
            request->entries[kept++] = request->entries[i];
    request->entry_count = kept;
    return 0;
}

/* By its name, with or without ".json", or by the path of its copy; or by its hash alone. */
static const struct cache_entry *find_entry(const struct request *request, const char *word,
                                            struct err *err)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    for (size_t i = 0; i < request->entry_count; i++) {
        const struct cache_entry *entry = &request->entries[i];
        size_t length = strlen(entry->name) - strlen(".json");
        const char *hash = strrchr(entry->name, '_') + 2;
        if (strcmp(name, entry->name) == 0 ||
            (strlen(name) == length && strncmp(name, entry->name, length) == 0) ||
            (strlen(name) == 12 && strncmp(name, hash, 12) == 0))
            return entry;
    }
    (void)err_set(err, ERR_USAGE, "no entry is called \"%.200s\" (twagent cache list)", name);
    return NULL;
}

/* ---- list ---- */

static void list_line(const struct cache_entry *entry, struct buf *out)
{
    const struct interval *ratio = &entry->evaluation.speedup;
    char age[32], bytes[32], speedup[40];
    words_ratio(ratio->median, ratio->low, ratio->high, speedup);
    if (entry->accepted && ratio->samples > 0)
        strcat(speedup, "x");
    else
        snprintf(speedup, sizeof speedup, "%s", verdict_name(entry->evaluation.verdict));
    buf_addf(out, "%6s %6s B  %-8s  %s\n", cache_age(entry->written_ms, age),
             words_count((int64_t)entry->bytes, bytes), speedup, entry->name);
}

static int list(struct request *request, struct err *err)
{
    JSON_LOCAL(json, text, TEXT_MOST);
    int64_t bytes = 0;
    char words[32];
    (void)err;
    if (request->settings->json)
        json_array(&json);
    for (size_t i = 0; i < request->entry_count; i++) {
        const struct cache_entry *entry = &request->entries[i];
        bytes += (int64_t)entry->bytes;
        if (request->settings->json)
            cache_entry_json(entry, &json);
        else
            list_line(entry, &text);
    }
    if (request->settings->json)
        json_array_end(&json);
    else
        buf_addf(&text, "%zu entr%s, %s B, %s%s\n", request->entry_count,
                 request->entry_count == 1 ? "y" : "ies", words_count(bytes, words), request->store,
                 "/cache");
    if (request->damaged && !request->settings->json)
        buf_addf(&text, "%zu more cannot be read, or their run is gone: they are never told\n",
                 request->damaged);
    if (request->settings->json)
        buf_add_char(&text, '\n');
    print_lines(buf_text(&text), request->settings->json);
    return 0;
}

/* ---- show ---- */

static int put_source(const struct request *request, const struct cache_entry *entry,
                      struct err *err)
{
    const char *output = request->settings->output;
    if (!output) {
        fputs(entry->source, stdout);
        return 0;
    }
    if (file_put(output, entry->source, strlen(entry->source), err))
        return -1;
    printf("wrote %s\n", output);
    return 0;
}

static int show(struct request *request, struct err *err)
{
    const struct cache_entry *entry = find_entry(request, request->words[0], err);
    JSON_LOCAL(json, text, TEXT_MOST);
    char date[32], age[32];
    if (!entry)
        return -1;
    if (request->settings->source || request->settings->output)
        return put_source(request, entry, err);
    if (request->settings->json) {
        cache_entry_json(entry, &json);
        printf("%s\n", buf_text(&text));
        return 0;
    }
    BUF_LOCAL(file, 256);
    archive_visible(entry->file, 200, &file);
    printf("%s\n  measured   %s (%s ago), by %s%s%s; not now\n", entry->name,
           words_date(entry->written_ms, date), cache_age(entry->written_ms, age), entry->by,
           *entry->run ? " " : "", entry->kernel);
    printf("  told again %s\n",
           cache_is_answer(entry) ? "where nothing that it depends on has changed"
           : entry->accepted ? "never: its speed was not settled, or not all was well around it"
                             : "never: it was no kernel");
    struct words words;
    print_evaluation_of(&entry->evaluation, buf_text(&file), words_begin(&words));
    words_print(&words);
    printf("  source     twagent cache show %s --source\n", entry->name);
    return 0;
}

/* ---- run, clear ---- */

static int run(struct request *request, struct err *err)
{
    const struct cache_entry *entry = find_entry(request, request->words[0], err);
    return entry ? cache_execute(request->settings, request->arena, entry, request->words + 1,
                                 request->count - 1, err)
                 : -1;
}

static int clear(struct request *request, struct err *err)
{
    const struct settings *settings = request->settings;
    size_t count = 0;
    bool narrowed = settings->status || settings->older_than_ms > 0;
    if (request->count == 0 && !narrowed)
        return err_set(err, ERR_USAGE,
                       "cache clear: say what may go: NAMEs, --older-than 30d, --status r, or all");
    const struct cache_entry **gone =
        arena_array(request->arena, request->entry_count + request->count, sizeof *gone);
    for (size_t i = 0; i < request->count; i++)
        if (!(gone[count++] = find_entry(request, request->words[i], err)))
            return -1;
    for (size_t i = 0; request->count == 0 && i < request->entry_count; i++)
        gone[count++] = &request->entries[i];
    if (cache_remove(request->cache, gone, count, err))
        return -1;
    printf("%zu entr%s removed\n", count, count == 1 ? "y" : "ies");
    return 0;
}

/* ---- the command ---- */

static const struct verb {
    const char *name, *arguments;
    size_t least, most;
    bool writes;
    int (*run)(struct request *request, struct err *err);
} verbs[] = {
    {"list", "", 0, 0, false, list},
    {"show", " NAME", 1, 1, false, show},
    {"run", " NAME IN.npy... -o OUT.npy", 1, 63, false, run},
    {"clear", " NAME...|all", 0, 63, true, clear},
};

static int usage(const char *word)
{
    fprintf(stderr, "twagent: cache: expected list, show, run or clear, not \"%s\"\n", word);
    return EXIT_USAGE;
}

/* Readable or not: what cannot be opened is what one wants to be rid of. */
static int clear_all(const char *store)
{
    struct err err = {0};
    if (cache_remove_all(store, &err))
        return command_fail(&err);
    printf("all entries removed\n");
    return 0;
}

static int run_verb(struct request *request, const struct verb *verb)
{
    struct err err = {0};
    int failed = cache_open(request->store, verb->writes, &request->cache, &err);
    if (failed && err.code == ERR_NOT_FOUND && verb->run == list) {
        printf(request->settings->json
                   ? "[]\n"
                   : "nothing is cached yet; eval and run leave their verdicts here\n");
        failed = 0;
    } else if (!failed) {
        failed = read_entries(request, &err) || verb->run(request, &err);
    }
    cache_close(request->cache);
    if (failed && err.code == ERR_CORRUPT)
        (void)err_set(&err, ERR_CORRUPT, "the cache is damaged: twagent cache clear all");
    return failed ? command_fail(&err) : 0;
}

int command_cache(const struct settings *settings, const char *const *arguments, size_t count)
{
    const struct verb *verb = NULL;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].name, arguments[0]) == 0)
            verb = &verbs[i];
    if (!verb)
        return usage(arguments[0]);
    if (count - 1 < verb->least || count - 1 > verb->most) {
        fprintf(stderr, "twagent: usage: twagent cache %s%s\n", verb->name, verb->arguments);
        return EXIT_USAGE;
    }
    ARENA_LOCAL(arena);
    MEM_LOCAL char *folder = control_folder(settings);
    struct request request = {.settings = settings,
                              .arena = arena,
                              .words = arguments + 1,
                              .count = count - 1,
                              .store = folder};
    if (verb->run == clear && count == 2 && strcmp(arguments[1], "all") == 0)
        return clear_all(folder);
    return run_verb(&request, verb);
}
