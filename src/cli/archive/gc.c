/* twagent gc: takes old runs out of the store. What won, and what it came from, stays.
 * twagent backup: a copy of the store. */
#include "agents/llm/completion_record.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What hangs on a run, by keys that begin with its id. STORE_LESSONS is no run's: it stays. */
static const enum store_table tables[] = {STORE_IDEAS,  STORE_CANDIDATES, STORE_EVALUATIONS,
                                          STORE_EVENTS, STORE_SPENDING,   STORE_PASSAGES};

struct pruning {
    struct store *store;
    struct arena *arena;
    const char **kept; /* sorted ids of candidates and ideas that stay */
    size_t kept_count, kept_most;
    bool commit;
    int64_t bytes, swept; /* that went, or would go: of runs, of what only these used */
};

/* ---- what stays ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_kept(const struct pruning *pruning, const char *id)
{
    return pruning->kept_count > 0 &&
           bsearch(&id, pruning->kept, pruning->kept_count, sizeof *pruning->kept, by_text) != NULL;
}

static bool keep(struct pruning *pruning, const char *id)
{
    if (*id == '\0' || is_kept(pruning, id))
        return false;
    pruning->kept = arena_room(pruning->arena, pruning->kept, pruning->kept_count,
                               &pruning->kept_most, sizeof *pruning->kept);
    size_t at = pruning->kept_count++;
    for (; at > 0 && strcmp(pruning->kept[at - 1], id) > 0; at--)
        pruning->kept[at] = pruning->kept[at - 1];
    pruning->kept[at] = id;
    return true;
}

/* A candidate, its idea, and all that it came from, in whatever run. */
static void keep_line(struct pruning *pruning, const char *id)
{
    struct candidate_record candidate;
    struct err ignored;
    while (keep(pruning, id) &&
           history_candidate(pruning->store, pruning->arena, id, &candidate, &ignored) == 0) {
        keep(pruning, candidate.idea);
        if (*candidate.duplicate_of)
            keep_line(pruning, candidate.duplicate_of);
        id = candidate.parent;
    }
}

static void keep_winners(struct pruning *pruning, const struct run_record *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct problem_key key = {.name = runs[i].problem, .hash = runs[i].problem_hash};
        if (*runs[i].best &&
            ((runs[i].win && runs[i].verified) || history_best(runs, count, &key) == &runs[i]))
            keep_line(pruning, runs[i].best);
    }
}

static bool holds_kept(const struct pruning *pruning, const char *run)
{
    size_t length = strlen(run);
    for (size_t i = 0; i < pruning->kept_count; i++)
        if (strncmp(pruning->kept[i], run, length) == 0 && pruning->kept[i][length] == '-')
            return true;
    return false;
}

/* ---- what goes ---- */

struct removing {
    struct pruning *pruning;
    enum store_table table;
    struct store_batch *batch;
    bool whole;
    size_t candidates;
};

/* "r3-c17/implement", "r3-c17-final" -> "r3-c17" */
static bool key_is_kept(const struct removing *removing, const char *key)
{
    const char *dash = strchr(key, '-');
    size_t length = dash ? (size_t)(dash - key) + 1 + strcspn(dash + 1, "-/") : strlen(key);
    return is_kept(removing->pruning, arena_strndup(removing->pruning->arena, key, length));
}

static bool remove_key(void *context, const char *key, const char *value, size_t length)
{
    struct removing *removing = context;
    (void)value;
    if (!removing->whole && (removing->table == STORE_SPENDING ||
                             key_is_kept(removing, key))) /* money that was spent */
        return true;
    store_batch_remove(removing->batch, removing->table, key);
    removing->candidates += removing->table == STORE_CANDIDATES;
    removing->pruning->bytes += (int64_t)length;
    return true;
}

static void put_pruned(const struct run_record *run, struct store_batch *batch)
{
    struct run_record pruned = *run;
    struct buf text;
    pruned.state = "done"; /* it cannot go on: what its tree was is gone */
    pruned.stopped = "pruned by twagent gc: its best kernel and what that came from are left";
    buf_init(&text, 64 << 20);
    run_record_encode(&pruned, &text);
    store_batch_put(batch, STORE_RUNS, run->id, buf_text(&text), text.length);
    buf_free(&text);
}

