/* A runner computes what it is told, and what it must not do it cannot. */
#include "kit.c" /* each test is one source file */

#include "eval/cpu/private.h"

#include <signal.h>
#include <time.h>

static void computes(void **state)
{
    (void)state;
    assert_int_equal(kit_try(&kit, KIT_SIGNATURE "{" KIT_RIGHT "}"), ERR_NONE);
    assert_true(kit_right(&kit));
    for (int i = 0; i < 20; i++) { /* and again, and in a fresh runner that was kept warm */
        if (i % 10 == 9)
            assert_int_equal(kit_load(&kit), 0);
        assert_int_equal(kit_call(&kit), 0);
        assert_true(kit_right(&kit));
    }
}

static void computes_with_threads(void **state)
{
    static const char *const sources[] = {
        KIT_SIGNATURE "{\n#pragma omp parallel for\n" KIT_RIGHT "}",
        "/*---\ncompile: {compiler: clang}\n---*/\n" KIT_SIGNATURE
        "{\n#pragma omp parallel for\n" KIT_RIGHT "}",
        "/*---\ncompile: {compiler: clang}\n---*/\n" KIT_SIGNATURE "{\n" KIT_RIGHT "}",
        "#include <pthread.h>\nstatic void *nothing(void *p) { return p; }\n" KIT_SIGNATURE
        "{ pthread_t t; if (pthread_create(&t, 0, nothing, 0)) return; pthread_join(t, "
        "0);\n" KIT_RIGHT "}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (kit_try(&kit, sources[i]) != ERR_NONE)
            fail_msg("%zu: %s", i, kit.err.message);
        assert_true(kit_right(&kit));
    }
}

static void computes_in_cplusplus(void **state)
{
    (void)state;
    assert_int_equal(kit_compile(&kit, "k.cc",
                                 "#include <vector>\n" KIT_SIGNATURE
                                 "{ std::vector<float> v(3); v[0] = A[0];" KIT_RIGHT "}",
                                 BUILD_FAST),
                     0);
    if (kit_load(&kit) != 0 || kit_call(&kit) != 0)
        fail_msg("%s", kit.err.message);
    assert_true(kit_right(&kit));
}

