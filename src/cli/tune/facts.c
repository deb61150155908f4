#include "cli/tune/facts.h"

#include "base/mem.h"
#include "base/random.h"
#include "cli/find/history.h"
#include "cli/print/run_words.h"
#include "cli/tune/ladder.h"
#include "eval/candidate/candidate.h"
#include "eval/data/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 10, SPACE_MOST = 1 << 16, SPACE_SAMPLE = 1 << 14, SEED = 1 };

static const double NORMAL_95 = 1.96;

struct facts {
    struct store *store;
    struct arena *arena;
    const struct run_record *run;
    struct problem *problem; /* NULL: it is gone, or not to be read */
    struct names names;      /* the machine's */
    struct candidate_record *all;
    size_t count;
};

static const struct value *option(struct arena *arena, const struct run_record *run,
                                  const char *name)
{
    struct value *root;
    return value_parse_json(arena, run->id, run->options, strlen(run->options), &root, NULL) == 0
               ? value_get(root, name)
               : NULL;
}

bool tune_is(const struct run_record *run)
{
    ARENA_LOCAL(arena);
    const struct value *kernel = option(arena, run, "kernel");
    return kernel && kernel->kind == VALUE_TEXT;
}

static bool is_kernel(const struct candidate_record *c)
{
    return strcmp(c->verdict, "kernel") == 0 && !*c->duplicate_of && c->time_ns > 0;
}

/* Far behind at the main shape, and checked nowhere else: no kernel, but its time is one. */
static bool is_dropped(const struct candidate_record *c)
{
    return strcmp(c->verdict, "dropped") == 0 && !*c->duplicate_of && c->time_ns > 0;
}

/* ---- a kernel's table ---- */

/* Valid points of the space; of a large one a sample. */
static int64_t *space_of(const struct facts *facts, const struct candidate *candidate,
                         size_t *count, double *valid)
{
    uint64_t all = tune_points(candidate);
    uint64_t tries = all <= SPACE_MOST ? all : SPACE_SAMPLE;
    int64_t *points = arena_array(facts->arena, tries * candidate->tune_count + 1, sizeof *points);
    struct random random;
    random_init(&random, SEED);
    *count = 0;
    for (uint64_t i = 0; i < tries; i++) {
        struct names tune;
        tune_at(candidate, tries == all ? i : random_below(&random, all), &tune);
        if (!tune_valid(candidate, &facts->problem->shapes[0], &facts->names, &tune))
            continue;
        memcpy(points + *count * candidate->tune_count, tune.number,
               candidate->tune_count * sizeof *points);
        ++*count;
    }
    *valid = tries > 0 ? (double)*count * (double)all / (double)tries : 0;
    return points;
}

struct validity {
    const struct facts *facts;
    const struct candidate *candidate;
};

static bool is_valid(void *context, const int64_t *point)
{
    const struct validity *of = context;
    struct names tune = {.count = of->candidate->tune_count};
    for (size_t j = 0; j < tune.count; j++) {
        tune.name[j] = of->candidate->tune[j].name;
        tune.number[j] = point[j];
    }
    return tune_valid(of->candidate, &of->facts->problem->shapes[0], &of->facts->names, &tune);
}

/* The space's names: the candidate's, or where its problem was not read those of a point. */
static size_t names_of(const struct facts *facts, const struct candidate *candidate,
                       const struct candidate_record *first, const char **names)
{
    struct value *tune;
    size_t count = 0;
    if (candidate != NULL) {
        for (; count < candidate->tune_count; count++)
            names[count] = arena_strdup(facts->arena, candidate->tune[count].name);
        return count;
    }
    if (value_parse_json(facts->arena, first->id, first->tune, strlen(first->tune), &tune, NULL) ==
            0 &&
        tune->kind == VALUE_MAP)
        for (; count < tune->count && count < TUNING_PARAMETERS; count++)
            names[count] = tune->keys[count];
    return count;
}

