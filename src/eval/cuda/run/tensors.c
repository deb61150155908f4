#include "eval/cuda/run/tensors.h"

#include "eval/cuda/run/runner.h"

enum {
    LEAST = 256 /* what the driver's own allocations are aligned to at least, and is promised */
};
enum { APART_MOST = 32 };
static const uint64_t large = 2 << 20;

/* --- where --- */

struct row {
    uint64_t state, left; /* of a generator; bytes that alignment may still cost */
    bool all_large;
    cu_pointer cursor;
};

static uint64_t next(uint64_t *state) /* splitmix64 */
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t round_to(uint64_t bytes, uint64_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

/* What is drawn to be at a multiple of 512 is at none of 1024, and so on: a kernel could ask. */
static cu_pointer place_one(struct row *row, uint64_t bytes)
{
    static const uint64_t aligns[] = {LEAST, 512, 4096, 65536, 2 << 20};
    uint64_t drawn = aligns[next(&row->state) % (sizeof aligns / sizeof aligns[0])];
    uint64_t align = row->all_large ? large : drawn;
    cu_pointer from = row->cursor + TENSORS_ZONE, at = round_to(from, align);
    if (align < large && at % (2 * align) == 0)
        at += align;
    if (at - from > row->left)
        at = round_to(from, LEAST);
    row->left -= at - from < row->left ? at - from : row->left;
    row->cursor = at + bytes + TENSORS_ZONE;
    return at;
}

static struct row begin_row(const struct call *call, uint64_t salt, cu_pointer from, size_t count)
{
    struct row row = {.state = call->place_seed + salt, .cursor = round_to(from, LEAST)};
    row.all_large = (call->place_seed & 1) != 0;
    row.left = TENSORS_SLACK - (count + 1) * (2 * TENSORS_ZONE + LEAST);
    return row;
}

void tensors_place(const struct call *call, cu_pointer inputs, cu_pointer outputs,
                   struct tensors *tensors)
{
    uint32_t count = call->input_count + call->output_count + call->workspace_count;
    struct row row = begin_row(call, 0, inputs, APART_MOST);
    tensors->call = call;
    tensors->whole = call->input_count > APART_MOST;
    if (tensors->whole) {
        uint64_t first = call->offsets[0];
        cu_pointer at = place_one(&row, call->inputs_from + call->inputs_bytes - first);
        for (uint32_t i = 0; i < call->input_count; i++)
            tensors->pointers[i] = at + (call->offsets[i] - first);
    }
    for (uint32_t i = 0; !tensors->whole && i < call->input_count; i++)
        tensors->pointers[i] = place_one(&row, call->sizes[i]);
    tensors->inputs_end = row.cursor;
    row = begin_row(call, 1, outputs, APART_MOST);
    for (uint32_t i = call->input_count; i < count; i++)
        tensors->pointers[i] = place_one(&row, call->sizes[i]);
}

/* --- bytes --- */

static uint32_t count_of(const struct call *call)
{
    return call->input_count + call->output_count + call->workspace_count;
}

/* What is read there is no number that would pass: where a call is guarded NaN of every type, or
 * large numbers of both signs; else any bits. */
static struct poison_bits around_bits(const struct call *call)
{
    static const struct poison_bits any = {.random = {~0U, ~0U}},
                                    nan = {{0x7ff17ff1, 0x7ff17ff1}, {0x800e800e, 0x800e800e}},
                                    most = {{0x7b7f7b7f, 0x7b7f7b7f}, {0x80008000, 0x80008000}};
    return !call->guarded ? any : (call->poison_seed & 4) != 0 ? nan : most;
}

static cu_result fill_zones(const struct tensors *tensors, uint32_t index)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    const struct call_poison poison = {TENSORS_ZONE, around_bits(call)};
    uint64_t seed = call->poison_seed + call->place_seed + index;
    cu_pointer at = tensors->pointers[index];
    cu_pointer end = at + round_to(call->sizes[index], sizeof(uint64_t));
    cu_result result =
        service_poison(&runner->service, at - TENSORS_ZONE, &poison, next(&seed), runner->stream);
    if (result == 0) /* it is as long less what it begins late, which no hash below looks at */
        result = service_poison(&runner->service, end,
                                &(struct call_poison){TENSORS_ZONE - sizeof(uint64_t), poison.bits},
                                next(&seed), runner->stream);
    return result;
}

