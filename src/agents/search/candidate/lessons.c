/* * What it knows of earlier runs is read once, before its first candidate, and kept in STORE_FACTS
 * under "lessons/r3" in the batch that ends the preparing: a process that goes on with the run
 * knows that and nothing else, whatever other runs and imports have left since. A lesson of its own
 * is written with the candidate's last move, and told to prompts once its candidate was taken.
 */
#include "agents/ideas/ideas.h"
#include "agents/lessons/words.h"
#include "agents/search/candidate/candidate.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    TAUGHT_MAX = 1024, /* lessons of its own that a run remembers */
    TAUGHT_FORGOTTEN = 256,
    LESSON_BYTES_IDEAS = 3200,
    LESSON_BYTES_WRITING = 1800,
    TAUGHT_TEXT = 200 /* bytes of each text; a prompt quotes less */
};

/* ---- the place ---- */

static const char *shape_words(struct arena *arena, const struct names *shape)
{
    BUF_LOCAL(text, 1 << 12);
    for (size_t i = 0; i < shape->count; i++)
        buf_addf(&text, "%s%s=%lld", i ? " " : "", shape->name[i], (long long)shape->number[i]);
    return arena_strdup(arena, buf_text(&text));
}

static const char *dtype_words(struct arena *arena, const struct problem *problem)
{
    const char *words = "";
    bool seen[32] = {false};
    for (size_t i = 0; i < problem->input_count; i++) {
        size_t type = (size_t)problem->inputs[i].dtype;
        if (type < sizeof seen && !seen[type])
            words = arena_printf(arena, "%s%s%s", words, *words ? "," : "",
                                 dtype_name(problem->inputs[i].dtype));
        if (type < sizeof seen)
            seen[type] = true;
    }
    return words;
}

/* "skylake-avx512" of "-march=skylake-avx512 -mmmx ..."; "sm_90" of a GPU. */
static const char *device_family(struct arena *arena, const struct value *context)
{
    static const char option[] = "-march=";
    const char *words = value_text(value_get(context, "device"), "march", "");
    int64_t capability = value_int(value_get(context, "facts"), "compute_capability", 0);
    const char *at = strstr(words, option);
    words = at ? at + strlen(option) : words;
    return capability > 0 ? arena_printf(arena, "sm_%lld", (long long)capability)
                          : arena_strndup(arena, words, strcspn(words, " "));
}

static void set_place(struct search *search, const struct value *context)
{
    struct arena *arena = search->arena;
    const struct problem *problem = search->problem;
    const struct value *device = value_get(context, "device");
    const char *gpu = value_text(device, "gpu", "");
    search->lessons->place = (struct lesson_place){
        .family = problem->family,
        .problem = problem->name,
        .problem_hash = search->record.problem_hash,
        .backend = search->options.backend,
        .language = "",
        .shape = shape_words(arena, &problem->shapes[0]),
        .dtype = dtype_words(arena, problem),
        .device = arena_strdup(arena, *gpu ? gpu : value_text(device, "cpu", "")),
        .device_family = device_family(arena, context),
        .cores = value_int(value_get(context, "facts"), "cores", 0)};
}

/* ---- what it knows of earlier runs ---- */

static const char *memory_key(struct search *search)
{
    return arena_printf(search->arena, "lessons/%s", search->id);
}

/* As an earlier process of the run has kept it; false: it has not. */
static bool recall_memory(struct search *search)
{
    struct err err;
    BUF_LOCAL(text, 64 << 20);
    bool found = store_get(search->store, STORE_FACTS, memory_key(search), &text, &err) == 0;
    if (found && lesson_memory_decode(search->arena, buf_text(&text), text.length,
                                      &search->lessons->memory, &err)) {
        log_event(LOG_WARN, "run.lessons", search->id, "%s", err.message);
        search->lessons->memory = (struct lesson_memory){0};
    }
    return found;
}

static void collect_memory(struct search *search)
{
    const char *sources[ARMS_MAX];
    struct err err;
    for (size_t i = 0; i < search->arm_count; i++)
        sources[i] = search->arms[i].source_hash;
    if (lesson_memory_collect(search->store, &search->lessons->place, sources, search->arm_count,
                              search->arena, &search->lessons->memory, &err)) {
        log_event(LOG_WARN, "run.lessons", search->id, "begins without lessons: %s", err.message);
        search->lessons->memory = (struct lesson_memory){0};
    }
}

static struct arm *arm_of(struct search *search, const char *source)
{
    for (size_t i = 0; i < search->arm_count; i++)
        if (strcmp(search->arms[i].source_hash, source) == 0 && search->arms[i].number >= 0)
            return &search->arms[i];
    return NULL;
}

