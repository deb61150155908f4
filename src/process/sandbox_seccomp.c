/* seccomp filters by libseccomp. Programs (compilers, Python) get a list of what is refused, since
 * what they need differs by version; the runner gets a list of what is allowed, and dies at what no
 * kernel has a reason to try, so that an attack ends in a verdict. */
#include "process/descriptors.h"
#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Names, resolved at run time: one that this libseccomp does not know is passed over. */
static const char *const dangerous[] = {
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "kcmp",
    "pidfd_getfd",
    "pidfd_open",
    "pidfd_send_signal",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    /* network, and other ways to reach another process */
    "socket",
    "socketpair",
    "connect",
    "bind",
    "listen",
    "accept",
    "accept4",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "mq_open",
    "shmget",
    "shmat",
    "semget",
    "msgget",
    "shmctl",
    "semctl",
    "msgctl",
    "mq_unlink",
    /* the kernel's own large surfaces */
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "keyctl",
    "add_key",
    "request_key",
    "io_setup",
    "fanotify_init",
    /* namespaces, mounts, the machine */
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "open_by_handle_at",
    "name_to_handle_at",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "syslog",
    "iopl",
    "ioperm",
    "modify_ldt",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "vhangup",
    "personality",
    "move_pages",
    "migrate_pages",
    "lookup_dcookie",
    "memfd_secret",
};

/* Other identities and devices: refused to programs, unknown to runners. */
static const char *const refused[] = {
    "setuid",        "setgid",         "setreuid",
    "setregid",      "setresuid",      "setresgid",
    "setgroups",     "setfsuid",       "setfsgid",
    "mknod",         "mknodat",        "chown",
    "fchown",        "lchown",         "fchownat",
    "vmsplice",      "setpriority",    "sched_setscheduler",
    "sched_setattr", "sched_setparam", "ioprio_set",
    "setxattr",      "lsetxattr",      "fsetxattr",
    "removexattr",   "lremovexattr",   "fremovexattr",
    "setxattrat",    "removexattrat",  "inotify_init",
};

/* Landlock lets whoever can name a file that its user owns change its mode and times. A Python's
 * tools set some of their own files and go on: "done", with nothing done. */
static const char *const attributes[] = {
    "chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "futimesat", "utimensat",
};

/* What outlives a process, which a coding agent's keeper (process/keep) ends all the same. */
static const char *const groups[] = {"setsid", "setpgid", "inotify_init1"};

static const char *const compute[] = {
    "futex",        "brk",
    "sched_yield",  "gettimeofday",
    "time",         "nanosleep",
    "uname",        "rt_sigprocmask",
    "rt_sigreturn", "sigaltstack",
    "exit",         "exit_group",
    "getpid",       "gettid",
    "getppid",      "getuid",
    "geteuid",      "set_robust_list",
    "rseq",         "getcpu",
    "getrandom",    "restart_syscall",
    "membarrier",
};

static const char *const loading[] = {
    "pread64", "fstat",     "newfstatat", "stat",     "lstat",      "statx",  "lseek",
    "access",  "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd", "fadvise64",
};

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *const *names,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);
        if (number == __NR_SCMP_ERROR)
            continue;
        int result = seccomp_rule_add(filter, action, number, 0);
        if (result != 0 && result != -EDOM) /* not of this architecture */
            return result;
    }
    return 0;
}

#define ADD_NAMES(filter, action, names)                                                           \
    add_names(filter, action, names, sizeof(names) / sizeof(names)[0])

/* One system call, where argument `argument`, masked, is `value`; mask 0: whatever it is. */
struct rule {
    uint32_t action;
    int number;
    unsigned argument;
    uint64_t mask, value;
};

static int add_rules(scmp_filter_ctx filter, const struct rule *rules, size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct scmp_arg_cmp compare = {.arg = rules[i].argument,
                                             .op = SCMP_CMP_MASKED_EQ,
                                             .datum_a = rules[i].mask,
                                             .datum_b = rules[i].value};
        result = seccomp_rule_add_array(filter, rules[i].action, rules[i].number,
                                        rules[i].mask != 0, &compare);
    }
    return result;
}

