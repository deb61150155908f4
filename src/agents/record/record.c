#include "agents/record/record.h"

#include "base/fields.h"

#include <stddef.h>
#include <string.h>

#define RUN(name, type)       FIELD(run_record, type, name)
#define IDEA(name, type)      FIELD(idea_record, type, name)
#define CANDIDATE(name, type) FIELD(candidate_record, type, name)

static const struct field run_fields[] = {
    RUN(id, TEXT),           RUN(problem, TEXT),     RUN(problem_file, TEXT),
    RUN(backend, TEXT),      RUN(provider, TEXT),    RUN(model, TEXT),
    RUN(state, TEXT),        RUN(stopped, TEXT),     RUN(options, JSON),
    RUN(baseline, TEXT),     RUN(best, TEXT),        RUN(win, BOOL),
    RUN(verified, BOOL),     RUN(number, INT),       RUN(round, INT),
    RUN(evaluated, INT),     RUN(kept, INT),         RUN(rejected, INT),
    RUN(failed, INT),        RUN(started_ms, INT),   RUN(ended_ms, INT),
    RUN(elapsed_ms, REAL),   RUN(lane_busy, REAL),   RUN(lane_waits, REAL),
    RUN(speedup, REAL),      RUN(choice, JSON),      RUN(context, JSON),
    RUN(paused, TEXT),       RUN(pauses, JSON),      RUN(in_flight, INT),
    RUN(awaited, INT),       RUN(requests, INT),     RUN(tokens, INT),
    RUN(micro_dollars, INT), RUN(pid, INT),          RUN(resumes, INT),
    RUN(left_ms, REAL),      RUN(speedup_low, REAL), RUN(speedup_high, REAL),
    RUN(time_ns, REAL),      RUN(finding, TEXT),     RUN(noise, TEXT),
    RUN(asked, JSON),        RUN(unfit, TEXT),       RUN(left_out, TEXT),
    RUN(unconfined, TEXT),   RUN(saved_ms, INT),     RUN(strange_parents, INT),
    RUN(outside, INT),       RUN(dropped, INT),      RUN(agents, TEXT),
    RUN(batches, TEXT),      RUN(definition, TEXT),  RUN(problem_hash, TEXT),
};
static const struct field idea_fields[] = {
    IDEA(id, TEXT),       IDEA(run, TEXT), IDEA(parent, TEXT),   IDEA(title, TEXT),
    IDEA(category, TEXT), IDEA(why, TEXT), IDEA(expected, REAL), IDEA(round, INT),
};
static const struct field candidate_fields[] = {
    CANDIDATE(id, TEXT),           CANDIDATE(run, TEXT),           CANDIDATE(idea, TEXT),
    CANDIDATE(parent, TEXT),       CANDIDATE(name, TEXT),          CANDIDATE(source, TEXT),
    CANDIDATE(tune, JSON),         CANDIDATE(identity, TEXT),      CANDIDATE(state, TEXT),
    CANDIDATE(duplicate_of, TEXT), CANDIDATE(verdict, TEXT),       CANDIDATE(reason, TEXT),
    CANDIDATE(time_ns, REAL),      CANDIDATE(speedup, REAL),       CANDIDATE(time_high, REAL),
    CANDIDATE(speedup_low, REAL),  CANDIDATE(speedup_high, REAL),  CANDIDATE(number, INT),
    CANDIDATE(round, INT),         CANDIDATE(repairs, INT),        CANDIDATE(dropped, BOOL),
    CANDIDATE(evaluations, INT),   CANDIDATE(failure, TEXT),       CANDIDATE(diagnostics, TEXT),
    CANDIDATE(tuning, BOOL),       CANDIDATE(first_failure, TEXT), CANDIDATE(island, INT),
    CANDIDATE(mended, TEXT),       CANDIDATE(outside, BOOL),       CANDIDATE(agent, TEXT),
    CANDIDATE(attempt, TEXT),
};

static void encode(const struct field *fields, size_t count, const void *record, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    fields_put(fields, count, record, &json);
    json_object_end(&json);
}

static int decode(const struct field *fields, size_t count, struct arena *arena, const char *text,
                  size_t length, void *record, struct err *err)
{
    struct value *root;
    if (value_parse_json(arena, "record", text, length, &root, err))
        return -1;
    fields_take(fields, count, arena, root, record);
    return 0;
}

void run_record_encode(const struct run_record *record, struct buf *out)
{
    encode(FIELDS(run_fields), record, out);
}

void idea_record_encode(const struct idea_record *record, struct buf *out)
{
    encode(FIELDS(idea_fields), record, out);
}

void candidate_record_encode(const struct candidate_record *record, struct buf *out)
{
    encode(FIELDS(candidate_fields), record, out);
}

int run_record_decode(struct arena *arena, const char *text, size_t length,
                      struct run_record *record, struct err *err)
{
    memset(record, 0, sizeof *record);
    return decode(FIELDS(run_fields), arena, text, length, record, err);
}

int idea_record_decode(struct arena *arena, const char *text, size_t length,
                       struct idea_record *record, struct err *err)
{
    memset(record, 0, sizeof *record);
    return decode(FIELDS(idea_fields), arena, text, length, record, err);
}

int candidate_record_decode(struct arena *arena, const char *text, size_t length,
                            struct candidate_record *record, struct err *err)
{
    memset(record, 0, sizeof *record);
    return decode(FIELDS(candidate_fields), arena, text, length, record, err);
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

const char *run_record_baseline(const struct run_record *run)
{
    bool ours = run->definition && *run->definition && run->baseline &&
                strcmp(run->baseline, "reference") == 0;
    return ours ? run->definition : run->baseline;
}
