/* A candidate can name nothing besides itself, and asks of nobody else what he does. */
#include "kit.c" /* each test is one source file */

/* What was tried comes back in C[0]: 1 where it was refused. */
static void tries(const char *includes, const char *attempt)
{
    char text[2048];
    snprintf(text, sizeof text, "#define _GNU_SOURCE\n%s%s{" KIT_RIGHT "C[0] = %s; }", includes,
             KIT_SIGNATURE, attempt);
    if (kit_try(&kit, text) != ERR_NONE)
        fail_msg("%s: %s", attempt, kit.err.message);
    if (kit_output(&kit)[0] != 1)
        fail_msg("%s: not refused", attempt);
}

/* As root, or where anybody may make a user namespace: those who run the tests. */
static bool may_enter(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(chroot("/") == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot("/") == 0) ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

static void names_nothing(void **state)
{
    (void)state;
    if (!may_enter())
        skip();
    tries("#include <sys/stat.h>\n#include <unistd.h>\n#include <stdio.h>\n",
          "({ char p[40]; struct stat s; snprintf(p, 40, \"/proc/%d/task\", getppid()); "
          "stat(p, &s) != 0; })");
    tries("#include <sys/stat.h>\n", "({ struct stat s; stat(\"/proc\", &s) != 0; })");
    tries("#include <sys/stat.h>\n", "({ struct stat s; stat(\"/..//usr\", &s) != 0; })");
    tries("#include <unistd.h>\n", "access(\"/tmp\", F_OK) != 0");
}

static void asks_of_nobody(void **state)
{
    (void)state;
    tries("#include <sched.h>\n#include <unistd.h>\n",
          "({ cpu_set_t s; sched_getaffinity(getppid(), sizeof s, &s) != 0; })");
    tries("#include <sched.h>\n#include <unistd.h>\n",
          "({ cpu_set_t s; sched_getaffinity(0, sizeof s, &s) == 0; })");
    tries("#include <sched.h>\n#include <pthread.h>\n",
          "({ cpu_set_t s; pthread_getaffinity_np(pthread_self(), sizeof s, &s) == 0; })");
    tries("#include <sys/sysinfo.h>\n", "({ struct sysinfo s; sysinfo(&s) != 0; })");
    tries("#include <sys/resource.h>\n#include <unistd.h>\n#include <errno.h>\n",
          "({ errno = 0; getpriority(PRIO_PROCESS, getppid()) == -1 && errno != 0; })");
    tries("#include <sched.h>\n#include <unistd.h>\n", "sched_getscheduler(getppid()) < 0");
}

/* A baseline is trusted, and finds its libraries. Nothing is left of the folders. */
static void no_folder_stays(void **state)
{
    char command[200];
    (void)state;
    assert_int_equal(kit_try(&kit, KIT_SIGNATURE "{" KIT_RIGHT "}"), ERR_NONE);
    assert_int_equal(
        kit_try(
            &kit,
            "__attribute__((constructor)) static void f(void) { __builtin_trap(); }\n" KIT_SIGNATURE
            "{" KIT_RIGHT "}"),
        ERR_CHILD);
    snprintf(command, sizeof command, "test -z \"$(find %s -name 'alone-*')\"", kit.folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asks_of_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_folder_stays, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
