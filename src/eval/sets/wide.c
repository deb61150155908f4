#include "eval/sets/wide.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/data/timeline.h"
#include "eval/reference/private.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SOURCE_MOST = 1 << 20, TIMEOUT_MS = 20000, CHUNK = 1024, DOUBLE_BITS = 52 };

/* The definition's time for a set, from which on a kernel pays for its build and its runner. */
static const double slow_ns = 0.25e9;
/* Of an element's scale: far above what two orders of summation differ by in float64, far below
 * float32. */
static const double agrees = 1e-9;

struct wide {
    struct problem problem; /* the session's, with float64 for every floating type */
    struct candidate *candidate;
    struct names tune;
    struct program program;
    const char *path, *artifact; /* NULL: not built yet */
    struct region region;
    struct subject *subject; /* NULL: only begun */
    bool believed;
};

/* --- opening and closing --- */

void wide_close(struct session *session)
{
    struct wide *wide = session->wide;
    session->wide = NULL;
    if (wide == NULL)
        return;
    if (wide->subject != NULL)
        wide->subject->ops->close(wide->subject);
    if (wide->region.inputs != NULL)
        region_close(&wide->region);
    candidate_free(wide->candidate);
    mem_free(wide);
}

void wide_give_up(struct session *session, const char *why)
{
    log_event(LOG_WARN, "session.wide", session->problem->name,
              "the definition's kernel in float64 is not used: %s", why);
    session->wide_over = true;
    wide_close(session);
}

/* "ref_impl.SUFFIX" for "ref_impl.py", where the file is there; or NULL. */
static const char *source_file(const struct session *session)
{
    const struct problem *problem = session->problem;
    const char *file = problem->reference_file;
    size_t length = file != NULL ? strlen(file) : 0;
    if (!session->backend->device || problem->reference_kind != REFERENCE_PYTHON || length < 4 ||
        strcmp(file + length - 3, ".py") != 0)
        return NULL;
    const char *path = arena_printf(session->arena, "%.*s%s", (int)(length - 3), file,
                                    session->backend->target->languages[0]->suffixes[0]);
    return file_is_regular(path) ? path : NULL;
}

static int read_source(struct session *session, const char *path, struct err *err)
{
    struct wide *wide = session->wide;
    BUF_LOCAL(text, SOURCE_MOST);
    int status = file_read(path, &text, err);
    if (status == 0)
        status = candidate_parse(&wide->problem, path, buf_text(&text), text.length,
                                 &wide->candidate, err);
    if (status == 0 && wide->candidate->workspace_count > 0)
        status = err_set(err, ERR_USAGE, "it has workspaces");
    if (status == 0)
        tune_at(wide->candidate, 0, &wide->tune);
    return status;
}

/* The most that any of the shapes needs now: hidden ones, and those beyond the main one, change
 * with each drawing. */
static int measure(const struct session *session, size_t *inputs, size_t *outputs, struct err *err)
{
    const struct wide *wide = session->wide;
    *inputs = *outputs = 0;
    for (size_t i = 0; i < session->shape_total; i++) {
        struct layout layout;
        if (layout_make(&wide->problem, &session->shapes[i].dims, NULL, NULL, 0, &layout, err) != 0)
            return -1;
        *inputs = layout.inputs_bytes > *inputs ? layout.inputs_bytes : *inputs;
        *outputs = layout.outputs_bytes > *outputs ? layout.outputs_bytes : *outputs;
    }
    return 0;
}

/* Room for the main shape and all others; not where that is a quarter of the memory left. */
static int open_region(struct session *session, struct err *err)
{
    struct wide *wide = session->wide;
    size_t inputs, outputs;
    if (measure(session, &inputs, &outputs, err) != 0)
        return -1;
    if (inputs <= wide->region.inputs_bytes && outputs <= wide->region.outputs_bytes)
        return 0;
    if (wide->region.inputs != NULL)
        region_close(&wide->region);
    uint64_t available = mem_available();
    if (available > 0 && inputs + outputs > available / 4)
        return err_set(err, ERR_LIMIT, "not enough memory");
    return region_open(inputs + PAGE_BYTES, outputs + PAGE_BYTES, &wide->region, err);
}

static int warm(struct session *session, const char *path, struct err *err)
{
    struct wide *wide = session->wide = MEM_NEW(struct wide);
    wide->path = path;
    wide->problem = *session->problem;
    for (size_t i = 0; i < wide->problem.input_count; i++)
        if (dtype_is_float(wide->problem.inputs[i].dtype))
            wide->problem.inputs[i].dtype = DTYPE_FLOAT64;
    for (size_t i = 0; i < wide->problem.output_count; i++)
        if (dtype_is_float(wide->problem.outputs[i].dtype))
            wide->problem.outputs[i].dtype = DTYPE_FLOAT64;
    if (open_region(session, err) != 0)
        return -1;
    if (session->backend->warm_runner != NULL)
        session->backend->warm_runner(session->lane, &wide->region);
    return 0;
}