/* The best points of earlier runs are what the proposer looks at first. */
static void suggest(struct search *search, const struct lesson *point)
{
    struct arm *arm = arm_of(search, point->source);
    struct value *tune;
    struct names names = {0};
    struct err ignored;
    if (!arm ||
        value_parse_json(search->arena, "tune", point->tune, strlen(point->tune), &tune, &ignored))
        return;
    for (size_t i = 0; i < arm->candidate->tune_count; i++) {
        const char *name = arm->candidate->tune[i].name;
        const struct value *number = value_get(tune, name);
        if (!number || names_set(&names, name, number->integer, &ignored))
            return;
    }
    proposer_suggest(search->proposer, (size_t)arm->number, &names);
}

static bool is_wanted(const struct search *search, const struct language *language)
{
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct target *target = target_find(search->options.backend);
    for (size_t i = search_languages(search, chosen); i-- > 0;)
        if (strcmp(language_folder(target, language), language_folder(target, chosen[i])) == 0)
            return true;
    return false;
}

/* A kernel that an earlier run kept: an arm like the starts, whose first look is at the numbers
 * that were best. Its source is in the store under its hash, the same for whoever goes on. */
static void adopt(struct search *search, const struct lesson *kernel)
{
    struct arm *arm = &search->arms[search->arm_count];
    struct err err = {0};
    BUF_LOCAL(text, 64 << 20);
    bool there = search->arm_count < ARMS_MAX &&
                 store_get(search->store, STORE_SOURCES, kernel->source, &text, &err) == 0;
    if (there) {
        *arm = (struct arm){
            .search = search,
            .name = kernel->name,
            .text = arena_strndup(search->arena, buf_text(&text), text.length),
            .length = text.length,
            .origin = "",
            .number = -1,
            .island = search->arm_count > 0 ? search->arms[search->arm_count - 1].island : 0,
            .stored = true};
        snprintf(arm->source_hash, sizeof arm->source_hash, "%s", kernel->source);
        there = candidate_parse(search->problem, arm->name, arm->text, arm->length, &arm->candidate,
                                &err) == 0;
    }
    if (there &&
        (!is_wanted(search, arm->candidate->language) || search_arm_add(search, arm) < 0)) {
        candidate_free(arm->candidate);
        there = false;
    }
    if (!there) { /* imported from a store of somebody else's, or no longer what a front matter is
                   */
        log_event(LOG_DEBUG, "run.kept", search->id, "%s is left out: %s", kernel->id, err.message);
        return;
    }
    search->arm_count++;
    suggest(search, kernel);
    log_event(LOG_INFO, "run.kept", search->id, "%s (%s), %.3fx %s then, is measured again",
              kernel->id, kernel->name, kernel->speedup, kernel->baseline);
}

/* Of a start that was far behind, the best point alone: times change with the shape. */
static void suggest_points(struct search *search)
{
    const double far_behind = 0.8;
    const struct lesson_memory *memory = &search->lessons->memory;
    for (size_t i = 0; i < memory->point_count; i++) {
        bool near = memory->points[i].speedup >= far_behind * memory->points[0].speedup;
        bool first = true;
        for (size_t k = 0; k < i; k++)
            first = first && strcmp(memory->points[k].source, memory->points[i].source) != 0;
        if (first || near)
            suggest(search, &memory->points[i]);
    }
}

void search_lessons_open(struct search *search, struct store_batch *batch)
{
    struct value *context;
    struct err ignored;
    const char *text = search->record.context;
    if (value_parse_json(search->arena, "context", text, strlen(text), &context, &ignored))
        return;
    set_place(search, context);
    search->lessons->facts = value_json(value_get(context, "facts"), search->arena);
    BUF_LOCAL(words, 1 << 20);
    if (!search->options.lessons || recall_memory(search)) {
        /* nothing, or what it was */
    } else if (!search->went_on) { /* a run of a program without lessons goes on without them */
        collect_memory(search);
        lesson_memory_encode(&search->lessons->memory, &words);
        store_batch_put(batch, STORE_FACTS, memory_key(search), buf_text(&words), words.length);
    }
    for (size_t i = 0; i < search->lessons->memory.kernel_count; i++)
        adopt(search, &search->lessons->memory.kernels[i]);
    suggest_points(search);
    if (search->lessons->memory.lessons > 0)
        log_event(LOG_INFO, "run.lessons", search->id,
                  "lessons of this family: %lld; ideas known: %zu, points of starts: %zu",
                  (long long)search->lessons->memory.lessons, search->lessons->memory.idea_count,
                  search->lessons->memory.point_count);
}

/* ---- what it leaves ---- */

