/* `sandbox` as a command: what a program behind it can still do, and what not. */
#include "base/file.h"

#include "kit.c" /* each test is one source file */

#include <sys/prctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>

/* Runs this program as `sandbox` with `words` (separated by blanks; "@" stands for the folder) and
 * /bin/sh -c SCRIPT behind it; its exit code. What it printed is in kit.said. */
static int sandboxed(const char *words, const char *script)
{
    const char *argv[32] = {file_program_path(), "sandbox"};
    size_t count = 2;
    char copy[512];
    strcpy(copy, words);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[count++] = strcmp(word, "@") == 0 ? kit.folder : word;
    argv[count++] = "--";
    argv[count++] = "/bin/sh";
    argv[count++] = "-c";
    argv[count++] = script;
    argv[count] = NULL;
    static const char *const env[] = {NULL};
    kit.build.spec = (struct process_spec){.argv = argv, .env = env, .folder = kit.folder};
    buf_reset(&kit.said);
    return kit_run_build(&kit);
}

/* In its place stands a process of the same rights: `$!`. */
#define OTHER "/bin/sleep 9 & "

static const struct {
    const char *name, *words, *script;
    bool works;
} cases[] = {
    {"runs", "--profile tool", "/bin/true", true},
    {"reads the system", "--profile tool", "cat /usr/lib/os-release > /dev/null", true},
    {"reads a secret", "--profile tool", "cat /etc/passwd", false},
    {"reads a secret, compiling", "--profile compile --write @", "cat /etc/passwd", false},
    {"reads a given folder", "--profile tool --read @", "cat spec.yaml", true},
    {"reads a folder that is not given", "--profile tool", "cat spec.yaml", false},
    {"writes a given folder", "--profile compile --write @", "echo x > new && rm new", true},
    {"writes a folder to be read", "--profile tool --read @", "echo x > new", false},
    {"writes elsewhere", "--profile compile --write @", "echo x > /tmp/twagent-test-elsewhere",
     false},
    {"runs what it wrote", "--profile compile --write @",
     "echo '#!/bin/sh' > new && chmod +x new && ./new", false},
    {"has no environment", "--profile tool", "test -z \"$HOME$PATH_OF$USER\"", true},
    {"reads /proc", "--profile tool", "read -r a < /proc/self/status",
     false}, /* /proc is not there to be read */
    {"may read /proc", "--profile reference", "read -r a < /proc/self/status", true},
    {"may read its own /proc", "--profile sanitized", "read -r a < /proc/self/status", true},
    {"may read another's /proc", "--profile sanitized", "read -r a < /proc/1/status", false},
    {"reads another's environment", "--profile reference",
     "cat /proc/$PPID/environ > /dev/null && test -n \"$PPID\"", false},
    {"mounts", "--profile tool", "mount -t tmpfs none /mnt", false},
    {"makes namespaces", "--profile tool", "unshare -U /bin/true", false},
    {"writes no more than it may", "--profile compile --write @ --limit fsize=1000",
     "head -c 2000 /usr/bin/env > new", false},
    {"changes a mode", "--profile reference --write @", "chmod 777 spec.yaml && test -x spec.yaml",
     false},
    {"changes a time", "--profile sanitized --write @",
     "touch -d 2001-01-01 spec.yaml && test spec.yaml -ot /bin/sh", false},
    {"limits what is not it", "--profile reference", OTHER "prlimit --pid $! --core=0:0", false},
    {"limits what is not it, an agent", "--profile agent", OTHER "prlimit --pid $! --core=0:0",
     false},
    {"binds what is not it", "--profile agent",
     OTHER "was=$(grep ^Cpus_ /proc/$!/status); taskset -p 1 $!; "
           "test \"$was\" != \"$(grep ^Cpus_ /proc/$!/status)\"",
     false},
    {"binds itself", "--profile reference", "taskset 1 /bin/true", true},
    {"is what ends where memory does", "--profile reference",
     "test \"$(cat /proc/self/oom_score_adj)\" = 1000", true},
    {"signals what is not it", "--profile reference", OTHER "kill -0 $!", false},
    {"signals what it started, an agent", "--profile agent", OTHER "kill -0 $!", true},
    {"makes a program executable", "--profile compile --write @",
     "chmod 777 spec.yaml && test -x spec.yaml", true},
    {"is bounded in CPU time", "--profile tool", "test \"$(ulimit -St)\" = 30", true},
    {"is bounded in CPU time as asked", "--profile compile --write @ --limit cpu=7",
     "test \"$(ulimit -St)\" = 7", true},
    {"is bounded in memory", "--profile tool --limit as=1000000", "/bin/true", false},
};

