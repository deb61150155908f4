/* The disposable process. Up to stage one it is ours; from dlopen() on it is the candidate's: what
 * keeps it in bounds is what it has given away by then, not what it does. */
#include "base/random.h"
#include "eval/cpu/alone.h"
#include "eval/cpu/artifact.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/wire.h"
#include "eval/runner/inside.h"
#include "process/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

typedef void entry_function(void **pointers, const int64_t *dims);

struct runner {
    const struct control *control;
    const unsigned char *inputs;
    unsigned char *outputs;
    size_t bytes; /* of addresses, from the inputs on, that stay as they are */
    entry_function *entry;
    uint64_t stack_top, stack_end; /* all that the stack may ever have, from its end up */
};

static void set_cores(const struct control *control)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (uint32_t i = 0; i < control->core_count && i < WIRE_CORES_MAX; i++)
        CPU_SET((size_t)control->cores[i], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        give_up("cannot use the lane's cores: %s", strerror(errno));
}

/* ---- faults, in words for whoever wrote the kernel ---- */

static const struct runner *faulting; /* the runner, for a signal handler */

/* In a handler's own stack, and behind the filter: AddressSanitizer, in a build of ours with it,
 * would look for the stack's bounds in /proc before each call that does not return. */
#define UNSANITIZED __attribute__((no_sanitize_address))

UNSANITIZED _Noreturn static void say_fault(const char *text, size_t length)
{
    ssize_t ignored = write(2, text, length);
    (void)ignored;
    _exit(RUNNER_EXIT);
}

UNSANITIZED static void say_guard(uint64_t offset)
{
    char text[] = WIRE_GUARD_HIT "0000000000000000\n";
    for (size_t i = 0; i < 16; i++)
        text[sizeof WIRE_GUARD_HIT - 1 + i] = "0123456789abcdef"[offset >> (60 - 4 * i) & 15];
    say_fault(text, sizeof text - 1);
}

static bool is_input(const struct control *control, uint64_t offset)
{
    bool input = offset < control->inputs_bytes;
    for (uint32_t set = 0; set < ALIAS_SETS; set++)
        for (uint32_t i = 0; i < control->alias_count && i < INPUTS_MAX; i++) {
            const struct alias *alias = &control->aliases[set][i];
            input |= offset >= alias->address && offset < alias->address + alias->bytes;
        }
    return input;
}

/* Anything else dies of the same signal once more (SA_RESETHAND: back to what it was without us).
 */
UNSANITIZED static void on_fault(int number, siginfo_t *info, void *context)
{
    static const char wrote[] = "killed by SIGSEGV: wrote to an input\n";
    static const char deep[] = "killed by SIGSEGV: stack overflow\n";
    const struct control *control = faulting->control;
    uint64_t at = (uint64_t)(uintptr_t)info->si_addr;
    uint64_t offset = at - (uint64_t)(uintptr_t)faulting->inputs;
    (void)context;
    bool tensors = at >= (uint64_t)(uintptr_t)faulting->inputs && offset < control->alias_end;
    if (tensors && is_input(control, offset))
        say_fault(wrote, sizeof wrote - 1);
    if (tensors)
        say_guard(offset);
    if (number == SIGSEGV && at < faulting->stack_top && at >= faulting->stack_end)
        say_fault(deep, sizeof deep - 1);
#if defined(__x86_64__)
    static const char crooked[] = "killed by SIGSEGV: misaligned vector access, or an address that "
                                  "no pointer can have\n";
    if (number == SIGSEGV && info->si_code == SI_KERNEL) /* a general protection fault */
        say_fault(crooked, sizeof crooked - 1);
#endif
}

/* On a stack of its own: the usual one may be what has ended. */
static void watch_faults(struct runner *runner)
{
    static unsigned char own[1 << 16];
    const stack_t stack = {.ss_sp = own, .ss_size = sizeof own};
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_ONSTACK)};
    struct rlimit limit;
    uint64_t bytes = (uint64_t)8 << 20;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = limit.rlim_cur;
    /* What is mapped of it answers; a fault there is one below all that there will ever be. */
    runner->stack_top = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    runner->stack_end = runner->stack_top - bytes - ((uint64_t)1 << 20);
    faulting = runner;
    sigemptyset(&action.sa_mask);
    (void)sigaltstack(&stack, NULL);
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigaction(SIGBUS, &action, NULL);
}

/* ---- the tensors' addresses ---- */