#define ADD_RULES(filter, rules) add_rules(filter, rules, sizeof(rules) / sizeof(rules)[0])

#define ALLOW    SCMP_ACT_ALLOW
#define KILL     SCMP_ACT_KILL_PROCESS
#define REFUSE   SCMP_ACT_ERRNO(EPERM)
#define INT_BITS UINT64_C(0xffffffff) /* the kernel looks at no more of an int */
#define NAMESPACES                                                                                 \
    ((uint64_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |      \
                CLONE_NEWPID | CLONE_NEWNET))
/* A thread that its maker's tracer would not see (cpu/hold.h), or that is no plain thread. */
#define UNSEEN ((uint64_t)(CLONE_UNTRACED | CLONE_PTRACE | CLONE_VFORK | CLONE_PARENT))
#define THREAD ((uint64_t)(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD))

/* clone3's flags lie in memory, which a filter cannot read: libc falls back to clone on ENOSYS. */
static int add_clone3(scmp_filter_ctx filter)
{
    int number = seccomp_syscall_resolve_name("clone3");
    return number == __NR_SCMP_ERROR ? 0
                                     : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
}

/* The answer to a call whose first argument is another one. */
static int answer_other(scmp_filter_ctx filter, uint32_t answer, int number, uint64_t value)
{
    const struct scmp_arg_cmp compare = {
        .arg = 0, .op = SCMP_CMP_NE, .datum_a = value, .datum_b = 0};
    return seccomp_rule_add_array(filter, answer, number, 1, &compare);
}

/* Landlock knows nothing of limits and cores, and of signals only since Linux 6.12: who could set
 * those of the same user's processes could end any of them, or slow what somebody is compared with.
 * A runtime that binds its threads hears "done". Who starts programs of his own ends them, too. */
static int rules_others(scmp_filter_ctx filter, bool signals)
{
    static const struct rule thread = {REFUSE, SCMP_SYS(tkill), 0, 0, 0};
    const uint64_t self = (uint64_t)getpid();
    int result = answer_other(filter, REFUSE, SCMP_SYS(prlimit64), 0);
    if (result == 0)
        result = answer_other(filter, SCMP_ACT_ERRNO(0), SCMP_SYS(sched_setaffinity), 0);
    if (result == 0 && !signals)
        result = add_rules(filter, &thread, 1);
    if (result == 0 && !signals)
        result = answer_other(filter, REFUSE, SCMP_SYS(kill), self);
    if (result == 0 && !signals)
        result = answer_other(filter, REFUSE, SCMP_SYS(tgkill), self);
    return result;
}

static int rules_program(scmp_filter_ctx filter, enum sandbox_profile profile)
{
    bool agent = profile == SANDBOX_AGENT;
    static const struct rule rules[] = {
        /* no signal to a whole group or to everybody (Landlock's scope, where there, does more) */
        {REFUSE, SCMP_SYS(kill), 0, 0x80000000u, 0x80000000u},
        /* no character into somebody's terminal: TIOCSTI */
        {REFUSE, SCMP_SYS(ioctl), 1, INT_BITS, 0x5412},
        /* no signal from a file, a folder or a socket, of any number to anybody of this user */
        {REFUSE, SCMP_SYS(ioctl), 1, INT_BITS, 0x8901 /* FIOSETOWN */},
        {REFUSE, SCMP_SYS(ioctl), 1, INT_BITS, 0x8902 /* SIOCSPGRP */},
        {REFUSE, SCMP_SYS(fcntl), 1, INT_BITS, F_SETOWN},
        {REFUSE, SCMP_SYS(fcntl), 1, INT_BITS, 10 /* F_SETSIG */},
        {REFUSE, SCMP_SYS(fcntl), 1, INT_BITS, 15 /* F_SETOWN_EX */},
        {REFUSE, SCMP_SYS(fcntl), 1, INT_BITS, 1024 /* F_SETLEASE */},
        {REFUSE, SCMP_SYS(fcntl), 1, INT_BITS, 1026 /* F_NOTIFY */},
    };
    int result = ADD_NAMES(filter, REFUSE, dangerous);
    if (result == 0)
        result = ADD_NAMES(filter, REFUSE, refused);
    if (result == 0)
        result = rules_others(filter, agent || profile == SANDBOX_COMPILE);
    if (result == 0 && !agent)
        result = ADD_NAMES(filter, REFUSE, groups);
    if (result == 0)
        result = add_clone3(filter);
    if (result == 0)
        result = ADD_RULES(filter, rules);
    for (uint64_t bit = 1; result == 0 && bit <= NAMESPACES; bit <<= 1)
        if (NAMESPACES & bit)
            result = add_rules(filter, &(struct rule){REFUSE, SCMP_SYS(clone), 0, bit, bit}, 1);
    return result;
}

