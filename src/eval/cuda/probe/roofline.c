#include "eval/cuda/probe/roofline.h"

#include <string.h>

#define MIB ((size_t)1 << 20)
enum { TRIALS = 5, PTX_MOST = 1 << 20, BLOCKS_PER_SM = 4 };
static const double trial_s = 0.02; /* long enough for clocks to rise */

struct bench_gpu {
    const struct driver *driver;
    const struct device *device;
    cu_stream stream;
    cu_event begin, end;
    cu_pointer from, to;
    size_t bytes; /* of each of the two */
};

static double seconds(struct bench_gpu *bench)
{
    float milliseconds = 0.0f;
    const struct driver *driver = bench->driver;
    if (driver->event_record(bench->end, bench->stream) != 0 ||
        driver->stream_wait(bench->stream) != 0 ||
        driver->event_elapsed(&milliseconds, bench->begin, bench->end) != 0)
        return 0.0;
    return (double)milliseconds / 1e3;
}

static void keep_best(double *best, double amount, double time_s)
{
    if (time_s > 0.0 && amount / time_s > *best)
        *best = amount / time_s;
}

static void measure_copy(struct bench_gpu *bench, double *rate)
{
    const struct driver *driver = bench->driver;
    for (int i = 0; i < TRIALS; i++) {
        if (driver->event_record(bench->begin, bench->stream) != 0 ||
            driver->copy(bench->to, bench->from, bench->bytes, bench->stream) != 0)
            return;
        keep_best(rate, 2.0 * (double)bench->bytes, seconds(bench));
    }
}

static double run(struct bench_gpu *bench, cu_function function, uint32_t blocks, void **arguments)
{
    struct cu_launch_config config = {
        .grid = {blocks, 1, 1}, .block = {ROOFLINE_THREADS, 1, 1}, .stream = bench->stream};
    if (bench->driver->event_record(bench->begin, bench->stream) != 0 ||
        bench->driver->launch(&config, function, arguments, NULL) != 0)
        return 0.0;
    return seconds(bench);
}

/* The grid divides the words, so that no thread reads past the end with its four loads. */
static void measure_read(struct bench_gpu *bench, cu_module module, double *rate)
{
    cu_function function;
    uint32_t blocks = (uint32_t)bench->device->sm_count * 8;
    size_t step = (size_t)blocks * ROOFLINE_THREADS * 16 * 4;
    size_t bytes = bench->bytes / step * step;
    uint64_t words = bytes / 16;
    void *arguments[] = {&bench->from, &words, &bench->to};
    if (bench->driver->module_function(&function, module, "read") != 0)
        return;
    for (int i = 0; i < TRIALS; i++)
        keep_best(rate, (double)bytes, run(bench, function, blocks, arguments));
}

static void measure_unit(struct bench_gpu *bench, enum roofline_unit unit,
                         struct roofline *roofline)
{
    const struct driver *driver = bench->driver;
    cu_module module = NULL;
    cu_function function;
    double flops = 0.0;
    BUF_LOCAL(text, PTX_MOST);
    bool known = roofline_ptx(unit, bench->device->major, bench->device->minor, &text, &flops) &&
                 driver->module_load(&module, buf_text(&text)) == 0;
    if (!known)
        return;
    uint32_t blocks = (uint32_t)bench->device->sm_count * BLOCKS_PER_SM, turns = 64;
    void *arguments[] = {&turns, &bench->to};
    flops *= (double)blocks;
    if (driver->module_function(&function, module, "work") == 0)
        for (int i = 0; i < 3 * TRIALS; i++) {
            double time_s = run(bench, function, blocks, arguments);
            if (!(time_s > 0.0))
                break;
            keep_best(&roofline->flops_per_s[unit], flops * turns, time_s);
            if (time_s < trial_s && turns < (1U << 24))
                turns *= time_s < trial_s / 8 ? 8 : 2;
        }
    if (unit == UNIT_FP32)
        measure_read(bench, module, &roofline->read_bytes_per_s);
    (void)driver->module_unload(module);
}

int roofline_measure_gpu(const struct driver *driver, const struct device *device,
                         struct roofline *roofline, struct err *err)
{
    struct bench_gpu bench = {.driver = driver, .device = device};
    memset(roofline, 0, sizeof *roofline);
    size_t most = device->memory_bytes / 8;
    bench.bytes = most < 1024 * MIB ? most : 1024 * MIB;
    cu_result result = driver->stream_create(&bench.stream, 0);
    if (result == 0)
        result = driver->event_create(&bench.begin, 0);
    if (result == 0)
        result = driver->event_create(&bench.end, 0);
    if (result == 0)
        result = driver->allocate(&bench.from, bench.bytes);
    if (result == 0)
        result = driver->allocate(&bench.to, bench.bytes);
    if (result == 0)
        result = driver->fill(bench.from, 0x3c, bench.bytes, bench.stream);
    if (result != 0)
        return err_set(err, ERR_ENVIRONMENT, "measuring GPU ceilings: %s",
                       driver_error(driver, result));
    for (int i = 0; i < UNITS; i++) /* first, since it wakes the clocks */
        measure_unit(&bench, (enum roofline_unit)i, roofline);
    measure_copy(&bench, &roofline->copy_bytes_per_s);
    return 0;
}
