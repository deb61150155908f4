#include "eval/cpu/roofline.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
enum { THREADS_MAX = 64, TRIALS = 5, FMA_MS = 60, FMA_TRIALS = 3, FMA_ROUNDS = 4096 };

enum work { WORK_COPY, WORK_STREAM, WORK_READ, WORK_FMA, WORK_END };

struct team {
    const struct roofline_loops *loops;
    pthread_mutex_t gate; /* held until every thread is there, or one could not be made */
    pthread_barrier_t start, finish;
    enum work work;
    bool complete;
    unsigned char *from, *to;
    size_t bytes; /* each of the two, over all threads */
    size_t count;
    double flops_per_s[THREADS_MAX], seconds[THREADS_MAX];
};

struct member {
    struct team *team;
    size_t index;
    int core;
    pthread_t thread;
};

static double thread_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Rates are by each thread's own time: what others of the machine took is no part of them. */
static void do_share(struct team *team, size_t index)
{
    double start = thread_seconds();
    size_t pages = team->bytes / 4096;
    size_t first = pages * index / team->count * 4096;
    size_t length = pages * (index + 1) / team->count * 4096 - first;
    if (team->work == WORK_COPY) {
        team->loops->copy(team->to + first, team->from + first, length);
    } else if (team->work == WORK_STREAM) {
        team->loops->stream(team->to + first, team->from + first, length);
    } else if (team->work == WORK_READ) {
        volatile float kept = team->loops->read(team->from + first, length);
        (void)kept;
    } else {
        double end = start + FMA_MS / 1e3, flops = 0;
        while (thread_seconds() < end)
            flops += team->loops->fma(FMA_ROUNDS);
        team->flops_per_s[index] = flops / (thread_seconds() - start);
    }
    team->seconds[index] = thread_seconds() - start;
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct team *team = member->team;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)member->core, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    pthread_mutex_lock(&team->gate);
    bool complete = team->complete;
    pthread_mutex_unlock(&team->gate);
    while (complete) {
        pthread_barrier_wait(&team->start);
        if (team->work == WORK_END)
            break;
        do_share(team, member->index);
        pthread_barrier_wait(&team->finish);
    }
    return NULL;
}

/* One trial; the seconds of the slowest thread. This one sleeps at the barrier meanwhile. */
static double trial(struct team *team, enum work work)
{
    double most = 0;
    team->work = work;
    pthread_barrier_wait(&team->start);
    pthread_barrier_wait(&team->finish);
    for (size_t i = 0; i < team->count; i++)
        most = team->seconds[i] > most ? team->seconds[i] : most;
    return most;
}

static void keep_best(double *best, double rate)
{
    *best = rate > *best ? rate : *best;
}

/* Copies count what is read and what is written; what a cache line is fetched for before it is
 * overwritten is not counted, as no kernel's own bytes count it. */
static void measure_memory(struct team *team, struct lane_facts *lane)
{
    double bytes = (double)team->bytes;
    (void)trial(team, WORK_COPY); /* the first touches of `to` */
    for (int i = 0; i < TRIALS; i++) {
        keep_best(&lane->copy_bytes_per_s, 2 * bytes / trial(team, WORK_COPY));
        keep_best(&lane->copy_bytes_per_s, 2 * bytes / trial(team, WORK_STREAM));
        keep_best(&lane->read_bytes_per_s, bytes / trial(team, WORK_READ));
    }
}

static void measure_fma(struct team *team, struct lane_facts *lane)
{
    for (int i = 0; i < FMA_TRIALS; i++) {
        double rate = 0;
        (void)trial(team, WORK_FMA);
        for (size_t t = 0; t < team->count; t++)
            rate += team->flops_per_s[t];
        keep_best(&lane->flops_per_s, rate);
    }
}

/* Far more than the caches hold, far less than the machine has. */
static size_t size_of_trial(const struct lane_facts *lane)
{
    int64_t l3 = 0;
    for (size_t i = 0; i < lane->facts.count; i++)
        if (strcmp(lane->facts.name[i], "l3_bytes") == 0)
            l3 = lane->facts.number[i];
    size_t wanted = l3 > 0 ? (size_t)l3 * 2 : 64 * MIB; /* two of them: four times L3 */
    size_t most = (size_t)mem_available() / 8;
    wanted = wanted < 64 * MIB ? 64 * MIB : wanted > 512 * MIB ? 512 * MIB : wanted;
    return (wanted < most ? wanted : most) / 4096 * 4096;
}

/* Over memory like a runner's (a memfd) and over a process's own, since huge pages differ. */
static int measure_over(struct team *team, struct lane_facts *lane, bool shared, struct err *err)
{
    int fd = shared ? memfd_create("twagent-roofline", MFD_CLOEXEC) : -1;
    if (shared && (fd < 0 || ftruncate(fd, (off_t)(2 * team->bytes)) != 0)) {
        err_set_errno(err, ERR_ENVIRONMENT, errno, "roofline: memory");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    unsigned char *memory = mmap(NULL, 2 * team->bytes, PROT_READ | PROT_WRITE,
                                 shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "roofline: memory");
    (void)madvise(memory, 2 * team->bytes, MADV_HUGEPAGE);
    memset(memory, 1, team->bytes); /* reads of untouched pages would all be of one page */
    team->from = memory;
    team->to = memory + team->bytes;
    measure_memory(team, lane);
    munmap(memory, 2 * team->bytes);
    return 0;
}

static int measure_all(struct team *team, struct lane_facts *lane, struct err *err)
{
    int result = measure_over(team, lane, true, err);
    if (result == 0)
        result = measure_over(team, lane, false, err);
    measure_fma(team, lane);
    team->work = WORK_END;
    pthread_barrier_wait(&team->start);
    return result;
}

int roofline_measure(struct lane_facts *lane, struct err *err)
{
    struct member members[THREADS_MAX];
    struct team team = {.loops = roofline_loops(),
                        .gate = PTHREAD_MUTEX_INITIALIZER,
                        .bytes = size_of_trial(lane),
                        .count = lane->core_count};
    size_t made = 0;
    int failed = 0, result;
    pthread_barrier_init(&team.start, NULL, (unsigned)team.count + 1);
    pthread_barrier_init(&team.finish, NULL, (unsigned)team.count + 1);
    pthread_mutex_lock(&team.gate);
    while (made < team.count && failed == 0) {
        members[made] = (struct member){.team = &team, .index = made, .core = lane->cores[made]};
        failed = pthread_create(&members[made].thread, NULL, member_main, &members[made]);
        made += failed == 0;
    }
    team.complete = failed == 0;
    pthread_mutex_unlock(&team.gate);
    if (failed == 0)
        result = measure_all(&team, lane, err);
    else
        result = err_set_errno(err, ERR_ENVIRONMENT, failed, "roofline: threads");
    for (size_t i = 0; i < made; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&team.start);
    pthread_barrier_destroy(&team.finish);
    return result;
}
