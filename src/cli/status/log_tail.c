#include "cli/status/log_tail.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAIL_BYTES = 1 << 20, PROVIDERS_MOST = 16 };

/* The last TAIL_BYTES, from the beginning of a line. */
static char *read_tail(struct arena *arena, const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    off_t from = status.st_size > TAIL_BYTES ? status.st_size - TAIL_BYTES : 0;
    char *text = arena_array(arena, TAIL_BYTES + 1, 1);
    ssize_t length = pread(fd, text, TAIL_BYTES, from);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    char *line = from > 0 ? strchr(text, '\n') : NULL;
    return line ? line + 1 : text;
}

/* "WALL LEVEL KIND TEXT"; false for a line of another make. */
static bool split(char *line, struct log_line *out)
{
    char *level = strchr(line, ' '), *kind = level ? strchr(level + 1, ' ') : NULL;
    char *text = kind ? strchr(kind + 1, ' ') : NULL;
    if (!text || line[0] == '(')
        return false;
    *level++ = *kind++ = *text++ = '\0';
    *out = (struct log_line){line, level, kind, text};
    return true;
}

/* An endpoint's name is two words, provider and address; they begin the text. */
static size_t name_length(const char *text)
{
    size_t first = strcspn(text, " ");
    return text[first] ? first + 1 + strcspn(text + first + 1, " ") : first;
}

static void note_provider(struct log_tail *tail, const struct log_line *line)
{
    static const char *const states[] = {
        "provider.ready",   "provider.limited", "provider.parked", "provider.breaker_open",
        "provider.blocked", "provider.open",    "provider.broken"}; /* the last two: earlier logs */
    size_t length = name_length(line->text), at = 0;
    bool state = false;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        state = state || strcmp(line->kind, states[i]) == 0;
    for (; at < tail->provider_count; at++)
        if (strncmp(tail->providers[at].text, line->text, length + 1) == 0)
            break;
    if (!state || at == PROVIDERS_MOST)
        return;
    tail->providers[at] = *line;
    if (at == tail->provider_count)
        tail->provider_count++;
}

/* Candidates and ideas come and go by the hundred; how many is said elsewhere. */
static bool is_news(const struct log_line *line)
{
    bool warns = strcmp(line->level, "warn") == 0 || strcmp(line->level, "error") == 0;
    bool crowd = strcmp(line->kind, "candidate.move") == 0 || strcmp(line->kind, "idea.new") == 0;
    return warns || (strcmp(line->level, "debug") != 0 && !crowd);
}

static void drop_ready(struct log_tail *tail)
{
    size_t kept = 0;
    for (size_t i = 0; i < tail->provider_count; i++)
        if (strcmp(tail->providers[i].kind, "provider.ready") != 0 &&
            strcmp(tail->providers[i].kind, "provider.open") != 0)
            tail->providers[kept++] = tail->providers[i];
    tail->provider_count = kept;
}

struct log_tail log_tail_read(struct arena *arena, const char *path, size_t most)
{
    struct log_tail tail = {.lines = arena_array(arena, most + 1, sizeof(struct log_line)),
                            .providers =
                                arena_array(arena, PROVIDERS_MOST, sizeof(struct log_line))};
    char *rest = read_tail(arena, path);
    for (char *line; rest && *rest && (line = strsep(&rest, "\n"));) {
        struct log_line parts;
        if (!split(line, &parts))
            continue;
        if (strncmp(parts.kind, "run.", 4) == 0 && strstr(parts.kind, "start"))
            tail.provider_count = 0; /* another process: its endpoints begin ready */
        if (strncmp(parts.kind, "provider.", 9) == 0)
            note_provider(&tail, &parts);
        if (!is_news(&parts) || most == 0)
            continue;
        if (tail.count == most)
            memmove(tail.lines, tail.lines + 1, --tail.count * sizeof *tail.lines);
        tail.lines[tail.count++] = parts;
    }
    drop_ready(&tail);
    return tail;
}

const char *log_tail_clock(const char *wall, char text[32])
{
    struct tm utc = {0}, local;
    if (!strptime(wall, "%Y-%m-%dT%H:%M:%S", &utc)) {
        snprintf(text, 32, "%.20s", wall);
        return text;
    }
    time_t seconds = timegm(&utc);
    localtime_r(&seconds, &local);
    strftime(text, 32, "%H:%M:%S", &local);
    return text;
}
