#include "eval/data/evaluation.h"

#include "base/fields.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const verdicts[] = {"kernel", "rejected", "failed", "dropped"};
static const char *const stages[STAGES] = {"parse", "compile",  "check",
                                           "time",  "sanitize", "profile"};

/* In the order of the record: its intervals stand between the two. */
static const struct field first_fields[] = {
    FIELD(evaluation, TEXT, reason),      FIELD(evaluation, TEXT, details),
    FIELD(evaluation, BOOL, ours),        FIELD(evaluation, BOOL, dropped),
    FIELD(evaluation, BOOL, quarantined),
};
static const struct {
    const char *key;
    size_t offset;
} intervals[] = {
    {"time_ns", offsetof(struct evaluation, time_ns)},
    {"hot_ns", offsetof(struct evaluation, hot_ns)},
    {"baseline_ns", offsetof(struct evaluation, baseline_ns)},
    {"speedup", offsetof(struct evaluation, speedup)},
};
enum { INTERVALS = sizeof intervals / sizeof intervals[0] };
static const struct field last_fields[] = {
    FIELD(evaluation, TEXT, baseline),     FIELD(evaluation, REAL, spread),
    FIELD(evaluation, INT, timed_samples), FIELD(evaluation, INT, dropped_samples),
    FIELD(evaluation, TEXT, identity),     FIELD(evaluation, JSON, tune),
    FIELD(evaluation, JSON, metrics),      FIELD(evaluation, JSON, device),
    FIELD(evaluation, JSON, versions),     FIELD(evaluation, JSON, baselines),
};

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

void evaluation_drop(struct evaluation *evaluation, struct arena *arena, double fastest_ns,
                     double best_ns)
{
    evaluation->verdict = VERDICT_DROPPED;
    evaluation->stage = STAGE_TIME;
    evaluation->dropped = true;
    evaluation->finding = FINDING_NONE;
    evaluation->reason = arena_printf(
        arena,
        "far behind, and checked at the main shape only: %.4g us at best in %zu samples, the best "
        "known takes %.4g us",
        fastest_ns / 1e3, evaluation->time_ns.samples, best_ns / 1e3);
}

bool evaluation_wins(const struct evaluation *evaluation)
{
    return evaluation->finding == FINDING_FASTER;
}

const char *verdict_name(enum verdict verdict)
{
    assert((unsigned)verdict <= VERDICT_DROPPED);
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
    if (interval->processes > 0)
        json_put_int(json, "processes", (int64_t)interval->processes);
    json_object_end(json);
}

void evaluation_to_json(const struct evaluation *evaluation, struct json *json)
{
    json_object(json);
    json_put_text(json, "verdict", verdict_name(evaluation->verdict));
    json_put_text(json, "stage", stage_name(evaluation->stage));
    json_put_bool(json, "win", evaluation_wins(evaluation));
    json_put_text(json, "finding", finding_name(evaluation->finding));
    json_put_text(json, "noise", evaluation->noise != NULL ? evaluation->noise : "");
    fields_put(FIELDS(first_fields), evaluation, json);
    for (size_t i = 0; i < INTERVALS; i++) {
        json_key(json, intervals[i].key);
        evaluation_put_interval(
            json, (const struct interval *)((const char *)evaluation + intervals[i].offset));
    }
    fields_put(FIELDS(last_fields), evaluation, json);
    if (evaluation->call_ns.samples > 0) {
        json_key(json, "call_ns");
        evaluation_put_interval(json, &evaluation->call_ns);
        json_put_bool(json, "call_taken_off", evaluation->call_taken);
    }
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
    if (evaluation->look_ns > 0.0)
        json_put_real(json, "look_ns", evaluation->look_ns);
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
    if (value != NULL && value->kind == VALUE_NULL)
        return true;
    const struct value *samples = value_get(value, "samples");
    if (samples == NULL || samples->kind != VALUE_INT || samples->integer < 0)
        return false;
    interval->samples = (size_t)samples->integer;
    const struct value *processes = value_get(value, "processes");
    if (processes != NULL && processes->kind == VALUE_INT && processes->integer > 0)
        interval->processes = (size_t)processes->integer;
    return take_real(value_get(value, "median"), &interval->median) &&
           take_real(value_get(value, "low"), &interval->low) &&
           take_real(value_get(value, "high"), &interval->high);
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
    if (!find_name(value_text(value, "verdict", NULL), verdicts, VERDICT_DROPPED + 1, &found))
        return refuse(err, "verdict", "kernel, rejected, failed or dropped");
    record.verdict = (enum verdict)found;
    if (!find_name(value_text(value, "stage", NULL), stages, STAGES, &found))
        return refuse(err, "stage", "a stage's name");
    record.stage = (enum stage)found;
    if (take_finding(arena, value, &record, err) != 0)
        return -1;
    if (fields_demand(FIELDS(first_fields), arena, value, &record, err) != 0 ||
        fields_demand(FIELDS(last_fields), arena, value, &record, err) != 0)
        return err_wrap(err, "evaluation record");
    for (size_t i = 0; i < INTERVALS; i++)
        if (!take_interval(value_get(value, intervals[i].key),
                           (struct interval *)((char *)&record + intervals[i].offset)))
            return refuse(err, intervals[i].key, "an interval or null");
    if (value_get(value, "call_ns") != NULL &&
        !take_interval(value_get(value, "call_ns"), &record.call_ns))
        return refuse(err, "call_ns", "an interval or null");
    record.call_taken = value_bool(value, "call_taken_off", false);
    record.outside = value_bool(value, "outside", false);
    record.look_ns = value_real(value, "look_ns", 0.0);
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
