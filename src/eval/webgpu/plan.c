#include "eval/webgpu/plan.h"

#include <string.h>

static const char dims_name[] = "dims";

/* ---- the program ---- */

static int bind(const struct program *program, const struct wgsl_binding *from,
                struct plan_binding *into, struct err *err)
{
    size_t tensor = 0;
    bool found =
        candidate_find_tensor(program->problem, program->candidate, from->name, &tensor) != NULL;
    bool dims = from->uniform && strcmp(from->name, dims_name) == 0, input = false;
    if (from->group != 0)
        return err_set(err, ERR_LIMIT, "line %d: expected @group(0) for %s", from->line,
                       from->name);
    if (!dims && (!found || from->uniform))
        return err_set(err, ERR_LIMIT,
                       "line %d: %s is %s: a binding has the name of a tensor or a workspace "
                       "(var<storage>), or is var<uniform> dims",
                       from->line, from->name, found ? "a uniform" : "no tensor");
    if (!dims)
        input = tensor < program->problem->input_count;
    if (input && from->writes)
        return err_set(err, ERR_LIMIT, "line %d: expected var<storage, read> for the input %s",
                       from->line, from->name);
    *into = (struct plan_binding){.binding = from->binding,
                                  .kind = dims    ? PLAN_DIMS
                                          : input ? PLAN_INPUT
                                                  : PLAN_OUTPUT,
                                  .tensor = dims ? 0 : (uint32_t)tensor};
    return 0;
}

/* An override that has a tune parameter's or a dim's name is set to it; others keep their own. A
 * dim's is the shape's at hand, so that it would have to be set anew for each call: not done. */
static void set_constants(const struct program *program, const struct wgsl_source *source,
                          struct plan *plan)
{
    const struct names *tune = program->tune;
    for (size_t i = 0; i < source->override_count; i++)
        for (size_t k = 0; tune != NULL && k < tune->count; k++)
            if (strcmp(tune->name[k], source->overrides[i]) == 0) {
                struct plan_constant *constant = &plan->constants[plan->constant_count++];
                strcpy(constant->name, source->overrides[i]);
                constant->number = (double)tune->number[k];
            }
}

int plan_program(const struct program *program, struct plan *plan, struct err *err)
{
    struct wgsl_source source;
    const struct candidate *candidate = program->candidate;
    *plan = (struct plan){0};
    if (wgsl_read(candidate->source, candidate->length, &source, err) != 0)
        return -1;
    for (size_t i = 0; i < source.binding_count; i++)
        if (bind(program, &source.bindings[i], &plan->bindings[plan->binding_count++], err) != 0)
            return -1;
    set_constants(program, &source, plan);
    plan->f16 = source.f16 || wgsl_requires(candidate, "shader-f16");
    plan->subgroups = source.subgroups || wgsl_requires(candidate, "subgroups");
    plan->measures_arrays = source.measures_arrays;
    plan->pass_count = (uint32_t)candidate->launch_count;
    for (size_t i = 0; i < candidate->launch_count; i++) {
        if (strlen(candidate->launches[i].entry) >= PLAN_ENTRY_MAX)
            return err_set(err, ERR_LIMIT, "an entry's name has at most %d bytes",
                           PLAN_ENTRY_MAX - 1);
        strcpy(plan->passes[i].entry, candidate->launches[i].entry);
    }
    return 0;
}

/* ---- the call ---- */

static int make_scope(const struct program *program, const struct names *facts,
                      const struct call *call, struct names *scope, struct err *err)
{
    const struct names *more[] = {program->tune, facts};
    if (call->dim_count > program->problem->dim_count)
        return err_set(err, ERR_PROTOCOL, "the call has more dims than the problem");
    for (uint32_t i = 0; i < call->dim_count; i++)
        if (names_set(scope, program->problem->dims[i].name, call->dims[i], err) != 0)
            return -1;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; more[k] != NULL && i < more[k]->count; i++)
            if (names_set(scope, more[k]->name[i], more[k]->number[i], err) != 0)
                return -1;
    return 0;
}

static int size_tensors(const struct program *program, struct names *scope, struct plan *plan,
                        struct err *err)
{
    const struct tensor_spec *spec;
    for (size_t i = 0; (spec = candidate_tensor(program->problem, program->candidate, i)); i++) {
        int64_t extents[RANK_MAX];
        size_t elements;
        if (tensor_extents(spec, scope, extents, &elements, err) != 0)
            return err_wrap(err, "%s", spec->name);
        plan->tensor_bytes[i] = elements * dtype_bytes(spec->dtype);
    }
    return 0;
}

int plan_call(const struct program *program, const struct names *facts, const struct call *call,
              struct plan *plan, struct err *err)
{
    const struct candidate *candidate = program->candidate;
    struct names scope = {0};
    int64_t most = 65535;
    if (make_scope(program, facts, call, &scope, err) != 0)
        return -1;
    (void)expr_lookup_names(&scope, "max_workgroups", &most);
    if (size_tensors(program, &scope, plan, err) != 0)
        return -1;
    for (size_t i = 0; i < candidate->launch_count; i++) {
        const struct launch *launch = &candidate->launches[i];
        for (int k = 0; k < 3; k++) {
            int64_t number = 1;
            if (launch->grid[k] != NULL &&
                expr_eval(launch->grid[k], expr_lookup_names, &scope, &number, err) != 0) {
                err->code = ERR_LIMIT;
                return err_wrap(err, "%s: grid", launch->entry);
            }
            if (number < 1 || number > most)
                return err_set(err, ERR_LIMIT, "%s: grid is %lld, expected 1 to %lld",
                               launch->entry, (long long)number, (long long)most);
            plan->passes[i].groups[k] = (uint32_t)number;
        }
    }
    return 0;
}