/* A measured point of a source; false where the record's numbers are not those of its space. */
static bool read_point(const struct facts *facts, const char *const *names, size_t width,
                       const struct candidate_record *record, int64_t *point)
{
    struct value *tune;
    if (value_parse_json(facts->arena, record->id, record->tune, strlen(record->tune), &tune, NULL))
        return false;
    for (size_t j = 0; j < width; j++) {
        const struct value *number = value_get(tune, names[j]);
        if (!number || number->kind != VALUE_INT)
            return false;
        point[j] = number->integer;
    }
    return true;
}

static void impact_of(const struct facts *facts, const struct candidate *candidate,
                      const struct candidate_record *first, struct tuning_kernel *kernel)
{
    const char *names[TUNING_PARAMETERS];
    size_t width = names_of(facts, candidate, first, names), space_count = 0;
    int64_t *points = arena_array(facts->arena, facts->count * width + 1, sizeof *points);
    int64_t *space = candidate ? space_of(facts, candidate, &space_count, &kernel->space) : NULL;
    double *times = arena_array(facts->arena, facts->count + 1, sizeof *times);
    double *errors = arena_array(facts->arena, facts->count + 1, sizeof *errors);
    size_t timed = 0;
    for (size_t i = 0; i < facts->count; i++) {
        const struct candidate_record *record = &facts->all[i];
        if (strcmp(record->source, first->source) != 0 ||
            !(is_kernel(record) || is_dropped(record)) ||
            !read_point(facts, names, width, record, points + timed * width))
            continue;
        kernel->kernels += is_kernel(record);
        kernel->dropped += is_dropped(record);
        if (record->time_high > record->time_ns)
            errors[timed] = log(record->time_high / record->time_ns) / NORMAL_95;
        times[timed++] = record->time_ns;
    }
    struct validity validity = {facts, candidate};
    const struct tuning_table table = {.parameters = width,
                                       .names = names,
                                       .count = timed,
                                       .points = points,
                                       .time_ns = times,
                                       .error = errors,
                                       .space_count = space_count,
                                       .space = space_count > 0 ? space : NULL,
                                       .valid = candidate ? is_valid : NULL,
                                       .context = &validity};
    tuning_impact(&table, &kernel->impact);
}

static void kernel_of(const struct facts *facts, const struct candidate_record *first,
                      struct tuning_kernel *kernel)
{
    struct candidate *candidate = NULL;
    const char *source = history_source(facts->store, facts->arena, first);
    struct tuning_point *points = arena_array(facts->arena, facts->count, sizeof *points);
    size_t outside = 0;
    *kernel = (struct tuning_kernel){.name = first->name, .points = points};
    for (size_t i = 0; i < facts->count; i++) {
        const struct candidate_record *c = &facts->all[i];
        outside += strcmp(c->source, first->source) == 0 && c->outside;
        bool timed = strcmp(c->verdict, "kernel") == 0 || strcmp(c->verdict, "dropped") == 0;
        if (strcmp(c->source, first->source) == 0 && *c->verdict && !c->outside)
            points[kernel->measured++] =
                (struct tuning_point){c->id, c->tune, c->verdict, timed ? c->time_ns : 0};
    }
    if (facts->problem && source &&
        candidate_parse(facts->problem, first->name, source, strlen(source), &candidate, NULL))
        candidate = NULL;
    impact_of(facts, candidate, first, kernel);
    if (kernel->space > 0)
        kernel->space = fmax((double)kernel->measured, kernel->space - (double)outside);
    candidate_free(candidate);
}

static void read_kernels(const struct facts *facts, struct tuning *tuning)
{
    struct tuning_kernel *kernels = arena_array(facts->arena, facts->count + 1, sizeof *kernels);
    for (size_t i = 0; i < facts->count; i++) {
        bool first = *facts->all[i].verdict != '\0';
        for (size_t k = 0; k < i && first; k++)
            first =
                !*facts->all[k].verdict || strcmp(facts->all[k].source, facts->all[i].source) != 0;
        if (first)
            kernel_of(facts, &facts->all[i], &kernels[tuning->kernel_count++]);
    }
    tuning->kernels = kernels;
}

