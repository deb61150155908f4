/* From expressions to numbers, and what of them a device can launch. */
#include "eval/cuda/run/plan.h"

#include "eval/cuda/driver/api.h"
#include "eval/cuda/run/variants.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MOST = 1024, CLUSTER_MOST = 16, GRID_YZ_MOST = 65535, BOX_MOST = 256 };
enum { TILE_MOST = 1 << 20 }; /* where a compile cuts it into boxes */
enum { SCRATCH_MOST = 1 << 30, COMPILED_PROMOTION = 2 /* 128 bytes, as Triton's own launcher */ };

struct making {
    const struct program *program;
    const struct variants *variants;
    struct names scope;
    struct plan *plan;
    struct err *err;
};

static int make_scope(struct making *making, const struct names *facts, const struct call *call)
{
    const struct program *program = making->program;
    const struct names *more[] = {program->tune, facts};
    if (call->dim_count > program->problem->dim_count)
        return err_set(making->err, ERR_PROTOCOL, "the call has more dims than the problem");
    for (uint32_t i = 0; i < call->dim_count; i++)
        if (names_set(&making->scope, program->problem->dims[i].name, call->dims[i], making->err))
            return -1;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; more[k] != NULL && i < more[k]->count; i++)
            if (names_set(&making->scope, more[k]->name[i], more[k]->number[i], making->err))
                return -1;
    return 0;
}

static int evaluate(struct making *making, const struct expr *expr, const char *of,
                    const char *what, int64_t least, int64_t most, int64_t *number)
{
    if (expr_eval(expr, expr_lookup_names, &making->scope, number, making->err) != 0) {
        making->err->code = ERR_LIMIT;
        return err_wrap(making->err, "%s: %s", of, what);
    }
    if (*number < least || *number > most)
        return err_set(making->err, ERR_LIMIT, "%s: %s is %lld, expected %lld to %lld", of, what,
                       (long long)*number, (long long)least, (long long)most);
    return 0;
}

static int64_t fact(const struct making *making, const char *name, int64_t otherwise)
{
    int64_t number;
    struct names scope = making->scope;
    return expr_lookup_names(&scope, name, &number) ? number : otherwise;
}

/* --- names --- */

static const struct tensor_spec *tensor_of(const struct making *making, const char *name,
                                           size_t *index)
{
    return candidate_find_tensor(making->program->problem, making->program->candidate, name, index);
}

static int make_arg(struct making *making, const char *entry, const char *name,
                    struct plan_arg *arg)
{
    const struct program *program = making->program;
    size_t tensor;
    if (tensor_of(making, name, &tensor) != NULL) {
        *arg = (struct plan_arg){.kind = PLAN_POINTER, .index = (uint32_t)tensor};
        return 0;
    }
    int index = candidate_find_map(program->candidate, name);
    *arg = (struct plan_arg){.kind = PLAN_MAP, .index = (uint32_t)index};
    if (index >= 0)
        return 0;
    *arg = (struct plan_arg){.kind = PLAN_NUMBER};
    if (!isalpha((unsigned char)*name)) {
        char *end;
        errno = 0;
        arg->number = strtoll(name, &end, strchr(name, 'x') != NULL ? 16 : 10);
        return *end == '\0' && errno == 0
                   ? 0
                   : err_set(making->err, ERR_LIMIT, "%s: %s is no number", entry, name);
    }
    if (!expr_lookup_names(&making->scope, name, &arg->number))
        return err_set(making->err, ERR_LIMIT, "%s: nothing is called %s", entry, name);
    return 0;
}

/* --- launches --- */

static int make_extent(struct making *making, const struct launch *launch,
                       const struct expr *const exprs[3], const char *what, const int64_t most[3],
                       uint32_t extent[3])
{
    for (int i = 0; i < 3; i++) {
        int64_t number = 1;
        if (exprs[i] != NULL &&
            evaluate(making, exprs[i], launch->entry, what, 1, most[i], &number) != 0)
            return -1;
        extent[i] = (uint32_t)number;
    }
    return 0;
}

static int check_product(struct making *making, const char *entry, const char *what,
                         const uint32_t extent[3], uint64_t most)
{
    uint64_t product = (uint64_t)extent[0] * extent[1] * extent[2];
    if (product <= most)
        return 0;
    return err_set(making->err, ERR_LIMIT, "%s: %s has %llu, at most %llu", entry, what,
                   (unsigned long long)product, (unsigned long long)most);
}

