#include "eval/cuda/run/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PORTABLE_CLUSTER = 8, PARAMETERS_MOST = 1024 };

static int refuse(struct fault *fault, enum report_status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

static int refuse(struct fault *fault, enum report_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->reason, sizeof fault->reason, format, arguments);
    va_end(arguments);
    fault->status = status;
    return -1;
}

/* --- what results mean --- */

static const struct {
    cu_result result;
    bool running; /* of a kernel that ran, and not of what was asked for */
    const char *words;
} meanings[] = {
    {2, false, "out of device memory"},
    {700, true, "illegal memory access"},
    {701, false, "too many resources for one launch (registers or shared memory)"},
    {702, true, "took longer than the driver allows"},
    {710, true, "an assertion failed"},
    {714, true, "stack overflow or corrupted stack"},
    {715, true, "illegal instruction"},
    {716, true, "misaligned address"},
    {717, true, "an address of another address space"},
    {718, true, "jumped to an invalid address"},
    {719, true, "unspecified launch failure (a trap, or an invalid access)"},
    {720, false, "a cooperative launch of more blocks than can be resident"},
    {912, false, "a cluster of a size that the device cannot schedule"},
};

bool graph_is_fault(cu_result result)
{
    bool running = false;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        running = running || (meanings[i].result == result && meanings[i].running);
    return running;
}

int graph_fault(const struct graph *graph, cu_result result, const char *entry, struct fault *fault)
{
    char any[PLAN_ENTRIES_TEXT];
    const char *name = driver_error(graph->driver, result), *words = "failed";
    plan_entries(graph->plan, any);
    fault->memory = result == CU_OUT_OF_MEMORY;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].result == result)
            words = meanings[i].words;
    return refuse(fault, REPORT_FAULT, "%s: %s (%s)", entry != NULL ? entry : any, words, name);
}

/* --- loading --- */

/* An argument is copied with the size of the function's parameter: one that is missing, or larger
 * than what is given, would be read from whatever lies there. A number's lower bytes are the
 * number.
 */
static int check_parameters(const struct driver *driver, const struct plan_launch *launch,
                            cu_function function, struct fault *fault)
{
    static const char *const kinds[] = {[PLAN_POINTER] = "a tensor",
                                        [PLAN_NUMBER] = "a number",
                                        [PLAN_MAP] = "a tensor map",
                                        [PLAN_SCRATCH] = "scratch"};
    size_t count = 0, offset = 0, bytes[PARAMETERS_MOST];
    if (driver->parameter == NULL)
        return 0;
    while (count < PARAMETERS_MOST &&
           driver->parameter(function, count, &offset, &bytes[count]) == 0)
        count++;
    if (count != launch->arg_count)
        return refuse(fault, REPORT_REFUSED, "%s: args has %u names, but the function takes %zu",
                      launch->entry, launch->arg_count, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t kind = launch->args[i].kind;
        size_t given = kind == PLAN_MAP ? sizeof(struct cu_tensor_map) : sizeof(int64_t);
        if (bytes[i] != given && (kind != PLAN_NUMBER || bytes[i] > given))
            return refuse(fault, REPORT_REFUSED,
                          "%s: argument %zu of args is %s of %zu bytes, the function's has %zu",
                          launch->entry, i + 1, kinds[kind], given, bytes[i]);
    }
    return 0;
}

static cu_module module_of(const struct graph *graph, uint64_t at)
{
    for (size_t i = 0; i < graph->modules.count; i++)
        if (graph->modules.of[i].at == at)
            return graph->modules.of[i].module;
    return NULL;
}

static int prepare(struct graph *graph, uint32_t index, struct fault *fault)
{
    const struct driver *driver = graph->driver;
    const struct plan_launch *launch = &graph->plan->launches[index];
    cu_function *function = &graph->functions[index];
    int local = 0, threads = 0;
    uint32_t block = launch->block[0] * launch->block[1] * launch->block[2];
    cu_result result =
        driver->module_function(function, module_of(graph, launch->image_at), launch->entry);
    if (result == CU_NOT_FOUND)
        return refuse(fault, REPORT_REFUSED, "the source has no extern \"C\" __global__ %s",
                      launch->entry);
    if (result == 0 && check_parameters(driver, launch, *function, fault) != 0)
        return -1;
    if (result == 0 &&
        driver->function_get(&threads, CU_FUNCTION_THREADS_PER_BLOCK, *function) == 0 &&
        threads > 0 && block > (uint32_t)threads)
        return refuse(fault, REPORT_REFUSED,
                      "%s: a block of %u threads, but its registers and __launch_bounds__ allow %d",
                      launch->entry, block, threads);
    if (result == 0 && launch->shared_bytes > 0)
        result = driver->function_set(*function, CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                      (int)launch->shared_bytes);
    if (result != 0)
        return refuse(fault, REPORT_REFUSED,
                      "%s: cannot have %u bytes of dynamic shared memory (%s)", launch->entry,
                      launch->shared_bytes, driver_error(driver, result));
    if (launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > PORTABLE_CLUSTER)
        (void)driver->function_set(*function, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1);
    if (driver->function_get(&local, CU_FUNCTION_LOCAL_BYTES, *function) == 0 && local > 0)
        graph->local_memory = true;
    return 0;
}

