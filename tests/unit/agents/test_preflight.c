/* Preflight against the fake provider: what stops a run before its first request, and what does
 * not. */
#include "check.h"

#include "agents/llm/preflight.h"
#include "base/mem.h"
#include "loop/loop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(const char *key, const char *models, char url[64])
{
    int fds[2], port = 0;
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execl(TEST_BINARY_DIR "/tests/fakes/fake_provider", "fake_provider", "--key", key,
              "--model", models, (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    FILE *out = fdopen(fds[0], "r");
    assert_int_equal(fscanf(out, "port %d", &port), 1);
    fclose(out);
    snprintf(url, 64, "http://127.0.0.1:%d/v1", port);
    return pid;
}

struct scene {
    struct task task;
    struct preflight *preflight;
    const struct models *models[2];
    struct err err;
    bool cancels;
};

static enum task_result step(struct task *task)
{
    struct scene *scene = container_of(task, struct scene, task);
    if (scene->preflight == NULL) {
        scene->preflight = preflight_start(task->loop, task, scene->models, 2, NULL, &scene->err);
        assert_non_null(scene->preflight);
        if (scene->cancels)
            preflight_cancel(scene->preflight);
    }
    if (!preflight_done(scene->preflight))
        return TASK_WAIT;
    scene->err = *preflight_error(scene->preflight);
    return TASK_DONE;
}

static struct err check(const struct models *one, const struct models *other, bool cancels)
{
    static const char *const states[] = {"checking"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {"scene", states, moves, 1, step, NULL};
    struct scene scene = {.models = {one, other}, .cancels = cancels};
    struct loop *loop = loop_new();
    task_start(loop, &scene.task, &type, NULL, "scene");
    loop_run(loop);
    preflight_free(scene.preflight);
    loop_run(loop);
    loop_free(loop);
    return scene.err;
}

static struct model model_of(const char *name, const char *url, const char *key)
{
    return (struct model){.name = name,
                          .provider = "openai",
                          .wire_name = name,
                          .codec = &codec_openai,
                          .base_url = url,
                          .key = key,
                          .key_variable = "OPENAI_API_KEY",
                          .weight = 1,
                          .where = "here"};
}

static struct err check_one(const char *name, const char *url, const char *key)
{
    const struct model model = model_of(name, url, key);
    const struct models models = {&model, 1};
    return check(&models, &models, false);
}

static const struct {
    const char *name, *key;
    enum err_code code;
    const char *says;
} rows[] = {
    {"kernel-large", "secret", ERR_NONE, NULL},
    {"kernel-larg", "secret", ERR_USAGE, "did you mean \"kernel-large\""},
    {"something-else", "secret", ERR_USAGE, "kernel-large"},
    {"kernel-large", "not-it", ERR_ENVIRONMENT, "OPENAI_API_KEY"},
};

static void test_models(void **state)
{
    (void)state;
    char url[64];
    pid_t pid = start("secret", "kernel-large", url);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = check_one(rows[i].name, url, rows[i].key);
        if (err.code != rows[i].code ||
            (rows[i].says != NULL && strstr(err.message, rows[i].says) == NULL))
            fail_msg("row %zu: %s \"%s\"", i, err_code_name(err.code), err.message);
        assert_true(err.code == ERR_NONE || strstr(err.message, rows[i].key) == NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* What is wrong with one of several is said, whichever list it stands in. */
static void test_several(void **state)
{
    (void)state;
    char url[64];
    pid_t pid = start("secret", "a,b", url);
    const struct model good[] = {model_of("a", url, "secret"), model_of("b", url, "secret")};
    const struct model bad[] = {model_of("a", url, "secret"), model_of("c", url, "secret")};
    const struct models all = {good, 2}, some = {bad, 2};
    struct err err = check(&all, &all, false);
    assert_int_equal(err.code, ERR_NONE);
    err = check(&all, &some, false);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "\"c\""));
    err = check(&all, &some, true);
    assert_int_equal(err.code, ERR_CANCELLED);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A server that is down is the run's own retries' business; a name that nobody knows is not. */
static void test_unreachable(void **state)
{
    (void)state;
    struct err err = check_one("m", "http://127.0.0.1:1/v1", "secret");
    assert_int_equal(err.code, ERR_NONE);
    err = check_one("m", "http://no-such-host.invalid/v1", "secret");
    assert_int_equal(err.code, ERR_ENVIRONMENT);
    err = check_one("m", "ftp://127.0.0.1/v1", "secret");
    assert_int_equal(err.code, ERR_USAGE);
}

/* Nobody is there to be asked. */
static void test_none(void **state)
{
    (void)state;
    const struct model mail = {.name = "mailbox/x", .provider = "mailbox", .source = "x"};
    const struct models models = {&mail, 1}, none = {NULL, 0};
    struct err err = check(&models, &none, false);
    assert_int_equal(err.code, ERR_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models), cmocka_unit_test(test_several),
        cmocka_unit_test(test_unreachable), cmocka_unit_test(test_none)};
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