static int make_cluster(struct making *making, const struct launch *launch,
                        struct plan_launch *into)
{
    static const int64_t most[3] = {CLUSTER_MOST, CLUSTER_MOST, CLUSTER_MOST};
    if (launch->cluster[0] == NULL)
        return 0;
    if (make_extent(making, launch, launch->cluster, "cluster", most, into->cluster) != 0 ||
        check_product(making, launch->entry, "a cluster", into->cluster, CLUSTER_MOST) != 0)
        return -1;
    for (int i = 0; i < 3; i++)
        if (into->grid[i] % into->cluster[i] != 0)
            return err_set(making->err, ERR_LIMIT,
                           "%s: a grid of %u blocks is no multiple of a cluster of %u",
                           launch->entry, into->grid[i], into->cluster[i]);
    return 0;
}

/* Memory of the compiler's own, for every block: the first of its two pointers. The other, for a
 * profiler inside the kernel, is nobody's. */
static int make_scratch(struct making *making, const struct launch *launch,
                        const struct kernel *kernel, struct plan_launch *into, uint32_t *passed)
{
    struct plan *plan = making->plan;
    uint64_t bytes = kernel->scratch_bytes, align = kernel->scratch_align;
    into->args[*passed] = (struct plan_arg){.kind = PLAN_NUMBER};
    into->args[*passed + 1] = (struct plan_arg){.kind = PLAN_NUMBER};
    if (bytes > 0) {
        uint64_t at = (plan->scratch_bytes + align - 1) / align * align;
        for (int i = 0; i < 3; i++)
            if (__builtin_mul_overflow(bytes, into->grid[i], &bytes))
                bytes = UINT64_MAX;
        if (bytes > SCRATCH_MOST - at)
            return err_set(making->err, ERR_LIMIT,
                           "%s: its tensor descriptors take more than %d MiB: a smaller grid",
                           launch->entry, (int)(SCRATCH_MOST >> 20));
        into->args[*passed] = (struct plan_arg){.kind = PLAN_SCRATCH, .number = (int64_t)at};
        plan->scratch_bytes = at + bytes;
    }
    *passed += SCRATCH_ARGS;
    return 0;
}

/* A program that several blocks run together has as many of the grid's first axis. */
static int make_blocks(struct making *making, const struct launch *launch,
                       const struct kernel *kernel, struct plan_launch *into)
{
    into->block[0] = kernel->threads;
    into->block[1] = into->block[2] = 1;
    if (kernel->cluster <= 1)
        return 0;
    if (into->grid[0] > (uint32_t)INT32_MAX / kernel->cluster)
        return err_set(making->err, ERR_LIMIT, "%s: grid times num_ctas is too large",
                       launch->entry);
    into->grid[0] *= kernel->cluster;
    into->cluster[0] = kernel->cluster;
    into->cluster[1] = into->cluster[2] = 1;
    return 0;
}

static int make_map(struct making *making, const struct tensor_map *map,
                    const struct kernel_map *compiled, struct plan_map *into);

/* A map of this launch's own: then its extents and its strides in elements, outermost first. */
static int pass_map(struct making *making, const struct launch *launch,
                    const struct tensor_map *map, const struct kernel_map *compiled,
                    struct plan_launch *into, uint32_t *passed)
{
    struct plan *plan = making->plan;
    struct plan_map *made = &plan->maps[plan->map_count];
    if (plan->map_count >= TENSOR_MAPS_MAX)
        return err_set(making->err, ERR_LIMIT, "%s: at most %d tensor maps among all args",
                       launch->entry, TENSOR_MAPS_MAX);
    if (make_map(making, map, compiled, made) != 0)
        return -1;
    into->args[*passed] = (struct plan_arg){.kind = PLAN_MAP, .index = plan->map_count++};
    struct plan_arg *extents = &into->args[*passed + 1], *strides = extents + map->rank;
    uint64_t element = made->strides[0];
    for (size_t i = 0; i < map->rank; i++) {
        size_t axis = map->rank - 1 - i;
        extents[axis] = (struct plan_arg){.kind = PLAN_NUMBER, .number = (int64_t)made->extents[i]};
        strides[axis] =
            (struct plan_arg){.kind = PLAN_NUMBER, .number = (int64_t)(made->strides[i] / element)};
    }
    *passed += 1 + 2 * (uint32_t)map->rank;
    return 0;
}

