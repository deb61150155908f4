/* eval/problem/torch: a Python file with `Model`, `get_inputs` and `get_init_inputs`, as
 * KernelBench has them, as a problem. A sandboxed child with the user's PyTorch describes it
 * (libexec/torch_problem.py and its siblings); the description is remembered in
 * $XDG_CACHE_HOME/twagent or
 * ~/.cache/twagent by what it followed from. Nothing is written beside the file. Blocks. */
#pragma once

#include "eval/problem/problem.h"
#include "process/python_probe.h"

struct value;

/* What a draw of an input's values has to keep. */
enum torch_structure {
    STRUCTURE_FREE,
    STRUCTURE_WHOLE,     /* labels, masks: whole numbers */
    STRUCTURE_UPPER,     /* triangular in the last two axes */
    STRUCTURE_LOWER,     /* the same, below the diagonal */
    STRUCTURE_SYMMETRIC, /* in the last two axes */
    STRUCTURE_GIVEN,     /* a table of the module's own: never other values */
    STRUCTURE_OWN,       /* only what get_inputs makes: pointers, a positive definite matrix */
    STRUCTURE_MASK,      /* infinities are where get_inputs has them */
    STRUCTURES
};

struct problem_torch {
    struct interpreter python;
    const char *binding; /* JSON for the child: how inputs become arguments and parameters again */
    const struct value *shipped; /* the problem that computes the same (shipped.h), or NULL */
    const char *notes; /* what a person should know: constants, ranges, what varies; or "" */
    struct torch_input {
        enum torch_structure structure;
        bool initial; /* a parameter or buffer: the module has initial values of it */
    } inputs[INPUTS_MAX];
};

/* problem_load() with the interpreter named; NULL: $TWAGENT_PYTHON, or else the first of
 * $VIRTUAL_ENV, PATH and /usr/bin that imports torch. */
int problem_load_with(const char *path, const char *python, struct problem **problem,
                      struct err *err) MUST_USE;

/* Fills a problem whose arena is set. `path` is absolute. Inside src/eval/problem. */
int problem_read_torch(struct problem *problem, const char *path, const char *python,
                       struct err *err) MUST_USE;

/* What the child says of a file, JSON as libexec/reference_torch.py has it, as the problem. For
 * tests, besides. */
int problem_take_torch(struct problem *problem, const char *path, const char *answer, size_t length,
                       struct err *err) MUST_USE;
