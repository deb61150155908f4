/* Chooses from all lessons of a family, in one pass and in bounded memory: of ideas those that are
 * nearest to the run's place, as many wins as others; of the points of each wanted source the
 * fastest at the nearest place, and some of the next. Later lessons stand before earlier ones. */
#include "agents/lessons/memory.h"

#include "agents/ideas/ideas.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"

#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_MAX = 1024, /* sources times places */
    GROUP_POINTS = 4,
    NEXT_POINTS = 2 /* of the next nearest place */
};

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool same_machine(const struct lesson_place *a, const struct lesson_place *b)
{
    return is(a->device, b->device) && a->cores == b->cores;
}

static bool lesson_same_place(const struct lesson_place *a, const struct lesson_place *b)
{
    return is(a->family, b->family) && lesson_same_problem(a, b) && is(a->backend, b->backend) &&
           is(a->shape, b->shape) && is(a->dtype, b->dtype) && same_machine(a, b);
}

bool lesson_other_language(const struct lesson_place *here, const struct lesson_place *there)
{
    return there->language && *there->language &&
           (!here->language || !is(here->language, there->language));
}

double lesson_nearness(const struct lesson_place *here, const struct lesson_place *there)
{
    double near = 1;
    if (!is(here->family, there->family) || !is(here->backend, there->backend))
        return 0;
    if (!lesson_same_problem(here, there))
        near *= 0.5;
    else if (!is(here->shape, there->shape))
        near *= 0.8;
    if (lesson_other_language(here, there))
        near *= 0.7;
    if (!is(here->dtype, there->dtype))
        near *= 0.7;
    if (!is(here->device, there->device))
        near *= *here->device_family && is(here->device_family, there->device_family) ? 0.8 : 0.5;
    if (here->cores != there->cores)
        near *= 0.85;
    return near;
}

void lesson_copy(struct arena *arena, const struct lesson *from, struct lesson *to)
{
    *to = *from;
    const char **texts[] = {&to->id,
                            &to->place.family,
                            &to->place.problem,
                            &to->place.problem_hash,
                            &to->place.backend,
                            &to->place.language,
                            &to->place.shape,
                            &to->place.dtype,
                            &to->place.device,
                            &to->place.device_family,
                            &to->title,
                            &to->category,
                            &to->name,
                            &to->source,
                            &to->tune,
                            &to->limiter_before,
                            &to->limiter_after,
                            &to->verdict,
                            &to->reason,
                            &to->baseline};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_strdup(arena, *texts[i] ? *texts[i] : "");
}

/* ---- collecting ---- */

struct chosen {
    struct lesson lesson;
    double near;
    int64_t order;
};

struct shelf { /* the nearest, and of equally near ones the latest */
    struct chosen items[MEMORY_IDEAS_MAX / 2];
    size_t count;
};

struct group { /* points of one source at one place, the fastest first */
    size_t source;
    double near;
    int64_t order; /* of its latest */
    struct lesson points[GROUP_POINTS];
    size_t count;
};

struct collection {
    const struct lesson_place *here;
    const char *const *sources;
    size_t source_count;
    struct arena *arena;
    struct lesson_memory *memory;
    struct shelf wins, others;
    struct group *groups;
    size_t group_count;
    int64_t order;
    struct lesson kernels[MEMORY_KERNELS_MAX];
    size_t kernel_count;
};

static void put_on_shelf(struct collection *all, struct shelf *shelf, const struct lesson *lesson)
{
    double near = lesson_nearness(all->here, &lesson->place);
    size_t most = sizeof shelf->items / sizeof shelf->items[0], at = shelf->count;
    if (at == most) {
        for (size_t i = at = 0; i < most; i++)
            if (shelf->items[i].near < shelf->items[at].near ||
                (shelf->items[i].near <= shelf->items[at].near &&
                 shelf->items[i].order < shelf->items[at].order))
                at = i;
        if (shelf->items[at].near > near)
            return;
    } else {
        shelf->count++;
    }
    lesson_copy(all->arena, lesson, &shelf->items[at].lesson);
    shelf->items[at].near = near;
    shelf->items[at].order = all->order;
}

static struct group *group_of(struct collection *all, size_t source, const struct lesson *lesson)
{
    for (size_t i = 0; i < all->group_count; i++)
        if (all->groups[i].source == source &&
            lesson_same_place(&all->groups[i].points[0].place, &lesson->place))
            return &all->groups[i];
    if (all->group_count == GROUPS_MAX)
        return NULL;
    struct group *group = &all->groups[all->group_count++];
    *group = (struct group){.source = source, .near = lesson_nearness(all->here, &lesson->place)};
    return group;
}