/* Each dies or fails before it says "done"; the message tells the author why. */
static const struct attack {
    const char *name, *before, *body;
    enum err_code code;
    const char *message;
} attacks[] = {
    {"null", "", "*(volatile int *)0 = 1;", ERR_CHILD, "SIGSEGV"},
    {"writes its input", "", "((float *)A)[0] = 1;", ERR_CHILD, "SIGSEGV: wrote to an input"},
    {"makes its input writable", "#include <sys/mman.h>\n#include <stdlib.h>\n",
     "if (mprotect((void *)((uintptr_t)A & ~4095ul), 4096, PROT_READ | PROT_WRITE)) abort();",
     ERR_CHILD, "SIGABRT"},
    {"exit", "#include <stdlib.h>\n", "exit(0);", ERR_CHILD, "exited during a call (status 0)"},
    {"abort", "#include <stdlib.h>\n", "abort();", ERR_CHILD, "SIGABRT"},
    {"hang", "", "for (;;) __asm__ volatile(\"\");", ERR_TIMEOUT, "0.3 s"},
    {"stops itself", "#include <signal.h>\n", "raise(SIGSTOP); for (;;) ;", ERR_TIMEOUT, "0.3 s"},
    {"ignores signals", "#include <signal.h>\n", "signal(SIGTERM, SIG_IGN); for (;;) ;",
     ERR_TIMEOUT, "0.3 s"},
    {"fork", "#include <unistd.h>\n", "fork();", ERR_CHILD, "SIGSYS"},
    {"vfork", "#include <unistd.h>\n", "if (vfork() == 0) _exit(0);", ERR_CHILD, "SIGSYS"},
    {"exec", "#include <unistd.h>\n", "execl(\"/bin/true\", \"true\", (char *)0);", ERR_CHILD,
     "SIGSYS"},
    {"socket", "#include <sys/socket.h>\n", "socket(AF_INET, SOCK_STREAM, 0);", ERR_CHILD,
     "SIGSYS"},
    {"unix socket", "#include <sys/socket.h>\n",
     "int p[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, p);", ERR_CHILD, "SIGSYS"},
    {"ptrace", "#include <sys/ptrace.h>\n#include <unistd.h>\n",
     "ptrace(PTRACE_ATTACH, getppid(), 0, 0);", ERR_CHILD, "SIGSYS"},
    {"reads its parent", "#define _GNU_SOURCE\n#include <sys/uio.h>\n#include <unistd.h>\n",
     "char b[8]; struct iovec v = {b, 8}, r = {b, 8}; process_vm_readv(getppid(), &v, 1, &r, 1, "
     "0);",
     ERR_CHILD, "SIGSYS"},
    {"kill", "#include <signal.h>\n#include <unistd.h>\n", "kill(getppid(), SIGKILL);", ERR_CHILD,
     "SIGSYS"},
    {"says done twice", "#include <unistd.h>\n", "uint64_t one = 2; if (write(7, &one, 8)) {}",
     ERR_PROTOCOL, "more than it was asked"},
    {"fork in a constructor",
     "#include <unistd.h>\n__attribute__((constructor)) static void f(void) "
     "{ fork(); }\n",
     "", ERR_CHILD, "loaded: killed by SIGSYS"},
    {"exit in a constructor",
     "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) "
     "{ exit(70); }\n",
     "", ERR_CHILD, "loaded: exited"},
    {"installs a filter of its own",
     "#include <sys/syscall.h>\n#include <unistd.h>\n__attribute__((constructor)) static void "
     "f(void)"
     " { syscall(SYS_seccomp, 1, 0, 0); }\n",
     "", ERR_CHILD, "loaded: killed by SIGSYS"},
    {"says that somebody else killed it", "#include <unistd.h>\n",
     "if (write(2, \"killed by SIGKILL\\n\", 18)) _exit(70);", ERR_CHILD, "exited during a call"},
#if defined(__x86_64__)
    {"misaligned", "",
     "__asm__ volatile(\"movaps %%xmm0, (%0)\" : : \"r\"(((uintptr_t)C | 15) - 4) : \"memory\");",
     ERR_CHILD, "SIGSEGV: misaligned vector access"},
#endif
    {"handles its faults",
     "#include <signal.h>\n#include <unistd.h>\n"
     "static void leave(int n) { _exit(n); }\n",
     "signal(SIGSEGV, leave); signal(SIGBUS, leave); *(volatile int *)0 = 1;", ERR_CHILD,
     "killed by SIGSEGV"},
    {"stack overflow",
     "static int deep(int n) { volatile char b[4096]; b[0] = (char)n; "
     "return deep(n + 1) + b[0]; }\n",
     "C[0] = (float)deep(0);", ERR_CHILD, "SIGSEGV: stack overflow"},
};

static void attacks_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++) {
        char text[2048];
        kit.call.timeout_ms = attacks[i].code == ERR_TIMEOUT ? 300 : KIT_HANG_MS;
        snprintf(text, sizeof text, "%s%s{ %s " KIT_RIGHT "}", attacks[i].before, KIT_SIGNATURE,
                 attacks[i].body);
        enum err_code code = kit_try(&kit, text);
        if (code != attacks[i].code || strstr(kit.err.message, attacks[i].message) == NULL)
            fail_msg("%s: %s: %s", attacks[i].name, err_code_name(code), kit.err.message);
    }
}

