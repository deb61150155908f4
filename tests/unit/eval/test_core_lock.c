/* Two processes, one core: only one at a time; the kernel frees it when the holder is killed; a
 * child that was started meanwhile does not hold on to it. */
#include "base/file.h"
#include "eval/worker/core_lock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/twagent-test-XXXXXX";

/* Locks of this test's own: nobody beside it is waited for. */
static int make_locks(void **state)
{
    char path[CORE_LOCK_PATH];
    (void)state;
    unsetenv("TWAGENT_LOCKS");
    core_lock_path(3, path);
    assert_string_equal(path, "/sys/devices/system/cpu/cpu3");
    assert_non_null(mkdtemp(folder));
    setenv("TWAGENT_LOCKS", folder, 1);
    for (int core = 0; core < 2; core++) {
        core_lock_path(core, path);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    return 0;
}

static int remove_locks(void **state)
{
    struct err err;
    (void)state;
    return file_remove_tree(folder, &err);
}

/* Another program's view: a lock is the open file's, so that one process can stand for two. */
static bool is_free(int core)
{
    struct core_lock lock = {.count = 0};
    int busy = -1;
    bool got = core_lock_try(&lock, &core, 1, &busy);
    assert_true(got || busy == core);
    core_lock_release(&lock);
    return got;
}

static void test_exclusive(void **state)
{
    (void)state;
    static const int both[] = {0, 1};
    struct core_lock one = {.count = 0}, two = {.count = 0};
    int busy = -1;
    assert_true(core_lock_try(&one, both, 1, &busy));
    assert_false(core_lock_try(&two, both, 2, &busy));
    assert_int_equal(busy, 0);
    assert_int_equal(two.count, 0); /* none is kept */
    core_lock_release(&one);
    assert_true(core_lock_try(&two, both, 2, &busy));
    assert_false(is_free(0));
    core_lock_release(&two);
    core_lock_release(&two);
    assert_true(is_free(0) && is_free(1));
}

/* Who has a core is not kept from it by himself. */
static void test_named_twice(void **state)
{
    (void)state;
    static const int twice[] = {0, 1, 0};
    struct core_lock lock = {.count = 0};
    int busy = -1;
    assert_true(core_lock_try(&lock, twice, 3, &busy));
    assert_int_equal(lock.count, 2);
    assert_false(is_free(0) || is_free(1));
    core_lock_release(&lock);
    assert_true(is_free(0) && is_free(1));
}

/* A device's folder: with others who share it, and never beside who has it alone. */
static void test_shared(void **state)
{
    (void)state;
    char path[CORE_LOCK_PATH];
    struct core_lock one = {.count = 0}, two = {.count = 0}, alone = {.count = 0};
    core_lock_path(0, path);
    assert_true(core_lock_try_path(&one, path, true));
    assert_true(core_lock_try_path(&two, path, true));
    core_lock_release(&one);
    assert_false(core_lock_try_path(&alone, path, false));
    core_lock_release(&two);
    assert_true(core_lock_try_path(&alone, path, false));
    assert_false(core_lock_try_path(&one, path, true));
    core_lock_release(&alone);
}

static void test_missing_core(void **state)
{
    (void)state;
    static const int cores[] = {4000};
    struct core_lock lock = {.count = 0};
    int busy;
    assert_true(core_lock_try(&lock, cores, 1, &busy));
    assert_int_equal(lock.count, 0);
}

static void test_death_frees(void **state)
{
    (void)state;
    static const int cores[] = {0};
    int ready[2], busy;
    pid_t outlives;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct core_lock lock = {.count = 0};
        if (!core_lock_try(&lock, cores, 1, &busy))
            _exit(1);
        outlives = fork();
        if (outlives == 0)
            execl("/bin/sleep", "sleep", "600", (char *)NULL);
        if (write(ready[1], &outlives, sizeof outlives) != sizeof outlives)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &outlives, sizeof outlives), sizeof outlives);
    assert_false(is_free(0));
    char who[200], pid[24];
    core_lock_holder(0, NULL, who, sizeof who);
    snprintf(pid, sizeof pid, "pid %d (", (int)child);
    assert_ptr_equal(strstr(who, pid), who);
    assert_non_null(strstr(who, "test_core_lock, started "));
    core_lock_holder(4000, NULL, who, sizeof who);
    assert_string_equal(who, "");
    core_lock_holder(0, "/sys/devices/system/cpu", who, sizeof who); /* nobody's */
    assert_string_equal(who, "");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (!is_free(0)) /* until its own child has become another program */
        usleep(1000);
    kill(outlives, SIGKILL);
    close(ready[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive),   cmocka_unit_test(test_named_twice),
        cmocka_unit_test(test_shared),      cmocka_unit_test(test_missing_core),
        cmocka_unit_test(test_death_frees),
    };
    return cmocka_run_group_tests(tests, make_locks, remove_locks);
}