static int begin(struct session *session, struct err *err)
{
    struct wide *wide = session->wide;
    struct arena *arena = session->arena;
    struct build build = {0};
    const char *folder = arena_printf(arena, "%s/wide", session->options.folder);
    if (read_source(session, wide->path, err) != 0 || file_make_dirs(folder, err) != 0 ||
        session->backend->build(arena, session->lane, &wide->problem, wide->candidate, &wide->tune,
                                NULL, BUILD_FAST, folder, &build, err) != 0 ||
        build_run(&build.spec, err) != 0)
        return -1;
    wide->program = (struct program){&wide->problem, wide->candidate, &wide->tune, NULL};
    wide->artifact = build.artifact;
    return 0;
}

/* --- computing --- */

struct widening {
    enum dtype dtype;
    const void *from;
    double *to;
    int bits; /* of mantissa that are kept; -1: all */
};

/* To nearest, ties to even; the exponent takes the carry. */
static void keep_bits(double *numbers, size_t count, int bits)
{
    for (size_t i = 0; i < count; i++) {
        const int drop = DOUBLE_BITS - bits;
        uint64_t raw;
        if (!isfinite(numbers[i]))
            continue;
        memcpy(&raw, &numbers[i], sizeof raw);
        raw += ((UINT64_C(1) << (drop - 1)) - 1) + (raw >> drop & 1);
        raw &= ~((UINT64_C(1) << drop) - 1);
        memcpy(&numbers[i], &raw, sizeof raw);
    }
}

static void widen_part(void *context, size_t part, size_t from, size_t to)
{
    const struct widening *widening = (const struct widening *)context;
    const unsigned char *numbers = (const unsigned char *)widening->from;
    (void)part;
    dtype_to_double(widening->dtype, numbers + from * dtype_bytes(widening->dtype), to - from,
                    widening->to + from);
    if (widening->bits >= 0)
        keep_bits(widening->to + from, to - from, widening->bits);
}

static void narrow_part(void *context, size_t part, size_t from, size_t to)
{
    const struct widening *narrowing = (const struct widening *)context;
    unsigned char *numbers = (unsigned char *)(uintptr_t)narrowing->from;
    (void)part;
    dtype_from_double(narrowing->dtype, narrowing->to + from, to - from,
                      numbers + from * dtype_bytes(narrowing->dtype));
}

static void take_output(enum dtype dtype, bool exact, unsigned char *from, size_t count, void *out)
{
    if (!dtype_is_float(dtype) && exact) {
        dtype_to_double(dtype, from, count, (double *)out);
    } else if (!dtype_is_float(dtype) || exact) {
        parallel_copy(out, from, count * (exact ? sizeof(double) : dtype_bytes(dtype)));
    } else {
        struct widening narrowing = {.dtype = dtype, .from = out, .to = (double *)(void *)from};
        parallel_for(count, CHUNK, count, narrow_part, &narrowing);
    }
}

static int compute(struct session *session, const struct set *set,
                   enum reference_precision precision, void **out, struct err *err)
{
    struct wide *wide = session->wide;
    const struct problem *problem = session->problem;
    struct layout layout;
    struct call call;
    uint64_t elapsed_ns;
    if (layout_make(&wide->problem, &set->shape->dims, NULL, NULL, 0, &layout, err) != 0)
        return -1;
    if (layout.inputs_bytes > wide->region.inputs_bytes ||
        layout.outputs_bytes > wide->region.outputs_bytes)
        return err_set(err, ERR_LIMIT, "a shape has no room in its memory");
    call_make(&layout, 0, TIMEOUT_MS, &call);
    for (size_t i = 0; i < problem->input_count; i++) {
        unsigned char *to = wide->region.inputs + layout.inputs[i].offset;
        struct widening widening = {.dtype = problem->inputs[i].dtype,
                                    .from = set->inputs[i],
                                    .to = (double *)(void *)to,
                                    .bits = reference_bits(problem, precision)};
        if (dtype_is_float(problem->inputs[i].dtype))
            parallel_for(layout.inputs[i].elements, CHUNK, layout.inputs[i].elements, widen_part,
                         &widening);
        else
            parallel_copy(to, set->inputs[i], layout.inputs[i].bytes);
    }
    wide->subject->ops->resume(wide->subject);
    int status = subject_call(wide->subject, &call, &elapsed_ns, err);
    if (status != 0)
        return -1;
    wide->subject->ops->pause(wide->subject);
    for (size_t i = 0; i < problem->output_count; i++)
        take_output(problem->outputs[i].dtype, precision == PRECISION_EXACT,
                    wide->region.outputs + layout.outputs[i].offset, layout.outputs[i].elements,
                    out[i]);
    return 0;
}