/* These go on and compute; what they tried comes back in C[0]: 1 where it was refused. */
static const struct refusal {
    const char *name, *before, *attempt;
} refusals[] = {
    {"opens a file in a call", "#include <fcntl.h>\n", "open(\"/etc/passwd\", O_RDONLY) < 0"},
    {"opens a library in a call", "#include <fcntl.h>\n",
     "open(\"/usr/lib/os-release\", O_RDONLY) < 0"},
    {"loads a library in a constructor",
     "#include <dlfcn.h>\n#include <stddef.h>\nstatic void *got;\n"
     "__attribute__((constructor)) static void f(void) { const char *n[] = {"
     "\"libopenblas.so.0\", \"libblas.so.3\", \"libutil.so.1\", \"libquadmath.so.0\"};\n"
     "for (int i = 0; i < 4; i++) if (got == NULL) got = dlopen(n[i], RTLD_NOW); }\n",
     "got == NULL"},
    {"opens a library's file in a constructor",
     "#include <fcntl.h>\nstatic int fd = 9;\n__attribute__((constructor)) static void f(void) "
     "{ fd = open(\"/usr/lib/os-release\", O_RDONLY); }\n",
     "fd < 0"},
    {"opens a file in a constructor",
     "#include <fcntl.h>\nstatic int fd = 9;\n__attribute__((constructor)) static void f(void) "
     "{ fd = open(\"/etc/passwd\", O_RDONLY); }\n",
     "fd < 0"},
    {"writes a file in a constructor",
     "#include <fcntl.h>\nstatic int fd = 9;\n__attribute__((constructor)) static void f(void) "
     "{ fd = open(\"/tmp/twagent-attack\", O_WRONLY | O_CREAT, 0600); }\n",
     "fd < 0"},
    {"reads its parent's memory in a constructor",
     "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic int fd = 9;\n"
     "__attribute__((constructor)) static void f(void) { char p[40];\n"
     "snprintf(p, 40, \"/proc/%d/mem\", getppid()); fd = open(p, O_RDONLY); }\n",
     "fd < 0"},
    {"reads its own environment in a constructor",
     "#include <fcntl.h>\nstatic int fd = 9;\n__attribute__((constructor)) static void f(void) "
     "{ fd = open(\"/proc/self/environ\", O_RDONLY); }\n",
     "fd < 0"},
    {"opens its inputs again in a constructor",
     "#include <fcntl.h>\n#include <stdio.h>\nstatic int got = 0;\n"
     "__attribute__((constructor)) static void f(void) { char p[40];\n"
     "for (int i = 0; i < 64; i++) { snprintf(p, 40, \"/proc/self/fd/%d\", i);\n"
     "int fd = open(p, O_RDWR); if (fd >= 0) got = 1; } }\n",
     "got == 0"},
    {"has the regions' descriptors",
     "#include <fcntl.h>\n#include <unistd.h>\n"
     "static int got = 0;\n__attribute__((constructor)) static void "
     "f(void) { for (int i = 3; i < 64; i++) if (i != 6 && i != 7 "
     "&& lseek(i, 0, SEEK_CUR) != -1) got = i; }\n",
     "got == 0"},
    {"has an environment", "#include <stdlib.h>\n",
     "getenv(\"PATH\") == NULL && getenv(\"HOME\") == NULL"},
    {"takes the word from the runner in a constructor",
     "#include <unistd.h>\nstatic long got;\n__attribute__((constructor)) static void f(void)"
     " { uint64_t v; got = read(7, &v, 8); }\n",
     "got < 0"},
    {"makes a thread that its tracer does not see",
     "#include <sched.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n",
     "syscall(SYS_clone, 0x00810f00L, 0, 0, 0, 0) < 0"},
    {"cannot be traced", "#include <sys/prctl.h>\n", "prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0"},
    {"moves its inputs", "#define _GNU_SOURCE\n#include <sys/mman.h>\n",
     "mremap((void *)((uintptr_t)A & ~4095ul), 4096, 8192, MREMAP_MAYMOVE) == MAP_FAILED"},
    {"maps over its inputs", "#define _GNU_SOURCE\n#include <sys/mman.h>\n",
     "mmap((void *)((uintptr_t)A & ~4095ul), 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, "
     "0)"
     " == MAP_FAILED && mmap((char *)((uintptr_t)A & ~4095ul) - (1ul << 37), (1ul << 38), 0,"
     " MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED"},
    {"gives its outputs back", "#define _GNU_SOURCE\n#include <sys/mman.h>\n",
     "madvise((void *)((uintptr_t)C & ~4095ul), 4096, MADV_REMOVE) != 0 &&"
     " madvise((void *)((uintptr_t)C & ~4095ul), 4096, MADV_DONTNEED) != 0"},
    {"handles a trap, or that it goes on",
     "#include <signal.h>\nstatic void f(int n) { (void)n; }\n",
     "signal(SIGTRAP, f) == SIG_ERR && signal(SIGABRT, f) == SIG_ERR && signal(SIGCONT, f) == "
     "SIG_ERR"},
    {"counts how often it was stopped", "#include <sys/resource.h>\n",
     "getrusage(RUSAGE_SELF, &(struct rusage){0}) != 0"},
    {"reads another process's clock", "#include <time.h>\n#include <unistd.h>\n",
     "clock_gettime((clockid_t)(~(unsigned)getppid() << 3 | 2), &(struct timespec){0}) != 0 && "
     "clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &(struct timespec){0}) == 0"},
    {"limits", "#include <sys/resource.h>\n", "setrlimit(RLIMIT_CPU, &(struct rlimit){1, 1}) != 0"},
};

