#include "cli/find/find.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "eval/problem/problem.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- problems ---- */

const char *command_path(struct arena *arena, const char *word)
{
    char *path = realpath(word, NULL);
    char *spec = path ? arena_printf(arena, "%s/spec.yaml", path) : NULL;
    bool ours = path && (strchr(word, '/') || !file_is_dir(path) || file_exists(spec));
    const char *result = ours ? arena_strdup(arena, path) : word;
    free(path);
    return result;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *find_shipped(struct arena *arena, size_t *count)
{
    enum { MOST = 512 };
    const char **names = arena_array(arena, MOST + 1, sizeof *names);
    MEM_LOCAL char *folder = file_data_path("problems");
    DIR *dir = folder ? opendir(folder) : NULL;
    *count = 0;
    for (struct dirent *entry; dir && *count < MOST && (entry = readdir(dir));) {
        char *path = file_join(folder, entry->d_name);
        char *spec = file_join(path, "spec.yaml");
        if (entry->d_name[0] != '.' && file_exists(spec))
            names[(*count)++] = arena_strdup(arena, entry->d_name);
        mem_free(spec);
        mem_free(path);
    }
    if (dir)
        closedir(dir);
    qsort(names, *count, sizeof *names, by_name);
    names[*count] = NULL;
    return dir ? names : NULL;
}

const char *find_joined(struct arena *arena, const char *const *names, size_t count)
{
    BUF_LOCAL(text, 1 << 16);
    for (size_t i = 0; i < count; i++)
        buf_addf(&text, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", names[i]);
    return buf_keep(&text, arena);
}

const char *find_near(struct arena *arena, const char *word, const char *const *names)
{
    const char *nearest = names ? options_nearest(word, names) : NULL;
    return nearest ? arena_printf(arena, "; did you mean \"%s\"?", nearest) : "";
}

/* What the spec has for the backend. A mistake in it is told here, before anything is started or
 * waited for; a Python file takes a process to read, and is left to who opens it. */
static int sized(struct arena *arena, const char *path, const char *size, const char *backend,
                 const char **problem, struct err *err)
{
    struct problem *loaded;
    size_t length = strlen(path);
    *problem = size ? arena_printf(arena, "%s%s", path, size) : path;
    if (length > 3 && strcmp(path + length - 3, ".py") == 0)
        return 0;
    if (problem_load(*problem, &loaded, err))
        return -1;
    if (!size && backend && problem_has_size(loaded, backend))
        *problem = arena_printf(arena, "%s@%s", path, backend);
    problem_free(loaded);
    return 0;
}

static bool is_module(const char *word)
{
    size_t length = strlen(word);
    return length > 3 && strcmp(word + length - 3, ".py") == 0;
}

int find_problem(struct arena *arena, const char *word, const char *backend, const char **problem,
                 struct err *err)
{
    size_t count;
    char here[4096];
    const char *const *shipped = find_shipped(arena, &count);
    const char *size = file_exists(word) ? NULL : problem_size_of(word);
    if (size)
        word = arena_strndup(arena, word, (size_t)(size - word));
    const char *path = command_path(arena, word);
    bool is_there = file_exists(path), ships = false;
    for (size_t i = 0; i < count; i++)
        ships = ships || strcmp(word, shipped[i]) == 0;
    if (is_there && !ships && file_is_dir(path) &&
        !file_exists(arena_printf(arena, "%s/spec.yaml", path)))
        return err_set(err, ERR_USAGE,
                       "no problem in %s: the folder has no spec.yaml (twagent problem new DIR "
                       "writes one)",
                       path);
    if (is_there && !ships && !file_is_dir(path) && !is_module(word) && language_of_file(word))
        return err_set(err, ERR_USAGE,
                       "%s is a kernel, not a problem: twagent eval PROBLEM %s (twagent list "
                       "problems)",
                       word, word);
    is_there = is_there || ships;
    *problem = path;
    if (is_there)
        return sized(arena, path, size, backend, problem, err);
    if (size && problem_size_of(word))
        return err_set(err, ERR_USAGE,
                       "%s%s has two sizes, expected one behind an @ (more dims by commas: "
                       "@M=64,N=8)",
                       word, size);
    if (!getcwd(here, sizeof here))
        strcpy(here, ".");
    if (strchr(word, '/'))
        return err_set(err, ERR_USAGE, "no problem %s: there is no such folder or file%s%s%s", word,
                       *word == '/' ? "" : " (from ", *word == '/' ? "" : here,
                       *word == '/' ? "" : ")");
    const char *near = find_near(arena, word, shipped);
    bool is_file = strchr(word, '.') != NULL;
    return err_set(
        err, ERR_USAGE, "no problem \"%s\": there is no such folder or file in %s%s%s", word, here,
        is_file ? "" : near,
        is_file ? ""
        : *near ? " (twagent list problems)"
        : count ? arena_printf(arena, " (those that ship: %s)", find_joined(arena, shipped, count))
                : " (those that ship are not installed)");
}

/* ---- runs, ideas, candidates ---- */

static bool is_run(const char *id, size_t length)
{
    bool is = length > 1 && id[0] == 'r';
    for (size_t i = 1; is && i < length; i++)
        is = isdigit((unsigned char)id[i]);
    return is;
}

/* "r1", "r1 to r7", or NULL: what keys a table holds. */
struct span {
    char first[64], last[64];
    size_t count;
};

static bool note_key(void *context, const char *key, const char *value, size_t length)
{
    struct span *span = context;
    (void)value, (void)length;
    snprintf(span->count++ == 0 ? span->first : span->last, sizeof span->first, "%s", key);
    return true;
}

static const char *keys_of(struct store *store, struct arena *arena, enum store_table table,
                           const char *prefix)
{
    struct span span = {.count = 0};
    struct err ignored;
    if (!store || store_scan(store, table, prefix, note_key, &span, &ignored) || span.count == 0)
        return NULL;
    return span.count == 1 ? arena_strdup(arena, span.first)
                           : arena_printf(arena, "%s to %s", span.first, span.last);
}

int find_no_id(const struct settings *settings, struct store *store, struct arena *arena,
               const char *id, struct err *err)
{
    MEM_LOCAL char *folder = control_folder(settings);
    const char *where = arena_strdup(arena, folder), *dash = strchr(id, '-'), *all;
    size_t length = dash ? (size_t)(dash - id) : strlen(id);
    bool candidate = dash && dash[1] == 'c', idea = dash && dash[1] == 'i';
    char *run = arena_strndup(arena, id, length);
    struct err ignored;
    if (!is_run(id, length) || (dash && !candidate && !idea))
        return err_set(err, ERR_USAGE,
                       "expected the id of a run (r3), a candidate (r3-c17) or an idea (r3-i12), "
                       "not \"%s\" (twagent list)",
                       id);
    all = keys_of(store, arena, STORE_RUNS, "r");
    if (!all)
        return err_set(err, ERR_USAGE,
                       "no run %s: %s holds none yet; begin with: twagent run conv2d", run, where);
    BUF_LOCAL(ignored_text, 1 << 26);
    bool there = store_get(store, STORE_RUNS, run, &ignored_text, &ignored) == 0;
    if (!there)
        return err_set(err, ERR_USAGE, "no run %s: %s holds %s (twagent list)", run, where, all);
    if (!dash)
        return err_set(err, ERR_USAGE,
                       "%s is a run: name one of its candidates (twagent list "
                       "candidates %s)",
                       run, run);
    all = keys_of(store, arena, candidate ? STORE_CANDIDATES : STORE_IDEAS,
                  arena_printf(arena, "%s-%c", run, candidate ? 'c' : 'i'));
    return err_set(err, ERR_USAGE, "no %s %s: %s has %s (twagent list candidates %s)",
                   candidate ? "candidate" : "idea", id, run, all ? all : "none", run);
}