/* A profile is a tree of thousands of values, and four words of it are wanted: those alone stay. */
struct diagnosis search_diagnose(const struct search *search, struct arena *arena,
                                 const char *metrics)
{
    if (!metrics || strlen(metrics) <= 2)
        return (struct diagnosis){.limiter = "", .place = "", .evidence = "", .categories = ""};
    ARENA_LOCAL(tree);
    const struct diagnosis found = diagnosis_of(tree, metrics, search->lessons->facts);
    const struct diagnosis copy = {.limiter = arena_strdup(arena, found.limiter),
                                   .place = arena_strdup(arena, found.place),
                                   .evidence = arena_strdup(arena, found.evidence),
                                   .categories = arena_strdup(arena, found.categories)};
    return copy;
}

/* "" where the profile names none: nothing is filed under that. */
static const char *limiter_of(struct search *search, struct arena *arena, const char *metrics)
{
    const char *limiter = search_diagnose(search, arena, metrics).limiter;
    return strcmp(limiter, DIAGNOSIS_NONE) == 0 ? "" : limiter;
}

void search_lesson_parent(struct attempt *attempt, const struct attempt *parent)
{
    if (!parent)
        return;
    const struct candidate_record *record = &parent->record;
    attempt->before =
        (struct before){.limiter = limiter_of(attempt->search, attempt->arena, parent->metrics),
                        .time_ns = record->time_ns,
                        .speedup = record->speedup,
                        .speedup_low = record->speedup_low,
                        .speedup_high = record->speedup_high};
}

/* Both were measured against the same baseline, each beside it: their ratio is the change, and it
 * lies at worst where one is at its low and the other at its high end. */
static void set_change(const struct before *before, struct lesson *lesson)
{
    if (before->speedup <= 0 || before->speedup_low <= 0 || lesson->speedup <= 0)
        return;
    lesson->change = lesson->speedup / before->speedup;
    lesson->change_low = lesson->speedup_low / before->speedup_high;
    lesson->change_high = lesson->speedup_high / before->speedup_low;
}

/* "" where its backend has one alone. */
static const char *language_words(const struct search *search, const struct language *language)
{
    const struct language *all[TARGET_FOLDERS_MAX];
    const struct target *target = target_find(search->options.backend);
    bool several = target != NULL && target_choose(target, "both", all) > 0;
    return several && language != NULL ? language_folder(target, language) : "";
}

static struct lesson lesson_of(struct attempt *attempt, bool kernel)
{
    struct search *search = attempt->search;
    const struct candidate_record *record = &attempt->record;
    const struct evaluation *evaluation = &attempt->request.evaluation;
    struct lesson lesson = {
        .id = record->id,
        .place = search->lessons->place,
        .title = attempt->idea.title,
        .category = attempt->idea.category,
        .name = record->name,
        .source = record->source,
        .tune = record->tune,
        .limiter_before = attempt->before.limiter,
        .limiter_after = kernel ? limiter_of(search, attempt->arena, evaluation->metrics) : "",
        .verdict = record->verdict,
        .reason = record->reason,
        .baseline = evaluation->baseline ? evaluation->baseline : "",
        .speedup = kernel ? record->speedup : 0,
        .speedup_low = kernel ? record->speedup_low : 0,
        .speedup_high = kernel ? record->speedup_high : 0,
        .time_ns = kernel ? record->time_ns : 0,
        .point = !attempt->writing,
        .ended_ms = (int64_t)clock_wall_ms()};
    lesson.place.language =
        language_words(search, attempt->arm ? attempt->arm->candidate->language : NULL);
    set_change(&attempt->before, &lesson);
    return lesson;
}

/* Nothing is learned from what broke on our side, or was never measured. */
static bool teaches(const struct attempt *attempt)
{
    return attempt->request.err.code == ERR_NONE && attempt->request.arena &&
           !attempt->request.evaluation.ours && !attempt->record.outside &&
           attempt->request.evaluation.verdict != VERDICT_DROPPED && *attempt->record.verdict;
}

void search_lesson_put(struct attempt *attempt, bool kernel, struct store_batch *batch)
{
    if (!teaches(attempt))
        return;
    struct lesson lesson = lesson_of(attempt, kernel);
    BUF_LOCAL(text, 1 << 16);
    lesson_encode(&lesson, &text);
    store_batch_put(batch, STORE_LESSONS, lesson_key(attempt->arena, &lesson), buf_text(&text),
                    text.length);
}

void search_lesson_remove(struct attempt *attempt, struct store_batch *batch)
{
    const struct lesson lesson = {.id = attempt->record.id,
                                  .place = attempt->search->lessons->place};
    store_batch_remove(batch, STORE_LESSONS, lesson_key(attempt->arena, &lesson));
}