static void attempts_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s{ C[0] = (%s) ? 1 : 2; }", refusals[i].before,
                 KIT_SIGNATURE, refusals[i].attempt);
        if (kit_try(&kit, text) != ERR_NONE)
            fail_msg("%s: %s", refusals[i].name, kit.err.message);
        if (kit_output(&kit)[0] != 1)
            fail_msg("%s: it could (%g)", refusals[i].name, (double)kit_output(&kit)[0]);
    }
}

/* Held, and asked what it has used, is the first thread: no other answers in its place. */
static void the_first_thread_is_called(void **state)
{
    static const char text[] =
        "#include <pthread.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
        "static void *serve(void *p) { for (uint64_t word = 1;; word = 1) { if (write(7, &word, 8) "
        "!= 8 || read(6, &word, 8) != 8) return p; } }\n" KIT_SIGNATURE
        "{ pthread_t t; if (pthread_create(&t, 0, serve, 0) == 0) syscall(SYS_exit, 0); }";
    (void)state;
    assert_int_equal(kit_compile(&kit, "k.c", text, BUILD_FAST), 0);
    assert_int_equal(kit_load(&kit), 0);
    assert_int_equal(kit_call(&kit), 0);
    while (thread_state(kit.subject->pid, kit.subject->pid) != 'Z')
        (void)sched_yield(); /* the word comes before its end */
    kit.subject->ops->pause(kit.subject);
    kit.subject->hold_ns = 20000000;
    assert_int_equal(kit_call(&kit), -1);
    assert_int_equal(kit.err.code, ERR_CHILD);
    assert_non_null(strstr(kit.err.message, "the thread that is called has ended"));
}

/* What compilers link by themselves is there although nothing can be opened. */
static void usual_libraries_are_there(void **state)
{
    (void)state;
    assert_int_equal(
        kit_try(&kit,
                "/*---\ncompile: {flags: -ffast-math}\n---*/\n#include <math.h>\n" KIT_SIGNATURE
                "{ float s[64]; for (int i = 0; i < 64; i++)"
                " s[i] = expf(sinf(A[i % 3])); volatile float x = s[5]; (void)x;" KIT_RIGHT "}"),
        ERR_NONE);
    assert_true(kit_right(&kit));
}

static void baselines_have_their_libraries(void **state)
{
    struct baseline_spec baseline = {.name = "blas", .libraries = "openblas"};
    (void)state;
    if (!file_exists("/usr/lib/x86_64-linux-gnu/libopenblas.so.0"))
        skip();
    static const char text[] =
        "void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *,"
        " int, float, float *, int);\n" KIT_SIGNATURE
        "{ cblas_sgemm(101, 111, 111, (int)M, (int)N, (int)K, 1, A, (int)K, B, (int)N, 0, C,"
        " (int)N); }";
    char *path = file_join(kit.folder, "blas.c");
    baseline.file = path;
    assert_int_equal(file_write(path, text, sizeof text - 1, &kit.err), 0);
    assert_int_equal(backend_cpu.build(kit.arena, &kit.lane, kit.problem, NULL, NULL, &baseline,
                                       BUILD_FAST, kit.folder, &kit.build, &kit.err),
                     0);
    if (kit_run_build(&kit) != 0)
        fail_msg("%s", buf_text(&kit.said));
    static const char *const env[] = {"OPENBLAS_CORETYPE=Haswell", NULL};
    const struct program program = {.env = env};
    for (int i = 0; i < 3; i++) { /* the second one finds a spare with this environment */
        if (kit.subject != NULL)
            kit.subject->ops->close(kit.subject);
        kit.subject = NULL;
        if (backend_cpu.open(&kit.lane, &kit.region, kit.build.artifact, &program, false,
                             &kit.subject, &kit.err) != 0 ||
            kit_call(&kit) != 0)
            fail_msg("%s", kit.err.message);
        assert_true(kit_right(&kit));
    }
    mem_free(path);
}

