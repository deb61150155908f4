#include "facts/kernels.h"

#include "agents/diagnosis/diagnosis.h"
#include "eval/problem/size.h"
#include "eval/problem/target.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- what a run's tables say of its candidates ---- */

struct decided { /* of one run, by the candidate's number */
    uint64_t ms;
    int64_t micro_dollars;
    const char *model;
};

struct gathering {
    struct arena *arena;
    const char *run;
    struct decided *decided; /* [count + 1] */
    int64_t count;
};

/* "r3-c17/implement" -> 17; 0: it is about something else. */
static int64_t number_of(const struct gathering *gathering, const char *subject)
{
    size_t length = strlen(gathering->run);
    if (strncmp(subject, gathering->run, length) != 0 || strncmp(subject + length, "-c", 2) != 0)
        return 0;
    long long number = strtoll(subject + length + 2, NULL, 10);
    return number > 0 && number <= gathering->count ? number : 0;
}

static bool note_event(void *context, const char *key, const char *text, size_t length)
{
    struct gathering *gathering = context;
    struct arena *arena = arena_new_sized(4096);
    struct value *event;
    struct err ignored;
    (void)key;
    if (strstr(text, "\"candidate.move\"") != NULL &&
        value_parse_json(arena, "event", text, length, &event, &ignored) == 0) {
        int64_t number = number_of(gathering, value_text(event, "subject", ""));
        if (number > 0) /* the last move is the verdict */
            gathering->decided[number].ms = (uint64_t)value_int(event, "wall_ms", 0);
    }
    arena_free(arena);
    return true;
}

static bool note_spending(void *context, const char *key, const char *text, size_t length)
{
    struct gathering *gathering = context;
    struct arena *arena = arena_new_sized(4096);
    struct value *entry;
    struct err ignored;
    (void)key;
    if (value_parse_json(arena, "spending", text, length, &entry, &ignored) == 0) {
        int64_t number = number_of(gathering, value_text(entry, "ask", ""));
        gathering->decided[number].micro_dollars += value_int(entry, "micro_dollars", 0);
        gathering->decided[number].model =
            arena_strdup(gathering->arena, value_text(entry, "model", ""));
    }
    arena_free(arena);
    return true;
}

/* ---- a row ---- */

static const char *device_words(struct arena *arena, const struct run_record *run)
{
    struct value *context;
    struct err ignored;
    if (value_parse_json(arena, "context", run->context, strlen(run->context), &context, &ignored))
        return "";
    const struct value *device = value_get(context, "device");
    const char *gpu = value_text(device, "gpu", NULL), *cpu = value_text(device, "cpu", "");
    if (gpu != NULL || *cpu == '\0')
        return gpu != NULL ? gpu : "";
    return arena_printf(arena, "%s, %d cores", cpu, (int)value_int(device, "cores", 0));
}

static void put_interval(const struct value *interval, double *median, double *low, double *high)
{
    if (interval == NULL || interval->kind != VALUE_MAP)
        return;
    *median = value_real(interval, "median", 0);
    *low = value_real(interval, "low", 0);
    *high = value_real(interval, "high", 0);
}

/* What only the evaluation's own record has. It is read into an arena of its own: a tree is many
 * times as large as what a row keeps of it. */
static void add_evaluation(struct store *store, struct arena *arena, const char *facts, bool search,
                           struct kernel_row *row)
{
    struct arena *own = arena_new();
    const struct value *evaluation =
        search ? history_measured(store, own, row->id) : history_evaluation(store, own, row->id);
    const struct value *stages = value_get(evaluation, "stage_ms");
    double unused;
    const struct value *roofline = value_at(evaluation, "metrics.roofline");
    for (size_t i = 0; i < STAGES; i++) {
        row->stage_ms[i] = value_real(stages, stage_name((enum stage)i), 0);
        row->evaluation_ms += row->stage_ms[i];
    }
    double moved = value_real(roofline, "bytes", 0);
    row->flops_per_byte = value_real(roofline, "intensity_flops_per_byte",
                                     moved > 0 ? value_real(roofline, "flops", 0) / moved : 0);
    row->flops_per_s = 1e9 * value_real(roofline, "gflops_per_s", 0);
    put_interval(value_get(evaluation, "baseline_ns"), &row->baseline_ns, &unused, &unused);
    row->checks_passed = value_int(value_get(evaluation, "checks"), "passed", 0);
    row->checks_total = value_int(value_get(evaluation, "checks"), "total", 0);
    row->error_ratio = value_real(value_at(evaluation, "metrics.error"), "of_allowed", 0);
    row->versions = value_json(value_get(evaluation, "versions"), arena);
    if (row->correct) {
        const char *metrics = value_json(value_get(evaluation, "metrics"), own);
        put_interval(value_get(evaluation, "time_ns"), &row->latency_ns, &row->latency_low_ns,
                     &row->latency_high_ns);
        put_interval(value_get(evaluation, "speedup"), &row->speedup, &row->speedup_low,
                     &row->speedup_high);
        row->baseline = arena_strdup(arena, value_text(evaluation, "baseline", row->baseline));
        row->limiter = arena_strdup(arena, diagnosis_of(own, metrics, facts).limiter);
    }
    arena_free(own);
}

