#include "agents/lessons/words.h"

#include "agents/ideas/ideas.h"
#include "agents/ideas/novelty.h"
#include "base/digits.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_MOST = 16, POINTS_SHOWN = 4, REASON_BYTES = 110 };

static const double alike = 0.75; /* novelty_likeness() of two titles that mean one idea */

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* ---- one lesson ---- */

enum outcome { OUTCOME_WIN, OUTCOME_SAME, OUTCOME_LOSS };

static enum outcome outcome_of(const struct lesson *lesson)
{
    if (lesson_is_win(lesson))
        return OUTCOME_WIN;
    bool kernel = is(lesson->verdict, "kernel");
    return kernel && (lesson->change_high <= 0 || lesson->change_high >= 1) ? OUTCOME_SAME
                                                                            : OUTCOME_LOSS;
}

/* A wide interval has no middle worth a word: "2x to 100x its parent". */
static void put_ratio(double ratio, double low, double high, const char *over, struct buf *out)
{
    static const double wide = 1.5;
    char middle[32], least[32], most[32];
    digits_of(ratio, low, high, middle);
    digits_of(low, low, high, least);
    digits_of(high, low, high, most);
    if (!(low > 0 && high > low))
        buf_addf(out, "%sx %s, measured once", middle, over);
    else if (high > wide * low)
        buf_addf(out, "%sx to %sx %s", least, most, over);
    else
        buf_addf(out, "%sx %s (%s to %s)", middle, over, least, most);
}

void lesson_outcome(const struct lesson *lesson, struct buf *out)
{
    if (!is(lesson->verdict, "kernel")) {
        buf_addf(out, "%s: %.*s", lesson->verdict, REASON_BYTES, lesson->reason);
        return;
    }
    if (lesson->change <= 0) {
        buf_add_text(out, "right, ");
        put_ratio(lesson->speedup, lesson->speedup_low, lesson->speedup_high, "the baseline", out);
        return;
    }
    static const char *const words[] = {
        [OUTCOME_WIN] = "faster", [OUTCOME_SAME] = "no difference", [OUTCOME_LOSS] = "slower"};
    buf_addf(out, "%s, ", lesson->change_high > 0 ? words[outcome_of(lesson)] : "right");
    put_ratio(lesson->change, lesson->change_low, lesson->change_high, "its parent", out);
}

static bool lesson_same_idea(const struct lesson *a, const struct lesson *b)
{
    return !a->point && !b->point && novelty_likeness(a->title, b->title) >= alike;
}

bool lesson_contradicts(const struct lesson *a, const struct lesson *b)
{
    enum outcome of_a = outcome_of(a), of_b = outcome_of(b);
    return of_a != of_b && (of_a == OUTCOME_WIN || of_b == OUTCOME_WIN) && lesson_same_idea(a, b);
}

/* ---- which ones ---- */

struct ranked {
    const struct lesson *lesson;
    double score;
    size_t order;
    bool own, used;
};

/* What worked, and by how much at least, tells most; then what failed; least what made no
 * difference. */
static double telling(const struct lesson *lesson)
{
    switch (outcome_of(lesson)) {
    case OUTCOME_WIN:
        return 1 + (lesson->change_low < 3 ? lesson->change_low - 1 : 2) / 2;
    case OUTCOME_LOSS:
        return 0.7;
    default:
        return 0.45;
    }
}

static double score_of(const struct lesson_ask *ask, const struct lesson *lesson)
{
    double score = telling(lesson) * lesson_nearness(ask->here, &lesson->place);
    bool both = *ask->limiter && *lesson->limiter_before;
    if (both)
        score *= is(ask->limiter, lesson->limiter_before) ? 1.3 : 0.7;
    if (ask->title)
        score *= 0.25 + novelty_likeness(ask->title, lesson->title);
    return score;
}