/* Far from where anything else is mapped, so that a filter can tell them by the address alone. */
static unsigned char *reserve(size_t bytes)
{
    struct random random;
    random_init(&random, random_seed());
    for (int tries = 0; tries < 8; tries++) {
        uint64_t at = (UINT64_C(1) << 45) + (random_below(&random, 1 << 20) << 24);
        void *memory =
            mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (memory == (void *)(uintptr_t)at)
            return memory;
    }
    return map_shared(-1, bytes, PROT_NONE, MAP_ANONYMOUS | MAP_NORESERVE);
}

static void map_over(unsigned char *at, int fd, size_t offset, size_t bytes, int protection)
{
    if (mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
        give_up("mmap of %zu bytes: %s", bytes, strerror(errno));
}

/* The page tables are filled here, so that no timed call faults on memory that was there before.
 * Large pages: no effect unless the machine's shmem_enabled allows them; a hint in any case. */
static void map_alias(const struct runner *runner, const struct alias *alias)
{
    unsigned char *at = (unsigned char *)(uintptr_t)runner->inputs + alias->address;
    map_over(at, WIRE_INPUTS, alias->offset, alias->bytes, PROT_READ);
    (void)madvise(at, alias->bytes, MADV_HUGEPAGE);
    (void)madvise(at, alias->bytes, 22 /* MADV_POPULATE_READ, Linux 5.14 */);
}

/* The first output of a call without a shift lies at a multiple of 2 MiB, as the first inputs do.
 */
static size_t place_outputs(const unsigned char *base, size_t inputs)
{
    const size_t large_page = (size_t)2 << 20;
    size_t end = (size_t)(uintptr_t)base + inputs + WIRE_PAGE;
    size_t up = (end + large_page - 1) / large_page * large_page;
    return up + large_page - REDZONE_BYTES - (size_t)(uintptr_t)base;
}

/* Inputs, then the inputs again, each between pages without rights, then the outputs. */
static void map_tensors(struct runner *runner)
{
    const struct control *control = runner->control;
    size_t inputs =
        control->alias_end > control->inputs_bytes ? control->alias_end : control->inputs_bytes;
    runner->bytes = inputs + ((size_t)4 << 20) + control->outputs_bytes + WIRE_PAGE;
    unsigned char *base = reserve(runner->bytes);
    runner->inputs = base;
    runner->outputs = base + place_outputs(base, inputs);
    map_over(base, WIRE_INPUTS, 0, control->inputs_bytes, PROT_READ);
    for (uint32_t set = 0; set < ALIAS_SETS; set++)
        for (uint32_t i = 0; i < control->alias_count && i < INPUTS_MAX; i++)
            if (control->aliases[set][i].bytes > 0)
                map_alias(runner, &control->aliases[set][i]);
    map_over(runner->outputs, WIRE_OUTPUTS, 0, control->outputs_bytes, PROT_READ | PROT_WRITE);
}

static void set_up(struct runner *runner)
{
    runner->control = map_shared(WIRE_CONTROL, sizeof *runner->control, PROT_READ, MAP_POPULATE);
    const struct control *control = runner->control;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != control->parent)
        _exit(RUNNER_EXIT);
    close_range(WIRE_FIRST_OTHER, ~0u, 0);
    prefer_as_victim();
    set_cores(control);
    map_tensors(runner);
    void *inputs = (void *)(uintptr_t)runner->inputs, *outputs = runner->outputs;
    (void)madvise(inputs, control->inputs_bytes, MADV_HUGEPAGE);
    (void)madvise(outputs, control->outputs_bytes, MADV_HUGEPAGE);
    (void)madvise(inputs, control->inputs_bytes, 22 /* MADV_POPULATE_READ, Linux 5.14 */);
    (void)madvise(outputs, control->outputs_bytes, 23 /* MADV_POPULATE_WRITE */);
    /* Closed, they cannot be opened again for writing through /proc/self/fd. */
    close(WIRE_CONTROL);
    close(WIRE_INPUTS);
    close(WIRE_OUTPUTS);
}

/* ---- OpenMP: its threads are made and bound here, since none can be bound later ---- */

static void *omp_library; /* the runtime that the artifact needs, once loaded */

static void nothing(void *data)
{
    (void)data;
}

/* LLVM's runtime leaves a file in /dev/shm for copies of itself; nobody would remove it. */
static void omp_load(const char *name)
{
    omp_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (omp_library == NULL)
        return; /* the artifact's own dlopen() says what is missing */
    int (*max_threads)(void) = NULL;
    *(void **)&max_threads = dlsym(omp_library, "omp_get_max_threads");
    if (max_threads != NULL)
        (void)max_threads();
    char file[64];
    snprintf(file, sizeof file, "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", (int)getpid(),
             (int)getuid());
    unlink(file);
}

