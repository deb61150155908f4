/* eval/data/noise: time that threads spent ready to run while something else ran on their core,
 * from the scheduler's own account (/proc/PID/task/TID/schedstat, second number, ns). */
#include "eval/data/noise.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct account {
    uint64_t ran_ns, delay_ns;
    uint64_t called_ran_ns; /* of the thread whose number is the process's */
    size_t threads;
};

static void account_at(int folder, const char *path, bool called, struct account *account)
{
    char text[96], *end;
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return;
    text[got] = '\0';
    uint64_t ran_ns = strtoull(text, &end, 10);
    account->ran_ns += ran_ns;
    account->delay_ns += strtoull(end, NULL, 10);
    account->called_ran_ns += called ? ran_ns : 0;
    account->threads++;
}

static void account_of(int pid, struct account *account)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        char file[sizeof entry->d_name + 16];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/schedstat", entry->d_name);
        account_at(dirfd(tasks), file, strtol(entry->d_name, NULL, 10) == pid, account);
    }
    closedir(tasks);
}

void noise_read(int pid, struct noise *noise)
{
    char path[64];
    struct account subject = {0}, own = {0};
    if (pid > 0)
        account_of(pid, &subject);
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", (long)syscall(SYS_gettid));
    account_at(AT_FDCWD, path, true, &own);
    *noise = (struct noise){subject.delay_ns, own.delay_ns, subject.ran_ns, subject.called_ran_ns,
                            subject.threads};
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Queues that are left after the clock has stopped are in the accounts, too: a stop has to be run
 * into. So no more counts than there was time in which a thread could have run and did not. */
uint64_t noise_between(const struct noise *before, const struct noise *after, uint64_t elapsed_ns,
                       size_t cores)
{
    if (after->subject_ns < before->subject_ns || after->subject_ran_ns < before->subject_ran_ns)
        return 0; /* a thread has ended and took its account with it */
    size_t threads = after->threads > before->threads ? after->threads : before->threads;
    uint64_t ran = after->subject_ran_ns - before->subject_ran_ns;
    uint64_t called = after->called_ran_ns - before->called_ran_ns;
    uint64_t room = elapsed_ns * (threads < cores ? threads : cores);
    uint64_t subject = least(after->subject_ns - before->subject_ns, room > ran ? room - ran : 0);
    return subject +
           least(after->own_ns - before->own_ns, elapsed_ns > called ? elapsed_ns - called : 0);
}

uint64_t noise_most(const struct noise *before, const struct noise *after, uint64_t elapsed_ns,
                    size_t cores)
{
    size_t threads = after->threads > before->threads ? after->threads : before->threads;
    size_t at_once = threads < cores ? threads : cores;
    if (at_once == 0 || after->subject_ran_ns < before->subject_ran_ns)
        return elapsed_ns;
    return elapsed_ns -
           least((after->subject_ran_ns - before->subject_ran_ns) / at_once, elapsed_ns);
}

/* --- who else is here --- */

struct probe {
    pthread_t thread;
    int core;
    double share; /* of the time that was not ours */
};

static uint64_t thread_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* Longer than a time slice, so that whoever waits for this core gets it meanwhile. */
static void *probe_main(void *argument)
{
    enum { PROBE_NS = 12000000 };
    struct probe *probe = argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)probe->core, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    uint64_t started = clock_now_ns(), ran = thread_ns(), elapsed;
    while ((elapsed = clock_now_ns() - started) < PROBE_NS)
        continue;
    ran = thread_ns() - ran;
    probe->share = ran < elapsed ? 1.0 - (double)ran / (double)elapsed : 0.0;
    return NULL;
}

double noise_load(const int *cores, size_t count)
{
    enum { CORES_MOST = 64 };
    struct probe probes[CORES_MOST];
    size_t made = 0;
    double most = 0.0;
    for (; made < count && made < CORES_MOST; made++) {
        probes[made] = (struct probe){.core = cores[made]};
        if (pthread_create(&probes[made].thread, NULL, probe_main, &probes[made]) != 0)
            break;
    }
    for (size_t i = 0; i < made; i++) {
        pthread_join(probes[i].thread, NULL);
        most = probes[i].share > most ? probes[i].share : most;
    }
    return most;
}