static int make_map(struct graph *graph, uint32_t index, struct fault *fault)
{
    const struct driver *driver = graph->driver;
    const struct plan_map *map = &graph->plan->maps[index];
    memset(&graph->maps[index], 0, sizeof graph->maps[index]);
    if (map->rank == 0)
        return 0;
    if (driver->tensor_map == NULL)
        return refuse(fault, REPORT_REFUSED, "this driver has no tensor maps");
    cu_result result = driver->tensor_map(
        &graph->maps[index], (int)map->type, map->rank,
        (void *)(uintptr_t)graph->pointers[map->pointer], map->extents, map->strides + 1, map->box,
        map->element_strides, 0, (int)map->swizzle, (int)map->promotion, 0);
    if (result == 0)
        return 0;
    return refuse(fault, REPORT_REFUSED,
                  "tensor map %u: %s: see candidate-format.md for its limits", index + 1,
                  driver_error(driver, result));
}

static int load(struct graph *graph, const void *image, struct fault *fault)
{
    const struct driver *driver = graph->driver;
    struct graph_modules *modules = &graph->modules;
    for (uint32_t i = 0; i < graph->plan->launch_count; i++) {
        uint64_t at = graph->plan->launches[i].image_at;
        if (module_of(graph, at) != NULL)
            continue;
        modules->of[modules->count].at = at;
        cu_result result =
            driver->module_load(&modules->of[modules->count].module, (const char *)image + at);
        if (result != 0)
            return refuse(fault, REPORT_REFUSED, "the cubin cannot be loaded: %s",
                          driver_error(driver, result));
        modules->count++;
    }
    uint64_t scratch = graph->plan->scratch_bytes;
    cu_result result = scratch > 0 ? driver->allocate(&graph->scratch, scratch) : 0;
    if (result == 0)
        return 0;
    graph->scratch = 0;
    fault->memory = result == CU_OUT_OF_MEMORY;
    return refuse(fault, REPORT_FAULT, "%llu MiB of scratch memory: %s",
                  (unsigned long long)(scratch >> 20), driver_error(driver, result));
}

int graph_open(const struct driver *driver, const void *image, const struct graph_modules *modules,
               const struct plan *plan, const cu_pointer *pointers, cu_stream stream,
               struct graph *graph, struct fault *fault)
{
    *graph = (struct graph){.driver = driver, .plan = plan, .pointers = pointers, .stream = stream};
    if (modules != NULL)
        graph->modules = *modules;
    if (load(graph, image, fault) != 0)
        return -1;
    for (uint32_t i = 0; i < plan->launch_count; i++)
        if (prepare(graph, i, fault) != 0)
            return -1;
    for (uint32_t i = 0; i < plan->map_count; i++)
        if (make_map(graph, i, fault) != 0)
            return -1;
    return 0;
}

void graph_close(struct graph *graph)
{
    if (graph->exec != NULL)
        (void)graph->driver->graph_exec_destroy(graph->exec);
    if (graph->scratch != 0)
        (void)graph->driver->release(graph->scratch);
    if (!graph->borrowed)
        graph_unload(graph->driver, &graph->modules);
    graph->exec = NULL;
    graph->scratch = 0;
    graph->modules.count = 0;
}

void graph_unload(const struct driver *driver, struct graph_modules *modules)
{
    while (modules->count > 0)
        (void)driver->module_unload(modules->of[--modules->count].module);
}

cu_result graph_clear(struct graph *graph)
{
    if (graph->scratch == 0)
        return 0;
    return graph->driver->fill(graph->scratch, 0xa5, graph->plan->scratch_bytes, graph->stream);
}

/* --- launching --- */

static cu_result enqueue_memsets(struct graph *graph)
{
    cu_result result = 0;
    for (uint32_t i = 0; result == 0 && i < graph->plan->memset_count; i++) {
        const struct plan_memset *set = &graph->plan->memsets[i];
        result = graph->driver->fill(graph->pointers[set->pointer], (unsigned char)set->byte,
                                     set->bytes, graph->stream);
    }
    return result;
}

