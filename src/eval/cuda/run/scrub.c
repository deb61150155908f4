#include "eval/cuda/run/scrub.h"

#include "base/buf.h"

enum { BLOCK = 256, LIVE = 200 /* registers of a thread that hold it */, LOCAL_BYTES = 512 };
enum { LITTER_BYTES = 32 << 10, LITTER_PER_SM = 16 };

/* PTX for any device since Volta. Every kernel has the same arguments; each word that is written is
 * a hash of the seed and the place, in the form that `fixed` and `random` say. */
#define HEADER                                                                                     \
    ".version 7.0\n.target sm_70\n.address_size 64\n.extern .shared .align 16 .b8 pool[];\n"
#define BEGIN(name, limits)                                                                        \
    ".visible .entry " name "(.param .u32 bytes, .param .u32 seed, .param .u32 fixed,\n"           \
    " .param .u32 random, .param .u64 sink)\n" limits "{\n"                                        \
    " .reg .pred %p;\n .reg .b32 %n, %i, %step, %at, %x, %t, %seed, %f, %m;\n"                     \
    " .reg .b64 %sink, %own, %far;\n"                                                              \
    " ld.param.u32 %n, [bytes];\n ld.param.u32 %seed, [seed];\n ld.param.u32 %f, [fixed];\n"       \
    " ld.param.u32 %m, [random];\n ld.param.u64 %sink, [sink];\n"                                  \
    " mov.u32 %t, %ctaid.x;\n mul.lo.u32 %t, %t, 0xC2B2AE35;\n add.u32 %seed, %seed, %t;\n"
#define EACH_WORD                                                                                  \
    " mov.u32 %i, %tid.x;\n shl.b32 %i, %i, 2;\n mov.u32 %step, %ntid.x;\n"                        \
    " shl.b32 %step, %step, 2;\n"
#define LOOP "again:\n setp.ge.u32 %p, %i, %n;\n @%p bra filled;\n"
#define WORD                                                                                       \
    " mul.lo.u32 %x, %i, 0x9E3779B1;\n add.u32 %x, %x, %seed;\n shr.u32 %t, %x, 15;\n"             \
    " xor.b32 %x, %x, %t;\n mul.lo.u32 %x, %x, 0x85EBCA6B;\n shr.u32 %t, %x, 13;\n"                \
    " xor.b32 %x, %x, %t;\n and.b32 %x, %x, %m;\n or.b32 %x, %x, %f;\n"
#define TO_SHARED                                                                                  \
    LOOP WORD " mov.u32 %at, pool;\n add.u32 %at, %at, %i;\n st.volatile.shared.u32 [%at], %x;\n"  \
              " add.u32 %i, %i, %step;\n bra again;\nfilled:\n"

/* A block as large as an SM's shared memory fills it, then each thread's registers with what lies
 * there: all of them are live at the second barrier, since what becomes of them is known only
 * behind it. */
static void write_blocks(int shared_bytes, struct buf *text)
{
    int rows = shared_bytes / (BLOCK * 4);
    buf_add_text(text, HEADER BEGIN("scrub", ".maxntid 256, 1, 1\n") EACH_WORD TO_SHARED
                 " bar.sync 0;\n mov.u32 %at, pool;\n mov.u32 %t, %tid.x;\n shl.b32 %t, %t, 2;\n"
                 " add.u32 %at, %at, %t;\n");
    buf_addf(text, " .reg .b32 %%h<%d>;\n", LIVE);
    for (int i = 0; i < LIVE; i++)
        buf_addf(text, " ld.volatile.shared.u32 %%h%d, [%%at+%d];\n", i, i % rows * BLOCK * 4);
    buf_add_text(text, " bar.sync 0;\n ld.volatile.shared.u32 %x, [pool];\n");
    for (int i = 0; i < LIVE; i++)
        buf_addf(text, " mad.lo.u32 %%x, %%x, 31, %%h%d;\n", i);
    buf_add_text(text, " setp.ne.u32 %p, %x, 0x5eed5eed;\n @%p ret;\n st.global.u32 [%sink], %x;\n"
                       " ret;\n}\n");
    buf_add_text(text, BEGIN("litter", "") EACH_WORD TO_SHARED " ret;\n}\n");
}

