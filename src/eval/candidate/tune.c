/* The tune space as a mixed-radix number line: the last parameter turns fastest. */
#include "eval/candidate/candidate.h"

#include "base/value.h"

#include <assert.h>
#include <string.h>

uint64_t tune_points(const struct candidate *candidate)
{
    uint64_t points = 1;
    for (size_t i = 0; i < candidate->tune_count; i++)
        points *= candidate->tune[i].count;
    return points;
}

void tune_at(const struct candidate *candidate, uint64_t index, struct names *tune)
{
    assert(index < tune_points(candidate));
    *tune = (struct names){.count = candidate->tune_count};
    for (size_t i = candidate->tune_count; i-- > 0;) {
        const struct tune_parameter *parameter = &candidate->tune[i];
        tune->name[i] = parameter->name;
        tune->number[i] = parameter->values[index % parameter->count];
        index /= parameter->count;
    }
}

/* The number of a parameter at a point; the first value where the point does not say. */
static int64_t value_of(const struct tune_parameter *parameter, const struct names *tune)
{
    for (size_t i = 0; tune != NULL && i < tune->count; i++)
        if (strcmp(tune->name[i], parameter->name) == 0)
            return tune->number[i];
    return parameter->values[0];
}

uint64_t tune_index(const struct candidate *candidate, const struct names *tune)
{
    uint64_t index = 0;
    for (size_t i = 0; i < candidate->tune_count; i++) {
        const struct tune_parameter *parameter = &candidate->tune[i];
        int64_t number = value_of(parameter, tune);
        size_t digit = 0;
        while (digit < parameter->count && parameter->values[digit] != number)
            digit++;
        if (digit == parameter->count)
            return UINT64_MAX;
        index = index * parameter->count + digit;
    }
    return index;
}

struct scope {
    const struct names *names[3];
};

static bool look_up(void *context, const char *name, int64_t *number)
{
    const struct scope *scope = (const struct scope *)context;
    for (size_t i = 0; i < 3; i++)
        if (scope->names[i] != NULL &&
            expr_lookup_names((void *)(uintptr_t)scope->names[i], name, number))
            return true;
    return false;
}

bool tune_valid(const struct candidate *candidate, const struct names *dims,
                const struct names *facts, const struct names *tune)
{
    struct scope scope = {{tune, dims, facts}};
    int64_t truth;
    if (candidate->where == NULL)
        return true;
    return expr_eval(candidate->where, look_up, &scope, &truth, NULL) == 0 && truth != 0;
}

/* Every number that is given must be a parameter of the candidate. */
int tune_given(const struct candidate *candidate, const struct value *given,
               const struct names *dims, const struct names *facts, struct names *tune,
               struct err *err)
{
    tune_at(candidate, 0, tune);
    for (size_t i = 0; given != NULL && i < given->count; i++) {
        bool known = false;
        for (size_t k = 0; k < candidate->tune_count; k++)
            known = known || strcmp(candidate->tune[k].name, given->keys[i]) == 0;
        if (!known || given->items[i]->kind != VALUE_INT)
            return err_set(err, ERR_USAGE, "tune: %s is %s", given->keys[i],
                           known ? "not a whole number" : "no parameter of this candidate");
        if (names_set(tune, given->keys[i], given->items[i]->integer, err) != 0)
            return -1;
    }
    if (!tune_valid(candidate, dims, facts, tune))
        return err_set(err, ERR_USAGE, "tune: the candidate's `where` refuses this point");
    return 0;
}

/* The numbers in the candidate's own order, so that the order of `tune` says nothing. */
struct hash candidate_identity(const struct candidate *candidate, const struct names *tune)
{
    int64_t numbers[TUNE_MAX];
    for (size_t i = 0; i < candidate->tune_count; i++)
        numbers[i] = value_of(&candidate->tune[i], tune);
    if (candidate->tune_count == 0)
        return candidate->hash;
    return hash_combine(candidate->hash,
                        hash_bytes(numbers, candidate->tune_count * sizeof numbers[0]));
}
