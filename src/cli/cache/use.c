#include "cli/cache/use.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/archive/bundle.h"
#include "cli/find/control.h"
#include "cli/find/history.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/print/run_words.h"
#include "eval/backend/backend.h"
#include "eval/lane/lane.h"
#include "eval/problem/identity.h"
#include "eval/problem/torch.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MOST = 64 << 20 };

/* ---- questions ---- */

int cache_definition(struct arena *arena, const struct problem *problem, const char *baseline,
                     struct hash *hash, struct err *err)
{
    char identity[IDENTITY_BYTES];
    struct bundle *bundle = ARENA_NEW(arena, struct bundle);
    if (bundle_pack(arena, problem, baseline ? baseline : problem->baseline, bundle, err))
        return -1;
    problem_identity(problem, identity); /* what a PyTorch file imports is no file of a bundle */
    *hash = hash_combine(hash_bytes(bundle->size, strlen(bundle->size)),
                         hash_bytes(identity, strlen(identity)));
    for (size_t i = 0; i < bundle->file_count; i++) {
        const struct bundle_file *file = &bundle->files[i];
        *hash = hash_combine(*hash, hash_bytes(file->name, strlen(file->name)));
        *hash = hash_combine(*hash, hash_bytes(file->text, strlen(file->text)));
    }
    return 0;
}

/* Fills what does not depend on who asks, and makes the question. */
static int make_question(struct arena *arena, const char *path, const char *python,
                         const char *baseline, struct asked *asked, struct question *question,
                         struct err *err)
{
    struct problem *problem;
    if (problem_load_with(path, python, &problem, err))
        return -1;
    asked->problem = problem;
    asked->machine = question_machine(arena);
    asked->twagent = TWAGENT_VERSION;
    int failed = cache_definition(arena, problem, baseline, &asked->definition, err) ||
                 question_make(arena, asked, question, err);
    asked->problem = NULL;
    problem_free(problem);
    return failed;
}

/* Of the languages that it may be written in. */
static const char *compilers_of(struct arena *arena, const struct search_options *search,
                                const char *file)
{
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct backend *backend = backends_find(search->backend);
    size_t count = 1;
    BUF_LOCAL(text, 4096);
    if (backend == NULL || backend->compilers == NULL)
        return NULL;
    if (file != NULL)
        chosen[0] = language_of_file(file);
    else
        count = target_choose(backend->target, search->language, chosen);
    for (size_t i = 0; i < count; i++) {
        const char *own = chosen[i] != NULL ? backend->compilers(arena, chosen[i]) : NULL;
        if (own != NULL)
            buf_addf(&text, "%s%s", text.length > 0 ? "," : "[", own);
    }
    return text.length > 0 ? arena_printf(arena, "%s]", buf_text(&text)) : NULL;
}

static const char *eval_settings(struct arena *arena, const struct settings *settings)
{
    const struct search_options *search = &settings->search;
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    json_put_text(&json, "effort", settings->effort);
    json_put_bool(&json, "profile", settings->profile);
    json_put_bool(&json, "sanitize", settings->sanitize);
    json_put_bool(&json, "cachegrind", settings->cachegrind);
    json_put_text(&json, "baseline", search->baseline);
    json_put_text(&json, "python", search->python);
    json_put_int(&json, "call_timeout_ms", search->call_timeout_ms);
    json_put_int(&json, "time_budget_ms", search->time_budget_ms);
    json_put_bool(&json, "unfit", search->unfit);
    json_put_bool(&json, "unconfined", search->unconfined);
    json_object_end(&json);
    return buf_keep(&text, arena);
}

/* All that a run was told but where things lie, and the seed, which is mostly drawn. */
static const char *run_settings(struct arena *arena, const char *options, const char *choice)
{
    static const char *const left_out[] = {"problem", "seed", "disk_quota", "disk_floor"};
    struct value *root = NULL;
    struct err ignored;
    JSON_LOCAL(json, text, 1 << 20);
    if (value_parse_json(arena, "options", options, strlen(options), &root, &ignored))
        return "null";
    json_object(&json);
    for (size_t i = 0; i < root->count; i++) {
        bool out = false;
        for (size_t k = 0; k < sizeof left_out / sizeof left_out[0]; k++)
            out = out || strcmp(root->keys[i], left_out[k]) == 0;
        if (out)
            continue;
        json_put_value(&json, root->keys[i], root->items[i]);
    }
    json_put_text(&json, "choice", choice);
    json_object_end(&json);
    return buf_keep(&text, arena);
}