static struct kernel_row row_of(struct store *store, struct arena *arena,
                                const struct run_record *run, const struct candidate_record *c,
                                const struct decided *decided, const char *searched, bool search)
{
    struct idea_record idea = {.title = "", .category = "", .why = ""};
    struct err ignored;
    const char *at = problem_size_of(run->problem_file);
    const struct language *language = language_of_file(c->name);
    bool champion = strcmp(c->id, run->best) == 0, final = champion && run->verified && !search;
    bool correct = strcmp(c->verdict, "kernel") == 0;
    /* Of answers without a price the ledger has nothing; what a model wrote is called by its id. */
    size_t length = strlen(c->id);
    bool wrote = *run->model && strncmp(c->name, c->id, length) == 0 && c->name[length] == '.';
    if (*c->idea && history_idea(store, arena, c->idea, &idea, &ignored))
        idea = (struct idea_record){.title = "", .category = "", .why = ""};
    return (struct kernel_row){.id = c->id,
                               .run = run->id,
                               .problem = run->problem,
                               .problem_hash = run->problem_hash,
                               .size = at != NULL ? at + 1 : "",
                               .backend = run->backend,
                               .language = language != NULL ? language->name : "",
                               .parent = c->parent,
                               .attempt = c->attempt,
                               .idea = idea.title,
                               .category = idea.category,
                               .why = idea.why,
                               .file = c->name,
                               .source = c->source,
                               .tune = c->tune,
                               .state = c->state,
                               .verdict = c->verdict,
                               .outside = c->outside,
                               .reason = c->reason,
                               .duplicate_of = c->duplicate_of,
                               .baseline = final ? run->baseline : searched,
                               .finding = final ? run->finding : "",
                               .model = decided->model != NULL ? decided->model
                                        : wrote                ? run->model
                                                               : "builtin",
                               .limiter = "",
                               .versions = "{}",
                               .correct = correct,
                               .champion = champion,
                               .verified = final,
                               .round = c->round,
                               .island = c->island,
                               .number = c->number,
                               .repairs = c->repairs,
                               .micro_dollars = decided->micro_dollars,
                               .decided_ms = decided->ms != 0 ? decided->ms : run->started_ms,
                               .latency_ns = !correct ? 0
                                             : final  ? run->time_ns
                                                      : c->time_ns,
                               .speedup = !correct ? 0
                                          : final  ? run->speedup
                                                   : c->speedup,
                               .speedup_low = !correct ? 0
                                              : final  ? run->speedup_low
                                                       : c->speedup_low,
                               .speedup_high = !correct ? 0
                                               : final  ? run->speedup_high
                                                        : c->speedup_high,
                               .searched = {correct ? c->speedup : 0, correct ? c->speedup_low : 0,
                                            correct ? c->speedup_high : 0}};
}

/* What the search measured against, which is not what the champion was set against at the end: the
 * record of its first kernel says. */
static const char *searched_against(struct store *store, struct arena *arena,
                                    const struct run_record *run,
                                    const struct candidate_record *candidates, size_t count)
{
    size_t i = 0;
    ARENA_LOCAL(own);
    while (i < count && strcmp(candidates[i].verdict, "kernel") != 0)
        i++;
    const struct value *measured =
        i < count ? history_measured(store, own, candidates[i].id) : NULL;
    return arena_strdup(arena, value_text(measured, "baseline", run->baseline));
}

/* ---- the table ---- */

struct table {
    struct kernel_row *rows;
    size_t count, most;
};