/* What the variant takes: without numbers that are one, which were folded into it, and with what
 * comes along with a tensor map. */
static int pass_args(struct making *making, const struct launch *launch,
                     const struct kernel *kernel, struct plan_launch *into, uint32_t *passed)
{
    const struct candidate *candidate = making->program->candidate;
    struct plan_arg args[KERNEL_ARGS_MAX];
    size_t maps = 0;
    memcpy(args, into->args, into->arg_count * sizeof args[0]);
    for (uint32_t i = 0; i < into->arg_count; i++) {
        if (args[i].kind == PLAN_MAP && maps >= kernel->map_count)
            return err_set(making->err, ERR_LIMIT, "%s: its compile knows of %zu tensor maps",
                           launch->entry, kernel->map_count);
        if (args[i].kind == PLAN_MAP) {
            if (pass_map(making, launch, &candidate->maps[args[i].index], &kernel->maps[maps++],
                         into, passed) != 0)
                return -1;
        } else if ((kernel->known[i] & KNOWN_ONE) == 0) {
            into->args[(*passed)++] = args[i];
        }
    }
    return 0;
}

/* Block and shared memory as the compile has them, of the variant for these arguments. */
static int make_compiled(struct making *making, const struct launch *launch,
                         struct plan_launch *into)
{
    const struct candidate *candidate = making->program->candidate;
    size_t index = (size_t)(launch - candidate->launches);
    unsigned known[KERNEL_ARGS_MAX] = {0};
    uint32_t passed = 0;
    if (making->variants == NULL) /* where nothing is launched */
        return 0;
    if (into->arg_count > KERNEL_ARGS_MAX)
        return err_set(making->err, ERR_LIMIT, "%s: args has %u names, expected at most %d",
                       launch->entry, into->arg_count, KERNEL_ARGS_MAX);
    for (size_t i = 0; i < into->arg_count; i++)
        known[i] = into->args[i].kind == PLAN_NUMBER ? known_of(into->args[i].number) : 0;
    const struct kernel *kernel = variants_find(making->variants, index, known, into->arg_count);
    int64_t shared_most = fact(making, "shared_bytes_optin", 48 << 10);
    if (kernel == NULL)
        return err_set(making->err, ERR_LIMIT, "%s: no variant of it is for such dims",
                       launch->entry);
    if (kernel->shared_bytes > shared_most)
        return err_set(making->err, ERR_ROOM,
                       "%s: shared is %u, expected 0 to %lld: smaller blocks or fewer stages",
                       launch->entry, kernel->shared_bytes, (long long)shared_most);
    into->shared_bytes = kernel->shared_bytes;
    into->image_at = kernel->offset;
    if (pass_args(making, launch, kernel, into, &passed) != 0 ||
        make_blocks(making, launch, kernel, into) != 0 ||
        make_scratch(making, launch, kernel, into, &passed) != 0)
        return -1;
    into->arg_count = passed;
    return 0;
}

static int make_launch(struct making *making, const struct launch *launch, struct plan_launch *into)
{
    const bool compiled = making->program->candidate->language->fixes_block;
    static const int64_t grid_most[3] = {INT32_MAX, GRID_YZ_MOST, GRID_YZ_MOST};
    static const int64_t block_most[3] = {BLOCK_MOST, BLOCK_MOST, 64};
    int64_t shared = 0, shared_most = fact(making, "shared_bytes_optin", 48 << 10);
    *into = (struct plan_launch){.cooperative = launch->cooperative,
                                 .arg_count = (uint32_t)launch->arg_count};
    if (strlen(launch->entry) >= sizeof into->entry)
        return err_set(making->err, ERR_LIMIT, "an entry's name has at most %d bytes",
                       PLAN_ENTRY_MAX - 1);
    strcpy(into->entry, launch->entry);
    if (launch->grid[0] == NULL || (launch->block[0] == NULL && !compiled))
        return err_set(making->err, ERR_LIMIT, "%s: expected grid and block", launch->entry);
    if (make_extent(making, launch, launch->grid, "grid", grid_most, into->grid) != 0 ||
        make_extent(making, launch, launch->block, "block", block_most, into->block) != 0 ||
        check_product(making, launch->entry, "a block's threads", into->block, BLOCK_MOST) != 0 ||
        make_cluster(making, launch, into) != 0)
        return -1;
    if (launch->shared_bytes != NULL && evaluate(making, launch->shared_bytes, launch->entry,
                                                 "shared", 0, shared_most, &shared) != 0) {
        if (shared > shared_most)
            making->err->code = ERR_ROOM;
        return -1;
    }
    /* In whole vectors: at the end of an array compilers load four elements where one is left,
     * which no device minds, and compute-sanitizer does. */
    into->shared_bytes = (uint32_t)(shared + 15) & ~15U;
    for (size_t i = 0; i < launch->arg_count; i++)
        if (make_arg(making, launch->entry, launch->args[i], &into->args[i]) != 0)
            return -1;
    return compiled ? make_compiled(making, launch, into) : 0;
}

