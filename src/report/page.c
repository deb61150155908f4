/* report/page: the document of facts that the page draws from, and `twagent report --json` prints.
 */
#include "report/report.h"

#include "base/mem.h"
#include "eval/data/evaluation.h"
#include "report/words.h"

#include <string.h>

enum { SOURCES_BYTES = 4 << 20, ANSWERS_BYTES = 2 << 20, TEXT_BYTES = 400, WHY_ROWS = 2000 };

/* What every row says alike is not said in each. */
static bool left_out(const struct column *column)
{
    static const size_t offsets[] = {
        offsetof(struct kernel_row, run),     offsetof(struct kernel_row, problem),
        offsetof(struct kernel_row, size),    offsetof(struct kernel_row, backend),
        offsetof(struct kernel_row, device),  offsetof(struct kernel_row, baseline),
        offsetof(struct kernel_row, state),   offsetof(struct kernel_row, finding),
        offsetof(struct kernel_row, code),    offsetof(struct kernel_row, versions),
        offsetof(struct kernel_row, verified)};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++)
        if (column->offset == offsets[i])
            return true;
    return false;
}

static void put_text(struct json *json, const char *text)
{
    size_t length = strlen(text);
    if (length > TEXT_BYTES)
        for (length = TEXT_BYTES; length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80;)
            length--; /* no half character */
    json_text_n(json, text, length);
}

static void put_row(const struct kernel_row *row, bool short_of_room, struct json *json)
{
    char text[32];
    json_array(json);
    for (size_t i = 0; i < kernel_column_count; i++) {
        const struct column *column = &kernel_columns[i];
        struct cell cell = kernel_cell(row, column, text);
        if (left_out(column))
            continue;
        if (short_of_room && column->offset == offsetof(struct kernel_row, why))
            json_text(json, "");
        else if (column->type == COLUMN_BOOL)
            json_bool(json, cell.number != 0);
        else if (column->type == COLUMN_INT)
            json_int(json, (int64_t)cell.number);
        else if (cell.text != NULL)
            put_text(json, cell.text);
        else
            json_real(json, cell.number);
    }
    json_array_end(json);
}

static void put_rows(const struct report *report, struct json *json)
{
    json_put_array(json, "columns");
    for (size_t i = 0; i < kernel_column_count; i++)
        if (!left_out(&kernel_columns[i]))
            json_text(json, kernel_columns[i].name);
    json_array_end(json);
    json_put_array(json, "rows");
    for (size_t i = 0; i < report->row_count; i++)
        put_row(&report->rows[i], report->row_count > WHY_ROWS, json);
    json_array_end(json);
}

/* ---- sources: the champion's line first, then kernels, then the rest, while there is room ---- */

/* 0: the champion and what it came from; 1: kernels; 2: the rest. mem_free() it. */
static unsigned char *rank_rows(const struct report *report)
{
    unsigned char *ranks = mem_alloc(report->row_count + 1);
    const char *id = report->best;
    for (size_t i = 0; i < report->row_count; i++)
        ranks[i] = report->rows[i].correct ? 1 : 2;
    for (size_t steps = 0; id != NULL && *id && steps < 64; steps++) {
        const char *parent = NULL;
        for (size_t i = 0; i < report->row_count && parent == NULL; i++)
            if (strcmp(report->rows[i].id, id) == 0) {
                ranks[i] = 0;
                parent = report->rows[i].parent;
            }
        id = parent;
    }
    return ranks;
}

/* Whether a row before this one, or of a better rank, has the same source. */
static bool is_again(const struct report *report, const unsigned char *ranks, size_t at)
{
    for (size_t i = 0; i < report->row_count; i++)
        if ((ranks[i] < ranks[at] || (ranks[i] == ranks[at] && i < at)) &&
            strcmp(report->rows[i].source, report->rows[at].source) == 0)
            return true;
    return false;
}

static bool put_sources(const struct report *report, struct json *json)
{
    size_t left = SOURCES_BYTES;
    bool cut = report->row_count > WHY_ROWS; /* then it is the champion's line alone */
    unsigned char *ranks = rank_rows(report);
    json_put_object(json, "sources");
    for (int rank = 0; rank < (report->row_count > WHY_ROWS ? 1 : 3); rank++)
        for (size_t i = 0; i < report->row_count; i++) {
            const struct kernel_row *row = &report->rows[i];
            if (ranks[i] != rank || row->code == NULL || is_again(report, ranks, i))
                continue;
            size_t length = strlen(row->code);
            cut = cut || length > left;
            if (length > left)
                continue;
            left -= length;
            json_put_text(json, row->source, row->code);
        }
    json_object_end(json);
    mem_free(ranks);
    return cut;
}

