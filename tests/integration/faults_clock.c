/* Rows of the fault table about time: the wall clock that somebody sets, the monotonic one after an
 * hour asleep or in a long silence. clock_gettime() is ours in this program, for libuv and libcurl
 * too: the real one, and what the row at hand adds to the wall clock. */
#include "faults.h"

#include "loop/http.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_S = 3600, LEAP_S = 10 };

static int64_t wall_offset_s;

int clock_gettime(clockid_t id, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, id, now);
    if (status == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += wall_offset_s;
    return status;
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

static void asleep_limited(const char *name, unsigned format)
{
    struct server provider =
        provider_start((const char *const[SCRIPT_MOST]){"status code=429 text=100"}, 200);
    struct trial trial = {
        .format = format, .url = base_url(format, provider.port), .tick = sleep_when_limited};
    trial_run(&trial);
    struct counts counts = counts_get(provider.port);
    EXPECT(trial.ask[0].err.code == ERR_NONE, "%s", trial.ask[0].err.message);
    EXPECT(counts.chats == 2, "%" PRId64 " requests, not 2", counts.chats);
    EXPECT(slept_ns > 0, "it never slept");
    expect_sound(&trial);
    server_stop(&provider, SIGKILL);
    row_end(name, format, counts.chats);
    trial_free(&trial);
}

/* ---- silence ---- */

/* By steps that are small beside every limit, so that bytes on their way can come between. */
static void leap(struct trial *trial, int status)
{
    for (size_t i = 0; i < trial->asks; i++) {
        const struct http_request *http = trial->ask[i].http;
        if (http != NULL && http_connected(http) && http_status(http) == status &&
            !trial_logged(trial, "completion.retry"))
            slept_ns += LEAP_S * 1000000000ull;
    }
}

void leap_in_stream(struct trial *trial, int number)
{
    (void)number;
    leap(trial, 200);
}

void leap_after_first(struct trial *trial, int number)
{
    (void)number;
    if (trial->ask[0].task.finished)
        leap(trial, 0);
}

static const struct {
    const char *name;
    void (*run)(const char *name, unsigned format);
} rows[] = {
    {"clock set back and forward", wall_clock},
    {"an hour asleep while limited", asleep_limited},
};

void run_clocks(void)
{
    for (size_t i = 0; i < COUNT(rows); i++)
        for (unsigned format = OPENAI; format <= GEMINI; format *= 2)
            if (row_wanted(rows[i].name))
                rows[i].run(rows[i].name, format);
}
