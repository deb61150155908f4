/* Two processes, one core: only one at a time; the kernel frees it when the holder is killed; a
 * child that was started meanwhile does not hold on to it. */
#include "eval/worker/core_lock.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool lockable(void)
{
    struct stat status;
    return stat("/sys/devices/system/cpu/cpu0", &status) == 0;
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

/* A twagent that happens to measure here has its turn first. */
static bool take(struct core_lock *lock, const int *cores, size_t count)
{
    int busy, tries = 0;
    while (!core_lock_try(lock, cores, count, &busy) && tries++ < 3000)
        usleep(20000);
    return tries < 3000;
}

static bool comes_free(int core)
{
    int tries = 0;
    while (!is_free(core) && tries++ < 3000)
        usleep(20000);
    return tries < 3000;
}

static void test_exclusive(void **state)
{
    (void)state;
    static const int both[] = {0, 1};
    struct core_lock one = {.count = 0}, two = {.count = 0};
    int busy = -1;
    if (!lockable())
        skip();
    assert_true(take(&one, both, 1));
    assert_false(core_lock_try(&two, both, 2, &busy));
    assert_int_equal(busy, 0);
    assert_int_equal(two.count, 0); /* none is kept */
    core_lock_release(&one);
    assert_true(take(&two, both, 2));
    assert_false(is_free(0));
    core_lock_release(&two);
    core_lock_release(&two);
    assert_true(comes_free(0));
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
    int ready[2];
    char byte;
    if (!lockable())
        skip();
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a lock that nobody frees would stop every lane here */
        struct core_lock lock = {.count = 0};
        if (!take(&lock, cores, 1))
            _exit(1);
        if (fork() == 0)
            execl("/bin/sleep", "sleep", "2", (char *)NULL); /* outlives its parent, without */
        usleep(50000);
        if (write(ready[1], "!", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_false(is_free(0));
    char who[200], pid[24];
    core_lock_holder(0, NULL, who, sizeof who);
    snprintf(pid, sizeof pid, "pid %d (", (int)child);
    assert_ptr_equal(strstr(who, pid), who); /* whoever else has had a turn has given it back */
    assert_non_null(strstr(who, "test_core_lock, started "));
    core_lock_holder(4000, NULL, who, sizeof who);
    assert_string_equal(who, "");
    core_lock_holder(0, "/sys/devices/system/cpu", who, sizeof who); /* nobody's */
    assert_string_equal(who, "");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(comes_free(0));
    close(ready[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_missing_core),
        cmocka_unit_test(test_death_frees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
