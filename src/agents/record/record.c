#include "agents/record/record.h"

#include <stddef.h>
#include <string.h>

/* One table a record feeds both directions. */
enum field_type { FIELD_TEXT, FIELD_JSON, FIELD_INT, FIELD_REAL, FIELD_BOOL };

struct field {
    const char *key;
    enum field_type type;
    size_t offset;
};

#define RUN(name, type)                                                                            \
    {                                                                                              \
#name, type, offsetof(struct run_record, name)                                             \
    }
#define IDEA(name, type)                                                                           \
    {                                                                                              \
#name, type, offsetof(struct idea_record, name)                                            \
    }
#define CANDIDATE(name, type)                                                                      \
    {                                                                                              \
#name, type, offsetof(struct candidate_record, name)                                       \
    }

static const struct field run_fields[] = {
    RUN(id, FIELD_TEXT),           RUN(problem, FIELD_TEXT),     RUN(problem_file, FIELD_TEXT),
    RUN(backend, FIELD_TEXT),      RUN(provider, FIELD_TEXT),    RUN(model, FIELD_TEXT),
    RUN(state, FIELD_TEXT),        RUN(stopped, FIELD_TEXT),     RUN(options, FIELD_JSON),
    RUN(baseline, FIELD_TEXT),     RUN(best, FIELD_TEXT),        RUN(win, FIELD_BOOL),
    RUN(verified, FIELD_BOOL),     RUN(number, FIELD_INT),       RUN(round, FIELD_INT),
    RUN(evaluated, FIELD_INT),     RUN(kept, FIELD_INT),         RUN(rejected, FIELD_INT),
    RUN(failed, FIELD_INT),        RUN(started_ms, FIELD_INT),   RUN(ended_ms, FIELD_INT),
    RUN(elapsed_ms, FIELD_REAL),   RUN(lane_busy, FIELD_REAL),   RUN(lane_waits, FIELD_REAL),
    RUN(speedup, FIELD_REAL),      RUN(choice, FIELD_JSON),      RUN(context, FIELD_JSON),
    RUN(paused, FIELD_TEXT),       RUN(pauses, FIELD_JSON),      RUN(in_flight, FIELD_INT),
    RUN(awaited, FIELD_INT),       RUN(requests, FIELD_INT),     RUN(tokens, FIELD_INT),
    RUN(micro_dollars, FIELD_INT), RUN(pid, FIELD_INT),          RUN(resumes, FIELD_INT),
    RUN(left_ms, FIELD_REAL),      RUN(speedup_low, FIELD_REAL), RUN(speedup_high, FIELD_REAL),
    RUN(time_ns, FIELD_REAL),      RUN(finding, FIELD_TEXT),     RUN(noise, FIELD_TEXT),
    RUN(asked, FIELD_JSON),        RUN(unfit, FIELD_TEXT),       RUN(left_out, FIELD_TEXT),
    RUN(unconfined, FIELD_TEXT),   RUN(saved_ms, FIELD_INT),     RUN(strange_parents, FIELD_INT),
    RUN(outside, FIELD_INT),       RUN(agents, FIELD_TEXT),      RUN(batches, FIELD_TEXT),
};
static const struct field idea_fields[] = {
    IDEA(id, FIELD_TEXT),       IDEA(run, FIELD_TEXT),      IDEA(parent, FIELD_TEXT),
    IDEA(title, FIELD_TEXT),    IDEA(category, FIELD_TEXT), IDEA(why, FIELD_TEXT),
    IDEA(expected, FIELD_REAL), IDEA(round, FIELD_INT),
};
static const struct field candidate_fields[] = {
    CANDIDATE(id, FIELD_TEXT),           CANDIDATE(run, FIELD_TEXT),
    CANDIDATE(idea, FIELD_TEXT),         CANDIDATE(parent, FIELD_TEXT),
    CANDIDATE(name, FIELD_TEXT),         CANDIDATE(source, FIELD_TEXT),
    CANDIDATE(tune, FIELD_JSON),         CANDIDATE(identity, FIELD_TEXT),
    CANDIDATE(state, FIELD_TEXT),        CANDIDATE(duplicate_of, FIELD_TEXT),
    CANDIDATE(verdict, FIELD_TEXT),      CANDIDATE(reason, FIELD_TEXT),
    CANDIDATE(time_ns, FIELD_REAL),      CANDIDATE(speedup, FIELD_REAL),
    CANDIDATE(time_high, FIELD_REAL),    CANDIDATE(speedup_low, FIELD_REAL),
    CANDIDATE(speedup_high, FIELD_REAL), CANDIDATE(number, FIELD_INT),
    CANDIDATE(round, FIELD_INT),         CANDIDATE(repairs, FIELD_INT),
    CANDIDATE(dropped, FIELD_BOOL),      CANDIDATE(evaluations, FIELD_INT),
    CANDIDATE(failure, FIELD_TEXT),      CANDIDATE(diagnostics, FIELD_TEXT),
    CANDIDATE(tuning, FIELD_BOOL),       CANDIDATE(first_failure, FIELD_TEXT),
    CANDIDATE(island, FIELD_INT),        CANDIDATE(outside, FIELD_BOOL),
    CANDIDATE(agent, FIELD_TEXT),        CANDIDATE(attempt, FIELD_TEXT),
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *json_or_empty(const char *text)
{
    return text && *text ? text : "{}";
}

static void encode(const struct field *fields, size_t count, const void *record, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    for (size_t i = 0; i < count; i++) {
        const void *at = (const char *)record + fields[i].offset;
        json_key(&json, fields[i].key);
        if (fields[i].type == FIELD_TEXT)
            json_text(&json, *(const char *const *)at ? *(const char *const *)at : "");
        else if (fields[i].type == FIELD_JSON)
            json_raw(&json, json_or_empty(*(const char *const *)at));
        else if (fields[i].type == FIELD_INT)
            json_int(&json, *(const int64_t *)at);
        else if (fields[i].type == FIELD_REAL)
            json_real(&json, *(const double *)at);
        else
            json_bool(&json, *(const bool *)at);
    }
    json_object_end(&json);
}

static const char *json_copy(struct arena *arena, const struct value *value)
{
    BUF_LOCAL(text, 1 << 20);
    struct json json = {.out = &text};
    json_value(&json, value);
    return buf_keep(&text, arena);
}

static int decode(const struct field *fields, size_t count, struct arena *arena, const char *text,
                  size_t length, void *record, struct err *err)
{
    struct value *root;
    if (value_parse_json(arena, "record", text, length, &root, err))
        return -1;
    for (size_t i = 0; i < count; i++) {
        char *at = (char *)record + fields[i].offset;
        const char *key = fields[i].key;
        if (fields[i].type == FIELD_TEXT) {
            *(const char **)(void *)at = value_text(root, key, "");
        } else if (fields[i].type == FIELD_JSON) {
            const struct value *object = value_get(root, key);
            *(const char **)(void *)at = object ? json_copy(arena, object) : "{}";
        } else if (fields[i].type == FIELD_INT) {
            *(int64_t *)(void *)at = value_int(root, key, 0);
        } else if (fields[i].type == FIELD_REAL) {
            *(double *)(void *)at = value_real(root, key, 0);
        } else {
            *(bool *)at = value_bool(root, key, false);
        }
    }
    return 0;
}

void run_record_encode(const struct run_record *record, struct buf *out)
{
    encode(run_fields, COUNT(run_fields), record, out);
}

void idea_record_encode(const struct idea_record *record, struct buf *out)
{
    encode(idea_fields, COUNT(idea_fields), record, out);
}

void candidate_record_encode(const struct candidate_record *record, struct buf *out)
{
    encode(candidate_fields, COUNT(candidate_fields), record, out);
}

int run_record_decode(struct arena *arena, const char *text, size_t length,
                      struct run_record *record, struct err *err)
{
    memset(record, 0, sizeof *record);
    return decode(run_fields, COUNT(run_fields), arena, text, length, record, err);
}

int idea_record_decode(struct arena *arena, const char *text, size_t length,
                       struct idea_record *record, struct err *err)
{
    memset(record, 0, sizeof *record);
    return decode(idea_fields, COUNT(idea_fields), arena, text, length, record, err);
}

int candidate_record_decode(struct arena *arena, const char *text, size_t length,
                            struct candidate_record *record, struct err *err)
{
    memset(record, 0, sizeof *record);
    return decode(candidate_fields, COUNT(candidate_fields), arena, text, length, record, err);
}

bool run_record_ended_itself(const struct run_record *run)
{
    static const char *const ends[] = {"target", "floor", "patience", "no progress", "pruned"};
    if (strcmp(run->state, "done") != 0)
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strncmp(run->stopped, ends[i], strlen(ends[i])) == 0)
            return true;
    return !*run->stopped;
}
