#include "eval/data/evaluation.h"

#include "base/buf.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const verdicts[] = {"kernel", "rejected", "failed"};
static const char *const stages[STAGES] = {"parse", "compile",  "check",
                                           "time",  "sanitize", "profile"};

enum { DOCUMENT_MOST = 4 << 20 };

/* One row a field, in the order of the record. */
enum field_kind { FIELD_TEXT, FIELD_BOOL, FIELD_INTERVAL, FIELD_REAL, FIELD_INT, FIELD_DOCUMENT };

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
};

#define FIELD(kind, name)                                                                          \
    {                                                                                              \
#name, kind, offsetof(struct evaluation, name)                                             \
    }

static const struct field fields[] = {
    FIELD(FIELD_TEXT, reason),         FIELD(FIELD_TEXT, details),
    FIELD(FIELD_BOOL, ours),           FIELD(FIELD_BOOL, dropped),
    FIELD(FIELD_BOOL, quarantined),    FIELD(FIELD_INTERVAL, time_ns),
    FIELD(FIELD_INTERVAL, hot_ns),     FIELD(FIELD_INTERVAL, baseline_ns),
    FIELD(FIELD_INTERVAL, speedup),    FIELD(FIELD_TEXT, baseline),
    FIELD(FIELD_REAL, spread),         FIELD(FIELD_INT, timed_samples),
    FIELD(FIELD_INT, dropped_samples), FIELD(FIELD_TEXT, identity),
    FIELD(FIELD_DOCUMENT, tune),       FIELD(FIELD_DOCUMENT, metrics),
    FIELD(FIELD_DOCUMENT, device),     FIELD(FIELD_DOCUMENT, versions),
    FIELD(FIELD_DOCUMENT, baselines),
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

enum effort effort_find(const char *text)
{
    if (strcmp(text, "search") == 0)
        return EFFORT_SEARCH;
    return strcmp(text, "final") == 0 ? EFFORT_FINAL : EFFORT_FULL;
}

struct evaluation evaluation_empty(void)
{
    return (struct evaluation){
        .verdict = VERDICT_FAILED,
        .stage = STAGE_PARSE,
        .reason = "",
        .details = "",
        .noise = "",
        .baseline = "",
        .identity = "",
        .tune = "{}",
        .metrics = "{}",
        .device = "{}",
        .versions = "{}",
        .baselines = "{}",
    };
}

int evaluation_refuse(struct evaluation *evaluation, struct arena *arena, enum stage stage,
                      const char *reason, const char *details)
{
    evaluation->verdict = stage == STAGE_CHECK ? VERDICT_REJECTED : VERDICT_FAILED;
    evaluation->stage = stage;
    evaluation->reason = arena_strdup(arena, reason);
    evaluation->details = arena_strdup(arena, details);
    return -1;
}

void evaluation_leave_out(struct evaluation *evaluation, struct arena *arena, const char *why)
{
    const char *reason = arena_printf(arena, "no point of its tune space here: %s", why);
    (void)evaluation_refuse(evaluation, arena, STAGE_COMPILE, reason, "");
    evaluation->outside = true;
}

bool evaluation_wins(const struct evaluation *evaluation)
{
    return evaluation->finding == FINDING_FASTER;
}

const char *verdict_name(enum verdict verdict)
{
    assert((unsigned)verdict <= VERDICT_FAILED);
    return verdicts[verdict];
}

const char *stage_name(enum stage stage)
{
    assert((unsigned)stage < STAGES);
    return stages[stage];
}

/* Not measured is null, never 0. */
void evaluation_put_interval(struct json *json, const struct interval *interval)
{
    if (interval->samples == 0) {
        json_null(json);
        return;
    }
    json_object(json);
    json_put_real(json, "median", interval->median);
    json_put_real(json, "low", interval->low);
    json_put_real(json, "high", interval->high);
    json_put_int(json, "samples", (int64_t)interval->samples);
    json_object_end(json);
}

static void put_field(struct json *json, const struct field *field,
                      const struct evaluation *evaluation)
{
    const void *at = (const char *)evaluation + field->offset;
    const char *text = "";
    if (field->kind == FIELD_TEXT || field->kind == FIELD_DOCUMENT)
        text = *(const char *const *)at;
    json_key(json, field->key);
    switch (field->kind) {
    case FIELD_TEXT:
        json_text(json, text != NULL ? text : "");
        break;
    case FIELD_DOCUMENT:
        json_raw(json, text != NULL && *text != '\0' ? text : "{}");
        break;
    case FIELD_BOOL:
        json_bool(json, *(const bool *)at);
        break;
    case FIELD_INTERVAL:
        evaluation_put_interval(json, (const struct interval *)at);
        break;
    case FIELD_REAL:
        json_real(json, *(const double *)at);
        break;
    case FIELD_INT:
        json_int(json, *(const int64_t *)at);
        break;
    }
}

void evaluation_to_json(const struct evaluation *evaluation, struct json *json)
{
    json_object(json);
    json_put_text(json, "verdict", verdict_name(evaluation->verdict));
    json_put_text(json, "stage", stage_name(evaluation->stage));
    json_put_bool(json, "win", evaluation_wins(evaluation));
    json_put_text(json, "finding", finding_name(evaluation->finding));
    json_put_text(json, "noise", evaluation->noise != NULL ? evaluation->noise : "");
    for (size_t i = 0; i < FIELDS; i++)
        put_field(json, &fields[i], evaluation);
    if (evaluation->outside)
        json_put_bool(json, "outside", true);
    if (evaluation->left_out != NULL && *evaluation->left_out != '\0')
        json_put_text(json, "left_out", evaluation->left_out);
    if (evaluation->unfit != NULL && *evaluation->unfit != '\0')
        json_put_text(json, "unfit", evaluation->unfit);
    if (evaluation->unconfined != NULL && *evaluation->unconfined != '\0')
        json_put_text(json, "unconfined", evaluation->unconfined);
    json_put_object(json, "checks");
    json_put_int(json, "passed", evaluation->checks_passed);
    json_put_int(json, "total", evaluation->checks_total);
    json_object_end(json);
    json_put_object(json, "stage_ms");
    for (int i = 0; i < STAGES; i++)
        json_put_real(json, stages[i], evaluation->stage_ms[i]);
    json_object_end(json);
    json_object_end(json);
}

static int refuse(struct err *err, const char *key, const char *expected)
{
    return err_set(err, ERR_PROTOCOL, "evaluation record: expected %s for \"%s\"", expected, key);
}

/* A number, or NaN for null, which is how JSON says it. */
static bool take_real(const struct value *value, double *number)
{
    if (value == NULL ||
        (value->kind != VALUE_INT && value->kind != VALUE_REAL && value->kind != VALUE_NULL))
        return false;
    *number = value->kind == VALUE_NULL ? NAN : value->real;
    return true;
}

static bool take_interval(const struct value *value, struct interval *interval)
{
    *interval = (struct interval){0};
    if (value->kind == VALUE_NULL)
        return true;
    const struct value *samples = value_get(value, "samples");
    if (samples == NULL || samples->kind != VALUE_INT || samples->integer < 0)
        return false;
    interval->samples = (size_t)samples->integer;
    return take_real(value_get(value, "median"), &interval->median) &&
           take_real(value_get(value, "low"), &interval->low) &&
           take_real(value_get(value, "high"), &interval->high);
}

static const char *document_text(struct arena *arena, const struct value *value)
{
    BUF_LOCAL(text, DOCUMENT_MOST);
    struct json json = {.out = &text};
    json_value(&json, value);
    return text.dropped == 0 ? arena_strdup(arena, buf_text(&text)) : "{}";
}

static int take_field(struct arena *arena, const struct value *record, const struct field *field,
                      struct evaluation *evaluation, struct err *err)
{
    static const char *const expected[] = {"a text",   "true or false", "an interval or null",
                                           "a number", "an integer",    "an object"};
    void *at = (char *)evaluation + field->offset;
    const struct value *value = value_get(record, field->key);
    const char *text = NULL;
    bool fine = value != NULL;
    if (fine && field->kind == FIELD_TEXT) {
        fine = value->kind == VALUE_TEXT;
        text = fine ? arena_strdup(arena, value->text) : NULL;
        *(const char **)at = text;
    } else if (fine && field->kind == FIELD_DOCUMENT) {
        fine = value->kind == VALUE_MAP;
        text = fine ? document_text(arena, value) : NULL;
        *(const char **)at = text;
    } else if (fine && field->kind == FIELD_BOOL) {
        fine = value->kind == VALUE_BOOL;
        *(bool *)at = value->boolean;
    } else if (fine && field->kind == FIELD_INTERVAL) {
        fine = take_interval(value, (struct interval *)at);
    } else if (fine && field->kind == FIELD_REAL) {
        fine = take_real(value, (double *)at);
    } else if (fine) {
        fine = value->kind == VALUE_INT;
        *(int64_t *)at = value->integer;
    }
    return fine ? 0 : refuse(err, field->key, expected[field->kind]);
}

static bool find_name(const char *name, const char *const *list, size_t count, size_t *found)
{
    for (size_t i = 0; name != NULL && i < count; i++)
        if (strcmp(list[i], name) == 0) {
            *found = i;
            return true;
        }
    return false;
}

/* Records of earlier versions have neither a finding nor its reason. */
static int take_finding(struct arena *arena, const struct value *record,
                        struct evaluation *evaluation, struct err *err)
{
    const struct value *win = value_get(record, "win"), *finding = value_get(record, "finding");
    const struct value *noise = value_get(record, "noise");
    evaluation->noise = "";
    if (win == NULL || win->kind != VALUE_BOOL)
        return refuse(err, "win", "true or false");
    if (finding == NULL) {
        evaluation->finding = win->boolean ? FINDING_FASTER : FINDING_NONE;
        return 0;
    }
    if (finding->kind != VALUE_TEXT)
        return refuse(err, "finding", "a text");
    evaluation->finding = finding_of(finding->text);
    if (noise == NULL || noise->kind != VALUE_TEXT)
        return refuse(err, "noise", "a text");
    evaluation->noise = arena_strdup(arena, noise->text);
    return 0;
}

int evaluation_from_value(struct arena *arena, const struct value *value,
                          struct evaluation *evaluation, struct err *err)
{
    size_t found;
    struct evaluation record = {0};
    if (!find_name(value_text(value, "verdict", NULL), verdicts, VERDICT_FAILED + 1, &found))
        return refuse(err, "verdict", "kernel, rejected or failed");
    record.verdict = (enum verdict)found;
    if (!find_name(value_text(value, "stage", NULL), stages, STAGES, &found))
        return refuse(err, "stage", "a stage's name");
    record.stage = (enum stage)found;
    if (take_finding(arena, value, &record, err) != 0)
        return -1;
    for (size_t i = 0; i < FIELDS; i++)
        if (take_field(arena, value, &fields[i], &record, err) != 0)
            return -1;
    record.outside = value_bool(value, "outside", false);
    record.left_out = arena_strdup(arena, value_text(value, "left_out", ""));
    record.unfit = arena_strdup(arena, value_text(value, "unfit", ""));
    record.unconfined = arena_strdup(arena, value_text(value, "unconfined", ""));
    const struct value *passed = value_at(value, "checks.passed");
    const struct value *total = value_at(value, "checks.total");
    if (passed == NULL || passed->kind != VALUE_INT || total == NULL || total->kind != VALUE_INT)
        return refuse(err, "checks", "{passed, total}");
    record.checks_passed = passed->integer;
    record.checks_total = total->integer;
    for (int i = 0; i < STAGES; i++)
        if (!take_real(value_get(value_get(value, "stage_ms"), stages[i]), &record.stage_ms[i]))
            return refuse(err, "stage_ms", "a number for each stage");
    *evaluation = record;
    return 0;
}

int evaluation_decode(struct arena *arena, const char *text, size_t length,
                      struct evaluation *evaluation, struct err *err)
{
    struct value *value;
    if (value_parse_json(arena, "evaluation", text, length, &value, err) != 0)
        return -1;
    return evaluation_from_value(arena, value, evaluation, err);
}
