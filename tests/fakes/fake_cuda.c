/* A libcuda.so.1 that has no GPU: device memory is the process's own, a stream does everything at
 * once, and a kernel is a function of this file with the name of the entry. Enough of a driver for
 * a runner to be driven through its protocol on any machine, its failures included. A failed
 * launch poisons everything after it, as a context does; $FAKE_CUDA_GRAPHS_FAIL: so does a graph's
 * launch. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS = 6, OPS = 64, EVENTS = 16 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200 };
enum { NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

typedef uint64_t arguments[ARGUMENTS];

struct launch { /* as cuLaunchKernelEx is given it */
    uint32_t grid[3], block[3], shared_bytes;
    void *stream, *attributes;
    uint32_t attribute_count;
};

static int broken;                    /* sticks until the process ends */
static int state;                     /* of __device__ variables: cleared by loading a module */
static int64_t live;                  /* bytes of device memory */
static int64_t modules;               /* loaded now */
static long spent_ns;                 /* what launches have cost, by $FAKE_CUDA_COSTS' clock */
static void *busy;                    /* the stream of the last launch that was not waited for */
static const volatile uint32_t *gate; /* what the last `hold` waits for */

/* What is mapped for each allocation: up to the next 2 MiB. */
enum { MAPPED = 2 << 20, BLOCKS = 16, DEVICE_MAPPED = 2 };
static struct block {
    unsigned char *memory;
    size_t bytes;
} blocks[BLOCKS];
static int block_count;

#include "fake_cuda_kernels.h"

/* ---- streams and graphs ---- */

struct op { /* a launch, or a memset where kernel is NULL */
    const struct kernel *kernel;
    arguments arguments;
};
struct graph {
    struct op ops[OPS];
    int count;
};
static struct graph captured;
static bool capturing;

/* What is emptied and not touched before it is emptied again costs nothing. */
static void fill(void *memory, int value, size_t bytes)
{
    enum { LARGE = 1 << 20, PAGE = 4096 };
    bool pages = bytes >= LARGE && ((uintptr_t)memory | bytes) % PAGE == 0;
    if (value != 0 || !pages || madvise(memory, bytes, MADV_DONTNEED) != 0)
        memset(memory, value, bytes);
}

static void run(const struct op *op)
{
    arguments a;
    memcpy(a, op->arguments, sizeof a);
    if (broken != 0)
        return;
    if (op->kernel != NULL)
        op->kernel->run(a);
    else
        fill((void *)(uintptr_t)a[0], (int)a[1], a[2]);
}

static bool is_held(void)
{
    return gate != NULL && *gate == 0;
}

/* $FAKE_CUDA_LATE: so long, by the costs' clock, does a launch take the host; a device that is not
 * held has nothing to do meanwhile. */
static void host_takes(void)
{
    const char *late = getenv("FAKE_CUDA_LATE");
    if (late != NULL && !is_held())
        spent_ns += strtol(late, NULL, 10);
}

static int enqueue(const struct op *op)
{
    if (broken != 0)
        return broken;
    if (!capturing)
        run(op);
    else if (captured.count < OPS)
        captured.ops[captured.count++] = *op;
    return 0;
}

/* ---- the exported functions; the driver API's documentation has their contracts ---- */

#define EXPORT __attribute__((visibility("default"))) int

EXPORT cuInit(unsigned flags);
EXPORT cuInit(unsigned flags)
{
    (void)flags;
    return getenv("FAKE_CUDA_NONE") != NULL ? NO_DEVICE : 0;
}

EXPORT cuDriverGetVersion(int *version);
EXPORT cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

/* The entry of CUDA_VISIBLE_DEVICES for a device; "" where it is not set, NULL behind the last. */
static const char *visible(int device)
{
    const char *entry = getenv("CUDA_VISIBLE_DEVICES");
    if (entry == NULL)
        return device == 0 ? "" : NULL;
    for (; entry != NULL && device > 0; device--)
        entry = strchr(entry, ',') != NULL ? strchr(entry, ',') + 1 : NULL;
    return entry != NULL && *entry != '\0' ? entry : NULL;
}

EXPORT cuDeviceGetCount(int *count);
EXPORT cuDeviceGetCount(int *count)
{
    *count = 0;
    while (visible(*count) != NULL)
        ++*count;
    return 0;
}

EXPORT cuDeviceGet(int *device, int ordinal);
EXPORT cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

EXPORT cuDeviceGetName(char *name, int length, int device);
EXPORT cuDeviceGetName(char *name, int length, int device)
{
    const char *entry = visible(device);
    bool other = entry != NULL && strncmp(entry, "GPU-", 4) == 0; /* of another kind */
    snprintf(name, (size_t)length, "Fake GPU%s%.*s", other ? " " : "",
             other ? (int)strcspn(entry + 4, ",") : 0, other ? entry + 4 : "");
    return 0;
}

EXPORT cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int known[][2] = {{10, 32}, {16, 132},    {38, 1 << 20}, {39, 2048},   {75, 9},
                                   {76, 0},  {81, 233472}, {82, 65536},   {97, 232448}, {113, 1}};
    (void)device;
    *value = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i][0] == attribute) {
            *value = known[i][1];
            return 0;
        }
    return INVALID_VALUE;
}