/* One batch: a run is there as it was, or pruned, whenever this is killed. */
static int prune_run(struct pruning *pruning, const struct run_record *run, struct err *err)
{
    struct removing removing = {
        .pruning = pruning, .batch = store_batch_new(), .whole = !holds_kept(pruning, run->id)};
    int64_t before = pruning->bytes;
    char date[32], bytes[32];
    const char *prefix = arena_printf(pruning->arena, "%s-", run->id);
    int failed = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && !failed; i++) {
        removing.table = tables[i];
        failed = store_scan(pruning->store, tables[i], prefix, remove_key, &removing, err);
    }
    if (removing.whole)
        store_batch_remove(removing.batch, STORE_RUNS, run->id);
    else
        put_pruned(run, removing.batch);
    if (!failed && pruning->commit)
        failed = store_commit(pruning->store, removing.batch, err);
    store_batch_free(removing.batch);
    if (!failed)
        printf("%-5s %-16s %s: %zu candidates%s, %s B\n", run->id,
               words_date(run->started_ms, date), run->problem, removing.candidates,
               removing.whole ? " and the run"
                              : ", all but its best kernel and what that came from",
               words_count(pruning->bytes - before, bytes));
    return failed;
}

/* ---- what nothing hangs on any more ---- */

struct sweep {
    struct pruning *pruning;
    struct store_batch *batch;
    const char **sources; /* sorted hashes that candidates name */
    size_t count, most;
    const char *const *gone; /* runs that went or were pruned, sorted */
    size_t gone_count;
    bool used; /* of the completion at hand: somebody who is left asked for it */
};

static bool is_gone(const struct sweep *sweep, const char *run)
{
    return sweep->gone_count > 0 &&
           bsearch(&run, sweep->gone, sweep->gone_count, sizeof *sweep->gone, by_text) != NULL;
}

static bool note_source(void *context, const char *key, const char *value, size_t length)
{
    struct sweep *sweep = context;
    struct candidate_record candidate;
    struct err ignored;
    const char *run = arena_strndup(sweep->pruning->arena, key, strcspn(key, "-"));
    if (is_gone(sweep, run) && !is_kept(sweep->pruning, key))
        return true;
    struct arena *arena = arena_new_sized(4096);
    if (candidate_record_decode(arena, value, length, &candidate, &ignored) == 0) {
        MEM_MORE(sweep->sources, sweep->count, sweep->most);
        sweep->sources[sweep->count++] = arena_strdup(sweep->pruning->arena, candidate.source);
    }
    arena_free(arena);
    return true;
}

static bool sweep_source(void *context, const char *key, const char *value, size_t length)
{
    struct sweep *sweep = context;
    (void)value;
    if (sweep->count == 0 ||
        bsearch(&key, sweep->sources, sweep->count, sizeof *sweep->sources, by_text) == NULL) {
        store_batch_remove(sweep->batch, STORE_SOURCES, key);
        sweep->pruning->swept += (int64_t)length;
    }
    return true;
}

static void note_use(void *context, const struct completion_use *use)
{
    struct sweep *sweep = context;
    sweep->used = sweep->used || !is_gone(sweep, use->run) || is_kept(sweep->pruning, use->asker);
}

static bool sweep_completion(void *context, const char *key, const char *value, size_t length)
{
    struct sweep *sweep = context;
    struct arena *arena = arena_new_sized(4096);
    struct value *root;
    struct err ignored;
    sweep->used = value_parse_json(arena, "completion", value, length, &root, &ignored) != 0;
    if (!sweep->used)
        completion_uses(root, note_use, sweep);
    if (!sweep->used) {
        store_batch_remove(sweep->batch, STORE_COMPLETIONS, key);
        sweep->pruning->swept += (int64_t)length;
    }
    arena_free(arena);
    return true;
}

static int sweep_rest(struct pruning *pruning, const char **gone, size_t gone_count,
                      struct err *err)
{
    struct sweep sweep = {
        .pruning = pruning, .batch = store_batch_new(), .gone = gone, .gone_count = gone_count};
    qsort(gone, gone_count, sizeof *gone, by_text);
    if (!pruning->commit)
        pruning->swept = 0; /* all of it is counted again */
    int failed = store_scan(pruning->store, STORE_CANDIDATES, "r", note_source, &sweep, err);
    if (!failed && sweep.count > 0)
        qsort(sweep.sources, sweep.count, sizeof *sweep.sources, by_text);
    failed = failed || store_scan(pruning->store, STORE_SOURCES, "", sweep_source, &sweep, err) ||
             store_scan(pruning->store, STORE_COMPLETIONS, "", sweep_completion, &sweep, err) ||
             (pruning->commit && store_commit(pruning->store, sweep.batch, err));
    mem_free(sweep.sources);
    store_batch_free(sweep.batch);
    return failed ? -1 : 0;
}