static int better(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static size_t rank(const struct lesson_ask *ask, struct ranked *items)
{
    size_t count = 0;
    const struct lesson_memory *memory = ask->memory;
    for (size_t i = 0; i < memory->idea_count; i++)
        items[count++] = (struct ranked){.lesson = &memory->ideas[i]};
    for (size_t i = 0; i < ask->taught_count; i++)
        items[count++] = (struct ranked){.lesson = &ask->taught[i], .own = true};
    for (size_t i = 0; i < count; i++) {
        items[i].order = i;
        items[i].score = score_of(ask, items[i].lesson);
    }
    qsort(items, count, sizeof *items, better);
    return count;
}

/* ---- their lines ---- */

static void put_place(const struct lesson_ask *ask, const struct ranked *item, struct buf *out)
{
    const struct lesson_place *there = &item->lesson->place, *here = ask->here;
    if (item->own) {
        buf_addf(out, ", %s of this run", item->lesson->id);
        return;
    }
    if (!lesson_same_problem(here, there) || !is(here->shape, there->shape))
        buf_addf(out, ", %s%s %s",
                 is(here->problem, there->problem) && !lesson_same_problem(here, there)
                     ? "another definition of "
                     : "",
                 there->problem, there->shape);
    if (lesson_other_language(here, there))
        buf_addf(out, ", written in %s", there->language);
    if (!is(here->dtype, there->dtype))
        buf_addf(out, " in %s", there->dtype);
    if (!is(here->device, there->device) || here->cores != there->cores)
        buf_addf(out, ", on %s", *there->device ? there->device : "another machine");
    if (here->cores != there->cores && there->cores > 0)
        buf_addf(out, " (%lld cores)", (long long)there->cores);
    buf_addf(out, ", %s", item->lesson->id);
}

static void put_result(const struct lesson_ask *ask, const struct ranked *item, struct buf *out)
{
    const struct lesson *lesson = item->lesson;
    lesson_outcome(lesson, out);
    if (*lesson->limiter_before && is(lesson->limiter_before, lesson->limiter_after))
        buf_addf(out, "; limited by %s before and after", lesson->limiter_before);
    else if (*lesson->limiter_before && *lesson->limiter_after)
        buf_addf(out, "; limited by %s before, by %s after", lesson->limiter_before,
                 lesson->limiter_after);
    else if (*lesson->limiter_before)
        buf_addf(out, "; the parent was limited by %s", lesson->limiter_before);
    put_place(ask, item, out);
}

/* An idea with its outcome; with what the same idea brought elsewhere where that was different. */
static void put_idea(const struct lesson_ask *ask, struct ranked *items, size_t count, size_t at,
                     struct buf *out)
{
    size_t others = 0;
    buf_addf(out, "- \"%s\" (%s): ", items[at].lesson->title, items[at].lesson->category);
    put_result(ask, &items[at], out);
    items[at].used = true;
    for (size_t i = 0; i < count; i++) {
        if (items[i].used || !lesson_same_idea(items[at].lesson, items[i].lesson))
            continue;
        items[i].used = true;
        if (outcome_of(items[i].lesson) == outcome_of(items[at].lesson) || others++ > 0)
            continue;
        buf_add_text(out, ". But also: ");
        put_result(ask, &items[i], out);
    }
    buf_add_char(out, '\n');
}

static void put_points(const struct lesson_ask *ask, struct buf *out)
{
    const struct lesson_memory *memory = ask->memory;
    size_t shown = 0;
    for (size_t i = 0; i < memory->point_count && shown < POINTS_SHOWN; i++) {
        const struct lesson *point = &memory->points[i];
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || is(memory->points[k].source, point->source);
        if (seen)
            continue;
        const struct ranked item = {.lesson = point};
        buf_addf(out, "- %s did best with %s: ", point->name, point->tune);
        put_ratio(point->speedup, point->speedup_low, point->speedup_high, "the baseline", out);
        put_place(ask, &item, out);
        buf_add_char(out, '\n');
        shown++;
    }
}

/* Adds the line where there is room for it, and empties it. */
static void put_line(struct buf *line, size_t *left, struct buf *out)
{
    if (line->length > 0 && line->length <= *left) {
        buf_add(out, line->data, line->length);
        *left -= line->length;
    }
    buf_reset(line);
}

void lesson_chapter(const struct lesson_ask *ask, struct buf *out)
{
    size_t most = ask->memory->idea_count + ask->taught_count, lines = 0, others = 0;
    size_t left = ask->bytes;
    struct ranked *items = mem_array(most + 1, sizeof *items);
    BUF_LOCAL(line, 1 << 14);
    if (!ask->title)
        put_points(ask, &line);
    put_line(&line, &left, out);
    size_t count = rank(ask, items);
    for (size_t i = 0; i < count && lines < LINES_MOST; i++) {
        bool win = outcome_of(items[i].lesson) == OUTCOME_WIN;
        /* At most half of the lines for what was no win, so that both kinds are seen. */
        if (items[i].used || (!win && others >= LINES_MOST / 2))
            continue;
        put_idea(ask, items, count, i, &line);
        put_line(&line, &left, out);
        others += !win;
        lines++;
    }
    mem_free(items);
}

/* ---- how many ideas of each kind ---- */

enum { TRIED_LEAST = 8 };

static void tally(const struct lesson_ask *ask, struct lesson_tally *tallies)
{
    memcpy(tallies, ask->memory->tallies, sizeof ask->memory->tallies);
    for (size_t i = 0; i < MEMORY_CATEGORIES && idea_categories[i]; i++)
        tallies[i].category = idea_categories[i];
    for (size_t i = 0; i < ask->taught_count; i++)
        for (size_t k = 0; k < MEMORY_CATEGORIES; k++) {
            const struct lesson *lesson = &ask->taught[i];
            if (!tallies[k].category || !is(tallies[k].category, lesson->category))
                continue;
            tallies[k].tried++;
            tallies[k].won += lesson_is_win(lesson);
            if (lesson_is_win(lesson) && lesson->change_low > tallies[k].best)
                tallies[k].best = lesson->change_low;
        }
}

/* The share of wins, a little optimistic where little was tried, times what a win brought. */
static double promise(const struct lesson_tally *tally, const char *lifts)
{
    double share = ((double)tally->won + 1) / ((double)tally->tried + 3);
    double gain = tally->best > 1 ? (tally->best < 3 ? tally->best - 1 : 2) : 0.2;
    return share * (0.3 + gain) * (strstr(lifts, tally->category) ? 1.5 : 1);
}

void lesson_quotas(const struct lesson_ask *ask, const char *lifts, int64_t count, struct buf *out)
{
    struct lesson_tally tallies[MEMORY_CATEGORIES];
    double promises[MEMORY_CATEGORIES], all = 0;
    int64_t given[MEMORY_CATEGORIES] = {0}, tried = 0, steered = count - (count + 3) / 4;
    tally(ask, tallies);
    for (size_t i = 0; i < MEMORY_CATEGORIES; i++) {
        tried += tallies[i].tried;
        promises[i] = promise(&tallies[i], lifts);
        all += promises[i];
    }
    if (tried < TRIED_LEAST || steered < 1)
        return;
    /* Each goes to the category that is furthest below its share. */
    for (int64_t n = 1; n <= steered; n++) {
        size_t next = 0;
        double furthest = -1e9;
        for (size_t i = 0; i < MEMORY_CATEGORIES; i++) {
            double below = promises[i] / all * (double)n - (double)given[i];
            if (below > furthest) {
                furthest = below;
                next = i;
            }
        }
        given[next]++;
    }
    buf_addf(out, "By what paid in this family of problems so far (%lld tried), of the %lld ideas:",
             (long long)tried, (long long)count);
    for (size_t i = 0; i < MEMORY_CATEGORIES; i++)
        if (given[i] > 0)
            buf_addf(out, " %lld %s (%lld of %lld won),", (long long)given[i], tallies[i].category,
                     (long long)tallies[i].won, (long long)tallies[i].tried);
    buf_addf(out, " %lld of any kind.\n", (long long)(count - steered));
}
