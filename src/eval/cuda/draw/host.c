#include "eval/cuda/draw/generator.h"

#include "base/file.h"
#include "eval/cuda/driver/spawn.h"
#include "eval/data/parallel.h"
#include "eval/data/timeline.h"
#include "process/spawn.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READY_MS = 20000, WINDOW_MS = 5000 };

static struct { /* measuring thread alone */
    pid_t pid;  /* 0: none */
    int socket, gpu_index;
    bool ready;
    unsigned char *windows;
} generator = {.socket = -1};

static const size_t windows_bytes = GENERATOR_WINDOWS * (size_t)GENERATOR_WINDOW_BYTES;

static void end_process(void)
{
    if (generator.pid == 0)
        return;
    (void)spawn_kill(generator.pid);
    generator.pid = 0;
    generator.ready = false;
}

void cuda_draw_end(void)
{
    if (generator.pid == 0)
        return;
    end_process();
    close(generator.socket);
    munmap(generator.windows, windows_bytes);
}

/* ---- its start ---- */

static int start(const char *arch, int gpu_index, int socket, int memory, struct err *err)
{
    char parent[16], gpu[16];
    const char *env[CUDA_ENV_MOST];
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(gpu, sizeof gpu, "%d", gpu_index);
    const char *const argv[] = {
        file_program_path(), "runner", "cuda", "draw", parent, gpu, arch, NULL};
    const struct spawn_spec spec = {.argv = argv,
                                    .env = cuda_environment(env),
                                    .folder = ".",
                                    .fds = (int[]){socket, memory},
                                    .fd_count = 2};
    return spawn(&spec, (int[]){-1, -1, -1}, &generator.pid, NULL, err);
}

/* Nothing comes from a generator that is ready and was asked nothing; from one that is not, one
 * reply.
 */
static bool is_alive(void)
{
    struct pollfd said = {.fd = generator.socket, .events = POLLIN};
    if (generator.pid == 0 || poll(&said, 1, 0) <= 0)
        return generator.pid != 0;
    return !generator.ready && (said.revents & (POLLHUP | POLLERR)) == 0;
}

void cuda_draw_warm(const struct lane_facts *lane, const char *arch, size_t bytes)
{
    int sockets[2] = {-1, -1};
    struct err ignored;
    const char *told = getenv("TWAGENT_DRAW_ON_DEVICE");
    bool wanted = bytes >= GENERATOR_LEAST_BYTES && !(told != NULL && strcmp(told, "0") == 0);
    if (wanted && is_alive() && generator.gpu_index == lane->gpu_index)
        return;
    cuda_draw_end();
    if (!wanted)
        return;
    int memory = memfd_create("twagent-draw", MFD_CLOEXEC);
    void *windows = MAP_FAILED;
    if (memory >= 0 && ftruncate(memory, (off_t)windows_bytes) == 0)
        windows = mmap(NULL, windows_bytes, PROT_READ, MAP_SHARED, memory, 0);
    if (windows != MAP_FAILED &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0 &&
        start(arch, lane->gpu_index, sockets[1], memory, &ignored) == 0) {
        generator.socket = sockets[0];
        generator.gpu_index = lane->gpu_index;
        generator.windows = windows;
        sockets[0] = -1;
    } else {
        end_process();
        if (windows != MAP_FAILED)
            munmap(windows, windows_bytes);
    }
    const int mine[] = {memory, sockets[0], sockets[1]};
    for (size_t i = 0; i < sizeof mine / sizeof mine[0]; i++)
        if (mine[i] >= 0)
            close(mine[i]);
}

/* ---- what is asked of it ---- */

/* Its next reply; false: it failed, died, or took longer. */
static bool await(int timeout_ms)
{
    struct pollfd wanted = {.fd = generator.socket, .events = POLLIN};
    struct generator_reply reply;
    int ready;
    while ((ready = poll(&wanted, 1, timeout_ms)) < 0 && errno == EINTR)
        ;
    return ready > 0 && recv(generator.socket, &reply, sizeof reply, 0) == (ssize_t)sizeof reply &&
           reply.failed == 0;
}

bool cuda_draw_await(void)
{
    if (generator.pid == 0)
        return false;
    if (generator.ready ? !is_alive() : !await(READY_MS)) {
        cuda_draw_end();
        return false;
    }
    generator.ready = true;
    return true;
}

static bool is_ready(void)
{
    struct pollfd said = {.fd = generator.socket, .events = POLLIN};
    return generator.pid != 0 && (generator.ready || poll(&said, 1, 0) > 0) && cuda_draw_await();
}

struct job {
    const struct drawing *drawing;
    size_t count, each, bytes; /* numbers, those of a window, bytes of one */
    unsigned char *out;
};

static size_t part_of(const struct job *job, size_t window)
{
    size_t left = job->count - window * job->each;
    return left < job->each ? left : job->each;
}

static bool ask(const struct job *job, size_t window)
{
    const struct generator_request request = {.drawing = *job->drawing,
                                              .first = window * job->each / NUMBERS_BLOCK,
                                              .count = part_of(job, window),
                                              .window = (uint32_t)(window % GENERATOR_WINDOWS)};
    return send(generator.socket, &request, sizeof request, MSG_NOSIGNAL) ==
           (ssize_t)sizeof request;
}

/* Of each window one block that follows from the seed, and the last one. */
static bool looks_right(const struct job *job, size_t window)
{
    size_t first = window * job->each / NUMBERS_BLOCK;
    size_t blocks = (part_of(job, window) + NUMBERS_BLOCK - 1) / NUMBERS_BLOCK;
    size_t some = (size_t)((job->drawing->seed >> 8) + window * 7919) % blocks;
    return draw_is(job->drawing, job->count, first + some, job->out) &&
           draw_is(job->drawing, job->count, first + blocks - 1, job->out);
}

/* One window is copied while the next one is drawn. */
static bool run(const struct job *job)
{
    size_t windows = (job->count + job->each - 1) / job->each;
    if (!ask(job, 0))
        return false;
    for (size_t i = 0; i < windows; i++) {
        if ((i + 1 < windows && !ask(job, i + 1)) || !await(WINDOW_MS))
            return false;
        parallel_copy(job->out + i * job->each * job->bytes,
                      generator.windows + i % GENERATOR_WINDOWS * (size_t)GENERATOR_WINDOW_BYTES,
                      part_of(job, i) * job->bytes);
        if (!looks_right(job, i))
            return false;
    }
    return true;
}

bool cuda_draw(const struct drawing *drawing, size_t count, void *out)
{
    size_t bytes = dtype_bytes((enum dtype)drawing->dtype);
    if (drawing->distribution >= DRAW_RANDOM_COUNT || drawing->dtype == DTYPE_INT32 ||
        count * bytes < GENERATOR_LEAST_BYTES || !is_ready())
        return false;
    const struct job job = {drawing, count, GENERATOR_WINDOW_BYTES / bytes, bytes, out};
    uint64_t begun = timeline_begin();
    bool fine = run(&job);
    timeline_end("set.draw.device", begun);
    if (!fine) {
        timeline_end("set.draw.failed", begun);
        cuda_draw_end();
    }
    return fine;
}