/* ---- what this run's own prompts are told ---- */

/* What a prompt says of a lesson, in one piece of memory, which is its id's. */
static void keep(const struct search *search, const struct lesson *from, struct lesson *to)
{
    const char *texts[] = {from->id, from->title, from->limiter_before, from->limiter_after,
                           from->reason};
    const char **fields[] = {&to->id, &to->title, &to->limiter_before, &to->limiter_after,
                             &to->reason};
    size_t bytes = 0;
    *to = *from;
    to->place = search->lessons->place;
    to->place.language = from->place.language; /* a constant */
    to->name = to->source = to->tune = to->baseline = "";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bytes += (texts[i] ? strnlen(texts[i], TAUGHT_TEXT) : 0) + 1;
    char *at = mem_alloc(bytes);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t length = texts[i] ? strnlen(texts[i], TAUGHT_TEXT) : 0;
        memcpy(at, texts[i] ? texts[i] : "", length);
        at[length] = '\0';
        *fields[i] = at;
        at += length + 1;
    }
}

static void forget(struct lesson *lesson)
{
    mem_free((char *)(uintptr_t)lesson->id);
}

/* What is forgotten still counts, as what earlier runs taught does. */
static void count_forgotten(struct search *search, const struct lesson *lesson)
{
    for (size_t k = 0; k < MEMORY_CATEGORIES && idea_categories[k]; k++) {
        struct lesson_tally *tally = &search->lessons->memory.tallies[k];
        if (strcmp(idea_categories[k], lesson->category) != 0)
            continue;
        bool win = lesson_is_win(lesson);
        tally->tried++;
        tally->won += win;
        tally->best = win && lesson->change > tally->best ? lesson->change : tally->best;
    }
}

/* The oldest that were no wins first; a function of what was taught alone. */
void search_lessons_round(struct search *search)
{
    size_t left = search->lessons->taught_count >= TAUGHT_MAX ? TAUGHT_FORGOTTEN : 0;
    for (int wins = 0; wins < 2 && left > 0; wins++) {
        size_t kept = 0;
        for (size_t i = 0; i < search->lessons->taught_count; i++) {
            if (left > 0 && (wins > 0 || !lesson_is_win(&search->lessons->taught[i]))) {
                count_forgotten(search, &search->lessons->taught[i]);
                forget(&search->lessons->taught[i]);
                left--;
                continue;
            }
            search->lessons->taught[kept++] = search->lessons->taught[i];
        }
        search->lessons->taught_count = kept;
    }
    search->lessons->taught_shown = search->lessons->taught_count;
}

/* Points stay out: prompts say them in the history, the proposer has heard of them. */
void search_lesson_take(struct attempt *attempt)
{
    struct search *search = attempt->search;
    if (!attempt->writing || !teaches(attempt) || *attempt->record.duplicate_of)
        return;
    MEM_MORE(search->lessons->taught, search->lessons->taught_count,
             search->lessons->taught_capacity);
    struct lesson lesson = lesson_of(attempt, attempt_is_kernel(attempt));
    lesson.ended_ms = 0;
    lesson.category = search_constant(lesson.category);
    lesson.verdict = search_constant(lesson.verdict);
    keep(search, &lesson, &search->lessons->taught[search->lessons->taught_count++]);
}

void search_lessons_say(const struct search *search, const struct search_about *about,
                        const struct diagnosis *found, struct prompt_context *context)
{
    if (!search->options.lessons)
        return;
    struct lesson_place here = search->lessons->place;
    here.language = language_words(search, about->language);
    const struct lesson_ask ask = {.here = &here,
                                   .limiter = found->limiter,
                                   .title = about->idea ? about->idea->title : NULL,
                                   .memory = &search->lessons->memory,
                                   .taught = search->lessons->taught,
                                   .taught_count = search->lessons->taught_shown,
                                   .bytes =
                                       about->idea ? LESSON_BYTES_WRITING : LESSON_BYTES_IDEAS};
    BUF_LOCAL(text, 1 << 16);
    lesson_chapter(&ask, &text);
    context->lessons = arena_strdup(about->arena, buf_text(&text));
    buf_reset(&text);
    if (!about->idea)
        lesson_quotas(&ask, found->categories, about->ideas, &text);
    context->wanted = arena_strdup(about->arena, buf_text(&text));
}

void search_lessons_close(struct search *search)
{
    for (size_t i = 0; i < search->lessons->taught_count; i++)
        forget(&search->lessons->taught[i]);
    mem_free(search->lessons->taught);
    search->lessons->taught = NULL;
    search->lessons->taught_count = search->lessons->taught_capacity = 0;
}