/* ---- stability ---- */

/* The champion's last measurement is over the fastest baseline, and has the others', too: at the
 * problem's own size what the other sizes were measured over. */
static void over(const char *baseline, const struct value *final, struct tuning_rung *rung)
{
    const struct value *one = value_get(value_get(final, "baselines"), baseline);
    const struct value *speedup = value_get(one, "speedup");
    if (!speedup || strcmp(rung->baseline, baseline) == 0)
        return;
    rung->baseline = baseline;
    rung->speedup = (struct interval){.median = value_real(speedup, "median", 0),
                                      .low = value_real(speedup, "low", 0),
                                      .high = value_real(speedup, "high", 0),
                                      .samples = (size_t)value_int(speedup, "samples", 0),
                                      .processes = (size_t)value_int(speedup, "processes", 0)};
    rung->finding = finding_of(value_text(one, "finding", ""));
}

void tune_ladder(struct store *store, struct arena *arena, const struct problem *problem,
                 const char *id, struct tuning_ladder *ladder)
{
    struct tuning_rung *rungs = arena_array(arena, LADDER_MAX, sizeof *rungs);
    const char *sizes[LADDER_MAX];
    size_t count = ladder_sizes(arena, problem, sizes);
    *ladder = (struct tuning_ladder){.wanted = count, .rungs = rungs};
    for (size_t i = 0; i < count; i++) {
        struct evaluation evaluation;
        bool main = i + 1 == count;
        const struct value *value =
            !main ? history_measured(store, arena, ladder_key(arena, id, sizes[i]))
            : history_is_final(store, arena, id) ? history_evaluation(store, arena, id)
                                                 : NULL;
        if (!value || evaluation_from_value(arena, value, &evaluation, NULL))
            continue;
        rungs[ladder->count++] =
            (struct tuning_rung){.size = sizes[i],
                                 .main = main,
                                 .right = evaluation.verdict == VERDICT_KERNEL,
                                 .reason = evaluation.reason,
                                 .baseline = evaluation.baseline,
                                 .time_ns = evaluation.time_ns,
                                 .speedup = evaluation.speedup,
                                 .finding = evaluation.finding,
                                 .noise = evaluation.noise ? evaluation.noise : ""};
        over(rungs[0].baseline, value, &rungs[ladder->count - 1]);
    }
    if (ladder->count > 1) /* the main one alone says nothing of others */
        ladder->kernel = id;
    tuning_judge_ladder(ladder);
}

/* Its ladder was climbed, in vain. */
static bool passed_over(const struct facts *facts, const char *id)
{
    struct tuning_ladder ladder = {.kernel = NULL};
    if (facts->problem)
        tune_ladder(facts->store, facts->arena, facts->problem, id, &ladder);
    return ladder.unsteady;
}

/* ---- top configurations ---- */

/* The same order as the search's (select.c). */
static int by_time(const void *left, const void *right)
{
    const struct candidate_record *const *a = left, *const *b = right;
    double x = (*a)->time_high > 0 ? (*a)->time_high : (*a)->time_ns;
    double y = (*b)->time_high > 0 ? (*b)->time_high : (*b)->time_ns;
    return x < y ? -1 : x > y;
}

