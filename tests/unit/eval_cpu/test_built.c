/* Which builds are kept, what is handed out in place of another one, and when it is not. */
#include "kit.c" /* each test is one source file */

#include "base/buf.h"
#include "process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

/* --- a stand-in for a compiler: it says what it read, counts its runs, copies its sources --- */

static const char compiler[] = "echo run >> ../runs\n"
                               "if [ \"$1\" = fails ]; then exit 3; fi\n"
                               "if [ \"$1\" = dies ]; then kill -9 $$; fi\n"
                               "[ \"$1\" = silent ] || for unit in a.c b.c; do\n"
                               "    echo \"$unit.o: \\\\\" && echo \" $HEADER\"\n"
                               "done > read.d\n"
                               "[ \"$1\" != changes ] || echo more >> \"$HEADER\"\n"
                               "cat a.c b.c \"$HEADER\" > kernel.so || true\n";

struct fixture {
    char folder[64], cache[96], header[96], variable[120];
    const char *reads; /* in the rules; NULL: the header */
    unsigned builds;
};

static void put_text(const char *folder, const char *name, const char *text)
{
    struct err err;
    MEM_LOCAL char *path = file_join(folder, name);
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
}

/* Files have the time of the last tick: what is written now is older than what begins behind it. */
static void pass_a_tick(void)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_REALTIME_COARSE, &begun);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while (now.tv_sec == begun.tv_sec && now.tv_nsec == begun.tv_nsec);
}

static void open_fixture(struct fixture *fixture)
{
    *fixture = (struct fixture){.folder = "/tmp/twagent-test-XXXXXX"};
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->cache, sizeof fixture->cache, "%s/built", fixture->folder);
    snprintf(fixture->header, sizeof fixture->header, "%s/header.h", fixture->folder);
    put_text(fixture->folder, "header.h", "header\n");
    put_text(fixture->folder, "cc", compiler);
    put_text(fixture->folder, "runs", "");
    pass_a_tick();
}

static void close_fixture(struct fixture *fixture)
{
    struct err err;
    assert_int_equal(file_remove_tree(fixture->folder, &err), 0);
}

/* In a folder of its own, as every build: 0, -1 or the signal, and `made` what came of it. */
static int build(struct fixture *fixture, const char *a, const char *b, const char *option,
                 struct buf *made)
{
    struct err err;
    char folder[96], script[96], artifact[120];
    snprintf(folder, sizeof folder, "%s/%u", fixture->folder, fixture->builds++);
    snprintf(script, sizeof script, "%s/cc", fixture->folder);
    snprintf(artifact, sizeof artifact, "%s/kernel.so", folder);
    snprintf(fixture->variable, sizeof fixture->variable, "HEADER=%s",
             fixture->reads != NULL ? fixture->reads : fixture->header);
    assert_int_equal(file_make_dirs(folder, &err), 0);
    put_text(folder, "a.c", a);
    put_text(folder, "b.c", b);
    const char *const argv[] = {
        file_program_path(), "cpu-compile", fixture->cache, "kernel.so", "a.c",  "b.c", "--",
        "/usr/bin/env",      "--",          "/bin/sh",      script,      option, NULL};
    const struct spawn_spec run = {
        .argv = argv,
        .folder = folder,
        .env = (const char *const[]){"PATH=/usr/bin:/bin", fixture->variable, NULL}};
    int status = spawn_run(&run, KIT_HANG_MS, 0, NULL, NULL, &err);
    buf_init(made, 4096);
    if (status == 0)
        assert_int_equal(file_read(artifact, made, &err), 0);
    else
        assert_false(file_exists(artifact));
    return status;
}

static size_t runs(const struct fixture *fixture)
{
    struct err err;
    BUF_LOCAL(text, 4096);
    MEM_LOCAL char *path = file_join(fixture->folder, "runs");
    assert_int_equal(file_read(path, &text, &err), 0);
    return text.length / 4;
}

/* The compiler has run `more` times more; its product is in any case what the sources say. */
static void builds(struct fixture *fixture, const char *a, const char *b, const char *option,
                   size_t more)
{
    struct buf made;
    struct err err;
    size_t before = runs(fixture);
    BUF_LOCAL(header, 200);
    BUF_LOCAL(expected, 400);
    assert_int_equal(build(fixture, a, b, option, &made), 0);
    if (file_read(fixture->header, &header, &err) != 0)
        buf_reset(&header);
    buf_addf(&expected, "%s%s%s", a, b, buf_text(&header));
    assert_string_equal(buf_text(&made), buf_text(&expected));
    assert_int_equal(runs(fixture) - before, more);
    buf_free(&made);
}

