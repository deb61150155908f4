/* What is kept of compiles on disk: what hits, what misses, and that nothing depends on it. */
#include "kit.h"

#include "base/kept.h"
#include "base/mem.h"
#include "eval/cuda/compile/cubin_cache.h"
#include "process/sandbox.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

/* ---- a job of descriptors; without NVRTC ---- */

struct fixture {
    char folder[64], cache[80];
    struct cuda_job job;
};

static int memory(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    return fd;
}

static void set_text(int fd, const char *text)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void open_fixture(struct fixture *fixture)
{
    *fixture = (struct fixture){.folder = "/tmp/twagent-test-XXXXXX"};
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->cache, sizeof fixture->cache, "%s/new/cubins", fixture->folder);
    fixture->job = (struct cuda_job){.compiler = {.library = "/x/libnvrtc.so"},
                                     .arch = "sm_90a",
                                     .cache = fixture->cache,
                                     .toolkit = "00",
                                     .unit = memory("the source"),
                                     .cubin = memory(""),
                                     .log = memory(""),
                                     .errors = 2};
}

static void close_fixture(struct fixture *fixture)
{
    struct err err;
    close(fixture->job.unit);
    close(fixture->job.cubin);
    close(fixture->job.log);
    assert_int_equal(file_remove_tree(fixture->folder, &err), 0);
}

static void keep(struct fixture *fixture, const char *cubin)
{
    set_text(fixture->job.cubin, cubin);
    set_text(fixture->job.log, "{\"arch\":\"sm_90a\"}");
    cubin_cache_keep(&fixture->job);
}

static bool answers(struct fixture *fixture, const char *cubin)
{
    char text[200] = "", log[200] = "";
    set_text(fixture->job.cubin, "");
    set_text(fixture->job.log, "");
    bool fine = cubin_cache_answer(&fixture->job);
    assert_true(pread(fixture->job.cubin, text, sizeof text - 1, 0) >= 0);
    assert_true(pread(fixture->job.log, log, sizeof log - 1, 0) >= 0);
    assert_string_equal(text, fine ? cubin : "");
    assert_string_equal(log, fine ? "{\"cached\":true,\"arch\":\"sm_90a\"}" : "");
    return fine;
}

static const char shelves[] = "0123456789abcdef";

/* How many files, how large together, and the path of the last one. */
static size_t count_files(const struct fixture *fixture, off_t *bytes, char path[400])
{
    size_t count = 0;
    for (size_t i = 0; shelves[i] != '\0'; i++) {
        char shelf[100];
        snprintf(shelf, sizeof shelf, "%s/%c", fixture->cache, shelves[i]);
        DIR *folder = opendir(shelf);
        for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
            struct stat status;
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, 400, "%s/%s", shelf, entry->d_name);
            assert_int_equal(lstat(path, &status), 0);
            assert_int_equal(status.st_mode & 0777, 0600);
            *bytes += status.st_size;
            count++;
        }
        if (folder != NULL)
            closedir(folder);
    }
    return count;
}

static void only_file(const struct fixture *fixture, char path[400])
{
    off_t bytes = 0;
    assert_int_equal(count_files(fixture, &bytes, path), 1);
}

