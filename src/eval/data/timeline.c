#include "eval/data/timeline.h"

#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int file = -1;

static void open_once(void)
{
    const char *path = getenv("TWAGENT_TIMELINE");
    if (path != NULL && *path == '/')
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

bool timeline_on(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return file >= 0;
}

uint64_t timeline_begin(void)
{
    return timeline_on() ? clock_now_ns() : 0;
}

/* One write a line: those of several processes do not mix. */
void timeline_put(const char *name, uint64_t begin_ns, uint64_t length_ns)
{
    char line[160];
    if (!timeline_on())
        return;
    int length = snprintf(line, sizeof line, "%d %llu %llu %s\n", (int)getpid(),
                          (unsigned long long)begin_ns, (unsigned long long)length_ns, name);
    if (length > 0 && length < (int)sizeof line && write(file, line, (size_t)length) != length)
        return; /* a full disk costs lines of a debug file */
}

void timeline_end(const char *name, uint64_t begin)
{
    if (begin != 0)
        timeline_put(name, begin, clock_now_ns() - begin);
}
