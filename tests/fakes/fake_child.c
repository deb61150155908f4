/* fake_child MODE [ARGUMENT...]: one misbehaviour a mode, for the tests of loop/process.
 * Written without stdio where bytes matter, so that what arrives is what the table says. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long number(char **arguments, int index, long fallback)
{
    for (int i = 0; i <= index; i++) {
        if (arguments[i] == NULL)
            return fallback;
    }
    return strtol(arguments[index], NULL, 10);
}

static void write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written <= 0)
            _exit(99);
        bytes += written;
        length -= (size_t)written;
    }
}

static void nap(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static int mode_exit(char **arguments)
{
    return (int)number(arguments, 0, 0);
}

static int mode_sleep(char **arguments) /* MS */
{
    nap(number(arguments, 0, 60000));
    return 0;
}

static int mode_ignore_term(char **arguments) /* MS */
{
    signal(SIGTERM, SIG_IGN);
    write_all(1, "ready\n", 6);
    nap(number(arguments, 0, 60000));
    return 0;
}

static int mode_flood(char **arguments) /* BYTES FD: 'a' to 'z' over and over */
{
    long bytes = number(arguments, 0, 1 << 20);
    int fd = (int)number(arguments, 1, 1);
    char chunk[26 * 256];
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = (char)('a' + i % 26);
    while (bytes > 0) {
        size_t part = bytes < (long)sizeof chunk ? (size_t)bytes : sizeof chunk;
        write_all(fd, chunk, part);
        bytes -= (long)part;
    }
    return 0;
}

static int mode_lines(char **arguments) /* COUNT */
{
    long count = number(arguments, 0, 10);
    for (long i = 0; i < count; i++)
        printf("line %ld\n", i);
    return 0;
}

static int mode_partial(char **arguments) /* TEXT MS: a byte at a time, no newline added */
{
    const char *text = arguments[0] != NULL ? arguments[0] : "par\ntial";
    for (; *text != '\0'; text++) {
        write_all(1, text, 1);
        nap(number(arguments, 1, 1));
    }
    return 0;
}

static int mode_cat(char **arguments)
{
    (void)arguments;
    char bytes[65536];
    ssize_t got;
    while ((got = read(0, bytes, sizeof bytes)) > 0)
        write_all(1, bytes, (size_t)got);
    return 0;
}

static int mode_close_input(char **arguments) /* MS: never reads */
{
    close(0);
    write_all(1, "closed\n", 7);
    nap(number(arguments, 0, 60000));
    return 0;
}

static int mode_hold(char **arguments) /* MS: exits at once, a grandchild keeps the pipes */
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_IGN);
        nap(number(arguments, 0, 60000));
        _exit(0);
    }
    printf("%d\n", (int)pid);
    return 0;
}

static int mode_raise(char **arguments) /* SIGNAL */
{
    raise((int)number(arguments, 0, SIGSEGV));
    return 0;
}

static int mode_fds(char **arguments) /* prints the numbers of the open descriptors */
{
    (void)arguments;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 1;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder))
            printf("%d ", fd);
    }
    closedir(folder);
    return 0;
}

static int mode_read_fd(char **arguments) /* FD: copies what it holds */
{
    char bytes[4096];
    ssize_t got = read((int)number(arguments, 0, 3), bytes, sizeof bytes);
    if (got > 0)
        write_all(1, bytes, (size_t)got);
    return got >= 0 ? 0 : 1;
}

static int mode_env(char **arguments)
{
    (void)arguments;
    for (char **entry = environ; *entry != NULL; entry++)
        printf("%s\n", *entry);
    return 0;
}

static int mode_folder(char **arguments)
{
    (void)arguments;
    char path[4096];
    printf("%s", getcwd(path, sizeof path) != NULL ? path : "?");
    return 0;
}

static int mode_signals(char **arguments) /* what was ignored or blocked when it began */
{
    (void)arguments;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    if (status == NULL)
        return 1;
    while (fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "SigIgn", 6) == 0 || strncmp(line, "SigBlk", 6) == 0)
            printf("%s", line + 8);
    }
    fclose(status);
    return 0;
}

static int mode_limits(char **arguments)
{
    (void)arguments;
    static const struct {
        const char *name;
        __rlimit_resource_t resource;
    } all[] = {
        {"as", RLIMIT_AS}, {"fsize", RLIMIT_FSIZE}, {"cpu", RLIMIT_CPU}, {"core", RLIMIT_CORE}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct rlimit limit;
        getrlimit(all[i].resource, &limit);
        if (limit.rlim_cur == RLIM_INFINITY)
            printf("%s none\n", all[i].name);
        else
            printf("%s %llu\n", all[i].name, (unsigned long long)limit.rlim_cur);
    }
    return 0;
}

static int mode_group(char **arguments) /* "own group" or not */
{
    (void)arguments;
    printf("%s", getpgrp() == getpid() ? "own group" : "shared group");
    return 0;
}

static int mode_spin(char **arguments)
{
    (void)arguments;
    volatile uint64_t spins = 1;
    while (spins != 0)
        spins = spins | 1;
    return 0;
}

static const struct mode {
    const char *name;
    int (*run)(char **arguments);
} modes[] = {
    {"exit", mode_exit},
    {"sleep", mode_sleep},
    {"ignore-term", mode_ignore_term},
    {"flood", mode_flood},
    {"lines", mode_lines},
    {"partial", mode_partial},
    {"cat", mode_cat},
    {"close-input", mode_close_input},
    {"hold", mode_hold},
    {"raise", mode_raise},
    {"fds", mode_fds},
    {"read-fd", mode_read_fd},
    {"env", mode_env},
    {"folder", mode_folder},
    {"signals", mode_signals},
    {"limits", mode_limits},
    {"group", mode_group},
    {"spin", mode_spin},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) == 0)
            return modes[i].run(argv + 2);
    }
    fprintf(stderr, "usage: fake_child MODE [ARGUMENT...]\nmodes:");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        fprintf(stderr, " %s", modes[i].name);
    fprintf(stderr, "\n");
    return 2;
}
