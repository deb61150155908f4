/* Four shaders over two buffers: one fills, and three copy, read or compute, once untimed, then a
 * few times between two timestamps. The arithmetic of a thread is two vectors of four, multiplied
 * and added to themselves: eight chains, enough for units that answer after a few clocks, and few
 * enough for sixteen registers. */
#include "eval/webgpu/roofline.h"

#include "base/buf.h"

enum {
    WIDTH = 256, /* of a workgroup */
    EACH = 4,    /* vectors that a thread copies */
    STEPS = 64,  /* of the arithmetic that a round has: eight multiply-adds each */
    TRIALS = 5,
    TICKS_BYTES = 256,
    TEXT_MOST = 1 << 14
};

struct work { /* software computes on a few cores */
    uint64_t bytes;
    uint32_t groups, rounds; /* of the arithmetic */
};
static const struct work work_of_gpu = {256 << 20, 132 * 64, 64}, work_of_cpu = {64 << 20, 64, 16};

struct bench {
    struct device *device;
    struct work work;
    wgpu_handle queries, resolved, ticks;
    wgpu_handle layout, pipeline_layout, module;
    wgpu_handle there, back; /* groups: out of the first buffer into the second, and turned about */
};

static const char head[] =
    "@group(0) @binding(0) var<storage, read> x: array<vec4f>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;\n"
    "override each: u32;\n"
    "override rounds: u32;\n"
    "@compute @workgroup_size(256)\n"
    "fn fill(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {\n"
    "    for (var i = id.x; i < each * n.x * 256u; i += n.x * 256u) {\n"
    "        y[i] = vec4f((vec4u(i) * vec4u(1u, 3u, 5u, 7u) * 2654435761u) >> vec4u(9u)) / "
    "8388608.0;\n"
    "    }\n"
    "}\n"
    "@compute @workgroup_size(256)\n"
    "fn copy(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {\n"
    "    for (var i = id.x; i < each * n.x * 256u; i += n.x * 256u) {\n"
    "        y[i] = x[i];\n"
    "    }\n"
    "}\n"
    "@compute @workgroup_size(256)\n"
    "fn sum(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) n: vec3u) {\n"
    "    var all = vec4f();\n"
    "    for (var i = id.x; i < each * n.x * 256u; i += n.x * 256u) {\n"
    "        all += x[i];\n"
    "    }\n"
    "    if (all.x + all.y + all.z + all.w == -1.5) {\n"
    "        y[id.x] = all;\n"
    "    }\n"
    "}\n"
    "@compute @workgroup_size(256)\n"
    "fn compute(@builtin(global_invocation_id) id: vec3u) {\n"
    "    let by = x[0];\n"
    "    let add = x[1];\n"
    "    var a = x[id.x % 64u];\n"
    "    var b = x[id.x % 32u];\n"
    "    for (var i = 0u; i < rounds; i++) {\n";

static wgpu_handle make_module(const struct device *device)
{
    BUF_LOCAL(text, TEXT_MOST);
    buf_add_text(&text, head);
    for (int i = 0; i < STEPS; i++)
        buf_add_text(&text, "        a = fma(a, by, add);\n        b = fma(b, by, add);\n");
    buf_add_text(
        &text, "    }\n    if (dot(a + b, vec4f(1.0)) == -1.5) {\n        y[id.x % 64u] = a + b;\n"
               "    }\n}\n");
    return wgpu_module(device, buf_text(&text), text.length);
}

static wgpu_handle make_group(const struct bench *bench, wgpu_handle from, wgpu_handle to)
{
    const struct wgpu_group_entry entries[] = {
        {.binding = 0, .buffer = from, .size = bench->work.bytes},
        {.binding = 1, .buffer = to, .size = bench->work.bytes}};
    const struct wgpu_group_descriptor descriptor = {
        .layout = bench->layout, .count = 2, .entries = entries};
    return bench->device->wgpu.create_group(bench->device->handle, &descriptor);
}

static void prepare(struct bench *bench)
{
    const struct device *device = bench->device;
    const struct wgpu *wgpu = &device->wgpu;
    const struct wgpu_layout_entry entries[] = {
        {.binding = 0, .visibility = WGPU_STAGE_COMPUTE, .buffer.type = WGPU_BINDING_READ_ONLY},
        {.binding = 1, .visibility = WGPU_STAGE_COMPUTE, .buffer.type = WGPU_BINDING_STORAGE}};
    const struct wgpu_list_descriptor group = {.count = 2, .items = entries};
    const struct wgpu_query_descriptor queries = {.type = WGPU_QUERY_TIMESTAMP, .count = 2};
    bench->layout = wgpu->create_group_layout(device->handle, &group);
    const struct wgpu_list_descriptor pipeline = {.count = 1, .items = &bench->layout};
    bench->pipeline_layout = wgpu->create_pipeline_layout(device->handle, &pipeline);
    bench->queries = wgpu->create_queries(device->handle, &queries);
    bench->resolved =
        wgpu_buffer(device, WGPU_BUFFER_QUERY_RESOLVE | WGPU_BUFFER_COPY_SRC, TICKS_BYTES);
    bench->ticks = wgpu_buffer(device, WGPU_BUFFER_MAP_READ | WGPU_BUFFER_COPY_DST, TICKS_BYTES);
    wgpu_handle first = wgpu_buffer(device, WGPU_BUFFER_STORAGE, bench->work.bytes);
    wgpu_handle second = wgpu_buffer(device, WGPU_BUFFER_STORAGE, bench->work.bytes);
    bench->there = make_group(bench, first, second);
    bench->back = make_group(bench, second, first);
    bench->module = make_module(device);
}

