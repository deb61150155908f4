#include "check.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static char *folder; /* of this test; removed at the end */

static int make_folder(void **state)
{
    (void)state;
    char template[] = "/tmp/twagent-test-XXXXXX";
    if (mkdtemp(template) == NULL)
        return -1;
    folder = mem_strdup(template);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err err;
    int result = file_remove_tree(folder, &err);
    mem_free(folder);
    return result;
}

static char *in_folder(const char *name)
{
    return file_join(folder, name);
}

static void writes_and_reads_back(void **state)
{
    (void)state;
    struct err err;
    char *path = in_folder("file");
    struct buf buf;
    buf_init(&buf, 300000);
    assert_int_equal(file_write(path, "one\0two", 7, &err), 0);
    assert_int_equal(file_read(path, &buf, &err), 0);
    assert_int_equal(buf.length, 7);
    assert_memory_equal(buf_text(&buf), "one\0two", 8);

    chmod(path, 0640);
    char *large = (char *)mem_alloc(300000);
    memset(large, 'x', 300000);
    assert_int_equal(file_write(path, large, 300000, &err), 0);
    assert_int_equal(file_read(path, &buf, &err), 0);
    assert_int_equal(buf.length, 300000);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640); /* replacing keeps the mode */
    mem_free(large);

    assert_int_equal(file_write(path, NULL, 0, &err), 0);
    assert_int_equal(file_read(path, &buf, &err), 0);
    assert_int_equal(buf.length, 0);
    buf_free(&buf);
    mem_free(path);
}

