#include "eval/cuda/probe/roofline.h"

#include <string.h>

/* ---- the loops, as PTX text ---- */

enum { ROOFLINE_THREADS = 256, ROOFLINE_SHARED_BYTES = 48 << 10 };
enum { FMAS = 16, UNROLL = 8, WARPS = ROOFLINE_THREADS / 32, WARPGROUPS = ROOFLINE_THREADS / 128 };
enum { WGMMA_REGISTERS = 64, MMA_CHAINS = 8 };

/* Sixteen bytes a load, four loads in flight a thread. */
static const char read_entry[] =
    ".visible .entry read(.param .u64 from, .param .u64 words, .param .u64 out)\n{\n"
    " .reg .pred %p;\n .reg .b32 %r<8>, %v<16>, %x;\n .reg .b64 %a, %n, %o, %i, %step, %t, %u;\n"
    " ld.param.u64 %a, [from];\n ld.param.u64 %n, [words];\n ld.param.u64 %o, [out];\n"
    " mov.u32 %r0, %tid.x;\n mov.u32 %r1, %ntid.x;\n mov.u32 %r2, %ctaid.x;\n"
    " mov.u32 %r3, %nctaid.x;\n mul.wide.u32 %i, %r2, %r1;\n cvt.u64.u32 %t, %r0;\n"
    " add.u64 %i, %i, %t;\n mul.wide.u32 %step, %r3, %r1;\n mov.u32 %x, 0;\n"
    "again:\n setp.ge.u64 %p, %i, %n;\n @%p bra end;\n shl.b64 %t, %i, 4;\n"
    " add.u64 %t, %a, %t;\n shl.b64 %u, %step, 4;\n"
    " ld.global.v4.u32 {%v0,%v1,%v2,%v3}, [%t];\n add.u64 %t, %t, %u;\n"
    " ld.global.v4.u32 {%v4,%v5,%v6,%v7}, [%t];\n add.u64 %t, %t, %u;\n"
    " ld.global.v4.u32 {%v8,%v9,%v10,%v11}, [%t];\n add.u64 %t, %t, %u;\n"
    " ld.global.v4.u32 {%v12,%v13,%v14,%v15}, [%t];\n";

static void put_read(struct buf *text)
{
    buf_add_text(text, read_entry);
    for (int i = 0; i < 16; i++)
        buf_addf(text, " xor.b32 %%x, %%x, %%v%d;\n", i);
    buf_add_text(text, " shl.b64 %t, %step, 2;\n add.u64 %i, %i, %t;\n bra again;\n"
                       "end:\n setp.ne.u32 %p, %x, 0x12345677;\n @%p bra out_;\n"
                       " st.global.u32 [%o], %x;\nout_:\n ret;\n}\n");
}

static void begin_work(struct buf *text)
{
    buf_add_text(text, ".visible .entry work(.param .u32 turns, .param .u64 out)\n{\n"
                       " .reg .pred %p, %q;\n .reg .b32 %n, %i, %t, %u, %k;\n .reg .b64 %o;\n"
                       " ld.param.u32 %n, [turns];\n ld.param.u64 %o, [out];\n"
                       " mov.u32 %t, %tid.x;\n mov.u32 %i, 0;\n");
}

/* The result is stored where it is what it never is, so that nothing is left out. */
static void end_work(struct buf *text, const char *reg)
{
    buf_addf(text,
             " add.u32 %%i, %%i, 1;\n setp.lt.u32 %%p, %%i, %%n;\n @%%p bra turn;\n"
             " setp.ne.f32 %%p, %s, 0f4CEB79A3;\n @%%p bra out_;\n st.global.f32 [%%o], %s;\n"
             "out_:\n ret;\n}\n",
             reg, reg);
}