static struct kernel_row *table_add(struct table *table, struct arena *arena)
{
    table->rows = arena_room(arena, table->rows, table->count, &table->most, sizeof *table->rows);
    return &table->rows[table->count++];
}

static const char *facts_of(struct arena *arena, const struct run_record *run)
{
    struct value *context;
    struct err ignored;
    if (value_parse_json(arena, "context", run->context, strlen(run->context), &context, &ignored))
        return "{}";
    return value_json(value_get(context, "facts"), arena);
}

static int add_run(struct store *store, struct arena *arena, const struct kernel_query *query,
                   const struct run_record *run, struct table *table, struct err *err)
{
    struct candidate_record *candidates;
    size_t count;
    if (history_candidates(store, arena, run->id, &candidates, &count, err) != 0)
        return -1;
    int64_t most = 0;
    for (size_t i = 0; i < count; i++)
        most = candidates[i].number > most ? candidates[i].number : most;
    struct gathering gathering = {arena, run->id, NULL, most};
    gathering.decided = arena_array(arena, (size_t)most + 1, sizeof *gathering.decided);
    const char *prefix = arena_printf(arena, "%s-", run->id);
    if (store_scan(store, STORE_EVENTS, prefix, note_event, &gathering, err) != 0 ||
        store_scan(store, STORE_SPENDING, prefix, note_spending, &gathering, err) != 0)
        return -1;
    const char *device = device_words(arena, run), *facts = facts_of(arena, run);
    const char *searched = searched_against(store, arena, run, candidates, count);
    for (size_t i = 0; i < count; i++) {
        const struct candidate_record *c = &candidates[i];
        if (*c->verdict == '\0' ||
            (query->candidate != NULL && strcmp(c->id, query->candidate) != 0))
            continue; /* never evaluated, or not asked for */
        struct kernel_row *row = table_add(table, arena);
        *row = row_of(store, arena, run, c, &gathering.decided[c->number], searched, query->search);
        row->device = device;
        if (query->code)
            row->code = history_source(store, arena, c);
        if (query->evaluation)
            add_evaluation(store, arena, facts, query->search, row);
    }
    return 0;
}

int kernels_read(struct store *store, struct arena *arena, const struct kernel_query *query,
                 struct kernel_row **rows, size_t *count, struct err *err)
{
    struct run_record *runs;
    size_t run_count;
    struct table table = {0};
    bool found = query->run == NULL;
    if (history_runs(store, arena, &runs, &run_count, err) != 0)
        return -1;
    for (size_t i = 0; i < run_count; i++) {
        bool is = query->run == NULL || strcmp(runs[i].id, query->run) == 0;
        found = found || is;
        if (is &&
            (query->problem == NULL ||
             problem_key_is(query->problem, runs[i].problem, runs[i].problem_hash)) &&
            add_run(store, arena, query, &runs[i], &table, err) != 0)
            return -1;
    }
    if (!found)
        return err_set(err, ERR_NOT_FOUND, "no run %s", query->run);
    *rows = table.rows;
    *count = table.count;
    return 0;
}

bool kernels_alike(const struct kernel_row *one, const struct kernel_row *other)
{
    return strcmp(one->problem, other->problem) == 0 &&
           strcmp(one->problem_hash, other->problem_hash) == 0 &&
           strcmp(one->size, other->size) == 0 && strcmp(one->device, other->device) == 0 &&
           strcmp(one->backend, other->backend) == 0 && strcmp(one->baseline, other->baseline) == 0;
}

/* ---- columns ---- */

#define COLUMN(name, member, type)                                                                 \
    {                                                                                              \
        name, type, offsetof(struct kernel_row, member)                                            \
    }