/* A helper thread leaves the lane's cores, or tries to. */
static void no_thread_leaves_its_lane(void **state)
{
    (void)state;
    kit.lane.core_count = 1;
    assert_int_equal(
        kit_try(&kit, "#define _GNU_SOURCE\n#include <sched.h>\n" KIT_SIGNATURE
                      "{ cpu_set_t s; memset_all: CPU_ZERO(&s); for (int i = 0; i < 1024; i++)"
                      " CPU_SET(i, &s); sched_setaffinity(0, sizeof s, &s);\n"
                      "sched_getaffinity(0, sizeof s, &s); C[0] = (float)CPU_COUNT(&s);"
                      " if (C[0] < 0) goto memset_all; }"),
        ERR_NONE);
    assert_true(kit_output(&kit)[0] == 1);
}

/* A kernel for tiles asks for their registers; a machine without any says that it has none. */
static void tiles_may_be_asked_for(void **state)
{
    (void)state;
#if defined(__x86_64__)
    assert_int_equal(
        kit_try(&kit,
                "#include <errno.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n" KIT_SIGNATURE
                "{ C[0] = syscall(SYS_arch_prctl, 0x1023, 18) == 0 || errno != "
                "EPERM ? 1 : 2; }"),
        ERR_NONE);
    assert_true(kit_output(&kit)[0] == 1);
#endif
}

/* Whatever the worker is about to do with a call: what the runner reads is the same. */
static void a_call_tells_nothing_of_its_purpose(void **state)
{
    const struct cpu_host *host;
    static struct control before;
    (void)state;
    assert_int_equal(kit_try(&kit, KIT_SIGNATURE "{" KIT_RIGHT "}"), ERR_NONE);
    host = (const struct cpu_host *)(const void *)kit.subject;
    before = *host->control;
    assert_string_equal(before.artifact, "");
    kit.call.cold = kit.call.timed = true;
    kit.call.timeout_ms = 2 * KIT_HANG_MS;
    kit.call.poison_seed = 5;
    kit.subject->ops->pause(kit.subject);
    kit.subject->hold_ns = 1000000;
    assert_int_equal(kit_call(&kit), 0);
    assert_memory_equal(host->control, &before, sizeof before);
}

/* The same tensors against guards: A has 21 floats, so that 11 behind them can be read; B has 15.
 */
static void reads_past_inputs_are_found(void **state)
{
    static const struct {
        const char *body;
        enum guard guard;
        int64_t at; /* byte that was read, from the start of input `input`; no hit: -1000 */
        size_t input;
    } cases[] = {{"", GUARD_END, -1000, 0},
                 {"", GUARD_NEAR, -1000, 0},
                 {"s = A[21 + 11];", GUARD_NEAR, -1000, 0}, /* the same page */
                 {"s = A[21 + 11 + 16 * 2];", GUARD_NEAR, 128 + 128, 0},
                 {"s = B[16 * 2];", GUARD_NEAR, -1000, 1},
                 {"s = B[16 * 7];", GUARD_NEAR, 7 * 64, 1},
                 {"", GUARD_START, -1000, 0},
                 {"s = A[21 + 11];", GUARD_END, 128, 0},
                 {"s = A[21 + 10];", GUARD_END, -1000, 0},
                 {"s = B[16];", GUARD_END, 64, 1},
                 {"s = B[-1];", GUARD_START, -4, 1},
                 {"s = A[-1];", GUARD_START, -4, 0},
                 {"s = A[-1];", GUARD_NONE, -1000, 0},
                 {"mprotect((void *)((uintptr_t)(B + 16) & ~4095ul), 4096, 1); s = B[16];",
                  GUARD_END, 64, 1},
                 {"mmap((void *)((uintptr_t)(B + 16) & ~4095ul), 4096, 1, 50, -1, 0); s = B[16];",
                  GUARD_END, 64, 1}};
    const struct layout plain = kit.layout;
    (void)state;
    const size_t bytes[] = {plain.inputs[0].bytes, plain.inputs[1].bytes};
    region_alias(&kit.region, bytes, bytes, 2, 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        struct layout layout = plain;
        snprintf(text, sizeof text,
                 "#include <sys/mman.h>\n%s{ volatile float s = 0; %s (void)s;\n {" KIT_RIGHT "} }",
                 KIT_SIGNATURE, cases[i].body);
        if (cases[i].guard != GUARD_NONE)
            assert_true(layout_guard(&layout, cases[i].guard, &kit.region, 0, 128));
        memmove(kit.region.inputs + layout.inputs[1].offset,
                kit.region.inputs + kit.layout.inputs[1].offset, layout.inputs[1].bytes);
        memmove(kit.region.inputs + layout.inputs[0].offset,
                kit.region.inputs + kit.layout.inputs[0].offset, layout.inputs[0].bytes);
        kit.layout = layout;
        call_make(&layout, 0, KIT_HANG_MS, &kit.call);
        enum err_code code = kit_try(&kit, text);
        assert_true(kit.subject->guards);
        if (cases[i].at == -1000) {
            if (code != ERR_NONE || !kit_right(&kit))
                fail_msg("%zu: %s", i, kit.err.message);
            assert_int_equal(kit_call(&kit), 0); /* and nothing is left of the guards */
        } else {
            assert_int_equal(code, ERR_CHILD);
            assert_true(kit.subject->hit);
            size_t input = cases[i].input;
            assert_int_equal(kit.subject->hit_offset - layout.inputs[input].offset -
                                 layout.alias_shift[input],
                             cases[i].at);
        }
    }
}

