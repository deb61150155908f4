/* eval/emit/limits: up to which size a kernel was checked. */
#include "eval/emit/emit.h"

/* The shape that its record says, or else the one that it was timed at. */
void emit_limits(struct emission *e)
{
    const struct problem *problem = e->problem;
    const struct value *reached = value_get(value_get(e->evaluation, "metrics"), "checked_up_to");
    struct err ignored;
    for (size_t i = 0; i < problem->dim_count; i++) {
        const char *dim = problem->dims[i].name;
        (void)!names_set(&e->checked_up_to, dim,
                         value_int(reached, dim, problem->shapes[0].number[i]),
                         &ignored); /* dims are fewer than names hold */
    }
}

const char *emit_limits_words(const struct emission *e)
{
    const char *text = "";
    for (size_t i = 0; i < e->checked_up_to.count; i++)
        text = arena_printf(e->arena, "%s%s%s=%lld", text, i > 0 ? ", " : "",
                            e->checked_up_to.name[i], (long long)e->checked_up_to.number[i]);
    return text;
}
