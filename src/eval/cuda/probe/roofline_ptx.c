#include "eval/cuda/probe/roofline_ptx.h"

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

bool roofline_ptx(enum roofline_unit unit, int major, int minor, struct buf *text, double *flops)
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