static void omp_make_threads(const struct control *control)
{
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned) = NULL;
    if (omp_library != NULL)
        *(void **)&parallel = dlsym(omp_library, "GOMP_parallel"); /* both runtimes have it */
    if (parallel != NULL)
        parallel(nothing, NULL, control->core_count, 0);
    /* It has bound this thread to the first core. Threads that a library makes while it loads
     * (OpenBLAS) shall have them all; the host binds this one again when everything is loaded. */
    set_cores(control);
}

static void bound_memory(const struct runner *runner)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct err err;
    struct sandbox_limits limits = {.address_bytes = runner->bytes + runner->control->memory_bytes};
    if (sandbox_bound_memory(SANDBOX_RUNNER, &limits, &err) != 0)
        give_up("%s", err.message);
#else
    (void)runner; /* their shadow alone is terabytes of addresses */
#endif
}

/* Proved by calls that must fail, before anything of the candidate's could answer them. */
static void filter(const struct runner *runner)
{
    struct err err;
    struct sandbox_facts facts;
    uint64_t from = (uint64_t)(uintptr_t)runner->inputs;
    const struct sandbox_window window = {from, from + runner->bytes};
    sandbox_probe(&facts);
    if (sandbox_filter(SANDBOX_RUNNER, &window, &err) != 0)
        give_up("%s", err.message);
    void *inputs = (void *)(uintptr_t)runner->inputs;
    if (facts.seccomp && (mprotect(inputs, WIRE_PAGE, PROT_READ) == 0 || errno != EPERM ||
                          dup(WIRE_DONE) >= 0 || errno != EPERM))
        give_up("the filter of system calls is not in force");
}

static void load(struct runner *runner)
{
    struct err err;
    struct sandbox_limits limits = {0};
    char path[WIRE_PATH_MAX];
    memcpy(path, runner->control->artifact, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        give_up("cannot open the artifact: %s", strerror(errno));
    if (fd != WIRE_ARTIFACT) {
        if (dup3(fd, WIRE_ARTIFACT, O_CLOEXEC) < 0)
            give_up("dup3: %s", strerror(errno));
        close(fd);
    }
    const char *omp = artifact_inspect(WIRE_ARTIFACT).openmp;
    if (omp != NULL)
        omp_load(omp);
    const bool own = artifact_may_load(path);
    if (runner->control->alone != 0)
        (void)alone_enter(path);
    /* A candidate computes by itself: what it may use is in memory by now, and nothing else can be
     * opened. A baseline's libraries are found where they are installed. */
    struct sandbox_paths paths = {
        .read_count = own ? 6 : 1,
        .reads = {path, "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives"}};
    if (sandbox_confine(SANDBOX_RUNNER, &limits, &paths, &err) != 0)
        give_up("%s", err.message);
    omp_make_threads(runner->control);
    bound_memory(runner);
    close(WIRE_ARTIFACT);
    filter(runner);
    say_done();
    wait_go();
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        give_up("%s", dlerror());
    *(void **)&runner->entry = dlsym(library, "twagent_entry");
    if (runner->entry == NULL)
        give_up("the artifact has no kernel");
}

static void serve(struct runner *runner)
{
    const struct wire_call *call = &runner->control->call;
    for (;;) {
        void *pointers[CALL_POINTERS_MAX];
        int64_t dims[DIMS_MAX];
        wait_go();
        uint32_t outputs = call->input_count;
        uint32_t count = outputs + call->output_count + call->workspace_count;
        for (uint32_t i = 0; i < count && i < CALL_POINTERS_MAX; i++)
            pointers[i] = i < outputs ? (void *)(uintptr_t)(runner->inputs + call->offsets[i])
                                      : runner->outputs + call->offsets[i];
        memcpy(dims, call->dims, sizeof dims);
        runner->entry(pointers, dims);
        say_done();
    }
}

/* What compilers link by themselves: in memory before an artifact is known, and the only libraries
 * that a candidate gets. Not RTLD_GLOBAL, since one OpenMP runtime's names would then stand before
 * the other's. */
static void preload(void)
{
    static const char *const libraries[] = {"libm.so.6",      "libmvec.so.1",  "libgomp.so.1",
                                            "libstdc++.so.6", "libgcc_s.so.1", "libatomic.so.1",
                                            "libpthread.so.0"};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        (void)dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
}

int cpu_runner_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    struct runner runner = {0};
    set_up(&runner);
    watch_faults(&runner);
    preload();
    set_cores(runner.control); /* libgomp has bound us */
    say_done();
    wait_go();
    load(&runner);
    say_done();
    serve(&runner);
    return 0;
}