EXPORT cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)64 << 20;
    return 0;
}

EXPORT cuDeviceGetPCIBusId(char *text, int length, int device);
EXPORT cuDeviceGetPCIBusId(char *text, int length, int device)
{
    snprintf(text, (size_t)length, "FFFF:%02x:00.0", (unsigned)device);
    return 0;
}

EXPORT cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = context;
    return 0;
}

EXPORT cuCtxSetCurrent(void *context);
EXPORT cuCtxSetCurrent(void *context)
{
    (void)context;
    return 0;
}

EXPORT cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
EXPORT cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *total = (size_t)1 << 30;
    *free_bytes = *total - (size_t)live;
    return 0;
}

/* Behind the pointer there is room that a kernel may be wrong in. */
EXPORT cuMemAlloc_v2(uint64_t *pointer, size_t bytes);
EXPORT cuMemAlloc_v2(uint64_t *pointer, size_t bytes)
{
    size_t mapped = (bytes + MAPPED - 1) / MAPPED * MAPPED;
    void *memory = mmap(NULL, mapped + 4096, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return OUT_OF_MEMORY;
    if (block_count < BLOCKS)
        blocks[block_count++] = (struct block){(unsigned char *)memory, mapped};
    live += (int64_t)bytes;
    *pointer = (uint64_t)(uintptr_t)memory;
    return 0;
}

EXPORT cuMemFree_v2(uint64_t pointer);
EXPORT cuMemFree_v2(uint64_t pointer)
{
    for (int i = 0; i < block_count; i++)
        if (blocks[i].memory == (unsigned char *)(uintptr_t)pointer) {
            munmap(blocks[i].memory, blocks[i].bytes + 4096);
            blocks[i] = blocks[--block_count];
            return 0;
        }
    return INVALID_VALUE;
}

EXPORT cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags);
EXPORT cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    if ((flags & DEVICE_MAPPED) != 0 && block_count < BLOCKS)
        blocks[block_count++] = (struct block){(unsigned char *)memory, bytes};
    return 0;
}

/* $FAKE_CUDA_UNMAPPED: the device does not reach the host's memory. */
EXPORT cuMemHostGetDevicePointer_v2(uint64_t *pointer, void *memory, unsigned flags);
EXPORT cuMemHostGetDevicePointer_v2(uint64_t *pointer, void *memory, unsigned flags)
{
    (void)flags;
    *pointer = (uint64_t)(uintptr_t)memory;
    return getenv("FAKE_CUDA_UNMAPPED") != NULL ? INVALID_VALUE : 0;
}

static int move(void *to, const void *from, size_t bytes)
{
    if (broken == 0)
        memcpy(to, from, bytes);
    return broken;
}

EXPORT cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream);
EXPORT cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    (void)stream;
    return move((void *)(uintptr_t)to, from, bytes);
}

EXPORT cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream);
EXPORT cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    return move(to, (const void *)(uintptr_t)from, bytes);
}

EXPORT cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
EXPORT cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    broken = is_crowded(to, bytes) || is_crowded(from, bytes) ? LAUNCH_FAILED : broken;
    return move((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

EXPORT cuMemsetD8Async(uint64_t to, unsigned char byte, size_t count, void *stream);
EXPORT cuMemsetD8Async(uint64_t to, unsigned char byte, size_t count, void *stream)
{
    const struct op op = {.arguments = {to, byte, count}};
    (void)stream;
    return enqueue(&op);
}

EXPORT cuStreamCreate(void **stream, unsigned flags);
EXPORT cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = stream;
    return 0;
}

EXPORT cuStreamSynchronize(void *stream);
EXPORT cuStreamSynchronize(void *stream)
{
    if (stream == busy)
        busy = NULL;
    if (is_held()) /* nobody would let it go */
        broken = LAUNCH_FAILED;
    return broken;
}

EXPORT cuStreamBeginCapture_v2(void *stream, int mode);
EXPORT cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)stream, (void)mode;
    capturing = true;
    captured.count = 0;
    return broken;
}

EXPORT cuStreamEndCapture(void *stream, void **graph);
EXPORT cuStreamEndCapture(void *stream, void **graph)
{
    (void)stream;
    capturing = false;
    *graph = malloc(sizeof captured);
    memcpy(*graph, &captured, sizeof captured);
    return broken;
}

EXPORT cuGraphInstantiateWithFlags(void **exec, const void *graph, unsigned long long flags);
EXPORT cuGraphInstantiateWithFlags(void **exec, const void *graph, unsigned long long flags)
{
    (void)flags;
    *exec = malloc(sizeof captured);
    memcpy(*exec, graph, sizeof captured);
    return 0;
}

EXPORT cuGraphUpload(void *exec, void *stream);
EXPORT cuGraphUpload(void *exec, void *stream)
{
    (void)exec, (void)stream;
    return broken;
}

