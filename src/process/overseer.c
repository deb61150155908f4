/* What a program forks does not inherit that it dies with its parent, and a limit of processes is a
 * user's rather than a program's (and none for root). The group is what a program behind the
 * sandbox cannot leave. Whoever oversees it is in one of its own: the program's is stopped where it
 * is to rest, and may be when its parent is killed. */
#include "process/overseer.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { LOOK_MS = 200, THREADS_MOST = 2000 };

/* Of /proc/PID/stat, from the end of the name on, which is field 2 and may hold blanks. */
static long field(const char *name_end, int number)
{
    const char *at = name_end;
    for (int i = 2; i < number && at != NULL; i++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtol(at, NULL, 10) : 0;
}

static long threads_of(const char *pid, pid_t group)
{
    char path[300], line[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    const char *name_end = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    return name_end != NULL && field(name_end, 5) == group ? field(name_end, 20) : 0;
}

static bool is_crowded(pid_t group)
{
    long threads = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry;
         processes != NULL && threads <= THREADS_MOST && (entry = readdir(processes)) != NULL;)
        if (strtol(entry->d_name, NULL, 10) > 0)
            threads += threads_of(entry->d_name, group);
    if (processes != NULL)
        closedir(processes);
    return threads > THREADS_MOST;
}

static uint16_t machine_threads(void)
{
    struct sysinfo machine = {0};
    (void)sysinfo(&machine);
    return machine.procs;
}

/* One call tells how many the machine has; only where there are many more are they looked at. */
static bool has_grown(uint16_t *before)
{
    uint16_t now = machine_threads();
    int16_t more = (int16_t)(now - *before);
    if (more < 0 || more > THREADS_MOST / 2) /* others end, too */
        *before = now;
    return more > THREADS_MOST / 2;
}

/* Descriptors 0 and 1 are of those whose end it waits for. */
static _Noreturn void oversee(pid_t program, uint16_t before)
{
    static const char crowded[] = "twagent: ended: it had more than 2000 threads and processes\n";
    struct pollfd ends[] = {{.fd = 0, .events = POLLIN}, {.fd = 1, .events = POLLIN}};
    while (poll(ends, 2, LOOK_MS) <= 0)
        if (has_grown(&before) && is_crowded(program)) {
            (void)!write(2, crowded, sizeof crowded - 1);
            break;
        }
    kill(-program, SIGKILL);
    _exit(0);
}

/* Whom it looks after, and beside how many, is known before it is there, and it has its group from
 * whoever made it: however late it begins, it misses nothing, and is not stopped with the program.
 */
void overseer_start(void)
{
    pid_t program = getpid(), parent = getppid();
    int program_fd = (int)syscall(SYS_pidfd_open, program, 0);
    int parent_fd = parent > 0 ? (int)syscall(SYS_pidfd_open, parent, 0) : -1;
    uint16_t before = machine_threads();
    pid_t overseer = program_fd < 0 ? -1 : fork();
    if (overseer > 0)
        (void)setpgid(overseer, overseer);
    if (overseer != 0) {
        (void)close(program_fd);
        (void)close(parent_fd);
        return;
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL); /* of a terminal that is closed, too */
    (void)dup2(program_fd, 0);            /* whoever reads its output sees the end of it */
    (void)dup2(parent_fd >= 0 ? parent_fd : program_fd, 1);
    (void)close_range(3, ~0U, 0);
    oversee(program, before);
}