static void what_is_the_same_is_handed_out(void **state)
{
    struct fixture fixture;
    (void)state;
    open_fixture(&fixture);
    builds(&fixture, "one\n", "harness\n", "-O3", 1);
    builds(&fixture, "one\n", "harness\n", "-O3", 0);
    builds(&fixture, "two\n", "harness\n", "-O3", 1);
    builds(&fixture, "one\n", "other\n", "-O3", 1);
    builds(&fixture, "one\nhar", "ness\n", "-O3", 1); /* the same bytes in a row */
    builds(&fixture, "one\n", "harness\n", "-O2", 1);
    builds(&fixture, "one\n", "harness\n", "-O3", 0);
    close_fixture(&fixture);
}

static void what_was_read_and_has_changed_is_read_again(void **state)
{
    struct fixture fixture;
    (void)state;
    open_fixture(&fixture);
    builds(&fixture, "one\n", "two\n", "-O3", 1);
    put_text(fixture.folder, "header.h", "HEADER\n"); /* as long as before */
    pass_a_tick();
    builds(&fixture, "one\n", "two\n", "-O3", 1);
    builds(&fixture, "one\n", "two\n", "-O3", 0);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}}; /* and tells so */
    assert_int_equal(utimensat(AT_FDCWD, fixture.header, times, 0), 0);
    pass_a_tick();
    builds(&fixture, "one\n", "two\n", "-O3", 1);
    close_fixture(&fixture);
}

static void what_changes_meanwhile_is_not_kept(void **state)
{
    struct fixture fixture;
    struct buf made;
    (void)state;
    open_fixture(&fixture);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(build(&fixture, "one\n", "two\n", "changes", &made), 0);
        buf_free(&made);
        pass_a_tick();
    }
    assert_int_equal(runs(&fixture), 2);
    close_fixture(&fixture);
}

/* Nobody knows when to compile it again. */
static void what_does_not_say_what_it_read_is_not_kept(void **state)
{
    static const char *const reads[] = {"../header.h", "/proc/none/header.h", "/tmp/a\\ b.h", ""};
    struct fixture fixture;
    struct buf made;
    (void)state;
    open_fixture(&fixture);
    builds(&fixture, "one\n", "two\n", "silent", 1);
    builds(&fixture, "one\n", "two\n", "silent", 1);
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        fixture.reads = reads[i];
        for (size_t turn = 0; turn < 2; turn++) {
            size_t before = runs(&fixture);
            (void)build(&fixture, "one\n", "two\n", "-O3", &made);
            buf_free(&made);
            assert_int_equal(runs(&fixture), before + 1);
        }
    }
    assert_false(file_exists(fixture.cache));
    close_fixture(&fixture);
}

static void an_end_is_passed_on(void **state)
{
    struct fixture fixture;
    struct buf made;
    (void)state;
    open_fixture(&fixture);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(build(&fixture, "one\n", "two\n", "fails", &made), -1);
        buf_free(&made);
        assert_int_equal(build(&fixture, "one\n", "two\n", "dies", &made), SIGKILL);
        buf_free(&made);
    }
    assert_int_equal(runs(&fixture), 4);
    assert_false(file_exists(fixture.cache));
    close_fixture(&fixture);
}

/* --- the compiler itself --- */

static size_t kept_files(const char *cache)
{
    char command[200];
    snprintf(command, sizeof command, "find %s/twagent/built -type f | wc -l", cache);
    FILE *pipe = popen(command, "r"); /* NOLINT(bugprone-command-processor): a folder of ours */
    size_t count = 0;
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%zu", &count), 1); /* NOLINT(cert-err34-c) */
    pclose(pipe);
    return count;
}

static void kernels_are_handed_out(void **state)
{
    static const enum build_flavour flavours[] = {BUILD_FAST, BUILD_SANITIZED};
    char cache[] = "/tmp/twagent-test-XXXXXX";
    struct err err;
    assert_non_null(mkdtemp(cache));
    setenv("XDG_CACHE_HOME", cache, 1);
    for (size_t i = 0; i < 4; i++) {
        if (kit_compile(&kit, "k.c", KIT_SIGNATURE "{" KIT_RIGHT "}", flavours[i / 2]) != 0)
            fail_msg("%s", buf_text(&kit.said));
        assert_true(file_is_regular(kit.build.artifact));
        assert_int_equal(kept_files(cache), i / 2 + 1);
        tear_down(state);
        set_up(state);
    }
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(file_remove_tree(cache, &err), 0);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_the_same_is_handed_out),
        cmocka_unit_test(what_was_read_and_has_changed_is_read_again),
        cmocka_unit_test(what_changes_meanwhile_is_not_kept),
        cmocka_unit_test(what_does_not_say_what_it_read_is_not_kept),
        cmocka_unit_test(an_end_is_passed_on),
        cmocka_unit_test_setup_teardown(kernels_are_handed_out, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
