/* The process that draws. It compiles its kernel by itself: NVRTC has been opened before anybody
 * waits for it, beside the definition's own start. */
#include "eval/cuda/draw/generator.h"

#include "base/mem.h"
#include "eval/cuda/compile/job.h"
#include "eval/cuda/draw/generator_cu_text.h"
#include "eval/cuda/draw/numbers_h_text.h"
#include "eval/cuda/draw/numbers_inl_text.h"
#include "eval/cuda/driver/device.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UNIT_MOST = 64 << 10, BLOCK = 256, BLOCKS_PER_SM = 8, GAVE_UP = 70 };

/* ---- the unit ---- */

static void add_enum(struct buf *text, const char *name, int value)
{
    buf_addf(text, "enum { %s = %d };\n", name, value);
}

static void add_lines(struct buf *text, const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_add_text(text, lines[i]);
}

void generator_source(struct buf *text)
{
    buf_add_text(text, "typedef unsigned short uint16_t; typedef int int32_t;\n"
                       "typedef unsigned int uint32_t; typedef unsigned long long uint64_t;\n");
    add_enum(text, "DRAW_UNIFORM", DRAW_UNIFORM);
    add_enum(text, "DRAW_HEAVY", DRAW_HEAVY);
    add_enum(text, "DRAW_SPARSE", DRAW_SPARSE);
    add_enum(text, "DTYPE_FLOAT32", DTYPE_FLOAT32);
    add_enum(text, "DTYPE_FLOAT64", DTYPE_FLOAT64);
    add_enum(text, "DTYPE_FLOAT16", DTYPE_FLOAT16);
    add_lines(text, numbers_h, sizeof numbers_h / sizeof numbers_h[0]);
    add_lines(text, numbers_inl, sizeof numbers_inl / sizeof numbers_inl[0]);
    add_lines(text, generator_cu, sizeof generator_cu / sizeof generator_cu[0]);
}

static char *compile(const struct nvrtc *nvrtc, const char *arch, struct err *err)
{
    char target[40];
    const char *const options[] = {target, "--fmad=false", "--std=c++17",
                                   "--device-as-default-execution-space"};
    nvrtc_program program = NULL;
    char *cubin = NULL;
    size_t bytes = 0;
    snprintf(target, sizeof target, "--gpu-architecture=%.12s", arch);
    BUF_LOCAL(unit, UNIT_MOST);
    generator_source(&unit);
    int result = nvrtc->create(&program, buf_text(&unit), "generator.cu", 0, NULL, NULL);
    if (result == NVRTC_OK)
        result = nvrtc->compile(program, sizeof options / sizeof options[0], options);
    if (result == NVRTC_OK)
        result = nvrtc->cubin_size(program, &bytes);
    if (result == NVRTC_OK) {
        cubin = mem_alloc(bytes + 1);
        result = nvrtc->cubin(program, cubin);
    }
    if (result == NVRTC_OK)
        return cubin;
    mem_free(cubin);
    err_set(err, ERR_ENVIRONMENT, "the generator's kernel: %s", nvrtc->error_string(result));
    return NULL;
}

char *generator_compile(const char *arch, struct err *err)
{
    struct cuda_job job = {.arch = arch};
    struct nvrtc nvrtc;
    ARENA_LOCAL(arena);
    char *cubin = NULL;
    if (nvrtc_find(arena, &job.compiler, err) == 0 && cuda_job_open(&job, &nvrtc, err) == 0)
        cubin = compile(&nvrtc, arch, err);
    return cubin;
}

/* ---- the process ---- */

struct generator {
    struct driver driver;
    struct device device;
    cu_context context;
    cu_stream stream;
    cu_module module;
    cu_function draw;
    cu_pointer drawing, numbers;
    unsigned char *windows;
};

static cu_result prepare(struct generator *generator, const char *cubin)
{
    const struct driver *driver = &generator->driver;
    cu_result result = driver->stream_create(&generator->stream, 0);
    if (result == 0)
        result = driver->module_load(&generator->module, cubin);
    if (result == 0)
        result = driver->module_function(&generator->draw, generator->module, "draw");
    if (result == 0)
        result = driver->allocate(&generator->drawing, sizeof(struct drawing));
    if (result == 0)
        result = driver->allocate(&generator->numbers, GENERATOR_WINDOW_BYTES);
    /* Without it copies go through the driver's own staging: slower, and right all the same. */
    if (result == 0)
        (void)driver->host_register(generator->windows,
                                    GENERATOR_WINDOWS * (size_t)GENERATOR_WINDOW_BYTES, 0);
    return result;
}

static int open_device(struct generator *generator, int gpu_index, const char *arch,
                       struct err *err)
{
    const struct driver *driver = &generator->driver;
    if (driver_open(&generator->driver, err) != 0 ||
        device_open(driver, gpu_index, &generator->device, err) != 0)
        return -1;
    cu_result result = driver->context_retain(&generator->context, generator->device.handle);
    if (result == 0)
        result = driver->context_use(generator->context);
    char *cubin = result == 0 ? generator_compile(arch, err) : NULL;
    if (result == 0 && cubin == NULL)
        return -1;
    if (result == 0)
        result = prepare(generator, cubin);
    mem_free(cubin);
    return result == 0 ? 0 : err_set(err, ERR_ENVIRONMENT, "%s", driver_error(driver, result));
}

static cu_result answer(struct generator *generator, struct generator_request *request)
{
    const struct driver *driver = &generator->driver;
    uint64_t bytes = request->count * dtype_bytes((enum dtype)request->drawing.dtype);
    void *arguments[] = {&generator->drawing, &request->first, &request->count,
                         &generator->numbers};
    struct cu_launch_config config = {
        .grid = {(uint32_t)(generator->device.sm_count * BLOCKS_PER_SM), 1, 1},
        .block = {BLOCK, 1, 1},
        .stream = generator->stream};
    cu_result result = driver->upload(generator->drawing, &request->drawing,
                                      sizeof request->drawing, generator->stream);
    if (result == 0)
        result = driver->launch(&config, generator->draw, arguments, NULL);
    if (result == 0)
        result =
            driver->download(generator->windows + request->window * (size_t)GENERATOR_WINDOW_BYTES,
                             generator->numbers, bytes, generator->stream);
    return result == 0 ? driver->stream_wait(generator->stream) : result;
}

static bool reply(cu_result result)
{
    const struct generator_reply reply = {.failed = (int32_t)result};
    return send(GENERATOR_SOCKET, &reply, sizeof reply, MSG_NOSIGNAL) == (ssize_t)sizeof reply;
}

int generator_main(int argc, char **argv)
{
    static struct generator generator; /* zeroed */
    struct generator_request request;
    struct err err = {0};
    if (argc != 3 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ||
        getppid() != (pid_t)strtol(argv[0], NULL, 10))
        return GAVE_UP;
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    close_range(GENERATOR_FIRST_OTHER, ~0u, 0);
    generator.windows = mmap(NULL, GENERATOR_WINDOWS * (size_t)GENERATOR_WINDOW_BYTES,
                             PROT_READ | PROT_WRITE, MAP_SHARED, GENERATOR_MEMORY, 0);
    if (generator.windows == MAP_FAILED)
        return GAVE_UP;
    if (open_device(&generator, (int)strtol(argv[1], NULL, 10), argv[2], &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return GAVE_UP;
    }
    for (bool going = reply(0); going;) {
        ssize_t got = recv(GENERATOR_SOCKET, &request, sizeof request, 0);
        if (got < 0 && errno == EINTR)
            continue;
        going = got == (ssize_t)sizeof request && reply(answer(&generator, &request));
    }
    return 0;
}
