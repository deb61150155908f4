/* A backend for tests: a subject is a forked child that calls a C function of the test itself on
 * the shared tensors. A candidate's source, front matter aside, is the name of that function. The
 * test program also plays the parts of `twagent sandbox` and of a compiler. */
#pragma once

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/backend.h"
#include "eval/backend/ceilings.h"
#include "eval/cpu/target.h"
#include "folder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct fake_call { /* what a fake kernel is called with: C[M,N] = A[M,K] B[K,N] */
    const float *a, *b;
    float *c;
    int64_t m, n, k;
    const struct call *call;
    uint64_t *cost_ns; /* what this call takes by the clock of a fake_costs device */
};
typedef void fake_kernel(const struct fake_call *call);

struct fake_entry {
    const char *name;
    fake_kernel *run;
};
static const struct fake_entry *fake_kernels __attribute__((unused)); /* until a NULL name */
static const char *fake_identity __attribute__((unused)); /* ceilings are remembered by it */
static double fake_ceiling __attribute__((unused));       /* what probe() measures, each rate */
static bool fake_gpu __attribute__((unused));             /* what times is a device's clock */
static bool fake_costs __attribute__((unused));           /* ... which kernels alone move */

enum { FAKE_COST_NS = 20000 }; /* of a kernel that says nothing else */

struct fake_shared {
    struct call call;
    uint64_t cost_ns;
};

struct fake_subject {
    struct subject subject;
    struct fake_shared *shared;
    int go, done; /* our ends of two pipes */
    bool reaped;
};

static inline void fake_product(const struct fake_call *f)
{
    for (int64_t i = 0; i < f->m; i++)
        for (int64_t j = 0; j < f->n; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < f->k; k++)
                sum += f->a[i * f->k + k] * f->b[k * f->n + j];
            f->c[i * f->n + j] = sum;
        }
}

