/* Keys from the environment and from .env files: every form of a line, and what is refused. */
#include "check.h"

#include "agents/llm/keys.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define VARIABLE "TWAGENT_TEST_KEY"

static char folder[] = "/tmp/twagent-keys-XXXXXX";

static void write_env(const char *name, const char *text, size_t length, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static const struct {
    const char *text, *key; /* key NULL: none; "!": refused */
    int line;
} rows[] = {
    {VARIABLE "=sk-1\n", "sk-1", 0},
    {VARIABLE "=sk-1", "sk-1", 0},
    {"A=1\n" VARIABLE "=sk-1\nB=2\n", "sk-1", 0},
    {"  " VARIABLE " =  sk-1  \n", "sk-1", 0},
    {"export " VARIABLE "=sk-1\n", "sk-1", 0},
    {"export\t" VARIABLE "=sk-1\n", "sk-1", 0},
    {VARIABLE "=sk-1\r\n", "sk-1", 0},
    {"A=1\r\n" VARIABLE "=\"sk-1\"\r\n", "sk-1", 0},
    {VARIABLE "='sk-1'\n", "sk-1", 0},
    {VARIABLE "=\"sk-1\" # mine\n", "sk-1", 0},
    {VARIABLE "=sk-1 # mine\n", "sk-1", 0},
    {VARIABLE "=sk#1\n", "sk#1", 0},
    {VARIABLE "='sk#1'\n", "sk#1", 0},
    {VARIABLE "='sk\\n1'\n", "sk\\n1", 0},
    {VARIABLE "=\"s\\\\k\\\"\\$1\"\n", "s\\k\"$1", 0},
    {VARIABLE "=a=b==\n", "a=b==", 0},
    {VARIABLE "=old\n" VARIABLE "=new\n", "new", 0},
    {VARIABLE "=old\n" VARIABLE "=\n", NULL, 0},
    {"\xEF\xBB\xBF" VARIABLE "=sk-1\n", "sk-1", 0},
    {"# " VARIABLE "=sk-1\n", NULL, 0},
    {VARIABLE "=\n", NULL, 0},
    {VARIABLE "=\"\"\n", NULL, 0},
    {VARIABLE "=# none\n", NULL, 0},
    {VARIABLE "2=sk-1\nX" VARIABLE "=sk-1\n", NULL, 0},
    {"", NULL, 0},
    {"\n\n", NULL, 0},
    /* What is written about others is theirs. */
    {"what is this\nA: b\n=\nit's\nB='\n" VARIABLE "=sk-1\n", "sk-1", 0},
    {"PEM=\"-----BEGIN\n" VARIABLE "=not this\n-----END\"\n" VARIABLE "=sk-1\n", "sk-1", 0},
    {"A='open\n" VARIABLE "=sk-1\n", "sk-1", 0},
    /* What is written about ours must make sense. */
    {"A=1\n\n" VARIABLE ": sk-1\n", "!", 3},
    {VARIABLE "\n", "!", 1},
    {"export " VARIABLE "\n", "!", 1},
    {"A=\"x\ny\"\n" VARIABLE "='sk-1\n", "!", 3},
    {VARIABLE "='sk-1' x\n", "!", 1},
    {VARIABLE "=\"sk\n-1\"\n", "!", 1},
    {VARIABLE "=\"sk\\n-1\"\n", "!", 1},
    {VARIABLE "=sk 1\n", "!", 1},
    {VARIABLE "=sk\xC3\xA9\n", "!", 1},
    {VARIABLE "=sk\r-1\n", "!", 1},
};

static void check_row(size_t row, struct arena *arena)
{
    struct err err = {0};
    const char *key = "untouched";
    write_env("row.env", rows[row].text, strlen(rows[row].text), 0600);
    int status = key_find(arena, VARIABLE, "row.env", &key, &err);
    bool refused = rows[row].key != NULL && strcmp(rows[row].key, "!") == 0;
    if ((status != 0) != refused)
        fail_msg("row %zu: status %d (%s)", row, status, err.message);
    if (refused) {
        assert_int_equal(err.code, ERR_USAGE);
        char place[64];
        snprintf(place, sizeof place, "row.env:%d: ", rows[row].line);
        if (strstr(err.message, place) != err.message)
            fail_msg("row %zu: %s", row, err.message);
        assert_null(strstr(err.message, "sk"));
        return;
    }
    if (rows[row].key == NULL ? key != NULL : key == NULL || strcmp(key, rows[row].key) != 0)
        fail_msg("row %zu: %s", row, key != NULL ? key : "none");
}

static void test_lines(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    unsetenv(VARIABLE);
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(i, arena);
    struct err err = {0};
    const char *key;
    static const char nul[] = VARIABLE "=sk\0-1\n";
    write_env("row.env", nul, sizeof nul - 1, 0600);
    assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), -1);
    assert_null(getenv(VARIABLE)); /* children would inherit it */
    arena_free(arena);
}