/* A program that holds a candidate's code: it starts none. */
static int rules_sanitized(scmp_filter_ctx filter)
{
    static const struct rule rules[] = {
        {REFUSE, SCMP_SYS(clone), 0, CLONE_THREAD, 0},
        {REFUSE, SCMP_SYS(fork), 0, 0, 0},
        {REFUSE, SCMP_SYS(vfork), 0, 0, 0},
        {SCMP_ACT_ERRNO(0), SCMP_SYS(sched_setaffinity), 0, 0, 0},
    };
    return ADD_RULES(filter, rules);
}

/* Allowed where one argument is `first` and another `second`. */
static int allow_pair(scmp_filter_ctx filter, int number, unsigned one, uint64_t first,
                      unsigned other, uint64_t second)
{
    const struct scmp_arg_cmp compare[] = {
        {.arg = one, .op = SCMP_CMP_EQ, .datum_a = first, .datum_b = 0},
        {.arg = other, .op = SCMP_CMP_EQ, .datum_a = second, .datum_b = 0}};
    return seccomp_rule_add_array(filter, ALLOW, number, 2, compare);
}

static int allow_first(scmp_filter_ctx filter, int number, uint64_t first)
{
    const struct rule rule = {ALLOW, number, 0, INT_BITS, first};
    return add_rules(filter, &rule, 1);
}

/* ENOSYS for threads whose numbers are above the process's own: its own ones, and others. */
static int answer_later(scmp_filter_ctx filter, int number)
{
    const struct scmp_arg_cmp compare = {
        .arg = 0, .op = SCMP_CMP_GT, .datum_a = (uint64_t)getpid(), .datum_b = 0};
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(ENOSYS), number, 1, &compare);
}

/* A mapping call at an address below the window or above it, and shorter than the gap below. */
static int allow_outside(scmp_filter_ctx filter, int number, const struct sandbox_window *window,
                         const struct scmp_arg_cmp *more, unsigned more_count)
{
    const uint64_t gap = UINT64_C(1) << 36;
    struct scmp_arg_cmp compare[6] = {{.arg = 1, .op = SCMP_CMP_LE, .datum_a = gap}};
    unsigned count = 1;
    for (unsigned i = 0; i < more_count; i++)
        compare[count++] = more[i];
    if (window == NULL || window->to == 0)
        return seccomp_rule_add_array(filter, ALLOW, number, count, compare);
    uint64_t from = window->from > gap ? window->from - gap : 0;
    compare[count] = (struct scmp_arg_cmp){.arg = 0, .op = SCMP_CMP_LT, .datum_a = from};
    int result = seccomp_rule_add_array(filter, ALLOW, number, count + 1, compare);
    compare[count] = (struct scmp_arg_cmp){.arg = 0, .op = SCMP_CMP_GE, .datum_a = window->to};
    return result != 0 ? result : seccomp_rule_add_array(filter, ALLOW, number, count + 1, compare);
}

/* Mappings come and go, but those of the tensors, and the pages without rights between them, stay.
 * MREMAP_FIXED would have a second address to look at. */
