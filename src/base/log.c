#include "base/log.h"

#include "base/clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SINKS_MOST = 8, LEVEL_NONE = LOG_ERROR + 1 };

struct sink {
    event_sink *call;
    void *context;
    enum log_level least;
};

/* The lock is held while sinks run: events reach each sink in one order, and a sink that was
 * removed is not running any more. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sink sinks[SINKS_MOST];
static size_t sink_count;
static atomic_int least_wanted = LEVEL_NONE; /* so that unwanted events cost no formatting */
static _Thread_local bool emitting;

static void update_least(void)
{
    int least = LEVEL_NONE;
    for (size_t i = 0; i < sink_count; i++)
        if ((int)sinks[i].least < least)
            least = (int)sinks[i].least;
    atomic_store(&least_wanted, least);
}

void log_add_sink(event_sink *sink, void *context, enum log_level least)
{
    pthread_mutex_lock(&lock);
    if (sink_count == SINKS_MOST) {
        fprintf(stderr, "twagent: more than %d log sinks\n", SINKS_MOST);
        abort();
    }
    sinks[sink_count++] = (struct sink){sink, context, least};
    update_least();
    pthread_mutex_unlock(&lock);
}

void log_remove_sink(event_sink *sink, void *context)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sink_count; i++) {
        if (sinks[i].call != sink || sinks[i].context != context)
            continue;
        for (size_t k = i + 1; k < sink_count; k++)
            sinks[k - 1] = sinks[k];
        sink_count--;
        break;
    }
    update_least();
    pthread_mutex_unlock(&lock);
}

void log_event(enum log_level level, const char *kind, const char *subject, const char *format, ...)
{
    if ((int)level < atomic_load(&least_wanted))
        return;
    assert(!emitting && "a sink may not emit");
    if (emitting) /* in a build without asserts, losing the event is better than a deadlock */
        return;
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    err_one_line(message);

    struct event event = {
        .wall_ms = clock_wall_ms(),
        .level = level,
        .kind = kind,
        .subject = subject != NULL ? subject : "",
        .message = message,
    };
    emitting = true;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sink_count; i++)
        if (level >= sinks[i].least)
            sinks[i].call(sinks[i].context, &event);
    pthread_mutex_unlock(&lock);
    emitting = false;
}

void log_sink_lines(void *file, const struct event *event)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    time_t seconds = (time_t)(event->wall_ms / 1000u);
    struct tm local;
    localtime_r(&seconds, &local);
    fprintf((FILE *)file, "%02d:%02d:%02d %s %s%s%s %s\n", local.tm_hour, local.tm_min,
            local.tm_sec, names[event->level], event->kind, event->subject[0] != '\0' ? " " : "",
            event->subject, event->message);
    fflush((FILE *)file);
}