/* --- tensor maps --- */

static uint32_t map_type(enum dtype dtype, bool tf32)
{
    switch (dtype) {
    case DTYPE_FLOAT64:
        return CU_MAP_FLOAT64;
    case DTYPE_INT32:
        return CU_MAP_INT32;
    case DTYPE_FLOAT16:
        return CU_MAP_FLOAT16;
    case DTYPE_BFLOAT16:
        return CU_MAP_BFLOAT16;
    case DTYPE_FLOAT32:
    case DTYPES:
        break;
    }
    return tf32 ? CU_MAP_TFLOAT32 : CU_MAP_FLOAT32;
}

/* 0, 32, 64, 128 (or 64, 128, 256 for the promotion) to the enumeration's 0 to 3. */
static uint32_t step_of(int bytes, int first)
{
    uint32_t step = 0;
    for (int size = first; bytes >= size; size *= 2)
        step++;
    return step;
}

static int map_extents(struct making *making, const struct tensor_map *map,
                       const struct tensor_spec *spec, int64_t extents[RANK_MAX], size_t *rank)
{
    size_t elements;
    int64_t seen = 1;
    if (tensor_extents(spec, &making->scope, extents, &elements, making->err) != 0)
        return err_wrap(making->err, "%s", map->name);
    *rank = spec->rank;
    if (map->shape[0] == NULL)
        return 0;
    *rank = map->rank;
    for (size_t i = 0; i < map->rank; i++) {
        if (evaluate(making, map->shape[i], map->name, "shape", 1, UINT32_MAX, &extents[i]) != 0)
            return -1;
        if (__builtin_mul_overflow(seen, extents[i], &seen))
            seen = INT64_MAX;
    }
    if ((uint64_t)seen > elements)
        return err_set(making->err, ERR_LIMIT, "%s: its shape is larger than %s", map->name,
                       map->tensor);
    return 0;
}

/* `compiled`: what the compile made of its box; NULL: as the candidate says. */
static int make_map(struct making *making, const struct tensor_map *map,
                    const struct kernel_map *compiled, struct plan_map *into)
{
    const bool fixes = making->program->candidate->language->fixes_block;
    int64_t extents[RANK_MAX];
    size_t rank = 0, pointer = 0;
    const struct tensor_spec *spec = tensor_of(making, map->tensor, &pointer);
    if (spec == NULL)
        return err_set(making->err, ERR_LIMIT, "%s: no tensor %s", map->name, map->tensor);
    if (map_extents(making, map, spec, extents, &rank) != 0)
        return -1;
    if (rank != map->rank)
        return err_set(making->err, ERR_LIMIT, "%s: its box has %zu axes, the tensor %zu",
                       map->name, map->rank, rank);
    if (compiled != NULL && compiled->rank != rank)
        return err_set(making->err, ERR_LIMIT, "%s: its compile has a box of %u axes", map->name,
                       compiled->rank);
    *into = (struct plan_map){.pointer = (uint32_t)pointer,
                              .type = map_type(spec->dtype, map->tf32),
                              .rank = (uint32_t)rank,
                              .swizzle = step_of(map->swizzle_bytes, 32),
                              .promotion = step_of(map->l2_bytes, 64)};
    if (compiled != NULL) {
        into->swizzle = compiled->swizzle;
        into->promotion = COMPILED_PROMOTION;
    }
    uint64_t stride = dtype_bytes(spec->dtype);
    bool usable = true;
    for (size_t i = 0; i < rank; i++) {
        size_t axis = rank - 1 - i;
        int64_t box, step = 1;
        if (evaluate(making, map->box[axis], map->name, "box", 1, fixes ? TILE_MOST : BOX_MOST,
                     &box) != 0 ||
            (map->strides[axis] != NULL &&
             evaluate(making, map->strides[axis], map->name, "strides", 1, 8, &step) != 0))
            return -1;
        into->box[i] = compiled != NULL ? compiled->box[axis] : (uint32_t)box;
        into->element_strides[i] = (uint32_t)step;
        into->extents[i] = (uint64_t)extents[axis];
        into->strides[i] = stride;
        usable = usable && (i == 0 || stride % 16 == 0);
        stride *= (uint64_t)extents[axis];
    }
    if (!usable)
        into->rank = 0;
    return 0;
}