/* Apart: a context has room for as much local memory as the most that any of its kernels has. */
static void write_local(struct buf *text)
{
    buf_add_text(text, HEADER BEGIN("deep", ""));
    buf_addf(text, " .local .align 16 .b8 own[%d];\n mov.u64 %%own, own;\n", LOCAL_BYTES);
    buf_add_text(text, " mov.u32 %i, 0;\n" LOOP WORD " cvt.u64.u32 %far, %i;\n"
                       " add.u64 %far, %own, %far;\n st.local.u32 [%far], %x;\n"
                       " add.u32 %i, %i, 4;\n bra again;\nfilled:\n and.b32 %t, %seed, 60;\n"
                       " cvt.u64.u32 %far, %t;\n add.u64 %far, %own, %far;\n"
                       " ld.local.u32 %x, [%far];\n setp.ne.u32 %p, %x, 0x5eed5eed;\n"
                       " @%p ret;\n st.global.u32 [%sink], %x;\n ret;\n}\n");
}

int scrub_open(const struct driver *driver, int sm_count, int shared_bytes, int threads_per_sm,
               cu_pointer sink, struct scrub *scrub, struct err *err)
{
    BUF_LOCAL(text, 1 << 16);
    *scrub = (struct scrub){.driver = driver,
                            .sink = sink,
                            .sm_count = sm_count,
                            .shared_bytes = shared_bytes,
                            .threads_per_sm = threads_per_sm};
    write_blocks(shared_bytes, &text);
    cu_result result = driver->module_load(&scrub->module, buf_text(&text));
    if (result == 0)
        result = driver->module_function(&scrub->scrub, scrub->module, "scrub");
    if (result == 0)
        result = driver->module_function(&scrub->litter, scrub->module, "litter");
    if (result == 0)
        result = driver->function_set(scrub->scrub, CU_FUNCTION_MAX_DYNAMIC_SHARED, shared_bytes);
    if (result == 0)
        return 0;
    return err_set(err, ERR_ENVIRONMENT, "the driver does not take our own kernels: %s",
                   driver_error(driver, result));
}

static cu_result launch(const struct scrub *scrub, cu_function function, uint32_t blocks,
                        uint32_t bytes, uint64_t seed, cu_stream stream)
{
    static const uint32_t forms[][2] = {
        {0x7ff17ff1, 0x800e800e}, {0, ~0U}, {0x3f803f80, 0x007f007f}, {0, 0}};
    const uint32_t *form = forms[(seed >> 32) % (sizeof forms / sizeof forms[0])];
    uint32_t mixed = (uint32_t)(seed * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    uint32_t fixed = form[0], any = form[1];
    cu_pointer sink = scrub->sink;
    void *arguments[] = {&bytes, &mixed, &fixed, &any, &sink};
    const struct cu_launch_config config = {.grid = {blocks, 1, 1},
                                            .block = {BLOCK, 1, 1},
                                            .shared_bytes = function == scrub->deep ? 0 : bytes,
                                            .stream = stream};
    return scrub->driver->launch(&config, function, arguments, NULL);
}

/* Twice as many blocks as SMs: while one is there no second one of this size fits. */
cu_result scrub_blocks(const struct scrub *scrub, uint64_t seed, cu_stream stream)
{
    return launch(scrub, scrub->scrub, (uint32_t)scrub->sm_count * 2, (uint32_t)scrub->shared_bytes,
                  seed, stream);
}

cu_result scrub_behind(const struct scrub *scrub, uint64_t seed, cu_stream stream)
{
    return launch(scrub, scrub->litter, (uint32_t)scrub->sm_count * LITTER_PER_SM, LITTER_BYTES,
                  seed, stream);
}

cu_result scrub_local(struct scrub *scrub, uint64_t seed, cu_stream stream)
{
    const struct driver *driver = scrub->driver;
    uint32_t blocks = (uint32_t)(scrub->sm_count * (scrub->threads_per_sm / BLOCK) * 4);
    if (scrub->local == NULL) {
        BUF_LOCAL(text, 1 << 14);
        write_local(&text);
        cu_result result = driver->module_load(&scrub->local, buf_text(&text));
        if (result == 0)
            result = driver->module_function(&scrub->deep, scrub->local, "deep");
        if (result != 0)
            return result;
    }
    return launch(scrub, scrub->deep, blocks, LOCAL_BYTES, seed, stream);
}
