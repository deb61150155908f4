#include "eval/cpu/built.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/kept.h"
#include "base/mem.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEY_MOST = 12 << 20, READ_MOST = 1 << 20, STAMPS_MOST = 1 << 20 };

struct job {
    const char *folder, *artifact;
    char **units; /* up to "--" */
    char **command, **compiler;
};

/* --- what a build follows from --- */

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* A path, and what changes with the file behind it. False: there is none. */
static bool add_stamp(const char *path, struct buf *out, int64_t *changed_ns)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    int64_t times[] = {ns_of(&status.st_mtim), ns_of(&status.st_ctim)};
    for (size_t i = 0; i < 2; i++)
        *changed_ns = times[i] > *changed_ns ? times[i] : *changed_ns;
    buf_addf(out, "%s%c%" PRId64 " %" PRId64 " %" PRId64 "\n", path, '\0', (int64_t)status.st_size,
             times[0], times[1]);
    return true;
}

/* -march=native reads these. */
static void add_processor(struct buf *key)
{
    static const char *const names[] = {"model", "stepping", "cache size",
                                        "flags", "CPU ",     "Features"};
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && getline(&line, &size, file) > 1)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0)
                buf_add_text(key, line);
    free(line);
    if (file != NULL)
        fclose(file);
}

static bool make_key(const struct job *job, struct buf *key)
{
    int64_t ignored = 0;
    buf_add_text(key, "built 1\n");
    add_processor(key);
    bool fine = add_stamp(job->compiler[0], key, &ignored);
    (void)add_stamp("/usr/bin/as", key, &ignored);
    (void)add_stamp("/usr/bin/ld", key, &ignored);
    for (char **word = job->compiler; *word != NULL; word++)
        buf_add(key, *word, strlen(*word) + 1);
    for (char **unit = job->units; fine && *unit != NULL; unit++) {
        BUF_LOCAL(text, KEY_MOST);
        fine = file_read(*unit, &text, NULL) == 0;
        buf_addf(key, "unit of %zu\n", text.length);
        buf_add(key, buf_text(&text), text.length);
    }
    return fine && key->dropped == 0;
}

/* --- what a compiler read --- */

static bool is_unit(const struct job *job, const char *name)
{
    for (char **unit = job->units; *unit != NULL; unit++)
        if (strcmp(*unit, name) == 0)
            return true;
    return false;
}

/* A rule for make of each unit: "unit.o: /usr/include/stdio.h \", and so on. False where that is
 * not all, a name is none of ours, or a file may have changed since `begun_ns`. */
static bool stamp_read(const struct job *job, int64_t begun_ns, struct buf *stamps)
{
    BUF_LOCAL(text, READ_MOST);
    int64_t changed_ns = 0;
    size_t rules = 0, units = 0;
    if (file_read(BUILT_READ, &text, NULL) != 0 || strstr(buf_text(&text), "\\ ") != NULL)
        return false;
    MEM_LOCAL char *copy = mem_strdup(buf_text(&text));
    char *rest = copy, *name;
    while ((name = strsep(&rest, " \t\n")) != NULL) {
        size_t length = strlen(name);
        if (length > 0 && name[length - 1] == ':')
            rules++;
        else if (length == 0 || strcmp(name, "\\") == 0 || is_unit(job, name))
            continue;
        else if (*name != '/' || !add_stamp(name, stamps, &changed_ns))
            return false;
    }
    while (job->units[units] != NULL)
        units++;
    return rules >= units && stamps->length > 0 && stamps->dropped == 0 && changed_ns < begun_ns;
}

static bool are_unchanged(const char *stamps, size_t length)
{
    BUF_LOCAL(now, STAMPS_MOST);
    int64_t ignored = 0;
    for (const char *at = stamps; at < stamps + length;) {
        const char *end = memchr(at, '\n', (size_t)(stamps + length - at));
        if (end == NULL || memchr(at, '\0', (size_t)(end - at)) == NULL ||
            !add_stamp(at, &now, &ignored))
            return false;
        at = end + 1;
    }
    return now.length == length && memcmp(buf_text(&now), stamps, length) == 0;
}

/* --- handing out and keeping: the stamps' length, the stamps, the artifact --- */

static bool hand_out(const struct job *job, const struct buf *key)
{
    BUF_LOCAL(found, KEPT_FILE_BYTES);
    uint64_t length;
    if (!kept_find(job->folder, key, &found) || found.length < sizeof length)
        return false;
    const char *stamps = buf_text(&found) + sizeof length;
    memcpy(&length, buf_text(&found), sizeof length);
    size_t rest = found.length - sizeof length;
    if (length > rest || !are_unchanged(stamps, length))
        return false;
    int fd = open(job->artifact, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700);
    if (fd < 0)
        return false;
    bool fine = file_write_all(fd, stamps + length, rest - length) == 0;
    fine = close(fd) == 0 && fine;
    if (!fine)
        (void)unlink(job->artifact);
    return fine;
}

static void keep(const struct job *job, const struct buf *key, int64_t begun_ns)
{
    BUF_LOCAL(stamps, STAMPS_MOST);
    BUF_LOCAL(artifact, KEPT_FILE_BYTES);
    BUF_LOCAL(all, KEPT_FILE_BYTES);
    if (!stamp_read(job, begun_ns, &stamps) || !file_is_regular(job->artifact) ||
        file_read(job->artifact, &artifact, NULL) != 0)
        return;
    uint64_t length = stamps.length;
    buf_add(&all, (const char *)&length, sizeof length);
    buf_add(&all, buf_text(&stamps), stamps.length);
    buf_add(&all, buf_text(&artifact), artifact.length);
    if (all.dropped == 0)
        kept_put(job->folder, key, buf_text(&all), all.length);
}

/* In our group, so that what ends us ends it. */
static int run(char **command)
{
    pid_t pid = spawn_fork();
    if (pid == 0) {
        (void)execv(command[0], command);
        fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
        _exit(EXIT_FAILURE);
    }
    if (pid < 0)
        return EXIT_FAILURE;
    siginfo_t end = spawn_reap(pid);
    if (end.si_code != CLD_EXITED)
        (void)raise(end.si_status);
    return end.si_status;
}

const char *built_folder(struct arena *arena)
{
    MEM_LOCAL char *folder = file_cache_path("built", NULL);
    return folder != NULL ? arena_strdup(arena, folder) : NULL;
}

/* Behind the next "--", which becomes the end of what stands before it; NULL: there is none. */
static char **behind(char **words)
{
    while (*words != NULL && strcmp(*words, "--") != 0)
        words++;
    if (*words == NULL || words[1] == NULL)
        return NULL;
    return words + 1;
}

int built_main(int argc, char **argv)
{
    struct job job = {0};
    struct timespec now;
    if (argc >= 4 && (job.command = behind(argv + 2)) != NULL)
        job.compiler = behind(job.command);
    if (job.compiler == NULL) {
        fprintf(stderr, "twagent cpu-compile: what is to be run?\n");
        return EXIT_FAILURE;
    }
    job.folder = argv[0];
    job.artifact = argv[1];
    job.units = argv + 2;
    job.command[-1] = NULL;
    clock_gettime(CLOCK_REALTIME_COARSE, &now); /* what files' times are of */
    BUF_LOCAL(key, KEY_MOST);
    bool named = make_key(&job, &key);
    (void)unlink(BUILT_READ);
    if (named && hand_out(&job, &key))
        return 0;
    int status = run(job.command);
    if (named && status == 0)
        keep(&job, &key, ns_of(&now));
    return status;
}
