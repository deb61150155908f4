/* eval/emit: a kernel as a folder that works without twagent: C, numpy, PyTorch. What a backend's
 * emitter is, and what emitters have in common. What runs there is libexec/emit, copied; what
 * differs from kernel to kernel is its source and plan.json. Main thread; writes files; blocks. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/value.h"
#include "eval/candidate/candidate.h"

struct emission { /* one kernel on its way out; borrowed by every part */
    struct arena *arena;
    const char *folder; /* absolute; there already, and ours */
    const char *id;     /* the candidate's */
    const char *title;  /* "matmul, r3-c17: 1.97x eager (95 %: 1.93 to 2.01), verified: faster, 1 us
                           on ..." */
    struct problem *problem;
    struct candidate *candidate; /* with its front matter read */
    struct names tune;
    const struct value *evaluation; /* its last record; NULL: none */
    struct names checked_up_to; /* a shape; what is larger in a dim is not the kernel's. Empty: all
                                   is */
};

/* Fills checked_up_to from the record, or else with the shape that the kernel was timed at. */
void emit_limits(struct emission *emission);
const char *emit_limits_words(const struct emission *emission); /* "M=512, N=512" */

struct emitter {              /* what a backend's kernels become */
    const char *const *forms; /* values of --to; NULL-terminated, the first is the default */
    /* *note: a line about what is not as usual, or left as it is. */
    int (*emit)(const struct emission *emission, const char *form, const char **note,
                struct err *err);
    const char *python; /* the form that Python loads; NULL: there is none */
};

/* "dims": name, what it follows from (as `put` writes an expression; NULL: null), main shape's. */
typedef void emit_expr(const struct emission *emission, struct json *json, const struct expr *expr);
void emit_put_dims(const struct emission *emission, struct json *json, emit_expr *put);
/* `key`: name, dtype, shape, range; `ranged`: of one without bounds it is -1 to 1, else left out.
 */
void emit_put_tensors(const struct emission *emission, struct json *json, const char *key,
                      const struct tensor_spec *tensors, size_t count, emit_expr *put, bool ranged);

/* checked_up_to as an object; null: no limits. */
void emit_put_limits(const struct emission *emission, struct json *json, const char *key);

/* plan.json: tensors, dims, shapes, tune numbers, launches; expressions as Python reads them. */
int emit_plan(const struct emission *emission, struct err *err) MUST_USE;

/* ---- files ---- */

int emit_write(const struct emission *emission, const char *name, const struct buf *text,
               struct err *err) MUST_USE;
/* libexec/emit/FROM as NAME. */
int emit_copy(const struct emission *emission, const char *from, const char *name,
              struct err *err) MUST_USE;
/* Any file as NAME. */
int emit_copy_file(const struct emission *emission, const char *path, const char *name,
                   struct err *err) MUST_USE;
