/* A tune with a model. When all points that were proposed have been taken, so that what it is told
 * depends on no clock, the model is asked for some more; each number that it names becomes the
 * nearest one of the parameter's list, each point that `where` refuses the nearest valid one. What
 * is no news then, or where there is no answer, the built-in proposer proposes in its place.
 *
 *   chain at its limit -> asking -> points suggested to the proposer, the limit raised -> chain
 */
#include "agents/ideas/extract.h"
#include "agents/prompt/prompt.h"
#include "agents/search/private.h"
#include "base/mem.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 4, SEEN_MOST = 1 << 14, SEED = 1 };

static const char schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"points\"],"
    "\"properties\":{\"points\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"additionalProperties\":false,\"required\":[\"values\"],\"properties\":{\"values\":{"
    "\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"name\",\"value\"],\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"value\":{\"type\":\"number\"}}}}}}}}}";

int64_t search_values_first(const struct search *search)
{
    return (int64_t)search->arm_count;
}

/* ---- snapping ---- */

/* How far apart two numbers are, whatever their size. */
static double apart(double a, double b)
{
    return a > 0 && b > 0 ? fabs(log(a / b)) : fabs(a - b);
}

static int64_t nearest_value(const struct tune_parameter *parameter, double number)
{
    int64_t best = parameter->values[0];
    for (size_t i = 1; i < parameter->count; i++)
        if (apart((double)parameter->values[i], number) < apart((double)best, number))
            best = parameter->values[i];
    return best;
}

static double distance(const struct names *a, const struct names *b)
{
    double sum = 0;
    for (size_t j = 0; j < a->count; j++) {
        double far = apart((double)a->number[j], (double)b->number[j]);
        sum += far * far;
    }
    return sum;
}

static bool is_valid(const struct search *search, const struct arm *arm, const struct names *tune)
{
    return tune_valid(arm->candidate, &search->problem->shapes[0], &search->facts, tune);
}

/* Of a large space a part is looked at. */
static void nearest_valid(const struct search *search, const struct arm *arm, struct names *tune)
{
    const struct names wanted = *tune;
    uint64_t all = tune_points(arm->candidate), tries = all < SEEN_MOST ? all : SEEN_MOST;
    double least = INFINITY;
    struct random random;
    if (is_valid(search, arm, tune))
        return;
    random_init(&random, SEED);
    for (uint64_t i = 0; i < tries; i++) {
        struct names other;
        tune_at(arm->candidate, tries == all ? i : random_below(&random, all), &other);
        double far = distance(&wanted, &other);
        if (far >= least || !is_valid(search, arm, &other))
            continue;
        least = far;
        *tune = other;
    }
}

/* What is not named stays as it is at the best point. */
static void suggest(struct search *search, const struct arm *arm, const struct names *from,
                    const struct value *values)
{
    struct names tune = *from;
    for (size_t i = 0; values && values->kind == VALUE_LIST && i < values->count; i++) {
        const char *name = value_text(values->items[i], "name", "");
        double number = value_real(values->items[i], "value", NAN);
        for (size_t j = 0; j < tune.count && isfinite(number); j++)
            if (strcmp(tune.name[j], name) == 0)
                tune.number[j] = nearest_value(&arm->candidate->tune[j], number);
    }
    nearest_valid(search, arm, &tune);
    proposer_suggest(search->proposer, (size_t)arm->number, &tune);
}

/* ---- asking ---- */

static const struct arm *arm_of(const struct search *search, struct names *from)
{
    const struct attempt *best = search->best;
    const struct arm *arm = best ? best->arm : search->by_number[0];
    if (best)
        *from = best->tune;
    else
        tune_at(arm->candidate, 0, from);
    return arm;
}

static void fill_prompt(struct search *search, struct buf *prompt)
{
    size_t count;
    struct names from;
    const struct arm *arm = arm_of(search, &from);
    const struct prompt_kernel first = {.id = "the first", .name = arm->name, .source = arm->text};
    struct prompt_kernel kernel = search->best ? search_kernel_words(search->best) : first;
    history_round(search);
    MEM_LOCAL struct prompt_attempt *history = history_of(search, -1, &count);
    prompt_values(search->prompts, &search->context, &kernel, history, count, BATCH, 0, prompt);
}

static bool ask(struct search *search)
{
    struct values *values = search->values;
    char id[64];
    snprintf(id, sizeof id, "%.20s-values%lld", search->id, (long long)++values->asked);
    const struct draw draw = {
        .idea = true, .asker = id, .purpose = "values", .number = values->asked};
    const struct model *model = search_pick_model(search, &draw);
    if (!model)
        return false;
    BUF_LOCAL(system, 1 << 20);
    BUF_LOCAL(prompt, PROMPT_BYTES_MAX);
    prompt_system_for(search->prompts, PROMPT_IDEAS, &system);
    fill_prompt(search, &prompt);
    ask_free(&values->ask);
    values->ask = (struct ask){.model = model,
                               .others = search_models(search, true),
                               .request = {.model = model->wire_name,
                                           .temperature = model->temperature,
                                           .system = arena_strdup(search->arena, buf_text(&system)),
                                           .prompt = arena_strdup(search->arena, buf_text(&prompt)),
                                           .json = true,
                                           .schema = schema},
                               .purpose = draw.purpose,
                               .sample = values->asked};
    values->proposed = search->builtin->proposed;
    values->asking = true;
    ask_start(search->completions, &values->ask, &search->task, id);
    return true;
}

static void take(struct search *search)
{
    struct values *values = search->values;
    const struct ask *asked = &values->ask;
    struct names from;
    const struct arm *arm = arm_of(search, &from);
    const struct value *points = NULL;
    struct value *root = NULL;
    struct err err = asked->err;
    const char *text = NULL;
    size_t length = 0;
    ARENA_LOCAL(arena);
    if (!err.code && extract_json(arena, asked->completion.text, &text, &length, &err) == 0 &&
        value_parse_json(arena, "the answer", text, length, &root, &err) == 0)
        points = value_get(root, "points");
    if (err.code && err.code != ERR_CANCELLED)
        log_event(LOG_WARN, "values.none", search->id, "%s: the proposer goes on alone",
                  err.message);
    (void)search_cap_spending(search, asked);
    for (size_t i = 0; points && points->kind == VALUE_LIST && i < points->count && i < BATCH; i++)
        suggest(search, arm, &from, value_get(points->items[i], "values"));
}

bool search_values_step(struct search *search)
{
    struct values *values = search->values;
    bool nothing_new = values->asked > 0 && search->builtin->proposed == values->proposed;
    if (!values->asking)
        return !nothing_new && search_may_propose(search) && ask(search);
    if (!values->ask.task.finished)
        return true;
    values->asking = false;
    take(search);
    chain_more(search->builtin, BATCH);
    task_wake(&search->task);
    return true;
}

void search_values_stop(struct search *search)
{
    if (search->values->asking && !search->values->ask.task.finished)
        task_cancel(&search->values->ask.task);
}

void search_values_close(struct search *search)
{
    ask_free(&search->values->ask);
}