static int fake_ended(struct fake_subject *fake, struct err *err)
{
    int status = 0;
    kill(fake->subject.pid, SIGKILL);
    while (waitpid(fake->subject.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    fake->reaped = true;
    if (WIFSIGNALED(status))
        return err_set(err, ERR_CHILD, "killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
    return err_set(err, ERR_CHILD, "exited %d", WEXITSTATUS(status));
}

static int fake_run(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                    struct err *err)
{
    struct fake_subject *fake = (struct fake_subject *)subject;
    struct pollfd done = {.fd = fake->done, .events = POLLIN};
    char byte = 'g';
    if (fake->reaped)
        return err_set(err, ERR_CHILD, "has ended");
    fake->shared->call = *call;
    fake->shared->cost_ns = FAKE_COST_NS;
    uint64_t started = clock_now_ns();
    if (write(fake->go, &byte, 1) != 1)
        return fake_ended(fake, err);
    int ready = poll(&done, 1, (int)call->timeout_ms);
    *elapsed_ns = clock_now_ns() - started;
    if (ready == 0) {
        (void)fake_ended(fake, err);
        return err_set(err, ERR_TIMEOUT, "no answer in time");
    }
    if (fake_costs)
        *elapsed_ns = fake->shared->cost_ns;
    return read(fake->done, &byte, 1) == 1 ? 0 : fake_ended(fake, err);
}

static void fake_pause(struct subject *subject)
{
    struct fake_subject *fake = (struct fake_subject *)subject;
    siginfo_t info;
    if (fake->reaped)
        return;
    kill(subject->pid, SIGSTOP);
    while (waitid(P_PID, (id_t)subject->pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            return;
}

static void fake_resume(struct subject *subject)
{
    if (!((struct fake_subject *)subject)->reaped)
        kill(subject->pid, SIGCONT);
}

static void fake_close(struct subject *subject)
{
    struct fake_subject *fake = (struct fake_subject *)subject;
    if (!fake->reaped)
        (void)fake_ended(fake, &(struct err){0});
    close(fake->go);
    close(fake->done);
    munmap(fake->shared, sizeof *fake->shared);
    mem_free(fake);
}

_Noreturn static void fake_serve(struct fake_shared *shared, const struct region *region, int go,
                                 int done, fake_kernel *run)
{
    const struct call *call = &shared->call;
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGSEGV, SIG_DFL);
    for (int fd = 3; fd < 256; fd++) /* no exec will: a pipe that somebody waits on may be here */
        if (fd != go && fd != done)
            close(fd);
    while (read(go, &byte, 1) == 1) {
        struct fake_call f = {.a = (const float *)(region->inputs + call->offsets[0]),
                              .b = (const float *)(region->inputs + call->offsets[1]),
                              .c = (float *)(region->outputs + call->offsets[2]),
                              .m = call->dims[0],
                              .n = call->dims[1],
                              .k = call->dims[2],
                              .call = call,
                              .cost_ns = &shared->cost_ns};
        run(&f);
        if (write(done, &byte, 1) != 1)
            break;
    }
    _exit(0);
}

static int fake_open(const struct lane_facts *lane, const struct region *region,
                     const char *artifact, const struct program *program, bool fresh,
                     struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {fake_run, fake_pause, fake_resume, fake_close};
    const struct fake_entry *entry = fake_kernels;
    int go[2], done[2];
    (void)program, (void)fresh;
    while (entry->name != NULL && strcmp(entry->name, artifact) != 0)
        entry++;
    if (entry->name == NULL)
        return err_set(err, ERR_CHILD, "no kernel %s", artifact);
    struct fake_subject *fake = MEM_NEW(struct fake_subject);
    fake->shared =
        mmap(NULL, sizeof *fake->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fake->shared == MAP_FAILED || pipe(go) != 0 || pipe(done) != 0)
        return err_set_errno(err, ERR_IO, errno, "fake subject");
    pid_t pid = fork();
    if (pid == 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)lane->cores[0], &set);
        (void)sched_setaffinity(0, sizeof set, &set);
        close(go[1]);
        close(done[0]);
        fake_serve(fake->shared, region, go[0], done[1], entry->run);
    }
    close(go[0]);
    close(done[1]);
    fake->go = go[1], fake->done = done[0];
    fake->subject = (struct subject){.ops = &ops, .name = "fake", .pid = pid};
    *subject = &fake->subject;
    return 0;
}

static int fake_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
                      struct lane_facts *lane, struct err *err)
{
    (void)arena;
    *lane = (struct lane_facts){.gpu = fake_gpu,
                                .core_count = core_count < 2 ? core_count : 2,
                                .device = "{\"backend\":\"fake\",\"read_bytes_per_s\":null}",
                                .versions = "{\"fake\":\"1\"}"};
    memcpy(lane->cores, cores, lane->core_count * sizeof *cores);
    lane->identity = fake_identity;
    if (!roofline)
        ceilings_recall(lane);
    else
        lane->copy_bytes_per_s = lane->read_bytes_per_s = lane->flops_per_s = fake_ceiling;
    return names_set(&lane->facts, "cores", (int64_t)lane->core_count, err);
}

/* The "compiler" is this program again: it fails for a source that says `broken`. */
static int fake_build(struct arena *arena, const struct lane_facts *lane,
                      const struct problem *problem, const struct candidate *candidate,
                      const struct names *tune, const struct baseline_spec *baseline,
                      enum build_flavour flavour, const char *folder, struct build *build,
                      struct err *err)
{
    static const char *const env[] = {NULL};
    (void)lane, (void)problem, (void)tune, (void)flavour, (void)folder, (void)err;
    const char *text = baseline != NULL ? baseline->name : candidate->source;
    const char *after = strstr(text, "---*/");
    text = after != NULL ? after + 5 : text;
    text += strspn(text, " \n");
    char *name = arena_strndup(arena, text, strcspn(text, " \n"));
    MEM_LOCAL char *self = file_self_path();
    const char **argv = arena_array(arena, 4, sizeof *argv);
    argv[0] = arena_strdup(arena, self);
    argv[1] = "compile";
    argv[2] = name;
    *build = (struct build){
        .artifact = name,
        .spec = {.argv = argv, .env = env, .timeout_ms = 600000, .output_max = 4096}};
    return 0;
}

static void fake_diagnostics(const struct candidate *candidate, const char *text, size_t length,
                             struct buf *out)
{
    (void)candidate;
    buf_add(out, text, length);
}

static int fake_sanitize(const struct lane_facts *lane, const struct region *region,
                         const char *artifact, const struct program *program,
                         const struct call *calls, size_t count, bool together, struct buf *report,
                         struct err *err)
{
    bool late = strcmp(artifact, "late_under_tools") == 0;
    (void)lane, (void)region, (void)program, (void)calls, (void)together;
    buf_add_text(report, "heap-buffer-overflow");
    if (count == 0 || (!late && strcmp(artifact, "unclean") != 0))
        return 0;
    return err_set(err, late ? ERR_TIMEOUT : ERR_CHILD, late ? "did not end" : "found a defect");
}

static int fake_profile(const struct lane_facts *lane, const struct problem *problem,
                        const struct names *dims, const char *artifact, const char *remarks_log,
                        double time_ns, struct subject *subject, const struct call *call,
                        struct json *json, struct err *err)
{
    (void)lane, (void)problem, (void)dims, (void)artifact, (void)remarks_log, (void)subject;
    (void)call, (void)err;
    json_put_real(json, "profiled_ns", time_ns);
    return 0;
}

static const struct language *const fake_languages[] = {&language_c, NULL};
static const struct target fake_target = {.name = "fake", .languages = fake_languages};
__attribute__((unused)) static const struct backend fake_backend = {.target = &fake_target,
                                                                    .probe = fake_probe,
                                                                    .build = fake_build,
                                                                    .diagnostics = fake_diagnostics,
                                                                    .open = fake_open,
                                                                    .sanitize = fake_sanitize,
                                                                    .profile = fake_profile};

/* In main(), before anything else: true where this process was one of the other parts. */
static inline bool fake_dispatch(int argc, char **argv, int *code)
{
    MEM_LOCAL char *self = file_self_path();
    setenv("TWAGENT_SELF", self, 1);
    if (argc >= 3 && strcmp(argv[1], "compile") == 0) {
        *code = strcmp(argv[2], "broken") == 0;
        fputs(*code ? "candidate.c:1: broken\n" : "", stderr);
        return true;
    }
    if (argc < 2 || strcmp(argv[1], "sandbox") != 0)
        return false;
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            execv(argv[i + 1], argv + i + 1);
    *code = 127;
    return true;
}