static int64_t cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &time), 0);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* As a number that counts on for ever: a float stays where it is after a fraction of a second. */
static uint32_t first_word(void)
{
    return *(const volatile uint32_t *)(const volatile void *)kit_output(&kit);
}

/* "done" is said, and a thread goes on: once the group is stopped, nothing is written. */
static void a_stopped_runner_does_nothing(void **state)
{
    (void)state;
    assert_int_equal(
        kit_try(&kit,
                "#include <pthread.h>\nstatic void *count(void *p) { volatile uint32_t *c = p;"
                " for (;;) c[0] += 1; return 0; }\n" KIT_SIGNATURE
                "{ pthread_t t; C[0] = 0; pthread_create(&t, 0, count, C); }"),
        ERR_NONE);
    kit.subject->ops->pause(kit.subject);
    const uint32_t before = first_word();
    int64_t cpu = cpu_ns(kit.subject->pid);
    usleep(20000);
    assert_int_equal(first_word(), before);
    assert_int_equal(cpu_ns(kit.subject->pid), cpu);
    kit.subject->ops->resume(kit.subject);
    while (first_word() == before)
        usleep(1000);
}

static void death_while_idle_is_told(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) { /* on its way, or there for all to see */
        assert_int_equal(kit_try(&kit, KIT_SIGNATURE "{" KIT_RIGHT "}"), ERR_NONE);
        kill(kit.subject->pid, SIGKILL);
        while (ended && thread_state(kit.subject->pid, kit.subject->pid) != 'Z')
            (void)sched_yield();
        assert_int_equal(kit_call(&kit), -1);
        assert_int_equal(kit.err.code, ERR_CHILD);
        assert_non_null(strstr(kit.err.message, "killed by SIGKILL"));
    }
    assert_int_equal(kit_call(&kit), -1); /* and stays told */
    kit.subject->ops->pause(kit.subject);
    kit.subject->ops->resume(kit.subject);
}

static void a_dead_spare_costs_nothing(void **state)
{
    char command[64];
    (void)state;
    assert_int_equal(kit_try(&kit, KIT_SIGNATURE "{" KIT_RIGHT "}"), ERR_NONE);
    cpu_host_settle();
    snprintf(command, sizeof command, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(command, "r");
    int pid, killed = 0;
    while (file != NULL && fscanf(file, "%d", &pid) == 1)
        if (pid != kit.subject->pid)
            killed += kill(pid, SIGKILL) == 0;
    if (file != NULL)
        fclose(file);
    assert_true(killed >= 1);
    assert_int_equal(kit_load(&kit), 0);
    assert_int_equal(kit_call(&kit), 0);
    assert_true(kit_right(&kit));
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(computes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(computes_with_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(computes_in_cplusplus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(attacks_fail, set_up, tear_down),
        cmocka_unit_test_setup_teardown(attempts_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_thread_is_called, set_up, tear_down),
        cmocka_unit_test_setup_teardown(usual_libraries_are_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(baselines_have_their_libraries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tiles_may_be_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_call_tells_nothing_of_its_purpose, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_thread_leaves_its_lane, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_past_inputs_are_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stopped_runner_does_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(death_while_idle_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_dead_spare_costs_nothing, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
