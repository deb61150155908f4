/* eval/reference/python_private: the Python child as python.c and torch.c share
 * it. Worker's measuring thread. */
#pragma once

#include "base/json.h"
#include "base/value.h"
#include "eval/reference/private.h"
#include "process/python_child.h"
#include "process/python_probe.h"

struct python_subject {
    struct subject subject;
    struct python *python;
    const char *baseline; /* "compile", or NULL: the reference itself */
};

struct python {
    struct reference reference;
    struct python_subject eager, compiled;
    const struct problem *problem;
    const struct lane_facts *lane;
    const struct region *region;
    struct arena *arena;
    char *self, *script; /* this program; libexec/reference.py */
    struct interpreter interpreter;
    const char *extra[40]; /* arguments of the sandbox besides; in the arena */
    size_t extra_count;
    uint64_t start_timeout_ms; /* opening, and getting ready for a timed call */
    bool opening, sent_exact;  /* asked to open, and not heard yet; what was asked for last */
    uint64_t opening_ns;
    size_t threads; /* of a process beside the first: those of its BLAS; 0: one a core */
    /* Once after each start, when it has opened; NULL: nothing more to do */
    int (*opened)(struct python *python, struct err *err);
    /* More members of the request that opens; NULL: a numpy function */
    void (*open_more)(struct python *python, struct json *json);
    struct child child;
    int results; /* memfd: descriptor 4 of the child; sealed: it can make it no smaller */
    unsigned char *mapped;
    size_t mapped_bytes;
    struct buf request;
    const struct torch_device *device; /* of PyTorch; NULL: the CPU */
    const char *folder;
    const char *const *env;             /* that of its device; NULL: the usual one */
    unsigned char *initial[INPUTS_MAX]; /* of PyTorch: a parameter's initial values, or NULL */
    const struct layout *warms; /* it is opened when "compile" is ready for this; NULL: at once */
};

static inline struct python *python_of(struct reference *reference)
{
    return (struct python *)(void *)reference;
}

/* Without a child yet. `script` is below the program's data. */
struct python *python_new(const struct problem *problem, const struct lane_facts *lane,
                          const struct region *region, struct arena *arena,
                          const struct reference_ops *ops, const char *script);
int python_usable(const struct python *python, const char *script, struct err *err) MUST_USE;
void python_close(struct reference *reference);

int python_start(struct python *python, struct err *err) MUST_USE; /* told to open */
int python_ensure(struct python *python,
                  struct err *err) MUST_USE; /* the child runs, and is open */
bool python_pending(const struct reference *reference);
int python_ready(struct reference *reference, struct err *err) MUST_USE;
/* A request is begun, its members are added, the object is ended, and it is asked; the answer is in
 * `arena`. The message of {"error": ...} is the user's. */
void python_begin(struct python *python, struct json *json, const char *op);
int python_tell(struct python *python, struct err *err) MUST_USE;
int python_hear(struct python *python, uint64_t timeout_ms, struct arena *arena,
                const struct value **answer, struct err *err) MUST_USE;
const char *python_double_steps(struct reference *reference, bool rounded, struct arena *arena);
int python_ask(struct python *python, uint64_t timeout_ms, struct arena *arena,
               const struct value **answer, struct err *err) MUST_USE;
int python_make_room(struct python *python, size_t bytes, struct err *err) MUST_USE;
/* One of a request's tensors: where in the region or the results; `name`: or NULL. */
void python_put_place(struct json *json, const char *name, size_t offset, size_t rank,
                      const int64_t *extents);
/* Operations of both kinds, of the definition and of another way to compute it. */
int python_compute(struct reference *reference, const struct layout *layout,
                   const struct call *call, enum reference_precision precision, void **out,
                   struct err *err) MUST_USE;
int python_compute_baseline(struct reference *reference, const char *name,
                            const struct layout *layout, const struct call *call, void **out,
                            struct err *err) MUST_USE;
