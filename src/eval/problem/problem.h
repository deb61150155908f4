/* eval/problem: what to compute: tensors, dims, reference, tolerance, check shapes; from spec.yaml
 * or what else docs/problem-format.md has. Read-only once loaded. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/expr.h"
#include "eval/data/dtype.h"
#include "eval/problem/size.h"

/* A network's parameters are inputs; each of what it gives is computed and judged whole. */
enum { INPUTS_MAX = 1024, OUTPUTS_MAX = 16, RANK_MAX = 8, DIMS_MAX = 24, SHAPES_MAX = 32 };
enum { BASELINES_MAX = 8 };

struct tensor_spec {
    const char *name;
    enum dtype dtype;
    size_t rank;
    const struct expr *shape[RANK_MAX]; /* over the dims */
    const char *shape_text[RANK_MAX];
    double low, high; /* inputs are drawn inside [low, high]; low > high: no bounds */
};

struct dim_spec {
    const char *name;
    const struct expr *value; /* a number, or an expression over dims before it (derived) */
    const char *value_text;   /* as it is written */
    bool derived;
    int64_t hidden_low, hidden_high; /* for hidden shapes; 0, 0: as dims and check shapes have it */
};

struct baseline_spec {
    const char *name, *file; /* "openblas"; path of a C source, or NULL: PyTorch's, "compile" */
    const char *libraries;   /* "openblas": linked with -l, space-separated; or NULL */
    const char *env[8];      /* "OPENBLAS_CORETYPE=SkylakeX": NULL-terminated */
};

/* What is asked where an input is NaN or infinite: what the definition settles, the same wherever
 * it gives something that is not finite, or nothing. docs/inputs-and-tolerance.md */
enum non_finite { NON_FINITE_AS_DEFINED, NON_FINITE_PROPAGATE, NON_FINITE_IGNORE };

struct problem {
    struct arena *arena;
    const char *name, *family, *folder, *file, *description; /* folder, file: absolute */
    size_t dim_count, input_count, output_count, baseline_count, shape_count;
    struct dim_spec dims[DIMS_MAX];
    struct tensor_spec inputs[INPUTS_MAX], outputs[OUTPUTS_MAX];
    enum reference_kind { REFERENCE_PYTHON, REFERENCE_C, REFERENCE_TORCH } reference_kind;
    const struct problem_torch *torch; /* of REFERENCE_TORCH: torch.h; else NULL */
    struct shipped *shipped;           /* shipped.h: found when first asked for; NULL: never */
    const char *reference_file, *reference_function;
    struct baseline_spec baselines[BASELINES_MAX];
    const char *baseline; /* default for speed-ups: "reference" or a name above */
    const struct expr *flops, *bytes, *reduction; /* NULL: unknown, tensors once, estimated */
    bool normwise,
        tolerance_fixed; /* else the tolerance is derived: docs/inputs-and-tolerance.md */
    double rtol, atol;
    enum non_finite non_finite; /* `non_finite` */
    bool strict;                /* `precision: strict`: bounds close to an honest sum's error */
    const char *precision;      /* lowest precision that the spec allows: "float32", "tf32", ... */
    const struct expr *where;   /* which dims are valid; NULL: all positive */
    struct problem_sizes sizes;
    struct names shapes[SHAPES_MAX]; /* check shapes: all dims, derived ones too; [0] is `dims` */
};

/* `path`: a folder, a spec file, a shipped problem's name, or a Python file with a PyTorch Model
 * (torch.h); a size behind an '@'. Errors: ERR_USAGE "file:line: ..." */
int problem_load(const char *path, struct problem **problem, struct err *err) MUST_USE;
void problem_free(struct problem *problem); /* NULL is fine */
/* What a person calls the baseline "reference": "numpy", "heat.c"; "" of a PyTorch module, which is
 * eager or compile. */
const char *problem_definition(const struct problem *problem);

/* Numbers for all dims from those `given` (others default), derived ones computed; ERR_USAGE where
 * `where` refuses them. Tensor extents for such numbers: */
