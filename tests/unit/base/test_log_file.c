#include "check.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/log_file.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char folder[64];

static int make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_log_file.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop(void **state)
{
    struct err err;
    (void)state;
    return file_remove_tree(folder, &err);
}

static char *read_all(const char *name)
{
    struct err err;
    struct buf text;
    char *path = file_join(folder, name);
    buf_init(&text, 1 << 20);
    int failed = file_read(path, &text, &err);
    mem_free(path);
    char *copy = failed ? NULL : mem_strdup(buf_text(&text));
    buf_free(&text);
    return copy;
}

static struct log_file *start(size_t bytes, const char *name)
{
    struct err err = {0};
    struct log_file *log = log_file_new(bytes, 3);
    char *path = name ? file_join(folder, name) : NULL;
    if (path)
        assert_int_equal(log_file_open(log, path, &err), 0);
    mem_free(path);
    return log;
}

static void tell(struct log_file *log, enum log_level level, const char *message)
{
    const struct event event = {1795246724123u, level, "a.b", "r1", message};
    log_file_sink(log, &event);
}

static void lines_wait_until_there_is_a_file(void **state)
{
    struct err err = {0};
    (void)state;
    struct log_file *log = start(1 << 20, NULL);
    tell(log, LOG_WARN, "early");
    char *path = file_join(folder, "logs/r1.log");
    assert_int_equal(log_file_open(log, path, &err), 0);
    tell(log, LOG_INFO, "later");
    log_file_free(log);
    char *text = read_all("logs/r1.log");
    assert_string_equal(text, "2026-11-21T07:38:44.123Z warn a.b r1 early\n"
                              "2026-11-21T07:38:44.123Z info a.b r1 later\n");
    mem_free(text);
    log = log_file_new(1 << 20, 3); /* a resume goes on with the same file */
    assert_int_equal(log_file_open(log, path, &err), 0);
    tell(log, LOG_ERROR, "again"); /* at once: no flush */
    text = read_all("logs/r1.log");
    assert_non_null(strstr(text, "early"));
    assert_non_null(strstr(text, "again"));
    mem_free(text);
    mem_free(path);
    log_file_free(log);
}

static void the_oldest_go(void **state)
{
    char number[40];
    (void)state;
    struct log_file *log = start(1000, "log");
    for (int i = 0; i < 200; i++) {
        snprintf(number, sizeof number, "line-%03d", i);
        tell(log, LOG_WARN, number);
    }
    log_file_free(log);
    char *now = read_all("log"), *oldest = read_all("log.3"), *gone = read_all("log.4");
    assert_non_null(strstr(now, "line-199"));
    assert_non_null(oldest);
    assert_null(gone);
    assert_true(strlen(now) <= 1000 && strlen(oldest) <= 1000);
    assert_null(strstr(oldest, "line-000"));
    assert_int_equal(oldest[strlen(oldest) - 1], '\n');
    mem_free(now);
    mem_free(oldest);
}

/* A file limit is what a full disk looks like to write(2), without a disk to fill. */
static void a_full_disk_costs_lines_and_nothing_else(void **state)
{
    struct rlimit before, small;
    char message[1000];
    (void)state;
    memset(message, 'm', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    signal(SIGXFSZ, SIG_IGN);
    struct log_file *log = start(1 << 20, "log");
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 2000;
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 100; i++)
        tell(log, LOG_WARN, message);
    setrlimit(RLIMIT_FSIZE, &before);
    tell(log, LOG_WARN, "room again");
    log_file_free(log);
    char *text = read_all("log");
    assert_non_null(strstr(text, "lines were lost here"));
    assert_true(strlen(text) > 20000); /* what the buffer held is not lost */
    mem_free(text);
}

static void a_folder_that_cannot_be_made_says_so(void **state)
{
    struct err err = {0};
    (void)state;
    struct log_file *log = log_file_new(1000, 1);
    assert_int_equal(log_file_open(log, "/proc/nothing/log", &err), -1);
    assert_true(err.code != ERR_NONE);
    tell(log, LOG_ERROR, "nowhere to go"); /* harmless */
    log_file_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_wait_until_there_is_a_file, make, drop),
        cmocka_unit_test_setup_teardown(the_oldest_go, make, drop),
        cmocka_unit_test_setup_teardown(a_full_disk_costs_lines_and_nothing_else, make, drop),
        cmocka_unit_test(a_folder_that_cannot_be_made_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