static void refusals_say_why(void **state)
{
    (void)state;
    struct err err;
    struct buf buf;
    buf_init(&buf, 10);
    char *missing = in_folder("none/file");
    assert_int_equal(file_read(missing, &buf, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_contains(err.message, missing);
    assert_int_equal(file_write(missing, "x", 1, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(file_read(folder, &buf, &err), -1);
    assert_contains(err.message, "Is a directory");
    char *path = in_folder("eleven");
    assert_int_equal(file_write(path, "12345678901", 11, &err), 0);
    assert_int_equal(file_read(path, &buf, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    buf_free(&buf);
    mem_free(missing);
    mem_free(path);
}

/* A write that fails leaves the old file as it was and nothing beside it. */
static void failed_write_leaves_the_old(void **state)
{
    (void)state;
    struct err err;
    char *sub = in_folder("quota");
    assert_int_equal(file_make_dirs(sub, &err), 0);
    char *path = file_join(sub, "file");
    assert_int_equal(file_write(path, "old", 3, &err), 0);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {1000, 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        char large[5000] = "new";
        _exit(file_write(path, large, sizeof large, &err) == -1 && err.code == ERR_IO ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    struct buf buf;
    buf_init(&buf, 100);
    assert_int_equal(file_read(path, &buf, &err), 0);
    assert_string_equal(buf_text(&buf), "old");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(sub), 0); /* empty: the temporary file is gone */
    buf_free(&buf);
    mem_free(path);
    mem_free(sub);
}

static void what_is_put_goes_through(void **state)
{
    (void)state;
    struct err err = {0};
    struct stat before, after;
    MEM_LOCAL char *target = file_join(folder, "target"), *link = file_join(folder, "link"),
                   *twin = file_join(folder, "twin"), *pipe = file_join(folder, "pipe");
    assert_int_equal(file_put(target, "first", 5, &err), 0);
    assert_int_equal(stat(target, &before), 0);
    assert_int_equal(file_put(target, "second", 6, &err), 0);
    assert_int_equal(stat(target, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino); /* in one step */
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(file_put(link, "3rd", 3, &err), 0);
    assert_int_equal(lstat(link, &before), 0);
    assert_true(S_ISLNK(before.st_mode));
    assert_int_equal(stat(target, &before), 0);
    assert_int_equal(before.st_size, 3);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rename(target, twin), 0);
    assert_int_equal(symlink(twin, link), 0);
    assert_int_equal(symlink("nowhere/at/all", target), 0);
    assert_int_equal(file_put(target, "x", 1, &err), -1);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char text[8] = "";
    assert_int_equal(file_put(pipe, "piped", 5, &err), 0);
    assert_int_equal(read(reader, text, sizeof text), 5);
    assert_memory_equal(text, "piped", 5);
    close(reader);
    assert_int_equal(lstat(pipe, &before), 0);
    assert_true(S_ISFIFO(before.st_mode));
    assert_int_equal(file_put(folder, "x", 1, &err), -1);
    assert_int_equal(file_put("/dev/full", "x", 1, &err), -1);
}

static void folders_are_made_and_told(void **state)
{
    (void)state;
    struct err err;
    char *deep = in_folder("a/b//c/");
    assert_int_equal(file_make_dirs(deep, &err), 0);
    assert_int_equal(file_make_dirs(deep, &err), 0);
    assert_true(file_is_dir(deep));
    struct stat status;
    assert_int_equal(stat(deep, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    char *file = in_folder("a/file"), *below = in_folder("a/file/x");
    assert_int_equal(file_write(file, "", 0, &err), 0);
    assert_true(file_exists(file));
    assert_false(file_is_dir(file));
    assert_int_equal(file_make_dirs(file, &err), -1);
    assert_int_equal(err.code, ERR_EXISTS);
    assert_int_equal(file_make_dirs(below, &err), -1);
    assert_int_equal(file_make_dirs("", &err), -1);
    assert_false(file_exists(below));
    mem_free(deep);
    mem_free(file);
    mem_free(below);
}

static void joins(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *joined;
    } cases[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"a", "/b", "/b"},
                 {"/", "b", "/b"},  {"", "b", "b"},     {"a/b", "c/d", "a/b/c/d"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *joined = file_join(cases[i].a, cases[i].b);
        assert_string_equal(joined, cases[i].joined);
        mem_free(joined);
    }
}

static void removal_follows_no_link(void **state)
{
    (void)state;
    struct err err;
    char *kept = in_folder("kept"), *kept_file = in_folder("kept/file");
    char *tree = in_folder("tree"), *link = in_folder("tree/link"), *top_link = in_folder("top");
    assert_int_equal(file_make_dirs(kept, &err), 0);
    assert_int_equal(file_write(kept_file, "x", 1, &err), 0);
    assert_int_equal(file_make_dirs(tree, &err), 0);
    assert_int_equal(symlink(kept, link), 0);
    assert_int_equal(symlink(kept, top_link), 0);
    assert_int_equal(file_remove_tree(tree, &err), 0);
    assert_false(file_exists(tree));
    assert_int_equal(file_remove_tree(top_link, &err), 0);
    assert_true(file_exists(kept_file));
    assert_int_equal(file_remove_tree(kept_file, &err), 0); /* a file is a tree, too */
    assert_int_equal(file_remove_tree(kept_file, &err), 0); /* and nothing is removed already */
    assert_false(file_exists(kept_file));
    mem_free(kept);
    mem_free(kept_file);
    mem_free(tree);
    mem_free(link);
    mem_free(top_link);
}

/* Deeper than PATH_MAX and than our descriptors, with folders that forbid everything. */
static void removal_is_not_stopped_by_depth_or_modes(void **state)
{
    (void)state;
    struct err err;
    char *tree = in_folder("deep");
    assert_int_equal(file_make_dirs(tree, &err), 0);
    int fd = open(tree, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 600; i++) {
        assert_int_equal(mkdirat(fd, "a-name-of-some-length", 0700), 0);
        assert_int_equal(mkdirat(fd, "sibling", 0000), 0);
        int file = openat(fd, "file", O_WRONLY | O_CREAT, 0000);
        assert_true(file >= 0);
        close(file);
        int next = openat(fd, "a-name-of-some-length", O_RDONLY | O_DIRECTORY);
        fchmod(fd, i % 2 ? 0500 : 0700);
        close(fd);
        fd = next;
    }
    close(fd);
    struct rlimit old, few;
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    int result = file_remove_tree(tree, &err);
    setrlimit(RLIMIT_NOFILE, &old);
    if (result != 0)
        fail_msg("%s", err.message);
    assert_false(file_exists(tree));
    mem_free(tree);
}

static void removal_says_where_it_stopped(void **state)
{
    (void)state;
    struct err err;
    char *file = in_folder("a-file"), *below = in_folder("a-file/below");
    assert_int_equal(file_write(file, "", 0, &err), 0);
    assert_int_equal(file_remove_tree(below, &err), -1);
    assert_contains(err.message, "a-file/below: Not a directory");
    assert_int_equal(file_remove_tree("/proc/self/fd", &err), -1); /* nobody may */
    assert_int_equal(err.code, ERR_IO);
    assert_contains(err.message, "cannot remove /proc/self/fd (at ");
    mem_free(file);
    mem_free(below);
}

static void relative_paths_are_fine(void **state)
{
    (void)state;
    struct err err;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(file_write("relative", "x", 1, &err), 0);
    assert_true(file_exists("relative"));
    assert_int_equal(file_make_dirs("one/two", &err), 0);
    assert_int_equal(file_remove_tree("one", &err), 0);
    assert_false(file_exists("one"));
    assert_int_equal(chdir(before), 0);
}

static void data_is_found(void **state)
{
    (void)state;
    struct err err;
    char *self = file_self_path();
    assert_int_equal(self[0], '/');
    assert_contains(self, "test_file");
    mem_free(self);

    unsetenv("TWAGENT_DATA");
    char *found = file_data_path("src/base/file.h");
    assert_string_equal(found, TEST_SOURCE_DIR "/src/base/file.h");
    mem_free(found);
    assert_null(file_data_path("no/such/thing"));

    char *own = in_folder("src/base/file.h"), *own_folder = in_folder("src/base");
    assert_int_equal(file_make_dirs(own_folder, &err), 0);
    assert_int_equal(file_write(own, "", 0, &err), 0);
    setenv("TWAGENT_DATA", folder, 1);
    found = file_data_path("src/base/file.h");
    assert_string_equal(found, own);
    mem_free(found);
    found = file_data_path("src/base/err.h"); /* not there: the next place is asked */
    assert_string_equal(found, TEST_SOURCE_DIR "/src/base/err.h");
    mem_free(found);
    unsetenv("TWAGENT_DATA");
    mem_free(own);
    mem_free(own_folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_reads_back),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(failed_write_leaves_the_old),
        cmocka_unit_test(what_is_put_goes_through),
        cmocka_unit_test(folders_are_made_and_told),
        cmocka_unit_test(joins),
        cmocka_unit_test(removal_follows_no_link),
        cmocka_unit_test(removal_is_not_stopped_by_depth_or_modes),
        cmocka_unit_test(removal_says_where_it_stopped),
        cmocka_unit_test(relative_paths_are_fine),
        cmocka_unit_test(data_is_found),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
