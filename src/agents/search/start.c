/* agents/search/start: what a run begins with: the problem, its starts as arms of the proposer, the
 * machine's facts and floor. */
#include "agents/search/private.h"

#include "base/file.h"
#include "eval/candidate/definition.h"
#include "eval/candidate/shipped_start.h"
#include "eval/problem/shipped.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- the problem and its starts ---- */

/* Starts of different structure begin on different islands. */
static size_t islands_of_arms(const struct search *search)
{
    const struct search_options *o = &search->options;
    int64_t most = o->islands < ISLANDS_MAX ? o->islands : ISLANDS_MAX;
    if (most > o->branching)
        most = o->branching;
    return o->strategy == STRATEGY_ISLANDS && most > 1 ? (size_t)most : 1;
}

/* With several languages every other island is one's: the next of its own. */
static int island_of_arm(const struct search *search, const struct language *language)
{
    const struct language *chosen[TARGET_FOLDERS_MAX];
    size_t islands = islands_of_arms(search), count = search_languages(search, chosen), at = 0;
    size_t before = 0;
    if (count < 2 || islands < count)
        return (int)(search->arm_count % islands);
    while (at + 1 < count && chosen[at] != language)
        at++;
    for (size_t i = 0; i < search->arm_count; i++)
        before += search->arms[i].candidate->language == chosen[at];
    return (int)(at + count * (before % ((islands - at + count - 1) / count)));
}