/* All of what was computed goes into %s: else most of it would be left out. */
static void put_sum(struct buf *text, const char *reg, int count)
{
    buf_addf(text, " .reg .f32 %%s;\n mov.f32 %%s, %%%s0;\n", reg);
    for (int i = 1; i < count; i++)
        buf_addf(text, " add.f32 %%s, %%s, %%%s%d;\n", reg, i);
}

static void put_fma(struct buf *text)
{
    begin_work(text);
    buf_addf(text, " .reg .f32 %%f<%d>, %%a, %%b;\n mov.f32 %%a, 0f3F7FFFF0;\n", FMAS);
    buf_add_text(text, " cvt.rn.f32.u32 %b, %t;\n");
    for (int i = 0; i < FMAS; i++)
        buf_addf(text, " add.f32 %%f%d, %%b, 0f%08X;\n", i, 0x3F800000u + (unsigned)i * 4096u);
    buf_add_text(text, "turn:\n");
    for (int k = 0; k < UNROLL; k++)
        for (int i = 0; i < FMAS; i++)
            buf_addf(text, " fma.rn.f32 %%f%d, %%f%d, %%a, %%b;\n", i, i);
    put_sum(text, "f", FMAS);
    end_work(text, "%s");
}

static const char *const type_names[UNITS] = {"f32", "tf32", "bf16", "f16"};

/* Bits of two narrow numbers, or of one tf32, between 1 and 2. */
static unsigned ones(enum roofline_unit unit)
{
    return unit == UNIT_FP16 ? 0x3C003C00u : unit == UNIT_BF16 ? 0x3F803F80u : 0x3F800000u;
}

