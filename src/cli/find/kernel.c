/* The kernel that a person means, by an id or by its problem. A problem is its definition: what
 * lies at a path now, not what bore its name once. */
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "eval/problem/identity.h"

#include <string.h>

enum { SHORT_DIGITS = 4 };

/* ---- definitions ---- */

/* 1: `key` is the definition that lies there now; 0: nothing does; -1: *err. */
static int at_place(struct arena *arena, const char *word, struct problem_key *key, struct err *err)
{
    struct problem *problem;
    char hash[IDENTITY_BYTES];
    const char *size = file_exists(word) ? NULL : problem_size_of(word);
    const char *plain = size ? arena_strndup(arena, word, (size_t)(size - word)) : word;
    const char *path = command_path(arena, plain);
    size_t length = strlen(path), shipped_count = 0;
    const char *const *shipped = find_shipped(arena, &shipped_count);
    bool ships = false;
    for (size_t i = 0; i < shipped_count; i++)
        ships = ships || strcmp(shipped[i], path) == 0;
    /* A folder without a spec, such as an emitted package, is no problem: its name may be one's. */
    if (!ships && (!file_exists(path) || (file_is_dir(path) && *path != '/')))
        return 0;
    if (length > 3 && strcmp(path + length - 3, ".py") == 0) {
        problem_identity_of_module(path, hash); /* its name takes a Python to know */
        *key = (struct problem_key){.name = NULL, .hash = arena_strdup(arena, hash)};
        return 1;
    }
    if (problem_load(path, &problem, err))
        return -1;
    problem_identity(problem, hash);
    *key = (struct problem_key){.name = arena_strdup(arena, problem->name),
                                .hash = arena_strdup(arena, hash)};
    problem_free(problem);
    return 1;
}

static const char *short_name(struct arena *arena, const struct run_record *run)
{
    return *run->problem_hash
               ? arena_printf(arena, "%s#%.*s", run->problem, SHORT_DIGITS, run->problem_hash)
               : arena_printf(arena, "%s#", run->problem);
}

static bool is_first_of_its(const struct run_record *runs, size_t at)
{
    const struct problem_key key = {.name = runs[at].problem, .hash = runs[at].problem_hash};
    bool first = true;
    for (size_t i = 0; i < at && first; i++)
        first = !problem_key_is(&key, runs[i].problem, runs[i].problem_hash);
    return first;
}

/* "scale#3f2a" means the one whose hash begins so, "scale#" those that have none. */
static bool is_short_for(const struct run_record *run, const char *name, const char *digits)
{
    if (!digits)
        return strcmp(run->problem, name) == 0;
    size_t length = (size_t)(digits - 1 - name);
    return strlen(run->problem) == length && memcmp(run->problem, name, length) == 0 &&
           (*digits ? strncmp(run->problem_hash, digits, strlen(digits)) == 0
                    : !*run->problem_hash);
}

int find_definition(struct arena *arena, const char *word, const struct run_record *runs,
                    size_t count, struct problem_key *key, struct err *err)
{
    const char *mark = strchr(word, '/') ? NULL : strrchr(word, '#');
    const char **names = arena_array(arena, count + 1, sizeof *names);
    size_t known = 0;
    *key = (struct problem_key){.name = word};
    int there = mark ? 0 : at_place(arena, word, key, err);
    if (there)
        return there < 0 ? -1 : 0;
    for (size_t i = 0; i < count; i++)
        if (is_short_for(&runs[i], word, mark ? mark + 1 : NULL) && is_first_of_its(runs, i)) {
            *key = (struct problem_key){.name = runs[i].problem, .hash = runs[i].problem_hash};
            names[known++] = arena_printf(arena, "%s (%s, %s)", short_name(arena, &runs[i]),
                                          runs[i].id, runs[i].problem_file);
        }
    if (known > 1)
        return err_set(err, ERR_USAGE, "\"%s\" may be %s: name one, or its path", word,
                       find_joined(arena, names, known));
    return 0;
}

const char *find_shown_name(struct arena *arena, const struct run_record *run,
                            const struct run_record *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(runs[i].problem, run->problem) == 0 &&
            strcmp(runs[i].problem_hash, run->problem_hash) != 0)
            return short_name(arena, run);
    return run->problem;
}