static void test_environment(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct err err = {0};
    const char *key;
    write_env("row.env", VARIABLE "=file\n", strlen(VARIABLE "=file\n"), 0600);
    setenv(VARIABLE, "environment", 1);
    assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), 0);
    assert_string_equal(key, "environment");
    setenv(VARIABLE, "", 1);
    assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), 0);
    assert_string_equal(key, "file");
    setenv(VARIABLE, "sk-1\r\nx-injected: 1", 1);
    assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_null(strstr(err.message, "sk-1"));
    unsetenv(VARIABLE);
    arena_free(arena);
}

static void test_files(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct err err = {0};
    const char *key;
    assert_int_equal(key_find(arena, VARIABLE, NULL, &key, &err), 0); /* no .env is fine */
    assert_null(key);
    assert_int_equal(key_find(arena, VARIABLE, "nowhere.env", &key, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "nowhere.env"));
    assert_int_equal(key_find(arena, VARIABLE, "./.env", &key, &err), 0); /* as if not given */
    assert_null(key);
    assert_int_equal(key_find(arena, VARIABLE, "x.env/.env", &key, &err), 0);
    assert_int_equal(mkdir(".env", 0700), 0); /* a virtual environment of Python's */
    assert_int_equal(key_find(arena, VARIABLE, NULL, &key, &err), 0);
    assert_null(key);
    assert_int_equal(rmdir(".env"), 0);
    write_env(".env", VARIABLE "=here\n", strlen(VARIABLE "=here\n"), 0600);
    assert_int_equal(key_find(arena, VARIABLE, NULL, &key, &err), 0);
    assert_string_equal(key, "here");
    arena_free(arena);
}

static int warnings;

static void count_warnings(void *context, const struct event *event)
{
    (void)context;
    warnings += strcmp(event->kind, "keys.readable") == 0;
    assert_null(strstr(event->message, "sk-1"));
}

static void test_warning(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct err err = {0};
    const char *key;
    log_add_sink(count_warnings, NULL, LOG_DEBUG);
    write_env("row.env", "A=1\n", 4, 0644);
    assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), 0);
    assert_int_equal(warnings, 0); /* no key of ours in it */
    write_env("row.env", VARIABLE "=sk-1\n", strlen(VARIABLE "=sk-1\n"), 0600);
    assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), 0);
    assert_int_equal(warnings, 0);
    write_env("row.env", VARIABLE "=sk-1\n", strlen(VARIABLE "=sk-1\n"), 0640);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(key_find(arena, VARIABLE, "row.env", &key, &err), 0);
        assert_string_equal(key, "sk-1");
    }
    assert_int_equal(warnings, 1);
    log_remove_sink(count_warnings, NULL);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_files), cmocka_unit_test(test_warning)};
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return 1;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    struct err err;
    return chdir("/") != 0 || file_remove_tree(folder, &err) != 0 ? 1 : failures;
}
