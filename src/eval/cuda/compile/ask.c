/* Both of those who use a server: the worker, who starts it, and the process of one compile. */
#include "eval/cuda/compile/serve.h"

#include "base/clock.h"
#include "base/file.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTS_MAX = 3 };

/* ---- starting ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void start(struct served *server, const char *const *argv)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", "CUDA_CACHE_DISABLE=1",
                                      "CUDA_VISIBLE_DEVICES=", NULL};
    struct err ignored;
    int ends[2];
    if (server->starts > 0 && server->fd >= 0)
        close(server->fd);
    server->starts++;
    server->fd = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    const struct spawn_spec spec = {.argv = argv, .env = env, .fds = &ends[1], .fd_count = 1};
    server->running = spawn(&spec, (int[]){-1, -1, -1}, &server->pid, NULL, &ignored) == 0;
    close(ends[1]);
    if (server->running)
        server->fd = ends[0];
    else
        close(ends[0]);
}

int serve_start(struct served *server, const char *const *argv)
{
    const char *wanted = getenv("TWAGENT_CUDA_SERVER");
    if (wanted != NULL && strcmp(wanted, "0") == 0)
        return -1;
    pthread_mutex_lock(&lock);
    if (server->running && waitpid(server->pid, NULL, WNOHANG) != 0)
        server->running = false; /* it died: another, a few times */
    if (!server->running && server->starts < STARTS_MAX)
        start(server, argv);
    int fd = server->running ? server->fd : -1;
    pthread_mutex_unlock(&lock);
    return fd;
}

int cuda_serve_start(const struct cuda_compiler *compiler, const char *arch)
{
    static struct served server;
    const char *argv[16] = {file_program_path(), "cuda-compile", "--serve", "--library",
                            compiler->library,   "--arch",       arch};
    size_t count = 7;
    if (compiler->includes != NULL) {
        argv[count++] = "--include";
        argv[count++] = compiler->includes;
    }
    if (compiler->cccl != NULL) {
        argv[count++] = "--cccl";
        argv[count++] = compiler->cccl;
    }
    return serve_start(&server, argv);
}

/* ---- asking ---- */

static size_t add(char *packet, size_t length, char letter, const char *text)
{
    size_t more = strlen(text) + 2;
    if (length + more > SERVE_PACKET_MAX)
        return SERVE_PACKET_MAX + 1;
    packet[length] = letter;
    memcpy(packet + length + 1, text, more - 1);
    return length + more;
}

static size_t pack(const struct cuda_job *job, char packet[SERVE_PACKET_MAX + 1])
{
    size_t length = add(packet, 0, 'A', job->arch);
    for (size_t i = 0; i < job->flag_count && length <= SERVE_PACKET_MAX; i++)
        length = add(packet, length, 'F', job->flags[i]);
    for (size_t i = 0; i < job->entry_count && length <= SERVE_PACKET_MAX; i++)
        length = add(packet, length, 'E', job->entries[i]);
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)job->cpu_s);
    if (length <= SERVE_PACKET_MAX)
        length = add(packet, length, 'T', number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)job->memory_mib);
    return length <= SERVE_PACKET_MAX ? add(packet, length, 'M', number) : length;
}

static bool send_request(int socket, const struct cuda_job *job, int reply)
{
    static char packet[SERVE_PACKET_MAX + 1];
    const int fds[SERVE_FDS] = {job->unit, job->cubin, job->log, job->errors, reply};
    union {
        char bytes[CMSG_SPACE(sizeof fds)];
        struct cmsghdr header;
    } control = {0};
    size_t length = pack(job, packet);
    if (length > SERVE_PACKET_MAX)
        return false;
    struct iovec part = {.iov_base = packet, .iov_len = length};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(rights), fds, sizeof fds);
    ssize_t sent;
    while ((sent = sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR)
        ;
    return sent == (ssize_t)length;
}

/* Reads exactly `length` bytes; false at the end of the stream, or after `timeout_ms` (-1: never).
 */
static bool read_reply(int fd, void *bytes, size_t length, int timeout_ms)
{
    size_t at = 0;
    uint64_t deadline = clock_now_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
    while (at < length) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        uint64_t now = clock_now_ms();
        if (timeout_ms >= 0 && now >= deadline)
            return false;
        if (poll(&polled, 1, timeout_ms >= 0 ? (int)(deadline - now) : -1) <= 0)
            continue;
        ssize_t got = read(fd, (char *)bytes + at, length - at);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool cuda_serve_ask(int server_fd, const struct cuda_job *job, int *code)
{
    int ends[2];
    char accepted = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    bool fine = send_request(server_fd, job, ends[1]);
    close(ends[1]);
    fine = fine && read_reply(ends[0], &accepted, 1, SERVE_ACCEPT_MS) &&
           accepted == SERVE_ACCEPTED && read_reply(ends[0], code, sizeof *code, -1);
    close(ends[0]);
    if (!fine) { /* whatever a server that went away has left in the files */
        cubin_cache_empty(job->cubin);
        cubin_cache_empty(job->log);
    }
    return fine;
}
