/* eval/emit/limits: up to which size a kernel was checked. */
#include "eval/emit/emit.h"

static int64_t largest_listed(const struct problem *problem, const char *dim)
{
    int64_t most = 0, number;
    for (size_t i = 0; i < problem->shape_count; i++) {
        struct names shape = problem->shapes[i];
        if (expr_lookup_names(&shape, dim, &number) && number > most)
            most = number;
    }
    return most;
}

/* Its record says it; of a dim of which it does not, the shapes that every kernel is checked at. */
void emit_limits(struct emission *e)
{
    const struct problem *problem = e->problem;
    const struct value *reached = value_get(value_get(e->evaluation, "metrics"), "checked_up_to");
    struct err ignored;
    for (size_t i = 0; i < problem->dim_count; i++) {
        const char *dim = problem->dims[i].name;
        int64_t most = value_int(reached, dim, 0);
        (void)!names_set(&e->checked_up_to, dim, most > 0 ? most : largest_listed(problem, dim),
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
