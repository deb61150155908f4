#include "base/quota.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, TEXT_BYTES = 4096 };

/* A file of a group, as text; false where there is none. */
static bool read_text(const char *root, const char *group, const char *name, char *text)
{
    char path[3 * PATH_BYTES];
    snprintf(path, sizeof path, "%s%s/%s", root, group, name);
    FILE *file = fopen(path, "re");
    size_t length = file != NULL ? fread(text, 1, TEXT_BYTES - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL)
        (void)fclose(file);
    return file != NULL;
}

/* 0: none, or so much that it is none ("max"; v1 has a number near 2^63). */
static uint64_t read_bytes(const char *root, const char *group, const char *name)
{
    char text[TEXT_BYTES];
    if (!read_text(root, group, name, text))
        return 0;
    uint64_t bytes = strtoull(text, NULL, 10);
    return bytes < UINT64_C(1) << 60 ? bytes : 0;
}

static double read_number(const char *root, const char *group, const char *name)
{
    char text[TEXT_BYTES];
    return read_text(root, group, name, text) ? strtod(text, NULL) : 0;
}

static double read_cpus(const char *root, const char *group, bool second)
{
    char text[TEXT_BYTES], *end;
    double most = 0, period = 0;
    if (second && read_text(root, group, "cpu.max", text)) {
        most = strtod(text, &end);
        period = end != text ? strtod(end, NULL) : 0;
    } else if (!second) {
        most = read_number(root, group, "cpu.cfs_quota_us");
        period = read_number(root, group, "cpu.cfs_period_us");
    }
    return most > 0 && period > 0 ? most / period : 0;
}

static int64_t read_throttled(const char *root, const char *group)
{
    char text[TEXT_BYTES];
    const char *found =
        read_text(root, group, "cpu.stat", text) ? strstr(text, "nr_throttled ") : NULL;
    return found != NULL ? strtoll(found + strlen("nr_throttled "), NULL, 10) : 0;
}

static void look_at(const char *root, const char *group, bool second, struct quota *quota)
{
    uint64_t bytes = read_bytes(root, group, second ? "memory.max" : "memory.limit_in_bytes");
    double cpus = read_cpus(root, group, second);
    if (bytes > 0 && (quota->memory_bytes == 0 || bytes < quota->memory_bytes)) {
        quota->memory_bytes = bytes;
        quota->memory_used =
            read_bytes(root, group, second ? "memory.current" : "memory.usage_in_bytes");
    }
    if (cpus > 0 && (quota->cpus <= 0 || cpus < quota->cpus)) {
        quota->cpus = cpus;
        quota->throttled = read_throttled(root, group);
    }
}

/* From the group up to the root. In a container the root is the container's own, and the path that
 * the list has may be the host's: then the root alone is there. */
static void look_up(const char *root, const char *group, bool second, struct quota *quota)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s", strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        look_at(root, path, second, quota);
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += length)
        if ((at == words || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

/* "0::/job" or "4:cpu,cpuacct:/job": of v1 each controller has a root of its own. */
static void take_line(char *line, const char *root, struct quota *quota)
{
    static const char *const controllers[] = {"memory", "cpu"};
    char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
    char path[2 * PATH_BYTES];
    if (group == NULL)
        return;
    *group++ = '\0';
    names++;
    group[strcspn(group, "\n")] = '\0';
    if (*names == '\0') {
        look_up(root, group, true, quota);
        snprintf(path, sizeof path, "%s/unified", root); /* beside those of v1 */
        look_up(path, group, true, quota);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!has_word(names, controllers[i]))
            continue;
        snprintf(path, sizeof path, "%s/%s", root, controllers[i]);
        look_up(path, group, false, quota);
    }
}

void quota_read_at(const char *list, const char *root, struct quota *quota)
{
    char line[PATH_BYTES];
    *quota = (struct quota){0};
    FILE *file = fopen(list, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        take_line(line, root, quota);
    if (file != NULL)
        (void)fclose(file);
}

void quota_read(struct quota *quota)
{
    quota_read_at("/proc/self/cgroup", "/sys/fs/cgroup", quota);
}

uint64_t quota_memory(void)
{
    struct quota quota;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    quota_read(&quota);
    return quota.memory_bytes > 0 && (all == 0 || quota.memory_bytes < all) ? quota.memory_bytes
                                                                            : all;
}