/* --- believing --- */

struct comparing {
    const double *mine, *exact;
    size_t row;
    bool differs[PARALLEL_PARTS];
};

static void compare_part(void *context, size_t part, size_t from, size_t to)
{
    struct comparing *comparing = (struct comparing *)context;
    for (size_t at = from; at < to; at += comparing->row) {
        size_t length = to - at < comparing->row ? to - at : comparing->row;
        const double *mine = comparing->mine + at, *exact = comparing->exact + at;
        double squares = 0.0;
        for (size_t i = 0; i < length; i++)
            squares += isfinite(exact[i]) ? exact[i] * exact[i] : 0.0;
        double rms = sqrt(squares / (double)length);
        for (size_t i = 0; i < length; i++) {
            bool same = mine[i] == exact[i] || (isnan(mine[i]) && isnan(exact[i]));
            if (!same && !(fabs(mine[i] - exact[i]) <= agrees * fmax(fabs(exact[i]), rms)))
                comparing->differs[part] = true;
        }
    }
}

bool wide_agrees(struct session *session, const struct set *set, struct err *err)
{
    const struct problem *problem = session->problem;
    const struct layout *layout = &set->shape->layout;
    void *mine[OUTPUTS_MAX] = {NULL};
    for (size_t i = 0; i < problem->output_count; i++)
        mine[i] = parallel_alloc((layout->outputs[i].elements + 1) * sizeof(double));
    bool same = compute(session, set, PRECISION_EXACT, mine, err) == 0;
    for (size_t i = 0; i < problem->output_count && same; i++) {
        struct comparing comparing = {.mine = (const double *)mine[i],
                                      .exact = set->exact[i],
                                      .row = tensor_row(&problem->outputs[i], &layout->outputs[i])};
        size_t count = layout->outputs[i].elements;
        parallel_for(count, comparing.row, count, compare_part, &comparing);
        for (size_t part = 0; part < PARALLEL_PARTS; part++)
            same = same && !comparing.differs[part];
    }
    for (size_t i = 0; i < problem->output_count; i++)
        mem_free(mine[i]);
    if (!same && err->code == ERR_NONE)
        (void)!err_set(err, ERR_USAGE, "it disagrees with the definition");
    return same;
}

void wide_warm(struct session *session)
{
    struct err err = {0};
    bool slow = session->exact_ns > slow_ns;
    bool will_be = session->exact_ns == 0.0 && session_is_large(session); /* nothing is known yet */
    if (session->wide != NULL || session->wide_over || !(slow || will_be))
        return;
    const char *path = source_file(session);
    if (path != NULL && warm(session, path, &err) != 0)
        wide_give_up(session, err.message);
}

void wide_begin(struct session *session)
{
    struct err err = {0};
    uint64_t begun = timeline_begin();
    wide_warm(session);
    if (session->wide == NULL || session->wide->artifact != NULL)
        return;
    if (begin(session, &err) != 0)
        wide_give_up(session, err.message);
    timeline_end("wide.begin", begun);
}

bool wide_open(struct session *session)
{
    struct err err = {0};
    struct wide *wide = session->wide;
    if (wide == NULL || wide->artifact == NULL || wide->subject != NULL)
        return false;
    if (open_region(session, &err) == 0 &&
        session->backend->open(session->lane, &wide->region, wide->artifact, &wide->program, true,
                               &wide->subject, &err) == 0)
        return true;
    wide_give_up(session, err.message);
    return false;
}

void wide_believe(struct session *session)
{
    session->wide->believed = true;
}

bool wide_believed(const struct session *session)
{
    return session->wide != NULL && session->wide->believed;
}

bool wide_compute(struct session *session, const struct set *set,
                  enum reference_precision precision, void **out)
{
    struct err err = {0};
    if (set->shape != &session->shapes[0] || precision == PRECISION_SPEC || !wide_believed(session))
        return false;
    uint64_t begun = timeline_begin();
    if (compute(session, set, precision, out, &err) != 0)
        wide_give_up(session, err.message);
    timeline_end("wide.compute", begun);
    return session->wide != NULL;
}