static void programs_can_do_what_they_are_given(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code = sandboxed(cases[i].words, cases[i].script);
        if ((code == 0) != cases[i].works)
            fail_msg("%s: %d, %s", cases[i].name, code, buf_text(&kit.said));
    }
}

static void usage_is_checked(void **state)
{
    static const struct {
        const char *words, *message;
    } wrong[] = {{"--profile nothing", "no such profile"},
                 {"--limit as=many", "--limit as=many: expected"},
                 {"--limit as=", "expected"},
                 {"--what ever", "no such option"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(sandboxed(wrong[i].words, "true"), 2);
        if (strstr(buf_text(&kit.said), wrong[i].message) == NULL)
            fail_msg("%s: %s", wrong[i].words, buf_text(&kit.said));
    }
}

static void descriptors_do_not_leak(void **state)
{
    (void)state;
    int fd = open("/etc/passwd", O_RDONLY); /* inherited on purpose */
    assert_true(fd > 2);
    assert_int_equal(fcntl(fd, F_DUPFD, 50), 50);
    assert_int_not_equal(sandboxed("--profile tool", "cat <&50"), 0);
    close(50);
    close(fd);
}

/* A child of *parent runs `program` -c `script` behind `profile`. Returns where its output is read.
 */
static int start_under(pid_t *parent, const char *profile, const char *program, const char *script)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    *parent = fork();
    if (*parent == 0) {
        if (fork() == 0) {
            dup2(fds[1], 1);
            execl(file_program_path(), "t", "sandbox", "--profile", profile, "--", program, "-c",
                  script, (char *)NULL);
            _exit(1);
        }
        pause();
        _exit(0);
    }
    close(fds[1]);
    return fds[0];
}