/* ---- words ---- */

const char *cache_age(uint64_t written_ms, char text[32])
{
    static const struct {
        int64_t s;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    uint64_t now = clock_wall_ms();
    int64_t s = now > written_ms ? (int64_t)((now - written_ms) / 1000) : 0;
    size_t i = 0;
    while (i < 3 && s < 2 * units[i].s)
        i++;
    snprintf(text, 32, "%lld %s", (long long)(s / units[i].s), units[i].unit);
    return text;
}

void cache_say(const struct cache_entry *entry)
{
    char date[32], age[32];
    printf("CACHED: measured on this machine at %s (%s ago), not now; --force measures again\n"
           "  %-10s %s\n",
           words_date(entry->written_ms, date), cache_age(entry->written_ms, age), "entry",
           entry->name);
}

void cache_put(const struct cache_entry *entry, struct json *json)
{
    char when[32];
    clock_format_wall(entry->written_ms, when);
    json_put_object(json, "cached");
    json_put_text(json, "name", entry->name);
    json_put_text(json, "written", when);
    json_put_int(json, "written_ms", (int64_t)entry->written_ms);
    json_object_end(json);
}

/* Why something is not there is said once, on stderr, and changes no result. */
static void say_not(const struct settings *settings, const char *what, const struct err *err)
{
    if (!settings->quiet && !settings->json)
        fprintf(stderr, "twagent: %s: %s\n", what, err->message);
}

static int open_cache(const struct settings *settings, bool write, struct cache **cache,
                      struct err *err)
{
    MEM_LOCAL char *folder = control_folder(settings);
    return cache_open(folder, write, cache, err);
}

/* ---- eval ---- */

void cache_ask_eval(const struct settings *settings, struct arena *arena, const char *problem,
                    const char *file, const char *source, const char *tune,
                    const struct value *facts, struct cache_ask *ask)
{
    struct cache *cache = NULL;
    struct err err;
    *ask = (struct cache_ask){.arena = arena, .problem = problem, .file = file, .source = source};
    struct asked asked = {.by = "eval",
                          .settings = eval_settings(arena, settings),
                          .file = file,
                          .source = source,
                          .tune = tune,
                          .compilers = compilers_of(arena, &settings->search, file),
                          .device = value_get(facts, "device"),
                          .versions = value_get(facts, "versions")};
    /* Which machine a launcher's lane is on nobody has said. */
    if (settings->search.launcher || !asked.device || !asked.versions ||
        make_question(arena, problem, settings->search.python, settings->search.baseline, &asked,
                      &ask->question, &err)) {
        ask->question = (struct question){.text = NULL};
        return;
    }
    if (settings->force)
        return;
    if (open_cache(settings, false, &cache, &err)) {
        if (err.code != ERR_NOT_FOUND)
            say_not(settings, "the cache is not read", &err);
        return;
    }
    ask->known = cache_find(cache, arena, &ask->question, &ask->entry) &&
                 strcmp(ask->entry.source, source) == 0 && cache_is_answer(&ask->entry);
    cache_close(cache);
}

void cache_keep(const struct settings *settings, const struct cache_ask *ask,
                const struct evaluation *evaluation)
{
    struct cache *cache = NULL;
    const char *name;
    struct err err;
    if (!ask->question.text || evaluation->ours)
        return;
    if (open_cache(settings, true, &cache, &err) ||
        cache_keep_eval(cache, ask->arena, &ask->question, ask->problem, ask->file, ask->source,
                        evaluation, &name, &err))
        say_not(settings, "the verdict is not cached", &err);
    else if (!settings->json && evaluation->verdict != VERDICT_FAILED) /* it is mended next */
        printf("  %-10s %s\n", "cached as", name);
    cache_close(cache);
}

/* ---- run ---- */

static bool has_about(struct cache *cache, struct arena *arena, const char *about)
{
    struct cache_entry *entries;
    size_t count, damaged;
    struct err ignored;
    if (cache_list(cache, arena, &entries, &count, &damaged, &ignored))
        return false;
    for (size_t i = 0; i < count; i++)
        if (*entries[i].run && strcmp(entries[i].about, about) == 0)
            return true;
    return false;
}

static void print_run(const struct settings *settings, struct arena *arena, const char *folder,
                      const struct cache_entry *entry)
{
    struct store *store = NULL;
    struct run_record run;
    struct err err = {0};
    char time[32];
    if (history_open(settings, &store, &err) || history_run(store, arena, entry->run, &run, &err)) {
        store_close(store);
        (void)command_fail(&err);
        return;
    }
    store_close(store);
    if (settings->json) {
        BUF_LOCAL(text, TEXT_MOST);
        BUF_LOCAL(record, TEXT_MOST);
        struct json json = {.out = &text};
        json_object(&json);
        cache_put(entry, &json);
        run_record_encode(&run, &record);
        json_put_raw(&json, "run", buf_text(&record));
        json_key(&json, "champion");
        evaluation_to_json(&entry->evaluation, &json);
        json_object_end(&json);
        printf("%s\n", buf_text(&text));
        return;
    }
    cache_say(entry);
    printf("%s %s: then: %s\n", run.id, run.problem, run_words_outcome(arena, &run));
    printf("  kernel     %s  %s  %s\n", run.best,
           words_time_by(run.time_ns, run.speedup, run.speedup_low, run.speedup_high, time),
           entry->file);
    printf("  report     %s/reports/%s/report.html\n", folder, run.id);
    printf("  is it so?  twagent rerun %s measures that kernel here and now\n", run.id);
}

bool cache_answers_run(const struct settings *settings, const char *choice, int *code)
{
    ARENA_LOCAL(arena);
    const struct search_options *search = &settings->search;
    struct lane_request open = {0};
    struct cache *cache = NULL;
    struct cache_entry entry;
    struct question question;
    struct err err;
    bool known = false;
    if (settings->force || search->launcher || search->dry_run ||
        open_cache(settings, false, &cache, &err))
        return false;
    struct asked asked = {.by = "run",
                          .settings =
                              run_settings(arena, options_encode(&settings_table, settings, arena),
                                           choice ? choice : "{}")};
    if (make_question(arena, search->problem, search->python, search->baseline, &asked, &question,
                      &err) == 0 &&
        has_about(cache, arena, question.about)) {
        struct lane_spec spec = settings_lane(settings, search->problem);
        spec.baseline = search->baseline;
        spec.later = true;
        lane_ask(&spec, "cache", &open, NULL, NULL);
        const struct value *facts = open.err.code ? NULL : open.answer; /* the run will say why */
        asked.device = value_get(facts, "device");
        asked.versions = value_get(facts, "versions");
        asked.compilers = compilers_of(arena, search, NULL);
        known = facts &&
                make_question(arena, search->problem, search->python, search->baseline, &asked,
                              &question, &err) == 0 &&
                cache_find(cache, arena, &question, &entry) && cache_is_answer(&entry) &&
                (search->seed == 0 || entry.seed == search->seed);
    }
    cache_close(cache);
    if (known) {
        MEM_LOCAL char *folder = control_folder(settings);
        print_run(settings, arena, folder, &entry);
        *code = EXIT_WIN;
    }
    arena_free(open.arena);
    return known;
}

void cache_keep_found(const struct settings *settings, struct store *store, const char *id)
{
    ARENA_LOCAL(arena);
    struct run_record run;
    struct cache *cache = NULL;
    struct value *device = NULL, *versions = NULL;
    struct evaluation last;
    struct question question;
    const char *name;
    struct err err;
    const struct value *measured;
    if (settings->search.launcher || settings->search.dry_run || settings->search.kernel ||
        history_run(store, arena, id, &run, &err) || !*run.best ||
        !history_is_final(store, arena, run.best) ||
        !(measured = history_evaluation(store, arena, run.best)) ||
        evaluation_from_value(arena, measured, &last, &err) ||
        value_parse_json(arena, id, last.device, strlen(last.device), &device, &err) ||
        value_parse_json(arena, id, last.versions, strlen(last.versions), &versions, &err))
        return; /* nothing that was verified */
    struct asked asked = {.by = "run",
                          .settings = run_settings(arena, run.options, run.choice),
                          .compilers = compilers_of(arena, &settings->search, NULL),
                          .device = device,
                          .versions = versions};
    if (make_question(arena, run.problem_file, settings->search.python, settings->search.baseline,
                      &asked, &question, &err))
        return; /* a definition that lies in several places */
    if (open_cache(settings, true, &cache, &err) ||
        cache_keep_run(cache, arena, &question, id, &name, &err))
        say_not(settings, "the run is not cached", &err);
    else if (!settings->json)
        printf("  cached as  %s\n", name);
    cache_close(cache);
}
