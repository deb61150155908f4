#include "cache/cache.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "facts/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_MOST = 64 << 20, WAIT_MS = 10000, WAIT_STEP_MS = 20 };

struct cache {
    struct store *store; /* ours */
    struct store *runs;  /* what the runs left; NULL: nothing that can be believed */
    char *folder;
};

/* ---- opening ---- */

/* A folder of this user's that nobody else can write to, and so its data file. Whoever could write
 * there could say what he likes: checksums find damage, not lies. */
static int check_private(const char *folder, struct err *err)
{
    MEM_LOCAL char *data = file_join(folder, "data.mdb");
    const char *const paths[] = {folder, data};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct stat status;
        if (lstat(paths[i], &status) != 0)
            return i == 0 && errno == ENOENT
                       ? err_set(err, ERR_NOT_FOUND, "nothing is cached yet in %s", folder)
                       : err_set_errno(err, ERR_ENVIRONMENT, errno, "%s", paths[i]);
        if (i == 0 && S_ISLNK(status.st_mode) && stat(paths[i], &status) != 0)
            return err_set_errno(err, ERR_ENVIRONMENT, errno, "%s", paths[i]);
        if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
            !(i == 0 ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode)))
            return err_set(err, ERR_ENVIRONMENT,
                           "others can write to %s: nothing in it is believed (twagent "
                           "cache clear all, or chmod go-w)",
                           paths[i]);
    }
    return 0;
}

/* Writers commit and go: it is never a search that has it. */
static int open_store(const char *folder, bool write, struct store **store, struct err *err)
{
    const struct timespec step = {.tv_nsec = WAIT_STEP_MS * 1000000L};
    int failed;
    for (int waited = 0;; waited += WAIT_STEP_MS) {
        failed = store_open(folder, write, !write, store, err);
        if (!failed || err->code != ERR_BUSY || waited >= WAIT_MS)
            return failed;
        nanosleep(&step, NULL);
    }
}

int cache_open(const char *store_folder, bool write, struct cache **out, struct err *err)
{
    struct err ignored;
    struct cache *cache = MEM_NEW(struct cache);
    cache->folder = file_join(store_folder, "cache");
    int failed = 0;
    if (check_private(cache->folder, err) && !(write && err->code == ERR_NOT_FOUND))
        failed = -1;
    else
        failed = open_store(cache->folder, write, &cache->store, err) ||
                 check_private(cache->folder, err);
    if (!failed && check_private(store_folder, &ignored) == 0 &&
        store_open(store_folder, false, true, &cache->runs, &ignored))
        cache->runs = NULL;
    if (failed) {
        cache_close(cache);
        return -1;
    }
    *out = cache;
    return 0;
}

void cache_close(struct cache *cache)
{
    if (!cache)
        return;
    store_close(cache->store);
    store_close(cache->runs);
    mem_free(cache->folder);
    mem_free(cache);
}

const char *cache_folder(const struct cache *cache)
{
    return cache->folder;
}

/* ---- reading ---- */

/* The run that is meant has the number, the beginning and the kernel that were written down: the
 * next store's r3 is another one. */
static bool take_run(struct cache *cache, struct arena *arena, const struct value *record,
                     struct cache_entry *entry)
{
    struct run_record run;
    struct candidate_record kernel;
    struct err ignored;
    entry->run = value_text(record, "run", "");
    entry->kernel = value_text(record, "kernel", "");
    if (!cache->runs || history_run(cache->runs, arena, entry->run, &run, &ignored) ||
        history_candidate(cache->runs, arena, entry->kernel, &kernel, &ignored) ||
        (int64_t)run.started_ms != value_int(record, "started_ms", 0) ||
        strcmp(run.best, entry->kernel) != 0)
        return false;
    struct value *options = NULL;
    const struct value *measured = history_evaluation(cache->runs, arena, entry->kernel);
    entry->problem = run.problem;
    entry->problem_file = run.problem_file;
    entry->file = kernel.name;
    entry->source = history_source(cache->runs, arena, &kernel);
    entry->ended = strcmp(run.state, "done") == 0 && run.win && run.verified &&
                   history_is_final(cache->runs, arena, entry->kernel) &&
                   run_record_ended_itself(&run);
    if (value_parse_json(arena, entry->run, run.options, strlen(run.options), &options, &ignored))
        return false;
    entry->seed = value_int(options, "seed", 0);
    return entry->source && measured &&
           evaluation_from_value(arena, measured, &entry->evaluation, &ignored) == 0;
}

static bool take_eval(struct arena *arena, const struct value *record, struct cache_entry *entry)
{
    struct err ignored;
    const struct value *measured = value_get(record, "evaluation");
    entry->run = entry->kernel = "";
    entry->problem = value_text(entry->question, "problem", "");
    entry->problem_file = value_text(record, "problem_file", "");
    entry->file = value_text(record, "file", "");
    entry->source = value_text(record, "source", NULL);
    return entry->source && measured &&
           evaluation_from_value(arena, measured, &entry->evaluation, &ignored) == 0;
}

