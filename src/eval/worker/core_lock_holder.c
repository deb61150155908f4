/* eval/worker/core_lock_holder: whom one waits for. The kernel lists all locks with the process
 * that took each (proc(5), /proc/locks); a worker is known by what started it. */
#include "eval/worker/core_lock.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_MOST = 120, LINE_MOST = 1024 };

/* The word that has so many before it, or "". */
static const char *word_at(const char *text, size_t index)
{
    text += strspn(text, " ");
    for (; index > 0 && *text != '\0'; index--) {
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return text;
}

/* 0: nobody that is listed. */
static int find_in_locks(const struct stat *status)
{
    char line[LINE_MOST];
    FILE *locks = fopen("/proc/locks", "re");
    int found = 0;
    while (locks != NULL && found == 0 && fgets(line, sizeof line, locks) != NULL) {
        char *end;
        if (strncmp(word_at(line, 1), "FLOCK ", 6) != 0)
            continue;
        int pid = (int)strtol(word_at(line, 4), NULL, 10);
        unsigned major = (unsigned)strtoul(word_at(line, 5), &end, 16);
        unsigned minor = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : 0;
        unsigned long inode = *end == ':' ? strtoul(end + 1, NULL, 10) : 0;
        if (pid > 0 && inode == status->st_ino && makedev(major, minor) == status->st_dev)
            found = pid;
    }
    if (locks != NULL)
        fclose(locks);
    return found;
}

/* The kernel hands the list over in pieces and goes on by number, so that whenever a lock further
 * up goes meanwhile one is left out: it is read again. 0: nobody that we can see. */
static int pid_of_holder(const char *folder)
{
    enum { READINGS = 20 };
    struct stat status;
    int found = 0;
    if (stat(folder, &status) != 0)
        return 0;
    for (int i = 0; i < READINGS && found == 0; i++)
        found = find_in_locks(&status);
    return found;
}

/* The parent and the start, in ticks since the machine's. The name before them may hold anything
 * but ends with the last parenthesis. proc(5), /proc/PID/stat. */
static bool read_stat(int pid, int *parent, unsigned long long *ticks)
{
    char path[64], line[LINE_MOST];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    bool there = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL)
        fclose(file);
    const char *rest = there ? strrchr(line, ')') : NULL;
    const char *start = rest != NULL ? word_at(rest + 1, 19) : "";
    if (*start == '\0')
        return false;
    *parent = (int)strtol(word_at(rest + 1, 1), NULL, 10);
    *ticks = strtoull(start, NULL, 10);
    return true;
}

/* "twagent run matmul": the first word without its folder, nothing that a terminal would obey. */
static void read_command(int pid, char command[COMMAND_MOST + 1])
{
    char path[64], bytes[COMMAND_MOST + 257];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "re");
    size_t length = file != NULL ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    while (length > 0 && bytes[length - 1] == '\0')
        length--;
    bytes[length] = '\0';
    const char *slash = strrchr(bytes, '/'), *from = slash != NULL ? slash + 1 : bytes;
    size_t count = 0;
    for (; from < bytes + length && count < COMMAND_MOST; from++)
        command[count++] = *from == '\0' ? ' ' : isprint((unsigned char)*from) ? *from : '?';
    command[count] = '\0';
}

static bool started_at(unsigned long long ticks, char text[16])
{
    char line[LINE_MOST];
    FILE *file = fopen("/proc/stat", "re");
    unsigned long long boot = 0;
    struct tm local;
    long hertz = sysconf(_SC_CLK_TCK);
    while (file != NULL && boot == 0 && fgets(line, sizeof line, file) != NULL)
        boot = strncmp(line, "btime ", 6) == 0 ? strtoull(line + 6, NULL, 10) : 0;
    if (file != NULL)
        fclose(file);
    time_t when = (time_t)(boot + ticks / (hertz > 0 ? (unsigned long long)hertz : 100));
    return boot > 0 && localtime_r(&when, &local) != NULL &&
           strftime(text, 16, "%H:%M:%S", &local) > 0;
}

void core_lock_holder(int core, const char *folder, char *text, size_t size)
{
    char path[CORE_LOCK_PATH], command[COMMAND_MOST + 1], start[16];
    int parent, ignored;
    unsigned long long ticks;
    core_lock_path(core, path);
    int pid = pid_of_holder(folder != NULL ? folder : path);
    text[0] = '\0';
    if (pid == 0 || !read_stat(pid, &parent, &ticks))
        return;
    read_command(pid, command);
    const char *first = strchr(command, ' ');
    if (first != NULL && strncmp(first, " worker", 7) == 0 && read_stat(parent, &ignored, &ticks)) {
        pid = parent; /* the command that a person has started */
        read_command(pid, command);
    }
    bool known = started_at(ticks, start);
    snprintf(text, size, "pid %d (%s%s%s)", pid, command, known ? ", started " : "",
             known ? start : "");
}