/* One point is in once, with what was measured last. */
static void put_in_group(struct collection *all, struct group *group, const struct lesson *lesson)
{
    size_t at = 0;
    group->order = all->order;
    while (at < group->count && !is(group->points[at].tune, lesson->tune))
        at++;
    if (at < group->count) {
        memmove(&group->points[at], &group->points[at + 1],
                (--group->count - at) * sizeof group->points[0]);
    } else if (group->count == GROUP_POINTS) {
        if (group->points[GROUP_POINTS - 1].time_ns <= lesson->time_ns)
            return;
        group->count--;
    }
    for (at = group->count; at > 0 && group->points[at - 1].time_ns > lesson->time_ns; at--)
        group->points[at] = group->points[at - 1];
    lesson_copy(all->arena, lesson, &group->points[at]);
    group->count++;
}

/* By the lower end, as parents are chosen. The number of cores may differ: it is measured again. */
static bool is_kept_here(const struct collection *all, const struct lesson *lesson)
{
    const struct lesson_place *here = all->here, *there = &lesson->place;
    bool same = lesson_same_problem(here, there) && is(here->shape, there->shape) &&
                is(here->dtype, there->dtype) && is(here->device, there->device);
    if (!same || !is(lesson->verdict, "kernel") || *lesson->source == '\0' ||
        lesson->speedup_low <= 0)
        return false;
    for (size_t i = 0; i < all->source_count; i++)
        if (is(all->sources[i], lesson->source))
            return false;
    return true;
}

static bool better_kernel(const struct lesson *one, const struct lesson *other)
{
    if (one->speedup_low != other->speedup_low)
        return one->speedup_low > other->speedup_low;
    return strcmp(one->id, other->id) < 0;
}

/* Each source once, with its best numbers. */
static void put_kernel(struct collection *all, const struct lesson *lesson)
{
    struct lesson *items = all->kernels;
    size_t at = 0;
    while (at < all->kernel_count && !is(items[at].source, lesson->source))
        at++;
    if (at < all->kernel_count && !better_kernel(lesson, &items[at]))
        return;
    if (at == all->kernel_count && at == MEMORY_KERNELS_MAX && !better_kernel(lesson, &items[--at]))
        return;
    if (at == all->kernel_count)
        all->kernel_count++;
    for (; at > 0 && better_kernel(lesson, &items[at - 1]); at--)
        items[at] = items[at - 1];
    lesson_copy(all->arena, lesson, &items[at]);
}

static void count(struct collection *all, const struct lesson *lesson)
{
    for (size_t i = 0; i < MEMORY_CATEGORIES; i++) {
        struct lesson_tally *tally = &all->memory->tallies[i];
        if (!is(tally->category, lesson->category))
            continue;
        tally->tried++;
        tally->right += is(lesson->verdict, "kernel");
        tally->won += lesson_is_win(lesson);
        if (lesson_is_win(lesson) && lesson->change_low > tally->best)
            tally->best = lesson->change_low;
    }
}

static bool take(void *context, const struct lesson *lesson)
{
    struct collection *all = context;
    all->order++;
    all->memory->lessons++;
    if (!lesson->point) {
        put_on_shelf(all, lesson_is_win(lesson) ? &all->wins : &all->others, lesson);
        count(all, lesson);
    }
    if (is_kept_here(all, lesson))
        put_kernel(all, lesson);
    for (size_t i = 0; i < all->source_count && is(lesson->verdict, "kernel"); i++) {
        struct group *group = is(all->sources[i], lesson->source) ? group_of(all, i, lesson) : NULL;
        if (group)
            put_in_group(all, group, lesson);
    }
    return true;
}

static int nearest_first(const void *left, const void *right)
{
    const struct chosen *a = left, *b = right;
    if (a->near != b->near)
        return a->near > b->near ? -1 : 1;
    return a->order > b->order ? -1 : a->order < b->order;
}

static void keep_ideas(struct collection *all)
{
    size_t most = all->wins.count + all->others.count;
    struct chosen *items = mem_array(most + 1, sizeof *items);
    memcpy(items, all->wins.items, all->wins.count * sizeof *items);
    memcpy(items + all->wins.count, all->others.items, all->others.count * sizeof *items);
    qsort(items, most, sizeof *items, nearest_first);
    all->memory->ideas = arena_array(all->arena, most + 1, sizeof *all->memory->ideas);
    for (size_t i = 0; i < most; i++)
        all->memory->ideas[i] = items[i].lesson;
    all->memory->idea_count = most;
    mem_free(items);
}

static int nearer_group(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->near != b->near)
        return a->near > b->near ? -1 : 1;
    return a->order > b->order ? -1 : a->order < b->order;
}

/* Across sources and places what compares is the speed-up over the baseline. */
static int faster_point(const void *left, const void *right)
{
    const struct lesson *a = left, *b = right;
    if (a->speedup != b->speedup)
        return a->speedup > b->speedup ? -1 : 1;
    return strcmp(a->id, b->id);
}

