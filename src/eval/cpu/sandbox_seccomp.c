/* seccomp filters by libseccomp. Programs (compilers, Python) get a list of what is refused, since
 * what they need differs by version; the runner gets a list of what is allowed, and dies at what no
 * kernel has a reason to try, so that an attack ends in a verdict. */
#include "eval/cpu/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
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

/* Other identities, devices and what outlives a process: refused to programs, unknown to runners.
 */
static const char *const refused[] = {
    "setuid",        "setgid",         "setreuid",
    "setregid",      "setresuid",      "setresgid",
    "setgroups",     "setfsuid",       "setfsgid",
    "setsid",        "setpgid",        "mknod",
    "mknodat",       "chown",          "fchown",
    "lchown",        "fchownat",       "inotify_init1",
    "vmsplice",      "setpriority",    "sched_setscheduler",
    "sched_setattr", "sched_setparam", "ioprio_set",
};

static const char *const compute[] = {
    "futex",         "mmap",           "munmap",
    "mremap",        "madvise",        "mprotect",
    "brk",           "sched_yield",    "sched_getaffinity",
    "clock_gettime", "clock_getres",   "gettimeofday",
    "time",          "nanosleep",      "clock_nanosleep",
    "rt_sigaction",  "rt_sigprocmask", "rt_sigreturn",
    "sigaltstack",   "exit",           "exit_group",
    "getpid",        "gettid",         "getppid",
    "getuid",        "geteuid",        "set_robust_list",
    "rseq",          "getcpu",         "sysinfo",
    "uname",         "getrandom",      "restart_syscall",
    "membarrier",    "getrusage",
};

static const char *const loading[] = {
    "read",     "pread64",    "close",  "fstat",     "newfstatat", "stat",
    "lstat",    "statx",      "lseek",  "access",    "faccessat",  "faccessat2",
    "readlink", "readlinkat", "getcwd", "fadvise64",
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

static const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                   CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

/* clone3's flags lie in memory, which a filter cannot read: libc falls back to clone on ENOSYS. */
static int add_clone3(scmp_filter_ctx filter)
{
    int number = seccomp_syscall_resolve_name("clone3");
    return number == __NR_SCMP_ERROR ? 0
                                     : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
}

static int rules_program(scmp_filter_ctx filter)
{
    int result = ADD_NAMES(filter, SCMP_ACT_ERRNO(EPERM), dangerous);
    if (result == 0)
        result = ADD_NAMES(filter, SCMP_ACT_ERRNO(EPERM), refused);
    if (result == 0)
        result = add_clone3(filter);
    /* No signal to a whole group or to everybody (Landlock's scope, where there, says the rest). */
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kill), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, 0x80000000u, 0x80000000u));
    for (uint64_t bit = 1; result == 0 && bit <= CLONE_NEWNET; bit <<= 1)
        if (namespaces & bit)
            result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                      SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    /* No character is pushed into somebody's terminal (TIOCSTI). */
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, 0x5412));
    return result;
}

/* What a runner may do in both of its stages. */
static int rules_runner(scmp_filter_ctx filter)
{
    const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    const uint64_t self = (uint64_t)getpid();
    static const char *const others[] = {"execve", "execveat", "fork", "vfork", "kill", "tkill"};
    int result = ADD_NAMES(filter, SCMP_ACT_ALLOW, compute);
    if (result == 0)
        result = ADD_NAMES(filter, SCMP_ACT_KILL_PROCESS, dangerous);
    if (result == 0)
        result = ADD_NAMES(filter, SCMP_ACT_KILL_PROCESS, others);
    if (result == 0)
        result = add_clone3(filter);
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, thread | namespaces, thread));
    if (result == 0) /* a fork */
        result = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    if (result == 0) /* abort(), and nothing else to nobody else */
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 2,
                                  SCMP_A0(SCMP_CMP_EQ, self), SCMP_A2(SCMP_CMP_EQ, SIGABRT));
    if (result == 0) /* limits are read, never set */
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
                                  SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A2(SCMP_CMP_EQ, 0));
    /* "Done", with nothing done: OpenMP runtimes are content, and no thread leaves its lane. */
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), SCMP_SYS(sched_setaffinity), 0);
    return result;
}

static int rules_load(scmp_filter_ctx filter)
{
    const uint64_t changing = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
    int result = rules_runner(filter);
    if (result == 0)
        result = ADD_NAMES(filter, SCMP_ACT_ALLOW, loading);
    if (result == 0) /* the second wall, and the only one where there is no Landlock */
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, changing, 0));
    if (result == 0)
        result = ADD_NAMES(filter, SCMP_ACT_ALLOW, ((const char *const[]){"write", "writev"}));
    /* What sandbox_filter() needs for the second stage. */
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(seccomp), 0);
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                                  SCMP_A0(SCMP_CMP_EQ, 38 /* PR_SET_NO_NEW_PRIVS */));
    if (result == 0)
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                                  SCMP_A0(SCMP_CMP_EQ, 21 /* PR_GET_SECCOMP */));
    return result;
}

/* 6 go, 7 done, 2 the message of whoever aborts. */
static int rules_run(scmp_filter_ctx filter)
{
    int result = rules_runner(filter);
    if (result == 0)
        result =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(read), 1, SCMP_A0(SCMP_CMP_EQ, 6));
    if (result == 0)
        result =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, 7));
    if (result == 0)
        result =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, 2));
    if (result == 0)
        result =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(writev), 1, SCMP_A0(SCMP_CMP_EQ, 2));
    return result;
}

int sandbox_filter(enum sandbox_profile profile, struct err *err)
{
    struct sandbox_facts facts;
    sandbox_probe(&facts);
    if (!facts.seccomp)
        return 0;
    bool runner = profile == SANDBOX_RUNNER_LOAD || profile == SANDBOX_RUNNER_RUN;
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
        result = profile == SANDBOX_RUNNER_RUN    ? rules_run(filter)
                 : profile == SANDBOX_RUNNER_LOAD ? rules_load(filter)
                                                  : rules_program(filter);
    if (result == 0)
        result = seccomp_load(filter);
    seccomp_release(filter);
    if (result != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, -result, "seccomp filter %s",
                             sandbox_profile_name(profile));
    return 0;
}
