#include "agents/proposer/arm.h"

#include "base/mem.h"

#include <string.h>

enum { ENUMERATE_MAX = 1 << 16 }; /* spaces up to this are listed whole, larger ones are sampled */

void arm_names(const struct proposer_space *space, const struct tune_point *point,
               struct names *names)
{
    names->count = space->parameter_count;
    for (size_t j = 0; j < space->parameter_count; j++) {
        names->name[j] = space->parameters[j].name;
        names->number[j] = space->parameters[j].values[point->at[j]];
    }
}

bool arm_point(const struct arm *arm, const struct names *names, struct tune_point *point)
{
    const struct proposer_space *space = arm->space;
    *point = (struct tune_point){.space = arm->number};
    for (size_t j = 0; j < space->parameter_count; j++) {
        int64_t number;
        size_t i = 0;
        if (!expr_lookup_names((void *)names, space->parameters[j].name, &number))
            return false;
        while (i < space->parameters[j].count && space->parameters[j].values[i] != number)
            i++;
        if (i == space->parameters[j].count)
            return false;
        point->at[j] = (uint8_t)i;
    }
    return true;
}

bool arm_valid(const struct proposer_space *space, const struct tune_point *point)
{
    if (space->valid == NULL)
        return true;
    struct names names;
    arm_names(space, point, &names);
    return space->valid(space->context, &names);
}

static bool same(const struct tune_point *a, const struct tune_point *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct look *arm_find(const struct arm *arm, const struct tune_point *point)
{
    for (size_t i = 0; i < arm->look_count; i++)
        if (same(&arm->looks[i].point, point))
            return &arm->looks[i];
    return NULL;
}

struct look *arm_add(struct arm *arm, const struct tune_point *point)
{
    MEM_MORE(arm->looks, arm->look_count, arm->look_capacity);
    struct look *look = &arm->looks[arm->look_count++];
    *look = (struct look){.point = *point};
    return look;
}

void arm_list(struct arm *arm, struct random *random)
{
    const struct proposer_space *space = arm->space;
    double total = 1;
    for (size_t j = 0; j < space->parameter_count; j++)
        total *= (double)space->parameters[j].count;
    size_t tries = total <= ENUMERATE_MAX ? (size_t)total : ENUMERATE_MAX;
    arm->points = mem_array(tries, sizeof *arm->points);
    for (size_t i = 0; i < tries; i++) {
        struct tune_point point = {.space = arm->number};
        size_t rest = i;
        for (size_t j = 0; j < space->parameter_count; j++) {
            size_t count = space->parameters[j].count;
            if (total <= ENUMERATE_MAX) {
                point.at[j] = (uint8_t)(rest % count);
                rest /= count;
            } else {
                point.at[j] = (uint8_t)random_below(random, count);
            }
        }
        if (arm_valid(space, &point))
            arm->points[arm->point_count++] = point;
    }
}

const struct look *arm_best(const struct arm *arm)
{
    const struct look *best = NULL;
    for (size_t i = 0; i < arm->look_count; i++) {
        const struct look *look = &arm->looks[i];
        if (look->kernel && (best == NULL || look->log_time < best->log_time))
            best = look;
    }
    return best;
}

int arm_crowd(const struct arm *arm, const struct tune_point *point)
{
    int sum = 0, parameters = (int)arm->space->parameter_count;
    for (size_t i = 0; i < arm->look_count; i++) {
        int same = parameters - surrogate_steps(&arm->looks[i].point, point);
        sum += same * same;
    }
    return sum;
}
