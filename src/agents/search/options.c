#include "agents/search/options.h"

#include <stddef.h>
#include <string.h>

enum field_type { FIELD_TEXT, FIELD_INT, FIELD_REAL, FIELD_BOOL };

#define FIELD(name, type)                                                                          \
    {                                                                                              \
#name, type, offsetof(struct search_options, name)                                         \
    }

static const struct field {
    const char *key;
    enum field_type type;
    size_t offset;
} fields[] = {
    FIELD(problem, FIELD_TEXT),
    FIELD(backend, FIELD_TEXT),
    FIELD(python, FIELD_TEXT),
    FIELD(baseline, FIELD_TEXT),
    FIELD(cores, FIELD_TEXT),
    FIELD(devices, FIELD_TEXT),
    FIELD(launcher, FIELD_TEXT),
    FIELD(ca_file, FIELD_TEXT),
    FIELD(branching, FIELD_INT),
    FIELD(rounds, FIELD_INT),
    FIELD(implementations, FIELD_INT),
    FIELD(repairs, FIELD_INT),
    FIELD(beam, FIELD_INT),
    FIELD(islands, FIELD_INT),
    FIELD(migration, FIELD_INT),
    FIELD(lanes, FIELD_INT),
    FIELD(tuning, FIELD_INT),
    FIELD(requests, FIELD_INT),
    FIELD(passage_tokens, FIELD_INT),
    FIELD(select, FIELD_REAL),
    FIELD(seed, FIELD_INT),
    FIELD(budget_ms, FIELD_INT),
    FIELD(budget_evaluations, FIELD_INT),
    FIELD(budget_micro_dollars, FIELD_INT),
    FIELD(budget_tokens, FIELD_INT),
    FIELD(target, FIELD_REAL),
    FIELD(floor_share, FIELD_REAL),
    FIELD(patience, FIELD_INT),
    FIELD(mailbox_ms, FIELD_INT),
    FIELD(disk_quota, FIELD_INT),
    FIELD(disk_floor, FIELD_INT),
    FIELD(first_byte_ms, FIELD_INT),
    FIELD(silence_ms, FIELD_INT),
    FIELD(answer_ms, FIELD_INT),
    FIELD(call_timeout_ms, FIELD_INT),
    FIELD(time_budget_ms, FIELD_INT),
    FIELD(unfit, FIELD_BOOL),
    FIELD(unconfined, FIELD_BOOL),
    FIELD(dry_run, FIELD_BOOL),
    FIELD(final, FIELD_BOOL),
    FIELD(lessons, FIELD_BOOL),
};

static const char *const strategies[] = {
    [STRATEGY_BEAM] = "beam", [STRATEGY_GREEDY] = "greedy", [STRATEGY_ISLANDS] = "islands"};

void search_options_encode(const struct search_options *options, struct json *json)
{
    json_object(json);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const void *at = (const char *)options + fields[i].offset;
        if (fields[i].type == FIELD_TEXT && !*(const char *const *)at)
            continue;
        json_key(json, fields[i].key);
        if (fields[i].type == FIELD_TEXT)
            json_text(json, *(const char *const *)at);
        else if (fields[i].type == FIELD_INT)
            json_int(json, *(const int64_t *)at);
        else if (fields[i].type == FIELD_REAL)
            json_real(json, *(const double *)at);
        else
            json_bool(json, *(const bool *)at);
    }
    json_put_text(json, "strategy", strategies[options->strategy]);
    json_object_end(json);
}

static int decode_field(struct arena *arena, const struct value *value, const struct field *field,
                        struct search_options *options, struct err *err)
{
    static const char *const expected[] = {"a text", "a whole number", "a number", "true or false"};
    const struct value *item = value_get(value, field->key);
    char *at = (char *)options + field->offset;
    if (!item)
        return 0;
    bool whole = item->kind == VALUE_INT, real = item->kind == VALUE_REAL || whole;
    if (field->type == FIELD_TEXT && item->kind == VALUE_TEXT)
        *(const char **)(void *)at = arena_strdup(arena, item->text);
    else if (field->type == FIELD_INT && whole)
        *(int64_t *)(void *)at = item->integer;
    else if (field->type == FIELD_REAL && real)
        *(double *)(void *)at = value_real(value, field->key, 0);
    else if (field->type == FIELD_BOOL && item->kind == VALUE_BOOL)
        *(bool *)at = value_bool(value, field->key, false);
    else
        return err_set(err, ERR_CORRUPT, "options of the run: %s: expected %s", field->key,
                       expected[field->type]);
    return 0;
}

int search_options_decode(struct arena *arena, const struct value *value,
                          struct search_options *options, struct err *err)
{
    if (!value || value->kind != VALUE_MAP)
        return err_set(err, ERR_CORRUPT, "options of the run: expected a JSON object");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (decode_field(arena, value, &fields[i], options, err))
            return -1;
    const char *strategy = value_text(value, "strategy", "beam");
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
        if (strcmp(strategy, strategies[i]) == 0)
            options->strategy = (enum strategy)i;
    return 0;
}