const struct column kernel_columns[] = {
    COLUMN("id", id, COLUMN_TEXT),
    COLUMN("run", run, COLUMN_TEXT),
    COLUMN("problem", problem, COLUMN_TEXT),
    COLUMN("problem_hash", problem_hash, COLUMN_TEXT),
    COLUMN("size", size, COLUMN_TEXT),
    COLUMN("backend", backend, COLUMN_TEXT),
    COLUMN("device", device, COLUMN_TEXT),
    COLUMN("language", language, COLUMN_TEXT),
    COLUMN("round", round, COLUMN_INT),
    COLUMN("island", island, COLUMN_INT),
    COLUMN("number", number, COLUMN_INT),
    COLUMN("parent", parent, COLUMN_TEXT),
    COLUMN("attempt", attempt, COLUMN_TEXT),
    COLUMN("idea", idea, COLUMN_TEXT),
    COLUMN("category", category, COLUMN_TEXT),
    COLUMN("why", why, COLUMN_TEXT),
    COLUMN("file", file, COLUMN_TEXT),
    COLUMN("tune", tune, COLUMN_TEXT),
    COLUMN("state", state, COLUMN_TEXT),
    COLUMN("verdict", verdict, COLUMN_TEXT),
    COLUMN("correct", correct, COLUMN_BOOL),
    COLUMN("reason", reason, COLUMN_TEXT),
    COLUMN("duplicate_of", duplicate_of, COLUMN_TEXT),
    COLUMN("latency_ms", latency_ns, COLUMN_MS),
    COLUMN("latency_low_ms", latency_low_ns, COLUMN_MS),
    COLUMN("latency_high_ms", latency_high_ns, COLUMN_MS),
    COLUMN("baseline", baseline, COLUMN_TEXT),
    COLUMN("baseline_ms", baseline_ns, COLUMN_MS),
    COLUMN("speedup", speedup, COLUMN_REAL),
    COLUMN("speedup_low", speedup_low, COLUMN_REAL),
    COLUMN("speedup_high", speedup_high, COLUMN_REAL),
    COLUMN("finding", finding, COLUMN_TEXT),
    COLUMN("champion", champion, COLUMN_BOOL),
    COLUMN("verified", verified, COLUMN_BOOL),
    COLUMN("checks_passed", checks_passed, COLUMN_INT),
    COLUMN("checks_total", checks_total, COLUMN_INT),
    COLUMN("error_of_allowed", error_ratio, COLUMN_REAL),
    COLUMN("limiter", limiter, COLUMN_TEXT),
    COLUMN("model", model, COLUMN_TEXT),
    COLUMN("repairs", repairs, COLUMN_INT),
    COLUMN("micro_dollars", micro_dollars, COLUMN_INT),
    COLUMN("evaluation_ms", evaluation_ms, COLUMN_REAL),
    COLUMN("flops_per_byte", flops_per_byte, COLUMN_REAL),
    COLUMN("flops_per_s", flops_per_s, COLUMN_REAL),
    COLUMN("decided_at", decided_ms, COLUMN_TIME),
    COLUMN("versions", versions, COLUMN_TEXT),
    COLUMN("source", source, COLUMN_TEXT),
    COLUMN("code", code, COLUMN_TEXT),
};
const size_t kernel_column_count = sizeof kernel_columns / sizeof kernel_columns[0];

static double known(double number)
{
    return number > 0 ? number : (double)NAN;
}

struct cell kernel_cell(const struct kernel_row *row, const struct column *column, char text[32])
{
    const void *at = (const char *)row + column->offset;
    struct tm utc;
    switch (column->type) {
    case COLUMN_TEXT:
        return (struct cell){*(const char *const *)at, (double)NAN};
    case COLUMN_BOOL:
        return (struct cell){NULL, *(const bool *)at};
    case COLUMN_INT:
        return (struct cell){NULL, (double)*(const int64_t *)at};
    case COLUMN_MS:
        return (struct cell){NULL, known(*(const double *)at / 1e6)};
    case COLUMN_REAL:
        return (struct cell){NULL, known(*(const double *)at)};
    case COLUMN_TIME: {
        time_t seconds = (time_t)(*(const uint64_t *)at / 1000);
        strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
        return (struct cell){text, (double)NAN};
    }
    }
    return (struct cell){NULL, (double)NAN};
}

void kernel_json(const struct kernel_row *row, struct json *json)
{
    char text[32];
    json_object(json);
    for (size_t i = 0; i < kernel_column_count; i++) {
        const struct column *column = &kernel_columns[i];
        struct cell cell = kernel_cell(row, column, text);
        if (column->offset == offsetof(struct kernel_row, code) && row->code == NULL)
            continue;
        json_key(json, column->name);
        if (column->type == COLUMN_BOOL)
            json_bool(json, cell.number != 0);
        else if (column->type == COLUMN_INT)
            json_int(json, (int64_t)cell.number);
        else if (cell.text != NULL)
            json_text(json, cell.text);
        else
            json_real(json, cell.number);
    }
    json_object_end(json);
}
