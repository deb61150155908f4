/* Rows of the fault table about time: the wall clock that somebody sets, the monotonic one after an
 * hour asleep. clock_gettime() is ours in this program, for libuv and libcurl too: the real one,
 * and what the row at hand adds to the wall clock. */
#include "faults.h"

#include "base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_S = 3600 };

static int64_t wall_offset_s;
static uint64_t slept_ns;

int clock_gettime(clockid_t id, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, id, now);
    if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += wall_offset_s;
    return status;
}

static uint64_t late_clock(void *context)
{
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + slept_ns;
}

/* ---- somebody sets the wall clock ---- */

static void set_back_and_forth(struct trial *trial, int number)
{
    (void)trial;
    wall_offset_s = number % 8 < 4 ? -HOUR_S : 24L * HOUR_S;
}

static void wall_clock(const char *name, unsigned format)
{
    static const char *const script[SCRIPT_MOST] = {"status code=429 ms=150", "drip", "drip"};
    struct server provider = provider_start(script, 60);
    struct trial trial = {.format = format,
                          .url = base_url(format, provider.port),
                          .asks = 2,
                          .tick = set_back_and_forth};
    trial_run(&trial);
    wall_offset_s = 0;
    struct counts counts = counts_get(provider.port);
    for (size_t i = 0; i < trial.asks; i++)
        EXPECT(trial.ask[i].err.code == ERR_NONE, "%s", trial.ask[i].err.message);
    EXPECT(counts.chats == 3, "%" PRId64 " requests, not 3", counts.chats);
    EXPECT(trial.ended_ms[0] >= 150, "after %" PRId64 " ms", trial.ended_ms[0]);
    expect_sound(&trial);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

/* ---- an hour asleep ---- */

static void sleep_when_limited(struct trial *trial, int number)
{
    (void)number;
    if (slept_ns == 0 && trial_logged(trial, "provider.limited"))
        slept_ns = HOUR_S * 1000000000ull;
}

static void sleep_soon(struct trial *trial, int number)
{
    (void)trial;
    if (number == 20)
        slept_ns = HOUR_S * 1000000000ull;
}

static void asleep(const char *name, unsigned format, const char *line,
                   void (*tick)(struct trial *trial, int number))
{
    struct server provider = provider_start((const char *const[SCRIPT_MOST]){line}, 200);
    struct trial trial = {.format = format,
                          .url = base_url(format, provider.port),
                          .between_bytes_ms = 60000,
                          .tick = tick};
    slept_ns = 0;
    clock_inject(late_clock, NULL);
    trial_run(&trial);
    clock_inject(NULL, NULL);
    struct counts counts = counts_get(provider.port);
    EXPECT(trial.ask[0].err.code == ERR_NONE, "%s", trial.ask[0].err.message);
    EXPECT(counts.chats == 2, "%" PRId64 " requests, not 2", counts.chats);
    EXPECT(slept_ns > 0, "it never slept");
    expect_sound(&trial);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

static void asleep_limited(const char *name, unsigned format)
{
    asleep(name, format, "status code=429 text=100", sleep_when_limited);
}

static void asleep_in_stream(const char *name, unsigned format)
{
    asleep(name, format, "stall after=700", sleep_soon);
}

static const struct {
    const char *name;
    void (*run)(const char *name, unsigned format);
} rows[] = {
    {"clock set back and forward", wall_clock},
    {"an hour asleep while limited", asleep_limited},
    {"an hour asleep in mid-stream", asleep_in_stream},
};

void run_clocks(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned format = OPENAI; format <= GEMINI; format *= 2)
            if (row_wanted(rows[i].name))
                rows[i].run(rows[i].name, format);
}