/* False: what lies under `key` is none, or says another question than its key. */
static bool take(struct cache *cache, struct arena *arena, const char *key, const char *text,
                 size_t length, struct cache_entry *entry)
{
    struct value *record = NULL, *question = NULL;
    struct err ignored;
    char hex[33];
    *entry = (struct cache_entry){.key = arena_strdup(arena, key)};
    if (value_parse_json(arena, key, text, length, &record, &ignored))
        return false;
    const char *asked = value_text(record, "question", ""), *stem = value_text(record, "stem", "");
    hash_format(hash_bytes(asked, strlen(asked)), hex);
    if (strcmp(hex, key) != 0 ||
        value_parse_json(arena, key, asked, strlen(asked), &question, &ignored))
        return false;
    entry->question = question;
    entry->asked = asked;
    entry->about = value_text(record, "about", "");
    entry->by = value_text(question, "by", "");
    entry->written_ms = (uint64_t)value_int(record, "written_ms", 0);
    bool is_run = strcmp(entry->by, "run") == 0;
    if (!(is_run ? take_run(cache, arena, record, entry) : take_eval(arena, record, entry)) ||
        strcspn(stem, "/") != strlen(stem))
        return false;
    entry->accepted = entry->evaluation.verdict == VERDICT_KERNEL;
    entry->name = arena_printf(arena, "%c_%s.json", entry->accepted ? 'c' : 'r', stem);
    JSON_LOCAL(json, whole, RECORD_MOST);
    cache_entry_json(entry, &json);
    entry->bytes = whole.length + 1;
    return true;
}

bool cache_find(struct cache *cache, struct arena *arena, const struct question *question,
                struct cache_entry *entry)
{
    struct err ignored;
    BUF_LOCAL(text, RECORD_MOST);
    if (store_get(cache->store, STORE_EVALUATIONS, question->key, &text, &ignored) ||
        !take(cache, arena, question->key, buf_text(&text), text.length, entry))
        return false;
    return strcmp(entry->asked, question->text) == 0; /* a hash can be met by chance, or by art */
}

struct listing {
    struct cache *cache;
    struct arena *arena;
    struct cache_entry *items;
    size_t count, most, damaged;
};

static bool note_entry(void *context, const char *key, const char *value, size_t length)
{
    struct listing *listing = context;
    if (listing->count == listing->most) {
        size_t most = listing->most ? 2 * listing->most : 64;
        struct cache_entry *items = arena_array(listing->arena, most, sizeof *items);
        if (listing->count)
            memcpy(items, listing->items, listing->count * sizeof *items);
        listing->items = items;
        listing->most = most;
    }
    if (take(listing->cache, listing->arena, key, value, length, &listing->items[listing->count]))
        listing->count++;
    else
        listing->damaged++;
    return true;
}

static int newest_first(const void *a, const void *b)
{
    const struct cache_entry *one = a, *other = b;
    if (one->written_ms != other->written_ms)
        return one->written_ms > other->written_ms ? -1 : 1;
    return strcmp(one->name, other->name);
}

int cache_list(struct cache *cache, struct arena *arena, struct cache_entry **entries,
               size_t *count, size_t *damaged, struct err *err)
{
    struct listing listing = {.cache = cache, .arena = arena};
    if (store_scan(cache->store, STORE_EVALUATIONS, "", note_entry, &listing, err))
        return -1;
    if (listing.count)
        qsort(listing.items, listing.count, sizeof *listing.items, newest_first);
    *entries = listing.items;
    *count = listing.count;
    *damaged = listing.damaged;
    return 0;
}

/* As proof/claim has it: an interval that is wider than this to a side says too little. */
static bool is_settled(const struct evaluation *evaluation)
{
    const struct interval *ratio = &evaluation->speedup;
    return (evaluation->finding == FINDING_FASTER || evaluation->finding == FINDING_SLOWER ||
            evaluation->finding == FINDING_SAME) &&
           ratio->low >= 0.75 * ratio->median && ratio->high <= 1.25 * ratio->median;
}

bool cache_is_answer(const struct cache_entry *entry)
{
    const struct evaluation *evaluation = &entry->evaluation;
    bool settled = *entry->run ? entry->ended : is_settled(evaluation);
    return entry->accepted && settled && !evaluation->ours && !evaluation->dropped &&
           !evaluation->quarantined && !*evaluation->unfit && !*evaluation->unconfined &&
           evaluation->checks_total > 0 && evaluation->checks_passed == evaluation->checks_total;
}

/* ---- writing ---- */