/* The report that a run left where reports are by default. */
static void remove_report(const char *folder, const char *run, struct arena *arena)
{
    struct err ignored;
    const char *path = arena_printf(arena, "%s/reports/%s", folder, run);
    if (file_is_dir(path) && file_remove_tree(path, &ignored) != 0)
        fprintf(stderr, "twagent: %s stays: %s\n", path, ignored.message);
}

static bool add_length(void *context, const char *key, const char *value, size_t length)
{
    (void)key, (void)value;
    *(int64_t *)context += (int64_t)length;
    return true;
}

static int store_bytes(struct store *store, int64_t *bytes, struct err *err)
{
    *bytes = 0;
    for (int table = 0; table < STORE_TABLES; table++)
        if (store_scan(store, (enum store_table)table, "", add_length, bytes, err))
            return -1;
    return 0;
}

static uint64_t end_of(const struct run_record *run)
{
    return run->ended_ms > run->started_ms ? run->ended_ms : run->started_ms;
}

static int by_end(const void *a, const void *b)
{
    uint64_t one = end_of(a), other = end_of(b);
    return (one > other) - (one < other);
}

/* The oldest runs first: those that ended before `before_ms`, and more until `most` bytes are left
 * (0: no matter). */
static int prune_all(struct pruning *pruning, const char *folder, uint64_t before_ms, int64_t most,
                     struct err *err)
{
    struct run_record *runs;
    size_t count, gone_count = 0;
    int64_t bytes;
    char words[32];
    if (store_bytes(pruning->store, &bytes, err) ||
        history_runs(pruning->store, pruning->arena, &runs, &count, err))
        return -1;
    const char **gone = arena_array(pruning->arena, count + 1, sizeof *gone);
    keep_winners(pruning, runs, count);
    qsort(runs, count, sizeof *runs, by_end);
    for (size_t i = 0; i < count; i++) {
        bool too_much = most > 0 && bytes - pruning->bytes - pruning->swept > most;
        if (!too_much && end_of(&runs[i]) >= before_ms)
            break;
        if (strncmp(runs[i].stopped, "pruned", 6) == 0)
            continue;
        if (prune_run(pruning, &runs[i], err))
            return -1;
        gone[gone_count++] = runs[i].id;
        if (pruning->commit && !holds_kept(pruning, runs[i].id))
            remove_report(folder, runs[i].id, pruning->arena);
        if (most > 0 && sweep_rest(pruning, gone, gone_count, err))
            return -1;
    }
    if (sweep_rest(pruning, gone, gone_count, err))
        return -1;
    printf("%zu of %zu runs, %s", gone_count, count,
           words_count(pruning->bytes + pruning->swept, words));
    printf(" of %s B with their sources and answers%s\n", words_count(bytes, words),
           pruning->commit ? "" : ": nothing was removed (--dry-run)");
    if (pruning->commit && gone_count > 0)
        printf("the store's file keeps its size and fills the room with new records; a smaller "
               "copy: twagent backup DIR\n");
    return 0;
}

int command_gc(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct arena *arena = arena_new();
    struct pruning pruning = {.arena = arena, .commit = !settings->search.dry_run};
    struct err err = {0};
    MEM_LOCAL char *folder = control_folder(settings);
    uint64_t now = clock_wall_ms(), age = (uint64_t)settings->older_than_ms;
    int failed;
    (void)arguments, (void)count;
    if (age == 0 && settings->max_size == 0)
        failed = err_set(&err, ERR_USAGE,
                         "gc: say what may go, as in: twagent gc --older-than 30d --max-size 1G");
    else
        failed = store_open(folder, false, !pruning.commit, &pruning.store, &err) ||
                 prune_all(&pruning, folder, age > 0 && age < now ? now - age : 0,
                           settings->max_size, &err);
    store_close(pruning.store);
    arena_free(arena);
    return failed ? command_fail(&err) : 0;
}

int command_backup(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct err err = {0};
    MEM_LOCAL char *folder = control_folder(settings);
    int failed = store_backup(folder, arguments[0], &err);
    (void)count;
    if (!failed && !settings->quiet)
        printf("copied %s to %s\n", folder, arguments[0]);
    return failed ? command_fail(&err) : 0;
}