/* The pipe's last end is closed. */
static void all_end_with(pid_t parent, int fd)
{
    char byte;
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

/* Its child, and what that one started, are gone with it. */
static void nobody_outlives_the_parent(void **state)
{
    (void)state;
    pid_t parent;
    char byte;
    int fd = start_under(&parent, "tool", "/bin/sh", "echo; exec sleep 100");
    assert_int_equal(read(fd, &byte, 1), 1); /* it runs */
    all_end_with(parent, fd);
}

/* A definition forgets that it dies with its parent, and has started another. Both hold the pipe,
 * and are stopped, as a definition is that rests; we adopt them, so that no end of a session wakes
 * them. */
static void a_definition_leaves_nobody(void **state)
{
    static const char script[] = "import ctypes, os, time\nctypes.CDLL(None).prctl(1, 0, 0, 0, 0)\n"
                                 "if os.fork() == 0:\n    os.write(1, b'%8d' % os.getpgrp())\n"
                                 "time.sleep(300)\n";
    (void)state;
    pid_t parent;
    char group[9] = "";
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    int fd = start_under(&parent, "reference", "/usr/bin/python3", script);
    assert_int_equal(read(fd, group, 8), 8);
    assert_int_equal(kill((pid_t)-strtol(group, NULL, 10), SIGSTOP), 0);
    all_end_with(parent, fd);
    while (wait(NULL) > 0) /* the definition, what it started, and who oversaw it */
        ;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

/* Ten processes have 350 threads each, and wait. Exit code 3: this machine grants no so many. */
static void a_definition_is_bounded(void **state)
{
    static const char script[] = "exec /usr/bin/python3 -I -c \"import _thread, os, sys, time\n"
                                 "_thread.stack_size(65536)\n"
                                 "def start():\n"
                                 "    try:\n"
                                 "        for i in range(350):\n"
                                 "            _thread.start_new_thread(time.sleep, (3600,))\n"
                                 "    except RuntimeError:\n"
                                 "        os._exit(3)\n"
                                 "    time.sleep(3600)\n"
                                 "for i in range(10):\n"
                                 "    if os.fork() == 0:\n"
                                 "        start()\n"
                                 "os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\"";
    (void)state;
    int code = sandboxed("--profile reference", script);
    if (code == 3)
        skip();
    if (strstr(buf_text(&kit.said), "more than 2000 threads") == NULL)
        fail_msg("%d: %s", code, buf_text(&kit.said));
}

/* A sanitized program holds a candidate's code, with the same user as the worker. */
static const struct {
    const char *name, *before, *attempt;
} refusals[] = {
    {"signals its parent", "#include <signal.h>\n#include <unistd.h>\n", "kill(getppid(), 0) != 0"},
    {"signals everybody", "#include <signal.h>\n", "kill(-1, 0) != 0"},
    {"limits its parent", "#include <sys/resource.h>\n#include <unistd.h>\n",
     "prlimit(getppid(), RLIMIT_CORE, 0, &(struct rlimit){0, 0}) != 0"},
    {"has a file signal its parent",
     "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <unistd.h>\n",
     "fcntl(1, F_SETOWN, getppid()) != 0 && fcntl(1, F_SETSIG, 9) != 0 && "
     "fcntl(1, F_SETOWN_EX, &(struct f_owner_ex){F_OWNER_PID, getppid()}) != 0 && "
     "fcntl(open(\"/usr\", O_RDONLY), F_NOTIFY, DN_ACCESS) != 0 && fcntl(1, F_SETFL, O_APPEND) == "
     "0"},
    {"has a socket signal its parent",
     "#include <errno.h>\n#include <sys/ioctl.h>\n#include <unistd.h>\n",
     "ioctl(1, 0x8901, &(int){getppid()}) != 0 && errno == EPERM && "
     "ioctl(1, 0x8902, &(int){getppid()}) != 0 && errno == EPERM"},
    {"forks", "#include <unistd.h>\n", "fork() < 0"},
    {"connects", "#include <sys/socket.h>\n", "socket(AF_INET, SOCK_STREAM, 0) < 0"},
    {"reads a secret", "#include <fcntl.h>\n", "open(\"/etc/passwd\", O_RDONLY) < 0"},
    {"opens its inputs for writing", "#include <fcntl.h>\n#include <sys/mman.h>\n",
     "mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(\"/proc/self/fd/4\", O_RDWR), 0) "
     "== MAP_FAILED"},
    {"writes its inputs", "#include <fcntl.h>\n#include <unistd.h>\n",
     "pwrite(open(\"/proc/self/fd/4\", O_RDWR), \"x\", 1, 0) != 1"},
};

static void sanitized_programs_reach_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        char text[1024];
        struct buf report;
        buf_init(&report, 4096);
        snprintf(text, sizeof text, "%s%s{ C[0] = (%s) ? 1 : 2; }", refusals[i].before,
                 KIT_SIGNATURE, refusals[i].attempt);
        if (kit_compile(&kit, "k.c", text, BUILD_SANITIZED) != 0)
            fail_msg("%s", buf_text(&kit.said));
        if (backend_cpu.sanitize(&kit.lane, &kit.region, kit.build.artifact, NULL, &kit.call, 1,
                                 false, &report, &kit.err) != 0)
            fail_msg("%s: %s", refusals[i].name, kit.err.message);
        if (kit_output(&kit)[0] != 1)
            fail_msg("%s: it could", refusals[i].name);
        buf_free(&report);
    }
}

/* As the runner does of the fast build: a machine has an end of threads. */
static void sanitized_programs_have_few_threads(void **state)
{
    static const char text[] =
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static void *stay(void *none) { for (;;) pause(); return none; }\n"
        "%s{ pthread_t thread;\n"
        "  for (int i = 0; i < 300; i++) pthread_create(&thread, 0, stay, 0);\n"
        "  for (;;) pause(); }";
    char source[1024];
    (void)state;
    BUF_LOCAL(report, 4096);
    snprintf(source, sizeof source, text, KIT_SIGNATURE);
    if (kit_compile(&kit, "k.c", source, BUILD_SANITIZED) != 0)
        fail_msg("%s", buf_text(&kit.said));
    assert_int_equal(backend_cpu.sanitize(&kit.lane, &kit.region, kit.build.artifact, NULL,
                                          &kit.call, 1, false, &report, &kit.err),
                     -1);
    assert_int_equal(kit.err.code, ERR_CHILD);
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(programs_can_do_what_they_are_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(usage_is_checked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(descriptors_do_not_leak, set_up, tear_down),
        cmocka_unit_test(nobody_outlives_the_parent),
        cmocka_unit_test(a_definition_leaves_nobody),
        cmocka_unit_test_setup_teardown(a_definition_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sanitized_programs_reach_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sanitized_programs_have_few_threads, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
