/* The server's loop: requests in, a confined child each, exit codes out.
 *
 *   process 1   waits, and removes the temporary folder       (sees nothing of any source)
 *   process 2   this loop; NVRTC loaded, headers precompiled  (reads no source)
 *   children    one a compile, and one below it for a header that is to be precompiled */
#include "eval/cuda/compile/serve.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/compile/source.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ACTIVE_MAX = 16, PCH_HEAP_BYTES = 512 << 20 };

struct active { /* one compile that goes on */
    pid_t pid;  /* 0: free */
    int pidfd, reply;
    struct cuda_job job; /* its descriptors alone are ours */
    const char *making;  /* a precompiled header; NULL: none */
};

struct server {
    struct cuda_job compiler; /* paths and the usual architecture */
    struct nvrtc nvrtc;
    struct pch_shelf *shelf;
    char folder[64];
    struct active active[ACTIVE_MAX];
    bool over; /* nobody can ask any more */
};

/* ---- one child ---- */

static void end_with(const struct cuda_job *job, struct err *err)
{
    dprintf(job->errors, "cuda-compile: %s\n", err->message);
    _exit(err_exit_code(err->code));
}

/* Below the compile's own process, since what may write a header must read no source. */
static void make_header(const struct server *server, const struct cuda_job *job)
{
    pid_t child = spawn_fork();
    struct err err = {0};
    if (child > 0)
        (void)spawn_reap(child);
    if (child != 0)
        return;
    char *prefix = pch_prefix(job->unit);
    if (prefix == NULL || cuda_job_confine(job, NULL, server->folder, true, &err) != 0)
        _exit(EXIT_FAILURE);
    _exit(cuda_job_precompile(job, &server->nvrtc, prefix, job->pch));
}

/* Who reads a precompiled header wants a temporary file, for a moment. */
static const char *scratch_folder(const struct server *server, pid_t pid, char path[96])
{
    snprintf(path, 96, "%s/%d", server->folder, (int)pid);
    if (mkdir(path, 0700) != 0 || setenv("TMPDIR", path, 1) != 0)
        return NULL;
    return path;
}

/* The compile, in the child: never returns. Of the server's descriptors it keeps its own four. */
static void compile(const struct server *server, const struct cuda_job *given, bool create)
{
    struct cuda_job job = *given;
    struct err err = {0};
    int *const fds[] = {&job.unit, &job.cubin, &job.log, &job.errors};
    char folder[96];
    for (int i = 0; i < 4; i++) /* above all, then down to 3 to 6 */
        *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, 256);
    for (int i = 0; i < 4; i++)
        *fds[i] = dup3(*fds[i], SERVE_FD + i, O_CLOEXEC);
    if (close_range(SERVE_FD + 4, ~0u, 0) != 0)
        _exit(EXIT_FAILURE);
    if (create)
        make_header(server, &job);
    if (job.pch != NULL && !file_exists(job.pch))
        job.pch = NULL;
    const char *scratch = job.pch != NULL ? scratch_folder(server, getpid(), folder) : NULL;
    if (cuda_job_confine(&job, job.pch, scratch, true, &err) != 0)
        end_with(&job, &err);
    _exit(cuda_job_run(&job, &server->nvrtc));
}

/* ---- requests ---- */

static void close_request(struct active *active)
{
    const int fds[] = {active->job.unit, active->job.cubin, active->job.log, active->job.errors,
                       active->reply};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close(fds[i]);
    active->pid = 0;
}

static void reply(const struct active *active, int code)
{
    if (write(active->reply, &code, sizeof code) != (ssize_t)sizeof code)
        return; /* nobody waits */
}

static bool unpack(const char *packet, size_t length, struct cuda_job *job)
{
    for (size_t at = 0; at < length; at += strlen(packet + at) + 1) {
        const char *text = packet + at + 1;
        if (packet[at] == 'A')
            job->arch = text;
        else if (packet[at] == 'F' && job->flag_count < JOB_OPTIONS_MAX)
            job->flags[job->flag_count++] = text;
        else if (packet[at] == 'E' && job->entry_count < JOB_OPTIONS_MAX)
            job->entries[job->entry_count++] = text;
        else if (packet[at] == 'T')
            job->cpu_s = strtoull(text, NULL, 10);
        else if (packet[at] == 'M')
            job->memory_mib = strtoull(text, NULL, 10);
        else
            return false;
    }
    return job->arch != NULL;
}

/* Strings and five descriptors; false where there is no request, or not a whole one. */
static bool receive(struct server *server, char packet[SERVE_PACKET_MAX], struct active *active)
{
    int fds[SERVE_FDS];
    union {
        char bytes[CMSG_SPACE(sizeof fds)];
        struct cmsghdr header;
    } control = {0};
    struct iovec part = {.iov_base = packet, .iov_len = SERVE_PACKET_MAX};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(SERVE_FD, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) {
        server->over = got == 0 || errno != EINTR;
        return false;
    }
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights == NULL || rights->cmsg_type != SCM_RIGHTS ||
        rights->cmsg_len != CMSG_LEN(sizeof fds))
        return false;
    memcpy(fds, CMSG_DATA(rights), sizeof fds);
    active->job = (struct cuda_job){.compiler = server->compiler.compiler,
                                    .unit = fds[0],
                                    .cubin = fds[1],
                                    .log = fds[2],
                                    .errors = fds[3]};
    active->reply = fds[4];
    if (packet[got - 1] == '\0' && unpack(packet, (size_t)got, &active->job))
        return true;
    close_request(active);
    return false;
}