static void mark(struct graph *graph, uint32_t running)
{
    if (graph->running != NULL)
        *graph->running = running;
}

static cu_result enqueue(struct graph *graph, uint32_t index)
{
    const struct plan_launch *launch = &graph->plan->launches[index];
    static const struct cu_tensor_map zeros;
    void *arguments[PLAN_ARGS_MAX];
    cu_pointer pointers[PLAN_ARGS_MAX];
    struct cu_launch_attribute attributes[CU_LAUNCH_ATTRIBUTES];
    struct cu_launch_config config = {
        .shared_bytes = launch->shared_bytes, .stream = graph->stream, .attributes = attributes};
    memset(attributes, 0, sizeof attributes);
    memcpy(config.grid, launch->grid, sizeof config.grid);
    memcpy(config.block, launch->block, sizeof config.block);
    for (uint32_t i = launch->arg_count; i < PLAN_ARGS_MAX; i++) /* where nobody could count them */
        arguments[i] = (void *)(uintptr_t)&zeros;
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        const struct plan_arg *arg = &launch->args[i];
        pointers[i] = arg->kind == PLAN_POINTER   ? graph->pointers[arg->index]
                      : arg->kind == PLAN_SCRATCH ? graph->scratch + (cu_pointer)arg->number
                                                  : 0;
        arguments[i] = arg->kind == PLAN_NUMBER ? (void *)(uintptr_t)&arg->number
                       : arg->kind == PLAN_MAP  ? (void *)&graph->maps[arg->index]
                                                : (void *)&pointers[i];
    }
    if (launch->cooperative) {
        attributes[config.attribute_count].id = CU_LAUNCH_COOPERATIVE;
        attributes[config.attribute_count++].value.cooperative = 1;
    }
    if (launch->cluster[0] > 0) {
        attributes[config.attribute_count].id = CU_LAUNCH_CLUSTER;
        memcpy(attributes[config.attribute_count++].value.cluster, launch->cluster,
               sizeof launch->cluster);
    }
    mark(graph, index + 1);
    return graph->driver->launch(&config, graph->functions[index], arguments, NULL);
}

static bool is_queued(const struct graph *graph)
{
    return graph->warm && graph->plan->launch_count == 1 && graph->plan->memset_count == 0;
}

int graph_capture(struct graph *graph, struct fault *fault)
{
    if (is_queued(graph))
        return 0;
    const struct driver *driver = graph->driver;
    const char *entry = NULL;
    cu_graph captured = NULL;
    cu_result result = driver->capture_begin(graph->stream, CU_CAPTURE_THREAD_LOCAL);
    if (result == 0)
        result = enqueue_memsets(graph);
    for (uint32_t i = 0; result == 0 && i < graph->plan->launch_count; i++) {
        entry = graph->plan->launches[i].entry;
        result = enqueue(graph, i);
    }
    mark(graph, RUNNING_NONE);
    cu_result ended = driver->capture_end(graph->stream, &captured);
    if (result == 0) {
        entry = ended != 0 ? NULL : entry;
        result = ended;
    }
    if (result == 0)
        result = driver->graph_instantiate(&graph->exec, captured, 0);
    if (result == 0)
        result = driver->graph_upload(graph->exec, graph->stream);
    if (captured != NULL)
        (void)driver->graph_destroy(captured);
    return result == 0 ? 0 : graph_fault(graph, result, entry, fault);
}

int graph_launch(struct graph *graph, struct fault *fault)
{
    cu_result result = 0;
    if (is_queued(graph)) {
        result = enqueue(graph, 0);
    } else {
        mark(graph, RUNNING_ANY);
        result = graph->driver->graph_launch(graph->exec, graph->stream);
    }
    return result == 0 ? 0 : graph_fault(graph, result, NULL, fault);
}

int graph_queue(struct graph *graph, struct fault *fault)
{
    cu_result result = enqueue_memsets(graph);
    for (uint32_t i = 0; result == 0 && i < graph->plan->launch_count; i++)
        result = enqueue(graph, i);
    return result == 0 ? 0 : graph_fault(graph, result, NULL, fault);
}

int graph_step(struct graph *graph, struct fault *fault)
{
    cu_result result = enqueue_memsets(graph);
    for (uint32_t i = 0; result == 0 && i < graph->plan->launch_count; i++) {
        result = enqueue(graph, i);
        if (result == 0)
            result = graph->driver->stream_wait(graph->stream);
        if (result != 0)
            return graph_fault(graph, result, graph->plan->launches[i].entry, fault);
    }
    mark(graph, RUNNING_NONE);
    return result == 0 ? 0 : graph_fault(graph, result, "memset", fault);
}