static void keep_points(struct collection *all)
{
    struct lesson_memory *memory = all->memory;
    qsort(all->groups, all->group_count, sizeof *all->groups, nearer_group);
    memory->points =
        arena_array(all->arena, all->source_count * MEMORY_POINTS_MAX + 1, sizeof *memory->points);
    size_t place = 0;
    for (size_t i = 0; i < all->group_count; i++) {
        const struct group *group = &all->groups[i];
        place = i > 0 && group->source == group[-1].source ? place + 1 : 0;
        size_t most = place == 0 ? GROUP_POINTS : place == 1 ? NEXT_POINTS : 0;
        for (size_t k = 0; k < group->count && k < most; k++)
            memory->points[memory->point_count++] = group->points[k];
    }
    qsort(memory->points, memory->point_count, sizeof *memory->points, faster_point);
}

static void keep_kernels(struct collection *all)
{
    struct lesson_memory *memory = all->memory;
    memory->kernels = arena_array(all->arena, MEMORY_KERNELS_MAX, sizeof *memory->kernels);
    memcpy(memory->kernels, all->kernels, all->kernel_count * sizeof *memory->kernels);
    memory->kernel_count = all->kernel_count;
}

static void empty_tallies(struct lesson_memory *memory)
{
    for (size_t i = 0; i < MEMORY_CATEGORIES; i++)
        memory->tallies[i] = (struct lesson_tally){.category = idea_categories[i]};
}

int lesson_memory_collect(struct store *store, const struct lesson_place *here,
                          const char *const *sources, size_t source_count, struct arena *arena,
                          struct lesson_memory *memory, struct err *err)
{
    struct collection *all = MEM_NEW(struct collection);
    *memory = (struct lesson_memory){0};
    empty_tallies(memory);
    all->here = here;
    all->sources = sources;
    all->source_count = source_count;
    all->arena = arena;
    all->memory = memory;
    all->groups = mem_array(GROUPS_MAX, sizeof *all->groups);
    int failed =
        lesson_scan(store, lesson_prefix(arena, here->family, here->backend), take, all, err);
    if (!failed) {
        keep_ideas(all);
        keep_points(all);
        keep_kernels(all);
    }
    mem_free(all->groups);
    mem_free(all);
    return failed;
}

/* ---- kept with the run ---- */

static void put_lessons(struct json *json, const char *key, const struct lesson *items,
                        size_t count_of)
{
    BUF_LOCAL(one, 1 << 16);
    json_put_array(json, key);
    for (size_t i = 0; i < count_of; i++) {
        buf_reset(&one);
        lesson_encode(&items[i], &one);
        json_raw(json, buf_text(&one));
    }
    json_array_end(json);
}

void lesson_memory_encode(const struct lesson_memory *memory, struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_int(&json, "lessons", memory->lessons);
    put_lessons(&json, "ideas", memory->ideas, memory->idea_count);
    put_lessons(&json, "points", memory->points, memory->point_count);
    put_lessons(&json, "kernels", memory->kernels, memory->kernel_count);
    json_put_array(&json, "tallies");
    for (size_t i = 0; i < MEMORY_CATEGORIES && memory->tallies[i].category; i++) {
        const struct lesson_tally *tally = &memory->tallies[i];
        json_object(&json);
        json_put_text(&json, "category", tally->category);
        json_put_int(&json, "tried", tally->tried);
        json_put_int(&json, "right", tally->right);
        json_put_int(&json, "won", tally->won);
        json_put_real(&json, "best", tally->best);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
}

static int get_lessons(struct arena *arena, const struct value *list, struct lesson **items,
                       size_t *count_of, struct err *err)
{
    size_t most = list ? list->count : 0;
    *items = arena_array(arena, most + 1, sizeof **items);
    for (*count_of = 0; *count_of < most; (*count_of)++) {
        const char *text = value_json(list->items[*count_of], arena);
        if (lesson_decode(arena, text, strlen(text), &(*items)[*count_of], err))
            return -1;
    }
    return 0;
}

int lesson_memory_decode(struct arena *arena, const char *text, size_t length,
                         struct lesson_memory *memory, struct err *err)
{
    struct value *root;
    *memory = (struct lesson_memory){0};
    empty_tallies(memory);
    if (value_parse_json(arena, "lessons of the run", text, length, &root, err) ||
        get_lessons(arena, value_get(root, "ideas"), &memory->ideas, &memory->idea_count, err) ||
        get_lessons(arena, value_get(root, "points"), &memory->points, &memory->point_count, err) ||
        get_lessons(arena, value_get(root, "kernels"), &memory->kernels, &memory->kernel_count,
                    err))
        return -1;
    memory->lessons = value_int(root, "lessons", 0);
    const struct value *tallies = value_get(root, "tallies");
    for (size_t i = 0; tallies && i < tallies->count && i < MEMORY_CATEGORIES; i++) {
        const struct value *item = tallies->items[i];
        struct lesson_tally *tally = &memory->tallies[i];
        tally->tried = value_int(item, "tried", 0);
        tally->right = value_int(item, "right", 0);
        tally->won = value_int(item, "won", 0);
        tally->best = value_real(item, "best", 0);
    }
    return 0;
}