static void test_key(void **state)
{
    struct fixture fixture;
    struct stat status;
    (void)state;
    open_fixture(&fixture);
    struct cuda_job *job = &fixture.job;
    assert_false(answers(&fixture, "one"));
    keep(&fixture, "one");
    assert_true(answers(&fixture, "one"));
    assert_int_equal(stat(fixture.cache, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    job->pch = "/x/first.pch"; /* the same headers from elsewhere */
    assert_true(answers(&fixture, "one"));
    job->pch = NULL;
    set_text(job->unit, "#define T 2\nthe source");
    assert_false(answers(&fixture, ""));
    set_text(job->unit, "the source");
    job->arch = "sm_90";
    assert_false(answers(&fixture, ""));
    job->arch = "sm_90a";
    job->flags[job->flag_count++] = "-fmad=false";
    assert_false(answers(&fixture, ""));
    job->flag_count = 0;
    job->entries[job->entry_count++] = "k";
    assert_false(answers(&fixture, ""));
    job->entry_count = 0;
    job->toolkit = "01";
    assert_false(answers(&fixture, ""));
    job->toolkit = "00";
    job->compiler.library = "/y/libnvrtc.so";
    assert_false(answers(&fixture, ""));
    job->compiler.library = "/x/libnvrtc.so";
    job->compiler.includes = "/x/include";
    assert_false(answers(&fixture, ""));
    job->compiler.includes = NULL;
    assert_true(answers(&fixture, "one"));
    job->toolkit = NULL;
    assert_false(answers(&fixture, ""));
    close_fixture(&fixture);
}

/* Each byte of a file, and each length of it. */
static void test_damage(void **state)
{
    struct fixture fixture;
    struct buf whole;
    struct err err;
    char path[400];
    (void)state;
    open_fixture(&fixture);
    buf_init(&whole, 1 << 16);
    keep(&fixture, "a cubin");
    only_file(&fixture, path);
    assert_int_equal(file_read(path, &whole, &err), 0);
    for (size_t i = 0; i < 2 * whole.length; i++) {
        bool cut = i >= whole.length;
        size_t at = cut ? i - whole.length : i;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        char other = (char)(whole.data[at] ^ 1);
        assert_int_equal(write(fd, whole.data, cut ? at : whole.length), cut ? at : whole.length);
        if (!cut)
            assert_int_equal(pwrite(fd, &other, 1, (off_t)at), 1);
        close(fd);
        assert_false(answers(&fixture, ""));
        assert_false(file_exists(path)); /* and is removed */
    }
    keep(&fixture, "a cubin");
    assert_true(answers(&fixture, "a cubin"));
    buf_free(&whole);
    close_fixture(&fixture);
}

/* What stands at the key's hash, but is of another source: told by its text. */
static void test_collision(void **state)
{
    struct fixture fixture;
    char path[400], other[400];
    (void)state;
    open_fixture(&fixture);
    keep(&fixture, "one");
    only_file(&fixture, path);
    set_text(fixture.job.unit, "another source");
    keep(&fixture, "two");
    for (size_t i = 0; shelves[i] != '\0'; i++) {
        char shelf[100];
        snprintf(shelf, sizeof shelf, "%s/%c", fixture.cache, shelves[i]);
        DIR *folder = opendir(shelf);
        for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
            snprintf(other, sizeof other, "%s/%s", shelf, entry->d_name);
            if (entry->d_name[0] != '.' && strcmp(other, path) != 0)
                assert_int_equal(rename(path, other), 0);
        }
        if (folder != NULL)
            closedir(folder);
    }
    assert_false(answers(&fixture, ""));
    close_fixture(&fixture);
}

/* Links, files that others could have written, a file in the folder's place. */
static void test_not_ours(void **state)
{
    struct fixture fixture;
    char path[400], moved[440], shelf[440];
    (void)state;
    open_fixture(&fixture);
    keep(&fixture, "one");
    only_file(&fixture, path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_false(answers(&fixture, ""));
    keep(&fixture, "one");
    snprintf(moved, sizeof moved, "%s/moved", fixture.folder);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    assert_false(answers(&fixture, ""));
    keep(&fixture, "one"); /* takes the link's place, and follows it not */
    assert_true(answers(&fixture, "one"));
    strcpy(shelf, path);
    *strrchr(shelf, '/') = '\0';
    assert_int_equal(chmod(shelf, 0777), 0);
    assert_false(answers(&fixture, ""));
    assert_int_equal(chmod(shelf, 0700), 0);
    assert_true(answers(&fixture, "one"));
    close_fixture(&fixture);
}

static void test_unwritable(void **state)
{
    struct fixture fixture;
    struct err err;
    (void)state;
    open_fixture(&fixture);
    keep(&fixture, "one");
    assert_int_equal(file_remove_tree(fixture.cache, &err), 0);
    int fd = open(fixture.cache, O_WRONLY | O_CREAT, 0600); /* no folder can be made there */
    keep(&fixture, "one");
    assert_false(answers(&fixture, ""));
    close(fd);
    fixture.job.cache = "/proc/none/cubins";
    keep(&fixture, "one");
    assert_false(answers(&fixture, ""));
    fixture.job.cache = NULL;
    keep(&fixture, "one");
    assert_false(answers(&fixture, ""));
    close_fixture(&fixture);
}

/* A file that ends in its middle, as on a full disk: nothing is left of it. */
static void test_full(void **state)
{
    const struct rlimit little = {.rlim_cur = 100, .rlim_max = 100};
    struct fixture fixture;
    char path[400];
    int status;
    off_t bytes = 0;
    (void)state;
    open_fixture(&fixture);
    set_text(fixture.job.cubin, "one");
    set_text(fixture.job.log, "{\"a\":1}");
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &little) == 0)
            cubin_cache_keep(&fixture.job);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(file_is_dir(fixture.cache));
    assert_int_equal(count_files(&fixture, &bytes, path), 0);
    close_fixture(&fixture);
}

static void number_unit(struct fixture *fixture, int i)
{
    char text[40];
    snprintf(text, sizeof text, "source %d", i);
    set_text(fixture->job.unit, text);
}

/* An empty file of somebody else's in the shelf of `path`, last used at second `used`. */
static void put_beside(const char *path, int number, time_t used)
{
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    char other[440];
    snprintf(other, sizeof other, "%.*s/%05d", (int)(strrchr(path, '/') - path), path, number);
    int fd = open(other, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && futimens(fd, times) == 0);
    close(fd);
}

