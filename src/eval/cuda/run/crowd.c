#include "eval/cuda/run/crowd.h"

#include "base/buf.h"

enum { BLOCK = 128, COPY_BYTES = 8192, BULK_SINCE = 90 /* compute capability */ };
enum { OWN_SHARED = COPY_BYTES + 256, TAKEN_MOST = 8 /* multiprocessors */ };
static const uint64_t most_ns = 20000000;

/* Warp 0 copies to memory by the copy engine, many at a time; warp 1 asks whether to go on; the
 * others read and write. Places come from a generator of each thread's. */
static const char begin[] =
    ".address_size 64\n"
    ".visible .entry crowd(.param .u64 gate, .param .u64 most, .param .u64 memory,\n"
    " .param .u64 mask, .param .u64 seed)\n"
    ".maxntid 128, 1, 1\n"
    "{\n"
    " .shared .align 128 .b8 tile[8192];\n .shared .align 4 .b32 over;\n"
    " .reg .pred %p, %q;\n .reg .b32 %id, %warp, %lane, %open, %tile, %over, %c<4>, %n;\n"
    " .reg .b64 %gate, %most, %memory, %mask, %x, %t, %at, %from;\n"
    " ld.param.u64 %gate, [gate];\n ld.param.u64 %most, [most];\n"
    " ld.param.u64 %memory, [memory];\n ld.param.u64 %mask, [mask];\n ld.param.u64 %x, [seed];\n"
    " mov.u64 %from, %globaltimer;\n mov.u32 %id, %tid.x;\n shr.u32 %warp, %id, 5;\n"
    " and.b32 %lane, %id, 31;\n mov.u32 %tile, tile;\n mov.u32 %over, over;\n"
    " mov.u32 %n, %ctaid.x;\n mad.lo.u32 %n, %n, 128, %id;\n cvt.u64.u32 %t, %n;\n"
    " mad.lo.u64 %x, %t, 0x9E3779B97F4A7C15, %x;\n"
    " setp.ne.u32 %p, %id, 0;\n @%p bra ready;\n mov.u32 %c0, 0;\n"
    " st.volatile.shared.u32 [%over], %c0;\n"
    "ready:\n bar.sync 0;\n"
    " setp.eq.u32 %p, %warp, 0;\n @%p bra copies;\n setp.eq.u32 %p, %warp, 1;\n @%p bra asks;\n"
    "reads:\n"
    " mad.lo.u64 %x, %x, 0x5851F42D4C957F2D, 0x14057B7EF767814F;\n shr.u64 %at, %x, 20;\n"
    " and.b64 %at, %at, %mask;\n add.u64 %at, %memory, %at;\n"
    " ld.volatile.global.v4.u32 {%c0, %c1, %c2, %c3}, [%at];\n"
    " mad.lo.u64 %x, %x, 0x5851F42D4C957F2D, 0x14057B7EF767814F;\n shr.u64 %at, %x, 20;\n"
    " and.b64 %at, %at, %mask;\n add.u64 %at, %memory, %at;\n"
    " st.volatile.global.v4.u32 [%at], {%c0, %c1, %c2, %c3};\n"
    " ld.volatile.shared.u32 %open, [%over];\n setp.eq.u32 %p, %open, 0;\n @%p bra reads;\n"
    " ret;\n"
    "asks:\n"
    " setp.ne.u32 %p, %lane, 0;\n @%p ret;\n"
    "again:\n"
    " ld.volatile.global.u32 %open, [%gate];\n setp.ne.u32 %p, %open, 0;\n @%p bra ends;\n"
    " mov.u64 %t, %globaltimer;\n sub.u64 %t, %t, %from;\n setp.lt.u64 %p, %t, %most;\n"
    " @%p bra again;\n"
    "ends:\n mov.u32 %c0, 1;\n st.volatile.shared.u32 [%over], %c0;\n ret;\n"
    "copies:\n"
    " setp.ne.u32 %p, %lane, 0;\n @%p ret;\n";
