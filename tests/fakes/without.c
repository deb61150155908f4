/* without CALL... -- PROGRAM ARGUMENTS: a machine that lacks something, for whoever runs on it:
 * each CALL ends with the error that such kernels and containers give. `seccomp` and
 * `landlock_create_ruleset` as before Linux 3.17 and 5.13, `ptrace` and `perf_event_open` as in a
 * container that forbids them. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
    unsigned error;
} calls[] = {{"seccomp", SYS_seccomp, ENOSYS},
             {"landlock_create_ruleset", 444, ENOSYS},
             {"ptrace", SYS_ptrace, EPERM},
             {"perf_event_open", SYS_perf_event_open, EACCES}};

enum { CALLS = sizeof calls / sizeof calls[0] };

int main(int argc, char **argv)
{
    struct sock_filter program[2 + 2 * CALLS];
    unsigned short length = 0;
    int i = 1;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                     (unsigned)offsetof(struct seccomp_data, nr));
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t call = 0;
        while (call < CALLS && strcmp(calls[call].name, argv[i]) != 0)
            call++;
        if (call == CALLS || length > 2 * CALLS - 1) {
            fprintf(stderr, "without: %s: no such call, or too many\n", argv[i]);
            return 2;
        }
        program[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[call].number, 0, 1);
        program[length++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | calls[call].error);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {.len = length, .filter = program};
    if (i + 1 >= argc) {
        fprintf(stderr, "without CALL... -- PROGRAM ARGUMENTS\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("without");
        return 2;
    }
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 2;
}