EXPORT cuGraphLaunch(const struct graph *exec, void *stream);
EXPORT cuGraphLaunch(const struct graph *exec, void *stream)
{
    (void)stream;
    if (getenv("FAKE_CUDA_GRAPHS_FAIL") != NULL)
        broken = LAUNCH_FAILED;
    host_takes();
    for (int i = 0; i < exec->count; i++)
        run(&exec->ops[i]);
    return 0;
}

EXPORT cuGraphDestroy(void *graph);
EXPORT cuGraphDestroy(void *graph)
{
    free(graph);
    return 0;
}

EXPORT cuGraphExecDestroy(void *exec);
EXPORT cuGraphExecDestroy(void *exec)
{
    free(exec);
    return 0;
}

EXPORT cuEventCreate(struct timespec **event, unsigned flags);
EXPORT cuEventCreate(struct timespec **event, unsigned flags)
{
    static struct timespec events[EVENTS];
    static int count;
    (void)flags;
    *event = &events[count++ % EVENTS];
    return 0;
}

EXPORT cuEventRecord(struct timespec *event, void *stream);
EXPORT cuEventRecord(struct timespec *event, void *stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, event);
    if (getenv("FAKE_CUDA_COSTS") != NULL)
        *event = (struct timespec){.tv_nsec = spent_ns};
    return broken;
}

/* $FAKE_CUDA_COSTS: a clock that only launches move. $FAKE_CUDA_BOAST: a device whose clock runs
 * away; $FAKE_CUDA_DRIFT: one that runs too fast; $FAKE_CUDA_EVENT_NS: what lies between any two
 * events. */
EXPORT cuEventElapsedTime(float *milliseconds, const struct timespec *start,
                          const struct timespec *end);
EXPORT cuEventElapsedTime(float *milliseconds, const struct timespec *start,
                          const struct timespec *end)
{
    double seconds = (double)(end->tv_sec - start->tv_sec);
    *milliseconds = (float)(seconds * 1e3 + (double)(end->tv_nsec - start->tv_nsec) / 1e6);
    if (getenv("FAKE_CUDA_BOAST") != NULL)
        *milliseconds += 60000.0f;
    if (getenv("FAKE_CUDA_DRIFT") != NULL)
        *milliseconds *= 3.0f;
    if (getenv("FAKE_CUDA_EVENT_NS") != NULL)
        *milliseconds = (float)(strtod(getenv("FAKE_CUDA_EVENT_NS"), NULL) / 1e6);
    return 0;
}

EXPORT cuModuleLoadData(void **module, const void *image);
EXPORT cuModuleLoadData(void **module, const void *image)
{
    if (strncmp((const char *)image, "garbage", 7) == 0)
        return INVALID_IMAGE;
    state = 0;
    modules++;
    *module = &modules;
    return broken;
}

EXPORT cuModuleUnload(void *module);
EXPORT cuModuleUnload(void *module)
{
    (void)module;
    modules--;
    return 0;
}

EXPORT cuModuleGetFunction(const struct kernel **function, void *module, const char *name);
EXPORT cuModuleGetFunction(const struct kernel **function, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *function = &kernels[i];
            return 0;
        }
    return NOT_FOUND;
}

EXPORT cuFuncGetAttribute(int *value, int attribute, const struct kernel *function);
EXPORT cuFuncGetAttribute(int *value, int attribute, const struct kernel *function)
{
    (void)attribute, (void)function;
    *value = 0;
    return 0;
}

EXPORT cuFuncSetAttribute(const struct kernel *function, int attribute, int value);
EXPORT cuFuncSetAttribute(const struct kernel *function, int attribute, int value)
{
    (void)function, (void)attribute;
    return value > 232448 ? INVALID_VALUE : 0;
}

EXPORT cuFuncGetParamInfo(const struct kernel *function, size_t index, size_t *offset,
                          size_t *bytes);
EXPORT cuFuncGetParamInfo(const struct kernel *function, size_t index, size_t *offset,
                          size_t *bytes)
{
    *offset = 8 * index;
    *bytes = index == 0 && function->run == run_wide ? 16 : 8;
    return index < (size_t)function->count ? 0 : INVALID_VALUE;
}

EXPORT cuLaunchKernelEx(const struct launch *config, const struct kernel *function, void **given,
                        void **extra);
EXPORT cuLaunchKernelEx(const struct launch *config, const struct kernel *function, void **given,
                        void **extra)
{
    struct op op = {.kernel = function};
    (void)extra;
    if (getenv("FAKE_CUDA_ALONE") != NULL && busy != NULL && busy != config->stream)
        return broken = LAUNCH_FAILED;
    busy = config->stream;
    host_takes();
    for (int i = 0; i < function->count; i++)
        memcpy(&op.arguments[i], given[i], sizeof op.arguments[i]);
    return config->block[0] * config->block[1] * config->block[2] > 1024 ? 701 : enqueue(&op);
}

EXPORT cuGetErrorName(int result, const char **name);
EXPORT cuGetErrorName(int result, const char **name)
{
    *name = result == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : result == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
            : result == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
            : result == NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
                                      : "CUDA_ERROR_OTHER";
    return 0;
}

EXPORT cuGetErrorString(int result, const char **text);
EXPORT cuGetErrorString(int result, const char **text)
{
    return cuGetErrorName(result, text);
}