static void take_request(struct server *server, struct active *active)
{
    static char packet[SERVE_PACKET_MAX];
    const char accepted = SERVE_ACCEPTED;
    bool create = false;
    if (!receive(server, packet, active))
        return;
    if (write(active->reply, &accepted, 1) != 1) {
        close_request(active);
        return;
    }
    active->job.pch = pch_find(server->shelf, &active->job, &create);
    active->making = create ? active->job.pch : NULL;
    active->pid = spawn_fork();
    if (active->pid == 0)
        compile(server, &active->job, create);
    active->pidfd = active->pid > 0 ? (int)syscall(SYS_pidfd_open, active->pid, 0) : -1;
    if (active->pid < 0 || active->pidfd < 0) {
        if (active->pid > 0) {
            kill(active->pid, SIGKILL);
            (void)spawn_reap(active->pid);
        }
        close_request(active); /* who asked sees the end, and compiles by itself */
    }
}

static void take_end(struct server *server, struct active *active)
{
    siginfo_t info = spawn_reap(active->pid);
    bool exited = info.si_code == CLD_EXITED;
    char scratch[96];
    snprintf(scratch, sizeof scratch, "%s/%d", server->folder, (int)active->pid);
    (void)rmdir(scratch); /* most have none */
    if (!exited)
        cuda_job_tell_end(&active->job, info.si_status);
    if (active->making != NULL)
        pch_made(server->shelf, active->making, exited && file_exists(active->making));
    reply(active, exited ? info.si_status : 1);
    close(active->pidfd);
    close_request(active);
}

/* ---- the loop ---- */

static void turn(struct server *server)
{
    struct pollfd polled[1 + 2 * ACTIVE_MAX];
    struct active *free_place = NULL;
    for (size_t i = 0; i < ACTIVE_MAX; i++) {
        struct active *active = &server->active[i];
        bool used = active->pid > 0;
        free_place = used ? free_place : active;
        polled[1 + 2 * i] = (struct pollfd){.fd = used ? active->pidfd : -1, .events = POLLIN};
        polled[2 + 2 * i] = (struct pollfd){.fd = used ? active->reply : -1};
    }
    polled[0] = (struct pollfd){.fd = free_place != NULL ? SERVE_FD : -1, .events = POLLIN};
    if (poll(polled, 1 + 2 * ACTIVE_MAX, -1) < 0)
        return;
    for (size_t i = 0; i < ACTIVE_MAX; i++) {
        if (polled[2 + 2 * i].revents != 0) /* who asked is gone */
            kill(server->active[i].pid, SIGKILL);
        if (polled[1 + 2 * i].revents != 0)
            take_end(server, &server->active[i]);
    }
    if (polled[0].revents != 0)
        take_request(server, free_place);
}

/* The heap for precompiled headers gets its address now, the same for all children. */
static void warm(struct server *server)
{
    char path[96];
    struct cuda_job job = server->compiler;
    job.errors = STDERR_FILENO;
    if (server->nvrtc.pch_heap == NULL)
        return;
    snprintf(path, sizeof path, "%s/first.pch", server->folder);
    (void)server->nvrtc.pch_heap(PCH_HEAP_BYTES);
    (void)cuda_job_precompile(&job, &server->nvrtc, "#include <" CUDA_SOURCE_TYPES ">\n", path);
    (void)unlink(path);
}

static void serve(struct server *server)
{
    struct err err = {0};
    signal(SIGPIPE, SIG_IGN);
    if (setenv("TMPDIR", server->folder, 1) != 0 || /* headers are first written there */
        cuda_job_open(&server->compiler, &server->nvrtc, &err) != 0 ||
        cuda_job_confine(&server->compiler, NULL, server->folder, false, &err) != 0)
        _exit(EXIT_FAILURE);
    server->shelf = pch_shelf_new(server->folder);
    warm(server);
    while (!server->over)
        turn(server);
    for (size_t i = 0; i < ACTIVE_MAX; i++)
        if (server->active[i].pid > 0)
            kill(server->active[i].pid, SIGKILL);
    _exit(0);
}

int cuda_serve(const struct cuda_job *job, struct err *err)
{
    struct server *server = MEM_NEW(struct server);
    server->compiler = *job;
    (void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0); /* the socket's end is ours; then the folder goes */
    strcpy(server->folder, "/tmp/twagent-nvrtc-XXXXXX");
    if (mkdtemp(server->folder) == NULL) {
        mem_free(server);
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "a temporary folder");
    }
    pid_t child = spawn_fork();
    if (child == 0)
        serve(server);
    close(SERVE_FD);
    if (child > 0)
        (void)spawn_reap(child);
    int result = file_remove_tree(server->folder, err);
    mem_free(server);
    return result;
}
