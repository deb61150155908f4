/* `twagent cuda-compile --library FILE [--include DIR] [--cccl DIR] --arch SM [--flag F]...
 * [--entry E]... [--cpu-s N] [--memory-mib N] [--cache DIR --toolkit HASH] [--server FD]`, in the
 * folder that has unit.cu: writes kernel.cubin and kernel.json, says on stderr what the compiler
 * says.
 *
 * One process opens NVRTC and waits; a child of its, without any privilege, compiles. So a compiler
 * that is killed by a limit ends as one that failed, with a reason, and not as one that somebody
 * killed. With --version alone it tells NVRTC's version and ends. */
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "eval/cuda/compile/job.h"
#include "eval/cuda/compile/serve.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
    struct cuda_job job;
    int server; /* descriptor of a warm compiler; -1: none */
    bool version, serve;
};

static int add_word(const char **list, size_t *count, const char *word, struct err *err)
{
    if (*count == JOB_OPTIONS_MAX)
        return err_set(err, ERR_USAGE, "too many options");
    list[(*count)++] = word;
    return 0;
}

/* Whoever starts us by hand may not have one: a file of ours must not be taken for it. */
static int socket_given(const char *text)
{
    struct stat status;
    int fd = (int)strtol(text, NULL, 10);
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? fd : -1;
}

static int parse_option(struct request *request, const char *name, const char *text,
                        struct err *err)
{
    struct cuda_job *job = &request->job;
    if (strcmp(name, "--library") == 0)
        job->compiler.library = text;
    else if (strcmp(name, "--include") == 0)
        job->compiler.includes = text;
    else if (strcmp(name, "--cccl") == 0)
        job->compiler.cccl = text;
    else if (strcmp(name, "--arch") == 0)
        job->arch = text;
    else if (strcmp(name, "--cpu-s") == 0)
        job->cpu_s = strtoull(text, NULL, 10);
    else if (strcmp(name, "--memory-mib") == 0)
        job->memory_mib = strtoull(text, NULL, 10);
    else if (strcmp(name, "--flag") == 0)
        return add_word(job->flags, &job->flag_count, text, err);
    else if (strcmp(name, "--entry") == 0)
        return add_word(job->entries, &job->entry_count, text, err);
    else if (strcmp(name, "--cache") == 0)
        job->cache = text;
    else if (strcmp(name, "--toolkit") == 0)
        job->toolkit = text;
    else if (strcmp(name, "--server") == 0)
        request->server = socket_given(text);
    else
        return err_set(err, ERR_USAGE, "%s: no such option", name);
    return 0;
}

static int parse(int argc, char **argv, struct request *request, struct err *err)
{
    *request = (struct request){.server = -1};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0)
            request->version = true;
        else if (strcmp(argv[i], "--serve") == 0)
            request->serve = true;
        else if (i + 1 >= argc)
            return err_set(err, ERR_USAGE, "%s: expected a value", argv[i]);
        else if (parse_option(request, argv[i], argv[i + 1], err) != 0)
            return -1;
        else
            i++;
    }
    if (request->job.compiler.library == NULL)
        return err_set(err, ERR_USAGE, "expected --library FILE");
    return 0;
}

static int open_files(struct cuda_job *job, struct err *err)
{
    const int create = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    if (job->arch == NULL)
        return err_set(err, ERR_USAGE, "expected --arch SM");
    job->unit = open("unit.cu", O_RDONLY | O_CLOEXEC);
    job->cubin = open("kernel.cubin", create, 0600);
    job->log = open("kernel.json", create, 0600);
    job->errors = STDERR_FILENO;
    if (job->unit < 0 || job->cubin < 0 || job->log < 0)
        return err_set_errno(err, ERR_IO, errno, "unit.cu, kernel.cubin or kernel.json");
    return 0;
}

/* In the child: never returns. */
static void compile(const struct cuda_job *job, const struct nvrtc *nvrtc)
{
    struct err err = {0};
    if (cuda_job_confine(job, NULL, NULL, true, &err) != 0) {
        dprintf(job->errors, "cuda-compile: %s\n", err.message);
        _exit(err_exit_code(err.code));
    }
    _exit(cuda_job_run(job, nvrtc));
}

static int supervise(const struct cuda_job *job, struct err *err)
{
    struct nvrtc nvrtc;
    if (cuda_job_open(job, &nvrtc, err) != 0)
        return -1;
    pid_t child = spawn_fork();
    if (child < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "fork");
    if (child == 0)
        compile(job, &nvrtc);
    siginfo_t info = spawn_reap(child);
    if (info.si_code == CLD_EXITED)
        return info.si_status;
    cuda_job_tell_end(job, info.si_status);
    return 1;
}

static int tell_version(const struct cuda_job *job, struct err *err)
{
    struct nvrtc nvrtc;
    if (nvrtc_open(job->compiler.library, &nvrtc, err) != 0)
        return -1;
    printf("%d.%d\n", nvrtc.version_major, nvrtc.version_minor);
    fflush(stdout);
    _exit(0); /* in a sandbox, where nothing that runs at the end has what it needs */
}

static int compile_here_or_there(const struct request *request, struct err *err)
{
    int code;
    bool known = cubin_cache_answer(&request->job);
    bool done =
        !known && request->server >= 0 && cuda_serve_ask(request->server, &request->job, &code);
    if (request->server >= 0)
        close(request->server);
    if (known)
        return 0;
    code = done ? code : supervise(&request->job, err);
    if (code == 0) {
        signal(SIGXFSZ, SIG_IGN); /* what cannot be kept fails no compile */
        cubin_cache_keep(&request->job);
    }
    return code;
}

int cuda_compile_main(int argc, char **argv)
{
    struct request request;
    struct err err = {0};
    int code = parse(argc, argv, &request, &err);
    if (code == 0 && request.version)
        code = tell_version(&request.job, &err);
    else if (code == 0 && request.serve)
        code = cuda_serve(&request.job, &err);
    else if (code == 0 && (code = open_files(&request.job, &err)) == 0)
        code = compile_here_or_there(&request, &err);
    if (code < 0) {
        fprintf(stderr, "cuda-compile: %s\n", err.message);
        code = err_exit_code(err.code);
    }
    fflush(NULL);
    return code;
}