static cu_result upload_inputs(const struct tensors *tensors)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    cu_result result = 0;
    if (tensors->whole) {
        uint64_t from = call->offsets[0] - REDZONE_BYTES;
        return runner->driver.upload(tensors->pointers[0] - REDZONE_BYTES, runner->inputs + from,
                                     call->inputs_from + call->inputs_bytes - from, runner->stream);
    }
    for (uint32_t i = 0; result == 0 && i < call->input_count; i++) {
        result = fill_zones(tensors, i);
        if (result == 0)
            result = runner->driver.upload(tensors->pointers[i] - REDZONE_BYTES,
                                           runner->inputs + call->offsets[i] - REDZONE_BYTES,
                                           call->sizes[i] + 2 * REDZONE_BYTES, runner->stream);
    }
    return result;
}

/* A tensor by a kernel of ours, each with another seed, which may write a few bytes more; then its
 * red zones. */
static cu_result poison_one(const struct tensors *tensors, uint32_t index)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    const uint64_t size = call->sizes[index];
    cu_pointer at = tensors->pointers[index];
    unsigned char *from = runner->outputs + call->offsets[index];
    cu_result result =
        service_poison(&runner->service, at, &call->poison[index],
                       call->poison_seed + index * UINT64_C(0x9e3779b97f4a7c15), runner->stream);
    if (result == 0)
        result = runner->driver.upload(at - REDZONE_BYTES, from - REDZONE_BYTES, REDZONE_BYTES,
                                       runner->stream);
    if (result == 0)
        result = runner->driver.upload(at + size, from + size, REDZONE_BYTES, runner->stream);
    return result;
}

cu_result tensors_poison(const struct tensors *tensors)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    cu_result result = 0;
    for (uint32_t i = call->input_count; result == 0 && i < count_of(call); i++)
        result = call->poison_seed != 0
                     ? poison_one(tensors, i)
                     : runner->driver.upload(tensors->pointers[i] - REDZONE_BYTES,
                                             runner->outputs + call->offsets[i] - REDZONE_BYTES,
                                             call->sizes[i] + 2 * REDZONE_BYTES, runner->stream);
    return result;
}

cu_result tensors_upload(const struct tensors *tensors)
{
    const struct call *call = tensors->call;
    cu_result result = upload_inputs(tensors);
    for (uint32_t i = call->input_count; result == 0 && i < count_of(call); i++)
        result = fill_zones(tensors, i);
    return result == 0 ? tensors_poison(tensors) : result;
}

/* By way of the half of the sweep's memory that the crowd leaves alone. */
cu_result tensors_swap(const struct tensors *tensors)
{
    const struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    const uint64_t room = runner_crowd_from(runner);
    cu_result result = 0;
    for (uint32_t i = 0; result == 0 && i < call->input_count; i++) {
        uint64_t words = call->poison[i].bytes / 16, quarter = words / 4;
        uint64_t to = quarter > 0 ? (call->poison_seed >> 8) % (words / 2) : 0;
        cu_pointer one = tensors->pointers[i] + 16 * to, other = one + 16 * quarter;
        uint64_t bytes = 16 * quarter < room ? 16 * quarter : room;
        if (bytes > 0)
            result = runner->driver.copy(runner->sweep, one, bytes, runner->stream);
        if (result == 0 && bytes > 0)
            result = runner->driver.copy(one, other, bytes, runner->stream);
        if (result == 0 && bytes > 0)
            result = runner->driver.copy(other, runner->sweep, bytes, runner->stream);
    }
    return result;
}

/* --- what is there --- */

static cu_result hash(const struct tensors *tensors, const struct service_range *ranges,
                      size_t count, uint64_t *sum)
{
    struct gpu_runner *runner = tensors->runner;
    return service_hash(&runner->service, ranges, count, runner->control->hash_key, runner->stream,
                        sum);
}