static bool put_answers(const struct report *report, struct json *json)
{
    size_t left = ANSWERS_BYTES;
    bool cut = false;
    const char *asker = NULL;
    json_put_object(json, "answers");
    for (size_t i = 0; i < report->answer_count; i++) {
        const struct report_answer *answer = &report->answers[i];
        size_t length = strlen(answer->prompt) + strlen(answer->answer);
        if (length > left) {
            cut = true;
            continue;
        }
        left -= length;
        if (asker == NULL || strcmp(asker, answer->asker) != 0) {
            if (asker != NULL)
                json_array_end(json);
            json_put_array(json, asker = answer->asker);
        }
        json_object(json);
        json_put_text(json, "purpose", answer->purpose);
        json_put_text(json, "model", answer->model);
        json_put_int(json, "tokens", answer->tokens);
        json_put_text(json, "prompt", answer->prompt);
        json_put_text(json, "answer", answer->answer);
        json_object_end(json);
    }
    if (asker != NULL)
        json_array_end(json);
    json_object_end(json);
    return cut;
}

static void put_islands(const struct report *report, struct json *json)
{
    json_put_array(json, "islands");
    for (size_t i = 0; i < report->island_count; i++) {
        const struct report_island *island = &report->islands[i];
        json_object(json);
        json_put_int(json, "number", island->number);
        json_put_int(json, "evaluated", (int64_t)island->evaluated);
        json_put_int(json, "kernels", (int64_t)island->kernels);
        json_put_text(json, "best", island->best ? island->best->id : NULL);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_refusals(const struct report *report, struct json *json)
{
    json_put_array(json, "refused");
    for (size_t i = 0; i < report->refusal_count; i++) {
        json_object(json);
        json_put_int(json, "count", (int64_t)report->refusals[i].count);
        json_put_text(json, "why", report->refusals[i].why);
        json_put_text(json, "first", report->refusals[i].first);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_stages(const struct report *report, struct json *json)
{
    json_put_array(json, "stages");
    for (size_t stage = 0; stage < STAGES; stage++) {
        double ms = 0;
        for (size_t i = 0; i < report->row_count; i++)
            ms += report->rows[i].stage_ms[stage];
        if (report->final)
            ms += value_real(value_get(report->evaluation, "stage_ms"),
                             stage_name((enum stage)stage), 0);
        json_array(json);
        json_text(json, stage_name((enum stage)stage));
        json_real(json, ms);
        json_array_end(json);
    }
    json_array_end(json);
}

static void put_command(struct json *json, const char *name, const char *first, const char *second)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    buf_addf(&text, first, second);
    json_array(json);
    json_text(json, name);
    json_text(json, buf_text(&text));
    json_array_end(json);
    buf_free(&text);
}

static void put_commands(const struct report *report, struct json *json)
{
    json_put_array(json, "commands");
    if (report->best != NULL) {
        put_command(json, "the kernel's source", "twagent show %s --source", report->best);
        put_command(json, "the champion's figures, measured anew", "twagent rerun %s",
                    report->best);
    }
    if (report->again != NULL)
        put_command(json, "a search like this one", "%s", report->again);
    put_command(json, "every row of this page", "twagent export %s", report->problem);
    put_command(json, "this page", "twagent report %s --html", report->run);
    if (report->resume != NULL)
        put_command(json, "to go on", "%s", report->resume);
    json_array_end(json);
}

void report_json(const struct report *report, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_text(&json, "run", report->run);
    json_put_text(&json, "problem", report->problem);
    json_put_text(&json, "outcome", report->outcome);
    json_put_text(&json, "status", report_status(report).word);
    json_put_text(&json, "against", report->against);
    json_put_text(&json, "definition", report->definition);
    json_put_text(&json, "best", report->best);
    json_put_text(&json, "started", report->started);
    json_put_text(&json, "ended", report->stopped);
    json_put_text(&json, "spent", report->spent);
    json_put_int(&json, "micro_dollars", report->micro_dollars);
    json_put_int(&json, "evaluated", (int64_t)report->count);
    put_refusals(report, &json);
    json_put_real(&json, "elapsed_ms", report->elapsed_ms);
    json_put_real(&json, "lane_busy", report->lane_busy);
    json_put_bool(&json, "final", report->final);
    json_put_value(&json, "evaluation", report->evaluation);
    put_islands(report, &json);
    json_key(&json, "tuning");
    if (report->tuning != NULL)
        report_tuning_json(report->tuning, &json);
    else
        json_null(&json);
    put_rows(report, &json);
    bool cut = put_sources(report, &json);
    cut = put_answers(report, &json) || cut;
    put_stages(report, &json);
    put_commands(report, &json);
    json_put_text(&json, "cut",
                  cut ? "Sources and answers beyond some megabytes are not in this page: twagent "
                        "show ID has each."
                      : NULL);
    json_object_end(&json);
}