int problem_dims(const struct problem *problem, const struct names *given, struct names *dims,
                 struct err *err) MUST_USE;
int tensor_extents(const struct tensor_spec *tensor, const struct names *dims,
                   int64_t extents[RANK_MAX], size_t *elements, struct err *err) MUST_USE;
int problem_work(const struct problem *problem, const struct names *dims, double *flops,
                 double *bytes, struct err *err) MUST_USE; /* the floor's ingredients */
/* Operations a second of the fastest unit that the problem's precision allows: matrix units are for
 * narrower types, or for float32 where the spec says that tf32 will do. 0: not known. */
struct unit_rates {
    double flops, tf32, bf16, fp16;
};
double problem_rate(const struct problem *problem, const struct unit_rates *rates);
/* Longest sum behind one element of an output: the spec's, or estimated. */
size_t problem_reduction(const struct problem *problem, const struct names *dims);
/* Of its terms those that may be products' sums: an operation that keeps its shape may sum rows,
 * and what it does to each element tells how little of that is products. 0: not known, no `flops`.
 */
size_t problem_products(const struct problem *problem, const struct names *dims);

/* Dims that are the same at every shape, hidden ones too: what a compile may know of them. */
void problem_fixed(const struct problem *problem, struct names *fixed);
/* A hidden shape: valid, mostly multiples of nothing, affordable to the reference. */
int problem_draw_dims(const struct problem *problem, uint64_t seed, struct names *dims,
                      struct err *err) MUST_USE;

/* Shapes beyond the largest listed one, the dims that are left small. Bits are dims: those that may
 * go beyond; then, of the `wanted` ones, as many at once as are affordable are gone beyond with and
 * taken off. False: none of them. */
uint64_t problem_sizes_beyond(const struct problem *problem);
bool problem_draw_beyond(const struct problem *problem, uint64_t seed, uint64_t *wanted,
                         struct names *dims);
/* Bits of the dims of which a smaller number makes no tensor smaller: groups, a stride. */
uint64_t problem_divisors(const struct problem *problem);
/* A shape of which each dim but those is at least as large as the main one's, mostly odd, at
 * `times` the main one's work and memory where that is much. A tensor of several dims has more
 * elements than 16 bits count; or, equal: all dims grow, to numbers that are alike, and divisors
 * shrink; both as far as that is affordable. Bits of `batches` are dims that may grow however small
 * they are. False: none, for want of a dim that may. */
bool problem_draw_large(const struct problem *problem, uint64_t seed, uint64_t batches,
                        double times, bool equal, struct names *dims);

/* Shapes for which kernels have ways of their own, about as large as the main one in all other
 * dims: all sizes multiples of a tile, and not the main ones; some a little less; one of them a
 * few; one of them 1, or the least that the spec takes. Sizes are the bits that
 * problem_form_sizes() has; FEW and ONE are of the dim `index`. False: there is none, or it is not
 * affordable. */
enum form { FORM_TILES, FORM_LESS, FORM_FEW, FORM_ONE };
uint64_t problem_form_sizes(const struct problem *problem, uint64_t batches);
bool problem_draw_form(const struct problem *problem, uint64_t seed, enum form form, size_t index,
                       uint64_t batches, double times, struct names *dims);

/* Absolute paths of the sources in starts/BACKEND, sorted, in the problem's arena: one thread. Read
 * them with shipped_read_start(): those of a problem without its own may be a shipped one's. */
size_t problem_starts(const struct problem *problem, const char *backend, const char **paths,
                      size_t most);
bool problem_has_dim(const struct problem *problem, const char *name);
/* What precision is asked of: the first output of a floating type, or the first where none is. */
const struct tensor_spec *problem_precise(const struct problem *problem);
/* Whether NaN and infinities are drawn for an input: floats without a range, unless the spec asks;
 * for any. */
bool problem_may_spoil(const struct problem *problem, size_t input);
bool problem_is_spoiled(const struct problem *problem);
bool problem_has_tensor(const struct problem *problem, const char *name); /* input or output */
const char *problem_starts_folder(const struct problem *problem, const char *backend);