static wgpu_handle make_pipeline(const struct bench *bench, const char *entry)
{
    const struct wgpu_constant constants[] = {
        {.key = wgpu_text("each"), .value = EACH},
        {.key = wgpu_text("rounds"), .value = bench->work.rounds}};
    struct wgpu_pipeline_descriptor descriptor = {.layout = bench->pipeline_layout};
    descriptor.compute.module = bench->module;
    descriptor.compute.entry = wgpu_text(entry);
    descriptor.compute.constant_count = 2;
    descriptor.compute.constants = constants;
    return bench->device->wgpu.create_pipeline(bench->device->handle, &descriptor);
}

/* Seconds; 0: the timestamps say nothing. */
static double trial(const struct bench *bench, wgpu_handle pipeline, wgpu_handle group,
                    uint32_t groups)
{
    const struct device *device = bench->device;
    const struct wgpu *wgpu = &device->wgpu;
    const struct wgpu_timestamps stamps = {.set = bench->queries, .begin = 0, .end = 1};
    const struct wgpu_pass_descriptor descriptor = {.timestamps = &stamps};
    wgpu_handle commands = wgpu_encoder(device);
    wgpu_handle pass = wgpu->begin_pass(commands, &descriptor);
    wgpu->use_group(pass, 0, group, 0, NULL);
    wgpu->use_pipeline(pass, pipeline);
    wgpu->dispatch(pass, groups, 1, 1);
    wgpu->end_pass(pass);
    wgpu->pass_free(pass);
    wgpu->resolve_queries(commands, bench->queries, 0, 2, bench->resolved, 0);
    wgpu->copy_buffer(commands, bench->resolved, 0, bench->ticks, 0, 16);
    wgpu_submit(device, commands);
    const uint64_t *ticks = wgpu_map(device, bench->ticks, 16);
    if (ticks == NULL)
        return 0.0;
    double seconds =
        ticks[1] > ticks[0] ? (double)(ticks[1] - ticks[0]) * device->tick_ns / 1e9 : 0.0;
    wgpu->unmap(bench->ticks);
    return seconds;
}

/* The most of `amount` a second. */
static double best_rate(const struct bench *bench, wgpu_handle pipeline, uint32_t groups,
                        double amount)
{
    double best = 0.0;
    (void)trial(bench, pipeline, bench->there, groups); /* drivers compile at the first use */
    for (int i = 0; i < TRIALS; i++) {
        double seconds = trial(bench, pipeline, bench->there, groups);
        if (seconds > 0.0 && amount / seconds > best)
            best = amount / seconds;
    }
    return best;
}

int webgpu_roofline(struct device *device, struct roofline *roofline, struct err *err)
{
    struct bench bench = {.device = device, .work = device->software ? work_of_cpu : work_of_gpu};
    while (bench.work.bytes > device->limits.storage_bytes)
        bench.work.bytes /= 2;
    uint32_t groups = (uint32_t)(bench.work.bytes / (sizeof(float[4]) * EACH * WIDTH));
    double bytes = (double)bench.work.bytes;
    wgpu_watch(device);
    prepare(&bench);
    wgpu_handle fill = make_pipeline(&bench, "fill"), copy = make_pipeline(&bench, "copy");
    wgpu_handle read = make_pipeline(&bench, "sum"), compute = make_pipeline(&bench, "compute");
    bool well = wgpu_went_well(device); /* the library ends whoever uses what failed */
    if (well) {
        wgpu_watch(device);
        double flops = 16.0 * STEPS * WIDTH * bench.work.groups * bench.work.rounds;
        (void)trial(&bench, fill, bench.back, groups);
        roofline->copy_bytes_per_s = best_rate(&bench, copy, groups, 2.0 * bytes);
        roofline->read_bytes_per_s = best_rate(&bench, read, groups, bytes);
        roofline->flops_per_s = best_rate(&bench, compute, bench.work.groups, flops);
        well = wgpu_went_well(device);
    }
    return well ? 0 : err_set(err, ERR_ENVIRONMENT, "ceilings: %s", device->said);
}
