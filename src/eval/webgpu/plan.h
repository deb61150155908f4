/* eval/webgpu/plan: what a candidate runs, as plain numbers, made by the worker and read by the
 * runner in its control page: what is bound and set once for a program, how many workgroups each
 * pass has for one shape. Any thread. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/webgpu/source.h"

enum { PLAN_ENTRY_MAX = 128 };
enum plan_kind { PLAN_INPUT, PLAN_OUTPUT, PLAN_DIMS }; /* outputs, and workspaces after them */

struct plan_binding {
    uint32_t binding, kind;
    uint32_t tensor; /* of the call's offsets */
};
struct plan_constant {
    char name[WGSL_NAME_MOST];
    double number;
};
struct plan_pass {
    char entry[PLAN_ENTRY_MAX];
    uint32_t groups[3];
};

struct plan {
    uint32_t binding_count, constant_count, pass_count;
    uint32_t f16, subgroups; /* features it asks for */
    uint32_t measures_arrays;
    struct plan_binding bindings[WGSL_BINDINGS_MOST];
    struct plan_constant constants[WGSL_OVERRIDES_MOST];
    struct plan_pass passes[LAUNCHES_MAX];
    uint64_t tensor_bytes[CALL_POINTERS_MAX]; /* of the call's tensors */
};

/* What holds for every shape. ERR_LIMIT, the candidate's own fault: a binding whose name is no
 * tensor's, or that writes to an input. */
int plan_program(const struct program *program, struct plan *plan, struct err *err) MUST_USE;
/* The passes for the dims of `call`. ERR_LIMIT, naming the entry. */
int plan_call(const struct program *program, const struct names *facts, const struct call *call,
              struct plan *plan, struct err *err) MUST_USE;