static void put_mma(struct buf *text, enum roofline_unit unit)
{
    begin_work(text);
    buf_addf(text, " .reg .f32 %%d<%d>;\n .reg .b32 %%a<4>, %%b<2>;\n mul.lo.u32 %%k, %%t, 37;\n",
             4 * MMA_CHAINS);
    for (int i = 0; i < 6; i++)
        buf_addf(text,
                 " and.b32 %%u, %%k, 127;\n or.b32 %%%s%d, %%u, 0x%X;\n shr.u32 %%k, %%k, 1;\n",
                 i < 4 ? "a" : "b", i < 4 ? i : i - 4, ones(unit));
    for (int i = 0; i < 4 * MMA_CHAINS; i++)
        buf_addf(text, " mov.f32 %%d%d, 0f00000000;\n", i);
    buf_add_text(text, "turn:\n");
    for (int i = 0; i < MMA_CHAINS; i++)
        buf_addf(text,
                 " mma.sync.aligned.m16n8k%d.row.col.f32.%s.%s.f32 {%%d%d,%%d%d,%%d%d,%%d%d}, "
                 "{%%a0,%%a1,%%a2,%%a3}, {%%b0,%%b1}, {%%d%d,%%d%d,%%d%d,%%d%d};\n",
                 unit == UNIT_TF32 ? 8 : 16, type_names[unit], type_names[unit], 4 * i, 4 * i + 1,
                 4 * i + 2, 4 * i + 3, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
    put_sum(text, "d", 4 * MMA_CHAINS);
    end_work(text, "%s");
}

/* Operands from shared memory, no swizzle: where in it does not matter here. */
static void put_wgmma(struct buf *text, enum roofline_unit unit)
{
    begin_work(text);
    buf_addf(text, " .shared .align 128 .b8 pool[%d];\n .reg .f32 %%d<%d>;\n .reg .b64 %%A, %%B;\n",
             ROOFLINE_SHARED_BYTES, WGMMA_REGISTERS);
    buf_addf(text,
             " mov.u32 %%k, %%t;\nfill:\n setp.ge.u32 %%p, %%k, %d;\n @%%p bra filled;\n"
             " mul.lo.u32 %%u, %%k, 0x9E3779B1;\n shr.u32 %%u, %%u, 20;\n and.b32 %%u, %%u, 127;\n"
             " or.b32 %%u, %%u, 0x%X;\n .reg .b32 %%at;\n mov.u32 %%at, pool;\n"
             " mad.lo.u32 %%at, %%k, 4, %%at;\n st.shared.u32 [%%at], %%u;\n"
             " add.u32 %%k, %%k, %d;\n bra fill;\nfilled:\n bar.sync 0;\n"
             " fence.proxy.async.shared::cta;\n",
             ROOFLINE_SHARED_BYTES / 4, ones(unit), ROOFLINE_THREADS);
    /* descriptor: address / 16, leading and stride byte offsets / 16 at bits 16 and 32 */
    buf_add_text(text, " .reg .b32 %s32;\n mov.u32 %s32, pool;\n shr.u32 %s32, %s32, 4;\n"
                       " and.b32 %s32, %s32, 0x3FFF;\n cvt.u64.u32 %A, %s32;\n"
                       " or.b64 %A, %A, 0x0000001000080000;\n add.u64 %B, %A, 256;\n");
    for (int i = 0; i < WGMMA_REGISTERS; i++)
        buf_addf(text, " mov.f32 %%d%d, 0f00000000;\n", i);
    buf_add_text(text, " setp.eq.u32 %q, %n, %n;\nturn:\n wgmma.fence.sync.aligned;\n");
    for (int k = 0; k < 4; k++) {
        buf_addf(text, " wgmma.mma_async.sync.aligned.m64n128k%d.f32.%s.%s {",
                 unit == UNIT_TF32 ? 8 : 16, type_names[unit], type_names[unit]);
        for (int i = 0; i < WGMMA_REGISTERS; i++)
            buf_addf(text, "%s%%d%d", i > 0 ? "," : "", i);
        buf_addf(text, "}, %%A, %%B, %%q, 1, 1%s;\n", unit == UNIT_TF32 ? "" : ", 0, 0");
    }
    buf_add_text(text, " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n");
    end_work(text, "%d0");
}

/* Entries: `read` (from, 16-byte words, out) and `work` (turns, out), for compute capability
 * major.minor. `flops`: of one turn of all threads of a block. False: the device has no such
 * unit. */
static bool roofline_ptx(enum roofline_unit unit, int major, int minor, struct buf *text,
                         double *flops)
{
    bool wgmma = unit != UNIT_FP32 && major == 9 && minor == 0;
    if (unit != UNIT_FP32 && major < 8)
        return false;
    buf_addf(text, ".version %s\n.target %s\n.address_size 64\n", wgmma ? "8.0" : "7.0",
             wgmma               ? "sm_90a"
             : unit == UNIT_FP32 ? "sm_70"
                                 : "sm_80");
    put_read(text);
    double k = unit == UNIT_TF32 ? 8 : 16;
    if (unit == UNIT_FP32) {
        put_fma(text);
        *flops = 2.0 * FMAS * UNROLL * ROOFLINE_THREADS;
    } else if (wgmma) {
        put_wgmma(text, unit);
        *flops = 2.0 * 64 * 128 * k * 4 * WARPGROUPS;
    } else {
        put_mma(text, unit);
        *flops = 2.0 * 16 * 8 * k * MMA_CHAINS * WARPS;
    }
    return true;
}

#define MIB ((size_t)1 << 20)
enum { TRIALS = 5, ALIKE = 3, PTX_MOST = 1 << 20, BLOCKS_PER_SM = 4 };
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
        for (int i = 0, alike = 0; i < 3 * TRIALS && alike < ALIKE; i++) {
            double time_s = run(bench, function, blocks, arguments);
            double before = roofline->flops_per_s[unit];
            if (!(time_s > 0.0))
                break;
            keep_best(&roofline->flops_per_s[unit], flops * turns, time_s);
            if (time_s < trial_s && turns < (1U << 24))
                turns *= time_s < trial_s / 8 ? 8 : 2;
            else /* its clocks are up where it gets no faster */
                alike = roofline->flops_per_s[unit] > 1.002 * before ? 0 : alike + 1;
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