int find_same_definition(struct arena *arena, const struct run_record *run, const char *path,
                         struct err *err)
{
    struct problem_key key;
    int there = at_place(arena, path, &key, err);
    if (there < 0 || (there > 0 && strcmp(run->problem_hash, key.hash) == 0))
        return there < 0 ? -1 : 0;
    return err_set(err, ERR_USAGE, "%s was found for another definition of %s than %s has now%s",
                   run->id, run->problem, path,
                   *run->problem_hash ? "" : " (an earlier twagent did not note which)");
}

/* ---- kernels ---- */

/* Of runs that bear the name, or lie at the path, and are of another definition. */
static const char *others(struct arena *arena, const char *word, const struct problem_key *key,
                          const struct run_record *runs, size_t count)
{
    const char *path = command_path(arena, word);
    size_t length = strlen(path);
    for (size_t i = count; i-- > 0;) {
        const struct run_record *run = &runs[i];
        bool named = key->name && strcmp(key->name, run->problem) == 0;
        bool here = strncmp(run->problem_file, path, length) == 0 &&
                    (run->problem_file[length] == '\0' || strchr("/@", run->problem_file[length]));
        if (*run->best && (named || here))
            return arena_printf(arena,
                                "; %s of %s was found for another definition (twagent show %s)",
                                run->best, short_name(arena, run), run->best);
    }
    return "";
}

const char *find_no_kernel(const struct settings *settings, struct store *store,
                           struct arena *arena, const char *word)
{
    struct run_record *runs = NULL;
    struct problem_key key;
    struct err ignored;
    size_t count = 0, known = 0, shipped_count;
    MEM_LOCAL char *folder = control_folder(settings);
    const char *where = arena_strdup(arena, folder);
    const char *const *shipped = find_shipped(arena, &shipped_count);
    if (store && history_runs(store, arena, &runs, &count, &ignored))
        count = 0;
    const char **names = arena_array(arena, count + shipped_count + 1, sizeof *names);
    bool is_shipped = false, searched = false;
    if (find_definition(arena, word, runs, count, &key, &ignored))
        key = (struct problem_key){.name = word};
    for (size_t i = 0; i < count; i++) {
        bool again = false;
        searched = searched || strcmp(runs[i].problem, word) == 0;
        for (size_t k = 0; k < known; k++)
            again = again || strcmp(names[k], runs[i].problem) == 0;
        if (!again && *runs[i].best)
            names[known++] = runs[i].problem;
    }
    const char *has = known
                          ? arena_printf(arena, "kernels for %s", find_joined(arena, names, known))
                          : "no kernel yet";
    for (size_t i = 0; i < shipped_count; i++) {
        is_shipped = is_shipped || strcmp(shipped[i], word) == 0;
        names[known + i] = shipped[i];
    }
    names[known + shipped_count] = NULL;
    if (searched || is_shipped || file_exists(word))
        return arena_printf(arena,
                            "no kernel for \"%s\": %s holds %s%s; search with: twagent run %s",
                            word, where, has, others(arena, word, &key, runs, count), word);
    return arena_printf(arena, "no kernel for \"%s\": %s holds %s%s", word, where, has,
                        find_near(arena, word, names));
}

int find_kernel(struct store *store, struct arena *arena, const char *id,
                struct candidate_record *candidate, struct run_record *run, struct err *err)
{
    struct run_record *runs = NULL;
    struct problem_key key;
    size_t count = 0;
    if (strstr(id, "-c") && !strchr(id, '/') && !file_exists(id)) {
        const char *final = strstr(id, "-final");
        const char *own = final ? arena_strndup(arena, id, (size_t)(final - id)) : id;
        return history_candidate(store, arena, own, candidate, err) ||
                       history_run(store, arena, candidate->run, run, err)
                   ? -1
                   : 0;
    }
    if (history_run(store, arena, id, run, err)) {
        if (err->code != ERR_NOT_FOUND || history_runs(store, arena, &runs, &count, err) ||
            find_definition(arena, id, runs, count, &key, err))
            return -1;
        const struct run_record *best = history_best(runs, count, &key);
        if (!best)
            return err_set(err, ERR_USAGE,
                           "no candidate, no run and no problem with a kernel "
                           "is called \"%s\"%s",
                           id, others(arena, id, &key, runs, count));
        *run = *best;
    }
    if (!run->best || !*run->best)
        return err_set(err, ERR_USAGE, "%s has found no kernel", run->id);
    return history_candidate(store, arena, run->best, candidate, err);
}
