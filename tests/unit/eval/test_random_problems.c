/* Problems that nobody wrote, measured in every way there is: whatever memory a session has holds
 * what each of its shapes needs, at each moment. Regions lie between pages without rights here;
 * what is on the heap is asked for its size. PROBLEMS, SEED: how many, and from where on. */
#include "eval/cuda/target.h"
#include "eval/measure/sanitize.h"
#include "eval/sets/helpers.h"
#include "eval/sets/wide.h"

#include "one_session.h"

#include <malloc.h>

enum { FENCE = 1 << 20, FIRST = 6, PROBLEMS = 4, SPEC_MOST = 8192 };

/* ---- regions between fences ---- */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
int __real_region_open(size_t inputs_bytes, size_t outputs_bytes, struct region *region,
                       struct err *err);
int __wrap_region_open(size_t inputs_bytes, size_t outputs_bytes, struct region *region,
                       struct err *err);

static unsigned char *fence(unsigned char *memory, size_t bytes)
{
    unsigned char *room = mmap(NULL, bytes + 2 * (size_t)FENCE, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(room, MAP_FAILED);
    void *moved = mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room + FENCE);
    assert_ptr_equal(moved, room + FENCE);
    return (unsigned char *)moved;
}

int __wrap_region_open(size_t inputs_bytes, size_t outputs_bytes, struct region *region,
                       struct err *err)
{
    if (__real_region_open(inputs_bytes, outputs_bytes, region, err) != 0)
        return -1;
    region->inputs = fence(region->inputs, region->inputs_bytes);
    region->outputs = fence(region->outputs, region->outputs_bytes);
    return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- the kernel of all of them: an output's element i is the sum of every input's element i,
 * which begins anew at its end ---- */

static const struct problem *serving; /* of the subject that is opened */

static double sum_at(const struct fake_call *f, const struct layout *layout, size_t i)
{
    const unsigned char *inputs = (const unsigned char *)f->a - f->call->offsets[0];
    double sum = 0.0;
    for (size_t k = 0; k < layout->input_count; k++)
        if (layout->inputs[k].elements > 0)
            sum += dtype_load(serving->inputs[k].dtype, inputs + f->call->offsets[k],
                              i % layout->inputs[k].elements);
    return sum;
}

static void sums(const struct fake_call *f)
{
    unsigned char *outputs = (unsigned char *)f->c - f->call->offsets[2];
    struct layout layout;
    struct names dims = {0};
    struct err err;
    for (size_t i = 0; i < serving->dim_count; i++)
        if (names_set(&dims, serving->dims[i].name, f->call->dims[i], &err) != 0)
            abort();
    if (layout_make(serving, &dims, NULL, NULL, 0, &layout, &err) != 0)
        abort();
    for (size_t k = 0; k < layout.output_count; k++)
        for (size_t i = 0; i < layout.outputs[k].elements; i++)
            dtype_store(serving->outputs[k].dtype,
                        outputs + f->call->offsets[layout.input_count + k], i,
                        sum_at(f, &layout, i));
    for (size_t k = 0; k < f->call->workspace_count; k++) /* its first byte is there */
        outputs[f->call->offsets[layout.input_count + layout.output_count + k]] = 1;
}

static const struct fake_entry kernels[] = {
    {"product", sums}, {"sums", sums}, {"rival", sums}, {NULL, NULL}};

static int open_serving(const struct lane_facts *lane, const struct region *region,
                        const char *artifact, const struct program *program, bool fresh,
                        struct subject **subject, struct err *err)
{
    const struct problem *own = serving;
    if (program->problem != NULL)
        serving = program->problem;
    int status = fake_open(lane, region, artifact, program, fresh, subject, err);
    serving = own;
    return status;
}

/* ---- a sanitizer beside the checks, which reads what it is told to ---- */

static volatile unsigned char seen;

static int read_inputs(const struct lane_facts *lane, const struct region *region,
                       const char *artifact, const struct program *program,
                       const struct call *calls, size_t count, bool together, struct buf *report,
                       struct err *err)
{
    (void)lane, (void)artifact, (void)program, (void)together, (void)report, (void)err;
    for (size_t i = 0; i < count; i++) {
        seen = region->inputs[calls[i].inputs_from];
        for (uint32_t k = 0; k < calls[i].input_count; k++)
            seen = region->inputs[calls[i].offsets[k]];
    }
    return 0;
}

static void ignore_hold(enum sanitizer_hold hold)
{
    (void)hold;
}

static void ignore_warming(const struct lane_facts *lane, const struct region *region, bool all)
{
    (void)lane, (void)region, (void)all;
}

/* ---- problems ---- */

static const char *const dim_names[] = {"M", "N", "K", "L"};
static struct random draws;

static size_t below(size_t bound)
{
    return (size_t)random_below(&draws, bound);
}

static int64_t extent_below(size_t most)
{
    static const int64_t usual[] = {1, 1, 2, 3, 7, 16, 17, 33, 64, 100, 129, 257, 1000, 4099};
    size_t count = sizeof usual / sizeof usual[0];
    while (count > 1 && usual[count - 1] > (int64_t)most)
        count--;
    return usual[below(count)];
}

/* Its shape as a text of the spec's, which is one of Python's, too. */
static void draw_extents(struct buf *text, size_t dim_count)
{
    static const char *const others[] = {"1", "3", "M + 2", "2*M"};
    size_t rank = below(dim_count > 1 ? 5 : 2); /* a line may be a long one */
    for (size_t i = 0; i < rank; i++)
        buf_addf(text, "%s, ",
                 dim_count > 0 && below(4) > 0 ? dim_names[i % dim_count]
                                               : others[below(dim_count > 0 && rank < 3 ? 4 : 2)]);
}

static void put_shape(struct buf *spec, size_t dim_count, size_t most)
{
    for (size_t i = 0; i < dim_count; i++)
        buf_addf(spec, "%s%s: %lld", i > 0 ? ", " : "", dim_names[i],
                 (long long)extent_below(most));
}

/* `spec` and the definition beside it. */
static void make_problem(struct buf *spec, struct buf *reference)
{
    static const char *const floats[] = {"float32", "float64", "float16", "bfloat16"};
    static const size_t most_of[] = {1, 4099, 33, 17, 16};
    size_t dims = below(2) == 0 ? 1 : below(5), inputs = 1 + below(4), outputs = 1 + below(2),
           checks = below(5);
    size_t most = most_of[dims];
    bool whole = below(4) == 0;
    buf_add_text(spec, "name: random\ndims: {");
    if (dims == 1 && below(2) == 0)
        buf_add_text(spec, "M: 60001");
    else
        put_shape(spec, dims, most);
    buf_add_text(spec, "}\n");
    buf_add_text(reference, "import numpy as np\ndef reference(");
    for (size_t i = 0; i < inputs + outputs; i++) {
        bool input = i < inputs;
        BUF_LOCAL(extents, 200);
        draw_extents(&extents, dims);
        if (i == 0 || i == inputs)
            buf_add_text(spec, input ? "inputs:\n" : "outputs:\n");
        buf_addf(spec, "  t%zu: {shape: [%.*s], dtype: %s}\n", i,
                 (int)(extents.length > 2 ? extents.length - 2 : 0), buf_text(&extents),
                 whole ? "int32" : floats[below(4)]);
        if (input)
            buf_addf(reference, "t%zu, ", i);
        if (i == inputs) {
            for (size_t k = 0; k < dims; k++)
                buf_addf(reference, "%s, ", dim_names[k]);
            buf_add_text(reference, "):\n    results = []\n");
        }
        if (input)
            continue;
        buf_addf(reference, "    n = int(np.prod((%s)))\n    results.append((0",
                 buf_text(&extents));
        for (size_t k = 0; k < inputs; k++)
            buf_addf(reference, " + np.resize(t%zu, n)", k);
        buf_addf(reference, ").reshape((%s)))\n", buf_text(&extents));
    }
    buf_add_text(reference, "    return tuple(results)\n");
    buf_add_text(spec, "reference: ref_impl.py\nbaselines: {product: product.c}\n");
    for (size_t i = 0; dims > 0 && i < checks; i++) {
        buf_add_text(spec, i == 0 ? "check:\n  - {" : "  - {");
        put_shape(spec, dims, below(2) == 0 ? most : 4);
        buf_add_text(spec, "}\n");
    }
    if (dims > 0 && below(2) == 0)
        buf_addf(spec, "hidden: {M: [1, %d]}\n", 1 + (int)below(2 * most));
}

/* ---- what must hold at each moment ---- */

static void look_at_set(const struct session *session, const struct set *set)
{
    const struct layout *layout = &set->shape->layout;
    for (size_t i = 0; i < session->problem->input_count; i++)
        if (set->inputs[i] != NULL)
            assert_true(malloc_usable_size(set->inputs[i]) >= layout->inputs[i].bytes);
    for (size_t i = 0; i < session->problem->output_count; i++)
        if (set->exact[i] != NULL)
            assert_true(malloc_usable_size(set->exact[i]) >=
                        layout->outputs[i].elements * sizeof(double));
}

static void look(const struct session *session)
{
    for (size_t i = 0; i < session->shape_total; i++) {
        const struct layout *layout = &session->shapes[i].layout;
        assert_true(layout->inputs_bytes + PAGE_BYTES <= session->slot_bytes);
        assert_true(layout->outputs_bytes + PAGE_BYTES <= session->region.outputs_bytes);
    }
    for (size_t i = 0; i < session->pool_count; i++)
        look_at_set(session, &session->pool[i]);
    for (size_t i = 0; i < session->case_count; i++)
        look_at_set(session, &session->cases[i]);
}

/* ---- every way ---- */

static const struct candidate *parse(struct fixture *f, const char *workspace, const char *name)
{
    BUF_LOCAL(text, 400);
    struct candidate *candidate = NULL;
    if (workspace != NULL)
        buf_addf(&text, "/*---\nworkspace: {w: {shape: [%s], dtype: float32}}\n---*/\n", workspace);
    buf_add_text(&text, name);
    if (candidate_parse(f->problem, "c.c", buf_text(&text), text.length, &candidate, &f->err) != 0)
        fail_msg("%s", f->err.message);
    return candidate;
}

/* Whatever the verdict of one is: nothing dies. */
static void evaluate(struct fixture *f, enum effort effort, const struct candidate *candidate,
                     const struct candidate *rival)
{
    struct names none = {0};
    struct evaluation evaluation = {0};
    const struct rival_kernel other = {rival, &none};
    f->request = (struct measure_request){.candidate = candidate,
                                          .tune = &none,
                                          .artifact = "sums",
                                          .sanitized = "sums",
                                          .effort = effort,
                                          .sanitizes = rival == NULL,
                                          .alone = below(2) == 0,
                                          .rival = rival != NULL ? &other : NULL};
    if (below(2) == 0)
        f->session->exact_ns = 1e9; /* the definition takes its time */
    if (session_measure(f->session, &f->request, f->arena, &evaluation, &f->err) != 0 &&
        f->err.code != ERR_USAGE)
        fail_msg("%d: %s", (int)f->err.code, f->err.message);
    if (evaluation.verdict == VERDICT_FAILED)
        fail_msg("%s", evaluation.reason);
    look(f->session);
}

static void look_first(struct fixture *f, const struct candidate *candidate)
{
    struct names none = {0};
    struct evaluation evaluation = {0};
    double fastest_ns = 0.0;
    f->request = (struct measure_request){
        .candidate = candidate, .tune = &none, .artifact = "sums", .behind = 1.1};
    (void)!session_look(f->session, &f->request, f->arena, &evaluation, &fastest_ns, &f->err);
    assert_int_equal(session_finish(f->session, &f->err), 0);
    look(f->session);
}

static void every_way(struct fixture *f)
{
    static const char *const workspaces[] = {NULL, "64", "3000000", "7"};
    const struct candidate *candidates[4];
    const char *unfit = NULL;
    for (size_t i = 0; i < 4; i++)
        candidates[i] = parse(f, workspaces[i], "sums");
    look(f->session);
    if (below(2) == 0)
        (void)!session_fit(f->session, &unfit, &f->err);
    for (size_t turn = 0; turn < 3; turn++) {
        const struct candidate *candidate = candidates[below(4)];
        size_t way = below(6);
        if (way == 0)
            look_first(f, candidate);
        else if (way == 1)
            evaluate(f, EFFORT_FULL, candidate, candidates[below(4)]);
        else
            evaluate(f, way == 2 ? EFFORT_SEARCH : EFFORT_FINAL, candidate, NULL);
    }
    for (size_t i = 0; i < 4; i++)
        candidate_free((struct candidate *)(uintptr_t)candidates[i]);
}

static struct backend backend_of(bool device)
{
    struct backend backend = fake_backend;
    backend.open = open_serving;
    backend.device = device;
    if (device)
        backend.target = &target_cuda;
    backend.sanitize = read_inputs;
    if (device || below(2) == 0) {
        backend.hold_sanitizer = ignore_hold;
        backend.warm_sanitizer = ignore_warming;
    }
    return backend;
}

static void one_problem(uint64_t seed)
{
    static struct fixture f;
    static const char wide[] =
        "/*---\nlaunch:\n  - {entry: r, grid: 1, block: 1, args: [t0]}\n---*/\nsums";
    int core = 0;
    struct backend backend;
    BUF_LOCAL(spec, SPEC_MOST);
    BUF_LOCAL(reference, SPEC_MOST);
    random_init(&draws, seed);
    make_problem(&spec, &reference);
    f = (struct fixture){.arena = arena_new()};
    folder_make(&f.folder);
    folder_make(&f.builds);
    folder_put(&f.folder, "spec.yaml", buf_text(&spec));
    folder_put(&f.folder, "ref_impl.py", buf_text(&reference));
    folder_put(&f.folder, "product.c", "product");
    folder_put(&f.folder, "ref_impl.cu", wide);
    print_message("problem %llu\n", (unsigned long long)seed);
    backend = backend_of(below(4) != 0);
    struct session_options options = {.folder = f.builds.path,
                                      .baseline = "product",
                                      .call_timeout_ms = 60000,
                                      .time_budget_ms = 2,
                                      .memory_bytes = 1 + (below(4) == 0 ? 1 << 20 : 0),
                                      .sanitizes = below(2) == 0,
                                      .final = below(2) == 0};
    if (problem_load(f.folder.path, &f.problem, &f.err) != 0 ||
        fake_probe(&core, 1, false, f.arena, &f.lane, &f.err) != 0)
        fail_msg("%s\n%s", f.err.message, buf_text(&spec));
    serving = f.problem;
    if (session_open(f.problem, &backend, &f.lane, &options, &f.session, &f.err) == 0)
        every_way(&f);
    else
        fail_msg("%s\n%s", f.err.message, buf_text(&spec));
    f.candidate = NULL;
    void *state = &f;
    tear_down(&state);
}

static void test_every_way(void **state)
{
    const char *count = getenv("PROBLEMS"), *from = getenv("SEED");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : FIRST;
    uint64_t most = count != NULL ? strtoull(count, NULL, 10) : PROBLEMS;
    (void)state;
    fake_kernels = kernels;
    for (uint64_t i = 0; i < most; i++)
        one_problem(first + i);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_way)};
    return cmocka_run_group_tests_name("random_problems", tests, NULL, NULL);
}