/* More than fit: those that were used longest ago go, and one that was asked for stays. */
static void test_bound(void **state)
{
    struct fixture fixture;
    char path[400], first[400];
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    (void)state;
    open_fixture(&fixture);
    keep(&fixture, "x");
    only_file(&fixture, first);
    for (int i = 0; i < KEPT_SHELF_FILES; i++)
        put_beside(first, i, 100 + i);
    assert_int_equal(utimensat(AT_FDCWD, first, old, 0), 0);
    assert_true(answers(&fixture, "x")); /* used now */
    for (int i = 1; i < 80; i++) {       /* spread over all shelves, the same ones each time */
        number_unit(&fixture, i);
        keep(&fixture, "x");
    }
    size_t count = 0;
    char shelf[100];
    snprintf(shelf, sizeof shelf, "%.*s", (int)(strrchr(first, '/') - first), first);
    DIR *folder = opendir(shelf);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    assert_int_equal(count, KEPT_SHELF_FILES);
    snprintf(path, sizeof path, "%s/00000", shelf);
    assert_false(file_exists(path));
    snprintf(path, sizeof path, "%s/00200", shelf);
    assert_true(file_exists(path));
    set_text(fixture.job.unit, "the source");
    assert_true(answers(&fixture, "x"));
    close_fixture(&fixture);
}

/* Large ones, as files with holes; one that is too large for all; one that a killed process left.
 */
static void test_bytes(void **state)
{
    struct fixture fixture;
    char path[400], left[440];
    off_t bytes = 0;
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    (void)state;
    open_fixture(&fixture);
    keep(&fixture, "x");
    only_file(&fixture, path);
    snprintf(left, sizeof left, "%s.12-0", path);
    int fd = open(left, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && futimens(fd, old) == 0);
    close(fd);
    keep(&fixture, "x");
    assert_false(file_exists(left));
    for (char i = '0'; i < '4'; i++) {
        strcpy(left, path);
        strrchr(left, '/')[1] = i;
        strrchr(left, '/')[2] = '\0';
        assert_true((fd = open(left, O_WRONLY | O_CREAT, 0600)) >= 0);
        assert_int_equal(ftruncate(fd, KEPT_SHELF_BYTES / 2), 0);
        assert_int_equal(futimens(fd, old), 0);
        close(fd);
    }
    keep(&fixture, "x");
    assert_true(count_files(&fixture, &bytes, path) == 2);
    assert_true(bytes <= KEPT_SHELF_BYTES);
    assert_true(answers(&fixture, "x"));
    number_unit(&fixture, 1);
    set_text(fixture.job.log, "{\"a\":1}");
    assert_int_equal(ftruncate(fixture.job.cubin, KEPT_FILE_BYTES - 100), 0);
    cubin_cache_keep(&fixture.job);
    assert_false(answers(&fixture, ""));
    close_fixture(&fixture);
}

/* All of them write and read the same few; whoever is answered is answered right. */
static void test_together(void **state)
{
    struct fixture fixture;
    pid_t pids[4];
    int status;
    (void)state;
    open_fixture(&fixture);
    for (size_t p = 0; p < 4; p++) {
        if ((pids[p] = fork()) != 0)
            continue;
        fixture.job.unit = memory("");
        fixture.job.cubin = memory("");
        fixture.job.log = memory("");
        for (int i = 0; i < 200; i++) {
            char cubin[40];
            number_unit(&fixture, i % 5);
            snprintf(cubin, sizeof cubin, "cubin %d", i % 5);
            keep(&fixture, cubin);
            if (!answers(&fixture, cubin))
                _exit(1);
        }
        _exit(0);
    }
    for (size_t p = 0; p < 4; p++) {
        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    char path[400];
    off_t bytes = 0;
    assert_int_equal(count_files(&fixture, &bytes, path), 5);
    close_fixture(&fixture);
}

/* In the place of a compiler that a source has taken over: what of the cache it can get at. */
static int attack(const struct cuda_job *job, const char *path)
{
    struct err err;
    char other[440];
    snprintf(other, sizeof other, "%.*s/other", (int)(strrchr(path, '/') - path), path);
    if (cuda_job_confine(job, NULL, NULL, true, &err) != 0)
        return 99;
    return (open(path, O_WRONLY) >= 0) + 2 * (open(path, O_RDONLY) >= 0) +
           4 * (open(other, O_WRONLY | O_CREAT, 0600) >= 0) + 8 * (truncate(path, 0) == 0) +
           16 * (rename(path, other) == 0) + 32 * (unlink(path) == 0) +
           64 * (symlink("/", other) == 0);
}

static void test_confined(void **state)
{
    struct fixture fixture;
    char path[400];
    int status;
    (void)state;
    if (sandbox_landlock_abi() == 0)
        skip();
    open_fixture(&fixture);
    keep(&fixture, "one");
    only_file(&fixture, path);
    pid_t pid = fork();
    if (pid == 0)
        _exit(attack(&fixture.job, path));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(answers(&fixture, "one"));
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key),        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_collision),  cmocka_unit_test(test_not_ours),
        cmocka_unit_test(test_unwritable), cmocka_unit_test(test_full),
        cmocka_unit_test(test_bound),      cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_together),   cmocka_unit_test(test_confined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
