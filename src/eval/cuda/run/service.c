#include "eval/cuda/run/service.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, BLOCKS_PER_SM = 8, GATE_BYTES = 4096 };
static const uint64_t hold_most_ns = 20000000;

/* Plain PTX for any device since Volta. hash: sum of mix(word ^ (place * odd + key)), Murmur3's
 * finalizer.
 * hold: until the word at `gate` is not 0. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry hash(.param .u64 from, .param .u64 words, .param .u64 sum, .param .u64 key)\n"
    "{\n"
    " .reg .pred %p;\n .reg .b32 %r<8>;\n .reg .b64 %a, %n, %s, %i, %step, %w, %k, %t, %acc, "
    "%key;\n"
    " ld.param.u64 %a, [from];\n ld.param.u64 %n, [words];\n ld.param.u64 %s, [sum];\n"
    " ld.param.u64 %key, [key];\n"
    " mov.u32 %r0, %tid.x;\n mov.u32 %r1, %ntid.x;\n mov.u32 %r2, %ctaid.x;\n"
    " mov.u32 %r3, %nctaid.x;\n"
    " mul.wide.u32 %i, %r2, %r1;\n cvt.u64.u32 %t, %r0;\n add.u64 %i, %i, %t;\n"
    " mul.wide.u32 %step, %r3, %r1;\n mov.u64 %acc, 0;\n"
    "loop:\n"
    " setp.ge.u64 %p, %i, %n;\n @%p bra done;\n"
    " shl.b64 %t, %i, 3;\n add.u64 %t, %a, %t;\n ld.global.u64 %w, [%t];\n"
    " mul.lo.u64 %k, %i, 0x9E3779B97F4A7C15;\n add.u64 %k, %k, %key;\n"
    " xor.b64 %w, %w, %k;\n"
    " shr.u64 %t, %w, 33;\n xor.b64 %w, %w, %t;\n mul.lo.u64 %w, %w, 0xFF51AFD7ED558CCD;\n"
    " shr.u64 %t, %w, 33;\n xor.b64 %w, %w, %t;\n mul.lo.u64 %w, %w, 0xC4CEB9FE1A85EC53;\n"
    " shr.u64 %t, %w, 33;\n xor.b64 %w, %w, %t;\n add.u64 %acc, %acc, %w;\n"
    " add.u64 %i, %i, %step;\n bra loop;\n"
    "done:\n"
    " atom.global.add.u64 %t, [%s], %acc;\n ret;\n"
    "}\n"
    ".visible .entry empty()\n{\n ret;\n}\n"
    ".visible .entry poison(.param .u64 to, .param .u64 words, .param .u64 seed,\n"
    " .param .u64 fixed, .param .u64 random)\n"
    "{\n"
    " .reg .pred %p;\n .reg .b32 %r<4>;\n"
    " .reg .b64 %a, %n, %seed, %f, %m, %i, %step, %x, %t;\n"
    " ld.param.u64 %a, [to];\n ld.param.u64 %n, [words];\n ld.param.u64 %seed, [seed];\n"
    " ld.param.u64 %f, [fixed];\n ld.param.u64 %m, [random];\n"
    " mov.u32 %r0, %tid.x;\n mov.u32 %r1, %ntid.x;\n mov.u32 %r2, %ctaid.x;\n"
    " mov.u32 %r3, %nctaid.x;\n"
    " mul.wide.u32 %i, %r2, %r1;\n cvt.u64.u32 %t, %r0;\n add.u64 %i, %i, %t;\n"
    " mul.wide.u32 %step, %r3, %r1;\n"
    "more:\n"
    " setp.ge.u64 %p, %i, %n;\n @%p bra full;\n"
    " mul.lo.u64 %x, %i, 0x9E3779B97F4A7C15;\n add.u64 %x, %x, %seed;\n"
    " shr.u64 %t, %x, 32;\n xor.b64 %x, %x, %t;\n mul.lo.u64 %x, %x, 0xD6E8FEB86659FD93;\n"
    " shr.u64 %t, %x, 32;\n xor.b64 %x, %x, %t;\n"
    " and.b64 %x, %x, %m;\n or.b64 %x, %x, %f;\n"
    " shl.b64 %t, %i, 3;\n add.u64 %t, %a, %t;\n st.global.u64 [%t], %x;\n"
    " add.u64 %i, %i, %step;\n bra more;\n"
    "full:\n ret;\n"
    "}\n"
    ".visible .entry hold(.param .u64 gate, .param .u64 most)\n"
    "{\n"
    " .reg .pred %p;\n .reg .b32 %open;\n .reg .b64 %a, %n, %from, %t;\n"
    " ld.param.u64 %a, [gate];\n ld.param.u64 %n, [most];\n mov.u64 %from, %globaltimer;\n"
    "held:\n"
    " ld.volatile.global.u32 %open, [%a];\n setp.ne.u32 %p, %open, 0;\n @%p bra go;\n"
    " mov.u64 %t, %globaltimer;\n sub.u64 %t, %t, %from;\n"
    " setp.lt.u64 %p, %t, %n;\n @%p bra held;\n"
    "go:\n ret;\n"
    "}\n";

static void make_gate(struct service *service)
{
    const struct driver *driver = service->driver;
    void *page = aligned_alloc(GATE_BYTES, GATE_BYTES);
    service->gate = page;
    if (page == NULL || driver->host_register(page, GATE_BYTES, CU_REGISTER_DEVICE_MAPPED) != 0 ||
        driver->host_pointer(&service->device_gate, page, 0) != 0)
        service->device_gate = 0;
}

int service_open(const struct driver *driver, int sm_count, struct service *service,
                 struct err *err)
{
    *service = (struct service){.driver = driver, .sm_count = sm_count};
    cu_result result = driver->module_load(&service->module, ptx);
    if (result == 0)
        result = driver->module_function(&service->hash, service->module, "hash");
    if (result == 0)
        result = driver->module_function(&service->empty, service->module, "empty");
    if (result == 0)
        result = driver->module_function(&service->poison, service->module, "poison");
    if (result == 0)
        result = driver->module_function(&service->hold, service->module, "hold");
    if (result == 0)
        result = driver->allocate(&service->sum, SERVICE_MAPPED_BYTES);
    if (result == 0) {
        make_gate(service);
        return 0;
    }
    return err_set(err, ERR_ENVIRONMENT, "the driver does not take our own kernels: %s",
                   driver_error(driver, result));
}

cu_result service_hash(struct service *service, const struct service_range *ranges, size_t count,
                       uint64_t key, cu_stream stream, uint64_t *hash)
{
    const struct driver *driver = service->driver;
    struct cu_launch_config config = {.grid = {(uint32_t)(service->sm_count * BLOCKS_PER_SM), 1, 1},
                                      .block = {BLOCK, 1, 1},
                                      .stream = stream};
    cu_result result = driver->fill(service->sum, 0, sizeof(uint64_t), stream);
    for (size_t i = 0; result == 0 && i < count; i++) {
        cu_pointer from = ranges[i].from;
        uint64_t words = ranges[i].bytes / sizeof(uint64_t);
        uint64_t own = key + i * UINT64_C(0xd1342543de82ef95); /* none has a twin at its place */
        void *arguments[] = {&from, &words, &service->sum, &own};
        result = driver->launch(&config, service->hash, arguments, NULL);
    }
    if (result == 0)
        result = driver->download(hash, service->sum, sizeof *hash, stream);
    return result == 0 ? driver->stream_wait(stream) : result;
}