static int rules_mappings(scmp_filter_ctx filter, const struct sandbox_window *window)
{
    static const int advices[] = {0, 1, 2, 3, 4, 8, 14, 15, 16, 17, 22, 23, 25, 102, 103};
    const struct scmp_arg_cmp moves[] = {
        {.arg = 3, .op = SCMP_CMP_MASKED_EQ, .datum_a = 2 /* MREMAP_FIXED */, .datum_b = 0},
        {.arg = 2, .op = SCMP_CMP_LE, .datum_a = UINT64_C(1) << 36}};
    int result = allow_outside(filter, SCMP_SYS(mmap), window, NULL, 0);
    if (result == 0)
        result = allow_outside(filter, SCMP_SYS(munmap), window, NULL, 0);
    if (result == 0)
        result = allow_outside(filter, SCMP_SYS(mprotect), window, NULL, 0);
    if (result == 0)
        result = allow_outside(filter, SCMP_SYS(mremap), window, moves, 2);
    for (size_t i = 0; i < sizeof advices / sizeof advices[0] && result == 0; i++) {
        const struct scmp_arg_cmp advice = {.arg = 2,
                                            .op = SCMP_CMP_MASKED_EQ,
                                            .datum_a = INT_BITS,
                                            .datum_b = (uint64_t)advices[i]};
        result = allow_outside(filter, SCMP_SYS(madvise), window, &advice, 1);
    }
    return result;
}

/* No handlers but libc's own, of pthread_cancel() and setuid(), which nobody can send. Its faults
 * are the runner's to tell of: who handled them could read where nothing may be read. And a trap
 * takes longer where a tracer sees it: who handled one would know when its threads are watched. */
static int rules_signals(scmp_filter_ctx filter)
{
    static const struct rule rules[] = {
        {ALLOW, SCMP_SYS(rt_sigaction), 0, INT_BITS, 32},
        {ALLOW, SCMP_SYS(rt_sigaction), 0, INT_BITS, 33},
    };
    return ADD_RULES(filter, rules);
}

#if defined(__x86_64__)
/* A kernel that multiplies in tiles asks for their registers (AMX). */
static int rules_machine(scmp_filter_ctx filter)
{
    static const struct rule rules[] = {
        {ALLOW, SCMP_SYS(arch_prctl), 0, INT_BITS, 0x1021}, /* ARCH_GET_XCOMP_SUPP */
        {ALLOW, SCMP_SYS(arch_prctl), 0, INT_BITS, 0x1022}, /* ARCH_GET_XCOMP_PERM */
        {ALLOW, SCMP_SYS(arch_prctl), 0, INT_BITS, 0x1023}, /* ARCH_REQ_XCOMP_PERM */
    };
    return ADD_RULES(filter, rules);
}
#else
static int rules_machine(scmp_filter_ctx filter)
{
    (void)filter;
    return 0;
}
#endif

/* A negative clock is another process's or thread's CPU time, which anybody may read: the worker's
 * stands still in a call that is timed, and goes on where it holds or watches threads. */
static int rules_clocks(scmp_filter_ctx filter)
{
    static const struct rule rules[] = {
        {ALLOW, SCMP_SYS(clock_gettime), 0, 0x80000000u, 0},
        {ALLOW, SCMP_SYS(clock_getres), 0, 0x80000000u, 0},
        {ALLOW, SCMP_SYS(clock_nanosleep), 0, 0x80000000u, 0},
    };
    return ADD_RULES(filter, rules);
}

/* One filter for all of a candidate's life, constructors included: whoever could add another could
 * have it answer for this one. Descriptors: a loader's are the lowest that are free. */
