#include "facts/summary.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 60 };

/* A reason without its numbers: "M=64: element 12 is 1.5" and "... 7 is 0.2" are one. */
static const char *reason_of(struct arena *arena, const struct kernel_row *row)
{
    char text[REASON_BYTES + 1];
    size_t length = 0;
    for (const char *at = row->reason; *at && *at != '\n' && length < REASON_BYTES; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (digit && length > 0 && text[length - 1] == '#')
            continue;
        text[length++] = digit ? '#' : *at;
    }
    while (length > 0 && ((unsigned char)text[length - 1] & 0xC0) == 0x80)
        length--; /* no half character at the end */
    text[length] = '\0';
    return arena_printf(arena, "%s: %s", row->verdict, text);
}

static const char *name_of(struct arena *arena, const struct kernel_row *row, enum summary_by by)
{
    switch (by) {
    case SUMMARY_ALL:
        return "all";
    case SUMMARY_MODEL:
        return row->model;
    case SUMMARY_CATEGORY:
        return *row->category ? row->category : "none named";
    case SUMMARY_LANGUAGE:
        return *row->language ? row->language : "not known";
    case SUMMARY_REASON:
        return row->correct || strcmp(row->verdict, "dropped") == 0 ? NULL : reason_of(arena, row);
    }
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    const struct kernel_row *const *one = a, *const *other = b;
    return strcmp((*one)->id, (*other)->id);
}

static int id_is(const void *key, const void *item)
{
    return strcmp(key, (*(const struct kernel_row *const *)item)->id);
}

/* ---- groups ---- */

struct group { /* a summary that is being made */
    struct summary summary;
    double *gains;
    size_t gain_count, most;
};

static void add_gain(struct arena *arena, struct group *group, double gain)
{
    group->gains =
        arena_room(arena, group->gains, group->gain_count, &group->most, sizeof *group->gains);
    group->gains[group->gain_count++] = gain;
}

static void count_row(struct arena *arena, struct group *group, const struct kernel_row *row,
                      const struct kernel_row *parent)
{
    struct summary *summary = &group->summary;
    summary->micro_dollars += row->micro_dollars;
    if (*row->duplicate_of && !row->champion)
        return; /* it was paid for, and never measured: the figures are another's */
    summary->evaluated++;
    summary->kernels += row->correct;
    summary->rejected += strcmp(row->verdict, "rejected") == 0;
    summary->failed += strcmp(row->verdict, "failed") == 0;
    summary->dropped += strcmp(row->verdict, "dropped") == 0;
    summary->wins += row->verified && strcmp(row->finding, "faster") == 0;
    summary->evaluation_ms += row->evaluation_ms;
    if (row->correct && parent != NULL && parent->correct && parent->searched.ratio > 0) {
        summary->better += row->searched.low > parent->searched.high;
        add_gain(arena, group, row->searched.ratio / parent->searched.ratio);
    }
}

static int by_size(const void *a, const void *b)
{
    const struct summary *one = a, *other = b;
    int more = (one->evaluated < other->evaluated) - (one->evaluated > other->evaluated);
    return more != 0 ? more : strcmp(one->name, other->name);
}

/* Groups by a name of few: a linear look-up. Reasons may be as many as rows, so that what comes
 * after the first GROUPS_MOST is one group. */
enum { GROUPS_MOST = 256 };

static struct group *group_of(struct group *groups, size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(groups[i].summary.name, name) == 0)
            return &groups[i];
    if (*count == GROUPS_MOST) {
        groups[GROUPS_MOST - 1].summary.name = "others";
        return &groups[GROUPS_MOST - 1];
    }
    groups[*count] = (struct group){.summary = {.name = name}};
    return &groups[(*count)++];
}

void summary_make(struct arena *arena, const struct kernel_row *rows, size_t count,
                  enum summary_by by, struct summary **groups, size_t *group_count)
{
    struct group *making = arena_array(arena, GROUPS_MOST, sizeof *making);
    const struct kernel_row **sorted = arena_array(arena, count + 1, sizeof *sorted);
    *group_count = 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &rows[i];
    qsort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(arena, &rows[i], by);
        const struct kernel_row **parent =
            *rows[i].parent ? bsearch(rows[i].parent, sorted, count, sizeof *sorted, id_is) : NULL;
        if (name != NULL && !rows[i].outside)
            count_row(arena, group_of(making, group_count, name), &rows[i],
                      parent != NULL ? *parent : NULL);
    }
    *groups = arena_array(arena, *group_count + 1, sizeof **groups);
    for (size_t i = 0; i < *group_count; i++) {
        (*groups)[i] = making[i].summary;
        if (making[i].gain_count > 0)
            stats_interval(making[i].gains, making[i].gain_count, &(*groups)[i].gain);
    }
    qsort(*groups, *group_count, sizeof **groups, by_size);
}

/* ---- steps ---- */

static int by_time(const void *a, const void *b)
{
    const struct step *one = a, *other = b;
    return (one->row->decided_ms > other->row->decided_ms) -
           (one->row->decided_ms < other->row->decided_ms);
}

void summary_steps(struct arena *arena, const struct kernel_row *const *rows, size_t count,
                   struct step **steps, size_t *step_count)
{
    struct step *all = arena_array(arena, count + 1, sizeof *all);
    size_t kernels = 0, kept = 0;
    double best_low = 0, best_high = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i]->correct && rows[i]->speedup > 0)
            all[kernels++] = (struct step){rows[i], false};
    qsort(all, kernels, sizeof *all, by_time);
    for (size_t i = 0; i < kernels; i++) {
        const struct kernel_row *row = all[i].row;
        if (row->speedup_low <= best_low)
            continue;
        all[kept++] = (struct step){row, row->speedup_low > best_high};
        best_low = row->speedup_low;
        best_high = row->speedup_high;
    }
    *steps = all;
    *step_count = kept;
}