/* The text is the arm's; `name` says its language. */
static int add_source(struct search *search, const char *name, const char *text, size_t length,
                      struct err *err)
{
    struct arm *arm = &search->arms[search->arm_count];
    *arm = (struct arm){.search = search,
                        .name = arena_strdup(search->arena, name),
                        .text = arena_strndup(search->arena, text, length),
                        .length = length,
                        .origin = "",
                        .number = -1};
    if (candidate_parse(search->problem, arm->name, arm->text, arm->length, &arm->candidate, err))
        return -1;
    arm->island = island_of_arm(search, arm->candidate->language);
    hash_format(arm->candidate->hash, arm->source_hash);
    search->arm_count++;
    return 0;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int load_arm(struct search *search, const char *path, struct err *err)
{
    BUF_LOCAL(text, 1 << 20);
    if (shipped_read_start(search->problem, path, &text, err))
        return -1;
    return add_source(search, name_of(path), buf_text(&text), text.length, err)
               ? err_wrap(err, "%s", path)
               : 0;
}

/* A candidate's own numbers are the first that are looked at, once it has a number itself. */
static int load_candidate(struct search *search, const char *id, struct buf *text, struct err *err)
{
    struct candidate_record record;
    if (store_get(search->store, STORE_CANDIDATES, id, text, err) ||
        candidate_record_decode(search->arena, buf_text(text), text->length, &record, err) ||
        store_get(search->store, STORE_SOURCES, record.source, text, err) ||
        add_source(search, record.name, buf_text(text), text->length, err))
        return err_wrap(err, "the kernel to tune, %s", id);
    search->arms[0].origin = arena_strdup(search->arena, id);
    search->arms[0].before = record.tune;
    return 0;
}

static int load_kernel(struct search *search, struct err *err)
{
    const char *kernel = search->options.kernel;
    BUF_LOCAL(text, 1 << 20);
    if (*kernel != '/')
        return load_candidate(search, kernel, &text, err);
    return file_read(kernel, &text, err) ||
                   candidate_check_text(name_of(kernel), buf_text(&text), text.length, err) ||
                   add_source(search, name_of(kernel), buf_text(&text), text.length, err)
               ? -1
               : 0;
}

/* A definition in C that nothing that ships begins is a kernel already, and a compiler may make it
 * faster. A model begins with it as it stands. */
static int load_definition(struct search *search, const struct language *language, struct err *err)
{
    static const struct {
        const char *name, *compile;
    } ways[] = {{"definition.c", NULL},
                {"definition-fast.c", "{flags: [-ffast-math]}"},
                {"definition-unrolled.c", "{flags: [-ffast-math, -funroll-loops]}"},
                {"definition-wide.c", "{flags: [-ffast-math, -mprefer-vector-width=512]}"},
                {"definition-clang.c", "{compiler: clang, flags: [-ffast-math]}"}};
    size_t count = search_writes(search) ? 1 : sizeof ways / sizeof ways[0];
    if (!definition_is_candidate(search->problem, language))
        return 0;
    for (size_t i = 0; i < count; i++) {
        BUF_LOCAL(text, 1 << 20);
        if (definition_text(search->problem, ways[i].compile, &text, err) ||
            add_source(search, ways[i].name, buf_text(&text), text.length, err))
            return err_wrap(err, "%s as a candidate", search->problem->reference_file);
    }
    return 0;
}

int search_load(struct search *search, struct err *err)
{
    const char *paths[ARMS_MAX];
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct target *target = target_find(search->options.backend);
    if (target == NULL)
        return err_set(err, ERR_USAGE, "no backend \"%s\"", search->options.backend);
    size_t languages = search_languages(search, chosen), count = 0;
    if (languages == 0)
        return err_set(err, ERR_USAGE, "--language %s: the backend %s has no such language",
                       search->options.language, search->options.backend);
    if (problem_load(search->options.problem, &search->problem, err))
        return -1;
    if (search->options.kernel && strcmp(search->options.kernel, "starts") != 0)
        return load_kernel(search, err);
    for (size_t i = 0; i < languages; i++)
        count += problem_starts(search->problem, language_folder(target, chosen[i]), paths + count,
                                ARMS_MAX - count);
    bool shipped = shipped_of(search->problem) != NULL;
    for (size_t i = 0; i < count; i++) {
        if (load_arm(search, paths[i], err) == 0)
            continue;
        if (!shipped)
            return -1;
        /* One of the shipped ones cannot be said in the definition's names: the others can. */
        log_event(LOG_WARN, "run.start", search->options.problem, "left out: %s", err->message);
        *err = (struct err){0};
    }
    for (size_t i = 0; i < languages && search->arm_count == 0 && !search->options.kernel; i++)
        if (load_definition(search, chosen[i], err))
            return -1;
    /* A model can write the first kernel; the tuner alone has nothing to begin with. */
    if (search->arm_count == 0 && !search_writes(search))
        return err_set(err, ERR_USAGE,
                       "%s: no starts in %s/: put at least one source there, or name a --model",
                       search->problem->file,
                       problem_starts_folder(search->problem, language_folder(target, chosen[0])));
    return 0;
}

/* ---- facts ---- */

/* What the definition's work takes here: its bytes are the same for every kernel, its operations
 * are not. A problem that fits the caches is not held by the memory's rate. */
static void set_floor(struct search *search, const struct value *context)
{
    double flops = 0, bytes = 0, floor_ns = 0;
    struct err ignored;
    const struct value *ceilings = value_get(context, "ceilings");
    const struct unit_rates rates = {.flops = value_real(ceilings, "flops_per_s", 0),
                                     .tf32 = value_real(ceilings, "tf32_flops_per_s", 0),
                                     .bf16 = value_real(ceilings, "bf16_flops_per_s", 0),
                                     .fp16 = value_real(ceilings, "fp16_flops_per_s", 0)};
    double rate = problem_rate(search->problem, &rates);
    double copy = value_real(ceilings, "copy_bytes_per_s", 0);
    double read = value_real(ceilings, "read_bytes_per_s", 0);
    if (problem_work(search->problem, &search->problem->shapes[0], &flops, &bytes, &ignored))
        return;
    if (rate > 0)
        floor_ns = flops / rate * 1e9;
    double by_memory = fmax(copy, read) > 0 ? bytes / fmax(copy, read) * 1e9 : 0;
    proposer_set_floor(search->proposer, fmax(floor_ns, by_memory));
    double cache = value_real(value_get(context, "facts"), "l3_bytes", 0);
    search->floor_under_load = value_bool(ceilings, "under_load", false);
    search->work = (struct prompt_work){.flops = flops,
                                        .flops_ns = floor_ns,
                                        .bytes = bytes,
                                        .bytes_ns = by_memory,
                                        .cached = bytes <= 2 * cache,
                                        .under_load = search->floor_under_load};
    search->floor_ns =
        copy > 0 && bytes > 2 * cache ? fmax(floor_ns, bytes / copy * 1e9) : floor_ns;
}

/* What the first process of a run saw of the machine is what its prompts and proposals go by, also
 * in one that goes on with it. */
static int keep_context(struct search *search, const struct value **context, struct err *err)
{
    const struct value *answer = search_lanes_answer(search);
    struct run_record *run = &search->record;
    struct value *tree;
    if (!run->context || strlen(run->context) <= 2) {
        static const char *const parts[] = {"device", "facts", "ceilings"};
        JSON_LOCAL(json, text, 1 << 20);
        json_object(&json);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            json_key(&json, parts[i]);
            if (value_get(answer, parts[i]))
                json_value(&json, value_get(answer, parts[i]));
            else
                json_raw(&json, "{}");
        }
        json_object_end(&json);
        run->context = arena_strdup(search->arena, buf_text(&text));
    }
    if (value_parse_json(search->arena, "context", run->context, strlen(run->context), &tree, err))
        return -1;
    *context = tree;
    return 0;
}