static int rules_runner(scmp_filter_ctx filter, const struct sandbox_window *window)
{
    static const struct rule rules[] = {
        {KILL, SCMP_SYS(execve), 0, 0, 0},
        {KILL, SCMP_SYS(execveat), 0, 0, 0},
        {KILL, SCMP_SYS(fork), 0, 0, 0},
        {KILL, SCMP_SYS(vfork), 0, 0, 0},
        {KILL, SCMP_SYS(kill), 0, 0, 0},
        {KILL, SCMP_SYS(tkill), 0, 0, 0},
        {KILL, SCMP_SYS(seccomp), 0, 0, 0},
        {ALLOW, SCMP_SYS(clone), 0, THREAD | NAMESPACES | UNSEEN, THREAD},
        {KILL, SCMP_SYS(clone), 0, CLONE_THREAD, 0}, /* a fork */
        /* "done", with nothing done: OpenMP runtimes are content, and no thread leaves its lane */
        {SCMP_ACT_ERRNO(0), SCMP_SYS(sched_setaffinity), 0, 0, 0},
        /* the second wall, and the only one where there is no Landlock: nothing is changed */
        {ALLOW, SCMP_SYS(openat), 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0},
        {ALLOW, SCMP_SYS(read), 0, INT_BITS, WIRE_CONTROL},
        {ALLOW, SCMP_SYS(read), 0, INT_BITS, WIRE_INPUTS},
        {ALLOW, SCMP_SYS(read), 0, INT_BITS, WIRE_OUTPUTS},
        {ALLOW, SCMP_SYS(read), 0, INT_BITS, WIRE_GO},
        {ALLOW, SCMP_SYS(close), 0, INT_BITS, WIRE_CONTROL},
        {ALLOW, SCMP_SYS(close), 0, INT_BITS, WIRE_INPUTS},
        {ALLOW, SCMP_SYS(close), 0, INT_BITS, WIRE_OUTPUTS},
        {ALLOW, SCMP_SYS(write), 0, INT_BITS, WIRE_DONE},
        {ALLOW, SCMP_SYS(write), 0, INT_BITS, 2}, /* the last words of whoever aborts */
        {ALLOW, SCMP_SYS(writev), 0, INT_BITS, 2},
    };
    int result = ADD_NAMES(filter, ALLOW, compute);
    if (result == 0)
        result = ADD_NAMES(filter, ALLOW, loading);
    if (result == 0)
        result = ADD_NAMES(filter, KILL, dangerous);
    if (result == 0)
        result = add_clone3(filter);
    if (result == 0)
        result = ADD_RULES(filter, rules);
    if (result == 0)
        result = rules_mappings(filter, window);
    if (result == 0)
        result = rules_signals(filter);
    if (result == 0)
        result = rules_clocks(filter);
    if (result == 0)
        result = rules_machine(filter);
    if (result == 0) /* abort(), and no other signal to nobody else */
        result = allow_pair(filter, SCMP_SYS(tgkill), 0, (uint64_t)getpid(), 2, SIGABRT);
    /* Of its own cores: those of the worker's threads differ between checks and timed calls. (What
     * a machine's sysinfo() says of processes and memory, too.) */
    if (result == 0)
        result = allow_first(filter, SCMP_SYS(sched_getaffinity), 0);
    if (result == 0)
        result = allow_first(filter, SCMP_SYS(sched_getaffinity), (uint64_t)getpid());
    if (result == 0) /* pthread_getattr_np() asks for each thread, and takes ENOSYS for an answer */
        result = answer_later(filter, SCMP_SYS(sched_getaffinity));
    if (result == 0) /* limits are read, never set */
        result = allow_pair(filter, SCMP_SYS(prlimit64), 0, 0, 2, 0);
    return result;
}

int sandbox_filter(enum sandbox_profile profile, const struct sandbox_window *window,
                   struct err *err)
{
    struct sandbox_facts facts;
    sandbox_probe(&facts);
    if (!facts.seccomp || profile == SANDBOX_GPU)
        return 0;
    bool runner = profile == SANDBOX_RUNNER;
    scmp_filter_ctx filter = seccomp_init(runner ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW);
    if (filter == NULL)
        return err_set(err, ERR_ENVIRONMENT, "libseccomp refuses to begin a filter");
    int result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (result == 0)
        result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    /* Else older kernels slow every store of a filtered process: that would be in the numbers. */
    if (result == 0)
        (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    if (result == 0)
        result = runner ? rules_runner(filter, window) : rules_program(filter, profile);
    /* A compiler runs no candidate's code, and its linker makes programs. */
    if (result == 0 && !runner && profile != SANDBOX_COMPILE)
        result = ADD_NAMES(filter, SCMP_ACT_ERRNO(0), attributes);
    if (result == 0 && profile == SANDBOX_SANITIZED)
        result = rules_sanitized(filter);
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    if (result != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, -result, "seccomp filter %s",
                             sandbox_profile_name(profile));
    return 0;
}
