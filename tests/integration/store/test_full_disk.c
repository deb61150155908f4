/* A disk that is really full: by a limit on file sizes, and on a small file system of our own where
 * one may be mounted. What was acknowledged stays, reading and opening go on, and the write that
 * failed goes through once there is room. */
#include "ledger.h"
#include "peer.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int commit_ledger(struct store *store, long n, struct err *err)
{
    struct store_batch *batch = ledger_batch(n);
    int result = store_commit(store, batch, err);
    store_batch_free(batch);
    return result;
}

/* Commits n, n + 1, ... until one does not fit; its number. */
static long fill(struct store *store, long n)
{
    struct err err = {ERR_NONE, ""};
    while (commit_ledger(store, n, &err) == 0)
        n++;
    if (err.code != ERR_FULL)
        fail_msg("%s: %s", err_code_name(err.code), err.message);
    assert_non_null(strstr(err.message, "othing is lost"));
    return n;
}

static void expect_last(struct store *store, long n)
{
    char text[32], key[64];
    static char value[LEDGER_VALUE];
    snprintf(text, sizeof text, "%ld", n);
    expect(store, STORE_RUNS, "r1", text);
    for (long i = n - 30 > 0 ? n - 30 : 1; i <= n; i++) {
        ledger_event_key(i, key);
        value[ledger_event(i, value)] = '\0';
        expect(store, STORE_EVENTS, key, value);
    }
    ledger_event_key(n + 1, key);
    assert_false(store_has(store, STORE_EVENTS, key));
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_file_limit(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct err err;
    signal(SIGXFSZ, SIG_IGN);
    long n = 1;
    for (rlim_t limit = 300000; limit < 1500000; limit += 100001) {
        limit_files(limit);
        n = fill(store, n);
        expect_last(store, n - 1);
        limit_files(RLIM_INFINITY);
        must(commit_ledger(store, n, &err), &err);
        expect_last(store, n++);
    }
    store_close(store);
    store = open_store(folder);
    expect_last(store, n - 1);
    store_close(store);
    signal(SIGXFSZ, SIG_DFL);
    remove_folder(folder);
}

/* Takes every last byte of the file system. */
static void take_the_rest(const char *path)
{
    static const char bytes[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    while (write(fd, bytes, sizeof bytes) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = (ssize_t)strlen(text);
    bool written = write(fd, text, (size_t)length) == length;
    close(fd);
    return written;
}

/* A mount namespace of our own; an ordinary user needs to be root of a user namespace for it. */
static bool leave_mounts(void)
{
    if (unshare(CLONE_NEWNS) == 0)
        return true;
    char users[64], groups[64];
    snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/gid_map", groups);
}

static bool mount_small(const char *folder)
{
    return leave_mounts() && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("small", folder, "tmpfs", 0, "size=3m") == 0;
}

static void fill_and_free(const char *folder, const char *ballast)
{
    struct store *store = NULL;
    struct err err;
    char *late = file_join(folder, "late");
    take_the_rest(ballast);
    assert_int_equal(store_open(late, true, false, &store, &err), -1); /* none can be made */
    assert_int_equal(err.code, ERR_FULL);
    assert_int_equal(unlink(ballast), 0);

    char *place = file_join(folder, "store"), *locks = file_join(place, "lock.mdb");
    store_close(open_store(place));
    assert_int_equal(unlink(locks), 0); /* as where a backup was put */
    take_the_rest(ballast);
    assert_int_equal(store_open(place, true, false, &store, &err), -1);
    assert_int_equal(err.code, ERR_FULL);
    assert_int_equal(unlink(ballast), 0);

    store = open_store(place);
    long n = fill(store, 1);
    assert_true(n > 100);
    expect_last(store, n - 1);
    take_the_rest(ballast);
    store_close(store);
    store = open_store(place); /* opens without a byte to spare */
    expect_last(store, n - 1);
    assert_int_equal(commit_ledger(store, n, &err), -1);
    assert_int_equal(err.code, ERR_FULL);
    struct peer reader; /* and takes a second reader, in lock pages that were not used before */
    peer_start(&reader, "read", place);
    peer_expect(&reader, "done");
    assert_int_equal(peer_end(&reader, 0), 0);
    assert_int_equal(store_backup(place, late, &err), -1);
    assert_int_equal(err.code, ERR_FULL);
    assert_int_equal(unlink(ballast), 0);
    must(file_remove_tree(late, &err), &err);
    assert_int_equal(umount2(folder, 0), -1); /* still in use: the remount below is of this one */
    assert_int_equal(mount("small", folder, "tmpfs", MS_REMOUNT, "size=6m"), 0);
    must(commit_ledger(store, n, &err), &err); /* room again */
    expect_last(store, n);
    store_close(store);
    store = open_store(place);
    expect_last(store, n);
    store_close(store);
    mem_free(late);
    mem_free(place);
    mem_free(locks);
}

static void test_small_file_system(void **state)
{
    (void)state;
    char *folder = new_folder();
    if (!mount_small(folder)) {
        print_message("no file system may be mounted here: %s\n", strerror(errno));
        remove_folder(folder);
        skip();
    }
    char *ballast = file_join(folder, "ballast");
    fill_and_free(folder, ballast);
    mem_free(ballast);
    assert_int_equal(umount2(folder, 0), 0);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_limit),
        cmocka_unit_test(test_small_file_system), /* last: it leaves this process's mounts apart */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