cu_result service_clear(struct service *service, cu_stream stream)
{
    if (service->device_gate != 0) {
        memset((void *)service->gate, 0, GATE_BYTES);
        service_release(service);
    }
    return service->driver->fill(service->sum, 0, SERVICE_MAPPED_BYTES, stream);
}

/* A candidate's launch finds it open, whether it was ever closed or not. */
void service_release(struct service *service)
{
    if (service->device_gate != 0)
        *service->gate = 1;
}

cu_result service_hold(struct service *service, cu_stream stream)
{
    uint64_t most_ns = hold_most_ns;
    void *arguments[] = {&service->device_gate, &most_ns};
    struct cu_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = stream};
    if (service->device_gate == 0)
        return 0;
    *service->gate = 0;
    return service->driver->launch(&config, service->hold, arguments, NULL);
}

cu_result service_poison(struct service *service, cu_pointer to, const struct call_poison *poison,
                         uint64_t seed, cu_stream stream)
{
    const struct poison_bits *bits = &poison->bits;
    uint64_t words = (poison->bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    uint64_t fixed = bits->fixed[0] | (uint64_t)bits->fixed[1] << 32;
    uint64_t noise = bits->random[0] | (uint64_t)bits->random[1] << 32;
    void *arguments[] = {&to, &words, &seed, &fixed, &noise};
    struct cu_launch_config config = {.grid = {(uint32_t)(service->sm_count * BLOCKS_PER_SM), 1, 1},
                                      .block = {BLOCK, 1, 1},
                                      .stream = stream};
    return service->driver->launch(&config, service->poison, arguments, NULL);
}

cu_result service_idle(struct service *service, uint32_t launches, cu_stream stream)
{
    const struct cu_launch_config config = {
        .grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = stream};
    cu_result result = 0;
    for (uint32_t i = 0; result == 0 && i < launches; i++)
        result = service->driver->launch(&config, service->empty, NULL, NULL);
    return result == 0 && launches > 0 ? service->driver->stream_wait(stream) : result;
}