cu_result tensors_hash_inputs(const struct tensors *tensors, uint64_t *sum)
{
    const struct call *call = tensors->call;
    struct service_range ranges[APART_MOST];
    size_t count = tensors->whole ? 1 : call->input_count;
    for (size_t i = 0; i < count; i++) {
        cu_pointer from = tensors->pointers[i] - TENSORS_ZONE;
        uint64_t bytes = tensors->whole ? tensors->inputs_end - from
                                        : round_to(call->sizes[i], 8) + 2 * TENSORS_ZONE - 8;
        ranges[i] = (struct service_range){from, bytes / 8 * 8};
    }
    return hash(tensors, ranges, count, sum);
}

cu_result tensors_hash_outputs(const struct tensors *tensors, uint64_t *sum)
{
    const struct call *call = tensors->call;
    struct service_range ranges[OUTPUTS_MAX];
    for (uint32_t i = 0; i < call->output_count; i++)
        ranges[i] = (struct service_range){tensors->pointers[call->input_count + i],
                                           round_to(call->sizes[call->input_count + i], 8)};
    return hash(tensors, ranges, call->output_count, sum);
}

cu_result tensors_hash_around(const struct tensors *tensors, uint64_t *sum)
{
    const struct call *call = tensors->call;
    struct service_range ranges[2 * (OUTPUTS_MAX + WORKSPACES_MAX)];
    size_t count = 0;
    for (uint32_t i = call->input_count; i < count_of(call); i++) {
        cu_pointer at = tensors->pointers[i], end = at + round_to(call->sizes[i], 8);
        ranges[count++] = (struct service_range){at - TENSORS_ZONE, TENSORS_ZONE};
        ranges[count++] = (struct service_range){end, TENSORS_ZONE - 8};
    }
    return hash(tensors, ranges, count, sum);
}

/* Between two tensors the region has one red zone, the device two: what is behind each comes back,
 * and what is before the first. tensors_hash_around() sees all of them. */
cu_result tensors_download(const struct tensors *tensors)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    cu_result result = 0;
    for (uint32_t i = call->input_count; result == 0 && i < count_of(call); i++) {
        const bool first = i == call->input_count;
        const bool workspace = i >= call->input_count + call->output_count;
        uint64_t before = first ? REDZONE_BYTES : 0, skip = workspace ? call->sizes[i] : 0;
        unsigned char *to = runner->outputs + call->offsets[i] - before + skip;
        result =
            runner->driver.download(to, tensors->pointers[i] - before + skip,
                                    before + call->sizes[i] - skip + REDZONE_BYTES, runner->stream);
    }
    return result;
}

static uint64_t outputs_bytes(const struct call *call)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < call->output_count; i++)
        bytes += round_to(call->sizes[call->input_count + i], LEAST);
    return bytes;
}

cu_result tensors_keep(const struct tensors *tensors)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    uint64_t bytes = outputs_bytes(call), from = 0;
    cu_result result = 0;
    if (runner->kept_bytes < bytes && runner->kept_bytes > 0)
        result = runner->driver.release(runner->kept);
    if (runner->kept_bytes < bytes) {
        runner->kept_bytes = 0;
        result = result == 0 ? runner->driver.allocate(&runner->kept, bytes) : result;
        runner->kept_bytes = result == 0 ? bytes : 0;
    }
    for (uint32_t i = call->input_count; result == 0 && i < call->input_count + call->output_count;
         i++) {
        result = runner->driver.copy(runner->kept + from, tensors->pointers[i], call->sizes[i],
                                     runner->stream);
        from += round_to(call->sizes[i], LEAST);
    }
    return result;
}

cu_result tensors_bring_kept(const struct tensors *tensors)
{
    struct gpu_runner *runner = tensors->runner;
    const struct call *call = tensors->call;
    uint64_t from = 0;
    cu_result result = 0;
    for (uint32_t i = call->input_count; result == 0 && i < call->input_count + call->output_count;
         i++) {
        result = runner->driver.download(runner->outputs + call->offsets[i], runner->kept + from,
                                         call->sizes[i], runner->stream);
        from += round_to(call->sizes[i], LEAST);
    }
    return result;
}