static void compare_device(const struct search *search, const struct value *context)
{
    const char *was = value_text(value_get(context, "device"), "cpu", "");
    const char *is = value_text(value_at(search_lanes_answer(search), "device"), "cpu", "");
    if (search->options.resume && strcmp(was, is) != 0)
        log_event(LOG_WARN, "run.start", search->id, "began on another machine (%s; this is %s)",
                  was, is);
}

/* Which points a tune measures, and how many are on their way at once. */
static void choose_points(struct search *search)
{
    enum { SMALL = 128, DRAWN = 3 };
    static const unsigned every[] = {
        [TUNE_EXHAUSTIVE] = 1, [TUNE_PROPOSER] = DRAWN, [TUNE_RANDOM] = 1};
    enum tune_strategy strategy = search->options.tune_strategy;
    const struct arm *arm = &search->arms[0];
    struct value *before;
    struct names tune;
    if (!search->options.kernel) {
        if (!search_writes(search))
            search_lanes_deepen(search, LANE_DEPTH_LOOKS);
        return;
    }
    if (strategy == TUNE_AUTO)
        strategy = proposer_points(search->proposer) <= SMALL ? TUNE_EXHAUSTIVE : TUNE_PROPOSER;
    bool draws = !search_has_model(search);
    proposer_draw(search->proposer, draws ? every[strategy] : 0, strategy != TUNE_RANDOM);
    if (draws && every[strategy] == 1)
        search_lanes_deepen(search, UINT_MAX);
    if (arm->before && arm->number >= 0 &&
        value_parse_json(search->arena, arm->origin, arm->before, strlen(arm->before), &before,
                         NULL) == 0 &&
        tune_given(arm->candidate, before, &search->problem->shapes[0], &search->facts, &tune,
                   NULL) == 0)
        proposer_suggest(search->proposer, (size_t)arm->number, &tune);
}

int search_opened(struct search *search, struct err *err)
{
    const struct value *context;
    if (keep_context(search, &context, err))
        return -1;
    search->record.unfit =
        arena_strdup(search->arena, value_text(search_lanes_answer(search), "unfit", ""));
    search->record.unconfined =
        arena_strdup(search->arena, value_text(search_lanes_answer(search), "unconfined", ""));
    compare_device(search, context);
    const struct value *facts = value_get(context, "facts");
    for (size_t i = 0; facts && i < facts->count; i++)
        if (names_set(&search->facts, facts->keys[i], facts->items[i]->integer, err))
            return -1;
    size_t usable = 0;
    for (size_t i = 0; i < search->arm_count; i++) {
        int number = search_arm_add(search, &search->arms[i]);
        if (number < 0) {
            log_event(LOG_WARN, "run.start", search->id,
                      "%s: no point of its tune space is valid on this machine; left out",
                      search->arms[i].name);
            continue;
        }
        usable++;
    }
    set_floor(search, context);
    choose_points(search);
    if (usable > 0 || search->arm_count == 0) /* none at all: a model writes the first one */
        return 0;
    return err_set(err, ERR_USAGE, "no start is usable on this machine");
}