static int make_memset(struct making *making, const struct memset_spec *memset_spec,
                       struct plan_memset *into)
{
    int64_t extents[RANK_MAX];
    size_t elements, pointer = 0;
    const struct tensor_spec *spec = tensor_of(making, memset_spec->tensor, &pointer);
    if (spec == NULL)
        return err_set(making->err, ERR_LIMIT, "memset: no tensor %s", memset_spec->tensor);
    if (tensor_extents(spec, &making->scope, extents, &elements, making->err) != 0)
        return err_wrap(making->err, "memset: %s", memset_spec->tensor);
    *into = (struct plan_memset){.pointer = (uint32_t)pointer,
                                 .byte = memset_spec->byte,
                                 .bytes = elements * dtype_bytes(spec->dtype)};
    return 0;
}

/* One whose name an earlier launch has is none. */
static bool is_new(const struct plan *plan, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(plan->launches[i].entry, plan->launches[index].entry) == 0)
            return false;
    return true;
}

void plan_entries(const struct plan *plan, char text[PLAN_ENTRIES_TEXT])
{
    size_t at = 0;
    uint32_t left = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < plan->launch_count; i++)
        left += is_new(plan, i);
    for (uint32_t i = 0; i < plan->launch_count && at < PLAN_ENTRIES_TEXT; i++)
        if (is_new(plan, i)) {
            left--;
            at +=
                (size_t)snprintf(text + at, PLAN_ENTRIES_TEXT - at, "%s%s", plan->launches[i].entry,
                                 left > 1    ? ", "
                                 : left == 1 ? " or "
                                             : "");
        }
}

int plan_make(const struct program *program, const struct names *facts, const struct call *call,
              struct plan *plan, struct err *err)
{
    return plan_make_of(program, NULL, facts, call, plan, err);
}

int plan_make_of(const struct program *program, const struct variants *variants,
                 const struct names *facts, const struct call *call, struct plan *plan,
                 struct err *err)
{
    const struct candidate *candidate = program->candidate;
    struct making making = {.program = program, .variants = variants, .plan = plan, .err = err};
    if (candidate->launch_count == 0)
        return err_set(err, ERR_LIMIT, "the candidate has no launch: in its front matter");
    *plan = (struct plan){.launch_count = (uint32_t)candidate->launch_count,
                          .map_count = variants != NULL ? 0 : (uint32_t)candidate->map_count,
                          .memset_count = (uint32_t)candidate->memset_count};
    if (make_scope(&making, facts, call) != 0)
        return -1;
    for (size_t i = 0; i < candidate->launch_count; i++)
        if (make_launch(&making, &candidate->launches[i], &plan->launches[i]) != 0)
            return -1;
    for (size_t i = 0; variants == NULL && i < candidate->map_count; i++)
        if (make_map(&making, &candidate->maps[i], NULL, &plan->maps[i]) != 0)
            return -1;
    for (size_t i = 0; i < candidate->memset_count; i++)
        if (make_memset(&making, &candidate->memsets[i], &plan->memsets[i]) != 0)
            return -1;
    return 0;
}

bool plan_cooperates(const struct plan *plan)
{
    bool found = false;
    for (uint32_t i = 0; i < plan->launch_count; i++)
        found = found || plan->launches[i].cooperative != 0;
    return found;
}