static const char bulk[] =
    "more:\n"
    " mad.lo.u64 %x, %x, 0x5851F42D4C957F2D, 0x14057B7EF767814F;\n shr.u64 %at, %x, 20;\n"
    " and.b64 %at, %at, %mask;\n add.u64 %at, %memory, %at;\n"
    " cp.async.bulk.global.shared::cta.bulk_group [%at], [%tile], 8192;\n"
    " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group.read 32;\n"
    " ld.volatile.shared.u32 %open, [%over];\n setp.eq.u32 %p, %open, 0;\n @%p bra more;\n"
    " cp.async.bulk.wait_group 0;\n";

void crowd_open(const struct driver *driver, const struct scrub *scrub, int capability,
                cu_pointer memory, size_t bytes, const struct service *service, struct crowd *crowd)
{
    BUF_LOCAL(text, 1 << 14);
    const bool copies = capability >= BULK_SINCE;
    *crowd = (struct crowd){.driver = driver,
                            .scrub = scrub,
                            .memory = memory,
                            .gate = service->gate + SERVICE_SECOND_GATE,
                            .device_gate = service->device_gate,
                            .sm_count = scrub->sm_count};
    uint64_t room = 2 * COPY_BYTES;
    while (room * 2 <= bytes - COPY_BYTES)
        room *= 2;
    crowd->mask = (room - 1) / 128 * 128;
    buf_add_text(&text, copies ? ".version 8.0\n.target sm_90\n" : ".version 7.0\n.target sm_70\n");
    buf_addf(&text, "%s%s ret;\n}\n", begin, copies ? bulk : "");
    enum { NON_BLOCKING = 1 };
    crowd->there = service->device_gate != 0 &&
                   driver->module_load(&crowd->module, buf_text(&text)) == 0 &&
                   driver->module_function(&crowd->function, crowd->module, "crowd") == 0 &&
                   driver->function_set(crowd->function, CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                        scrub->shared_bytes - OWN_SHARED) == 0 &&
                   driver->stream_create(&crowd->stream, NON_BLOCKING) == 0 &&
                   driver->stream_create(&crowd->seats, NON_BLOCKING) == 0 &&
                   driver->stream_create(&crowd->behind, NON_BLOCKING) == 0;
}

static cu_result launch(struct crowd *crowd, uint32_t blocks, uint32_t shared, uint64_t seed,
                        cu_stream stream)
{
    uint64_t most = most_ns;
    cu_pointer gate = crowd->device_gate + SERVICE_SECOND_GATE * sizeof *crowd->gate;
    void *arguments[] = {&gate, &most, &crowd->memory, &crowd->mask, &seed};
    const struct cu_launch_config config = {
        .grid = {blocks, 1, 1}, .block = {BLOCK, 1, 1}, .shared_bytes = shared, .stream = stream};
    return crowd->driver->launch(&config, crowd->function, arguments, NULL);
}

cu_result crowd_gather(struct crowd *crowd, uint64_t seed)
{
    uint32_t seats = 1 + (uint32_t)(seed >> 17) % TAKEN_MOST;
    if (!crowd->there)
        return 0;
    *crowd->gate = 0;
    cu_result result = launch(crowd, seats, (uint32_t)(crowd->scrub->shared_bytes - OWN_SHARED),
                              seed + 1, crowd->seats);
    return result == 0 ? launch(crowd, (uint32_t)crowd->sm_count, 0, seed, crowd->stream) : result;
}

cu_result crowd_litter(struct crowd *crowd, uint64_t seed)
{
    return crowd->there ? scrub_behind(crowd->scrub, seed, crowd->behind) : 0;
}

cu_result crowd_leave(struct crowd *crowd)
{
    if (!crowd->there)
        return 0;
    *crowd->gate = 1;
    cu_result result = crowd->driver->stream_wait(crowd->stream);
    if (result == 0)
        result = crowd->driver->stream_wait(crowd->seats);
    return result == 0 ? crowd->driver->stream_wait(crowd->behind) : result;
}