/* Of the run-off, where the two were measured in turns. */
static bool paired(const struct facts *facts, struct tuning_top *top)
{
    const char *best = facts->run->best;
    const struct value *mine = history_measured(
        facts->store, facts->arena, arena_printf(facts->arena, "%s-over-%s", top->id, best));
    const struct value *its = history_measured(
        facts->store, facts->arena, arena_printf(facts->arena, "%s-over-%s", best, top->id));
    struct evaluation evaluation;
    if (!mine && !its)
        return false;
    if (evaluation_from_value(facts->arena, mine ? mine : its, &evaluation, NULL) ||
        evaluation.speedup.samples == 0)
        return false;
    const struct interval *speedup = &evaluation.speedup;
    top->ratio = mine ? 1 / speedup->median : speedup->median;
    top->ratio_low = mine ? 1 / speedup->high : speedup->low;
    top->ratio_high = mine ? 1 / speedup->low : speedup->high;
    enum finding slower = mine ? FINDING_SLOWER : FINDING_FASTER;
    top->standing = evaluation.finding == slower ? TUNING_SLOWER : TUNING_NOT_APART;
    top->paired = true;
    return true;
}

static void read_top(const struct facts *facts, struct tuning *tuning)
{
    const struct candidate_record **ranked =
        arena_array(facts->arena, facts->count + 1, sizeof(struct candidate_record *));
    const struct candidate_record *best = NULL;
    struct tuning_top *top = arena_array(facts->arena, TOP + 1, sizeof *top);
    size_t count = 0;
    for (size_t i = 0; i < facts->count; i++) {
        if (strcmp(facts->all[i].id, facts->run->best) == 0)
            best = &facts->all[i];
        else if (is_kernel(&facts->all[i]))
            ranked[1 + count++] = &facts->all[i];
    }
    if (!best)
        return;
    qsort(ranked + 1, count, sizeof(struct candidate_record *), by_time);
    ranked[0] = best;
    for (size_t i = 0; i <= count; i++) {
        const struct candidate_record *c = ranked[i];
        struct tuning_top row = {.id = c->id,
                                 .time_ns = c->time_ns,
                                 .speedup = c->speedup,
                                 .low = c->speedup_low,
                                 .high = c->speedup_high};
        row.standing = i == 0                                              ? TUNING_BEST
                       : c->dropped || c->speedup_high < best->speedup_low ? TUNING_SLOWER
                                                                           : TUNING_NOT_APART;
        if (i > 0)
            (void)paired(facts, &row);
        if (i > 0 && passed_over(facts, c->id))
            row.standing = TUNING_UNSTEADY;
        tuning->not_apart += row.standing == TUNING_NOT_APART;
        tuning->passed_over += row.standing == TUNING_UNSTEADY;
        if (i >= TOP)
            continue;
        row.source = run_words_source(facts->arena, c);
        top[tuning->top_count++] = row;
    }
    tuning->top = top;
}

/* ---- all ---- */

static void read_machine(struct facts *facts)
{
    struct value *context;
    const char *text = facts->run->context ? facts->run->context : "";
    if (value_parse_json(facts->arena, "context", text, strlen(text), &context, NULL))
        return;
    const struct value *names = value_get(context, "facts");
    for (size_t i = 0; names && i < names->count; i++)
        if (names->items[i]->kind == VALUE_INT)
            (void)!names_set(&facts->names, names->keys[i], names->items[i]->integer, NULL);
}

int tune_facts(struct store *store, struct arena *arena, const struct run_record *run, bool problem,
               struct tuning *tuning, struct err *err)
{
    struct facts facts = {.store = store, .arena = arena, .run = run};
    const struct value *strategy = option(arena, run, "tune_strategy");
    *tuning = (struct tuning){.run = run->id,
                              .strategy = strategy && strategy->kind == VALUE_TEXT ? strategy->text
                                                                                   : "auto"};
    if (history_candidates(store, arena, run->id, &facts.all, &facts.count, err))
        return -1;
    if (!problem || problem_load(run->problem_file, &facts.problem, NULL))
        facts.problem = NULL;
    read_machine(&facts);
    read_kernels(&facts, tuning);
    read_top(&facts, tuning);
    if (*run->best && facts.problem)
        tune_ladder(store, arena, facts.problem, run->best, &tuning->ladder);
    problem_free(facts.problem);
    return 0;
}