static void remove_copies(const struct cache *cache, const char *stem)
{
    for (const char *mark = "cr"; *mark; mark++) {
        BUF_LOCAL(name, 512);
        buf_addf(&name, "%s/%c_%s.json", cache->folder, *mark, stem);
        (void)unlink(buf_text(&name));
    }
}

/* The copy for people; one that cannot be written is none, and the entry stands. */
static int put(struct cache *cache, struct arena *arena, const struct question *question,
               const struct buf *record, const char **name, struct err *err)
{
    struct store_batch *batch = store_batch_new();
    struct cache_entry entry;
    struct err ignored;
    store_batch_put(batch, STORE_EVALUATIONS, question->key, buf_text(record), record->length);
    int failed = store_commit(cache->store, batch, err);
    store_batch_free(batch);
    if (failed)
        return -1;
    remove_copies(cache, question->stem);
    if (!take(cache, arena, question->key, buf_text(record), record->length, &entry))
        return err_set(err, ERR_CORRUPT, "the entry cannot be read back");
    JSON_LOCAL(json, text, RECORD_MOST);
    cache_entry_json(&entry, &json);
    buf_add_char(&text, '\n');
    MEM_LOCAL char *path = file_join(cache->folder, entry.name);
    (void)!file_write(path, buf_text(&text), text.length, &ignored);
    *name = entry.name;
    return 0;
}

static void begin(const struct question *question, struct json *json)
{
    json_object(json);
    json_put_text(json, "question", question->text);
    json_put_text(json, "about", question->about);
    json_put_text(json, "stem", question->stem);
    json_put_int(json, "written_ms", (int64_t)clock_wall_ms());
}

int cache_keep_eval(struct cache *cache, struct arena *arena, const struct question *question,
                    const char *problem_file, const char *file, const char *source,
                    const struct evaluation *evaluation, const char **name, struct err *err)
{
    JSON_LOCAL(json, record, RECORD_MOST);
    begin(question, &json);
    json_put_text(&json, "problem_file", problem_file);
    json_put_text(&json, "file", file);
    json_put_text(&json, "source", source);
    json_key(&json, "evaluation");
    evaluation_to_json(evaluation, &json);
    json_object_end(&json);
    return put(cache, arena, question, &record, name, err);
}

int cache_keep_run(struct cache *cache, struct arena *arena, const struct question *question,
                   const char *id, const char **name, struct err *err)
{
    struct run_record run;
    if (!cache->runs)
        return err_set(err, ERR_ENVIRONMENT, "others can write to the store");
    if (history_run(cache->runs, arena, id, &run, err))
        return -1;
    JSON_LOCAL(json, record, RECORD_MOST);
    begin(question, &json);
    json_put_text(&json, "run", id);
    json_put_text(&json, "kernel", run.best);
    json_put_int(&json, "started_ms", (int64_t)run.started_ms);
    json_object_end(&json);
    return put(cache, arena, question, &record, name, err);
}

static const char *stem_of(struct arena *arena, const char *name)
{
    return arena_strndup(arena, name + 2, strlen(name) - strlen("c_.json"));
}

int cache_remove(struct cache *cache, const struct cache_entry *const *entries, size_t count,
                 struct err *err)
{
    ARENA_LOCAL(arena);
    struct store_batch *batch = store_batch_new();
    for (size_t i = 0; i < count; i++)
        store_batch_remove(batch, STORE_EVALUATIONS, entries[i]->key);
    int failed = count ? store_commit(cache->store, batch, err) : 0;
    store_batch_free(batch);
    for (size_t i = 0; !failed && i < count; i++)
        remove_copies(cache, stem_of(arena, entries[i]->name));
    return failed;
}

int cache_remove_all(const char *store_folder, struct err *err)
{
    MEM_LOCAL char *folder = file_join(store_folder, "cache");
    return file_exists(folder) ? file_remove_tree(folder, err) : 0;
}

void cache_entry_json(const struct cache_entry *entry, struct json *json)
{
    char when[32];
    clock_format_wall(entry->written_ms, when);
    json_object(json);
    json_put_text(json, "name", entry->name);
    json_put_text(json, "status", entry->accepted ? "c" : "r");
    json_put_text(json, "verdict", verdict_name(entry->evaluation.verdict));
    json_put_text(json, "reason", entry->evaluation.reason);
    json_put_text(json, "written", when);
    json_put_int(json, "written_ms", (int64_t)entry->written_ms);
    json_put_text(json, "by", entry->by);
    json_put_text(json, "run", *entry->run ? entry->run : NULL);
    json_put_text(json, "kernel", *entry->kernel ? entry->kernel : NULL);
    json_put_text(json, "problem", entry->problem);
    json_put_text(json, "problem_file", entry->problem_file);
    json_put_text(json, "file", entry->file);
    json_put_value(json, "question", entry->question);
    json_key(json, "evaluation");
    evaluation_to_json(&entry->evaluation, json);
    json_put_text(json, "source", entry->source);
    json_object_end(json);
}
