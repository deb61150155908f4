/* Completions against the fake provider: what is retried and how often, what blocks the key, and
 * that an answer is in the store before its asker has it, and is never paid for twice. */
#include "check.h"

#include "agents/ask.h"
#include "base/file.h"
#include "base/mem.h"
#include "loop/http.h"
#include "store/store.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKS_MAX = 8, FAULTS_MAX = 8 };

static const struct retry_policy quick = {
    .tries = 4, .base_ms = 2, .cap_ms = 8, .honour_ms = 120000};

struct provider {
    pid_t pid;
    char url[64];
};

static struct provider provider_start(const char *const *faults, const char *key)
{
    const char *argv[2 * FAULTS_MAX + 8] = {TEST_BINARY_DIR "/tests/fakes/fake_provider"};
    size_t count = 1;
    struct provider provider = {0};
    int fds[2], port = 0;
    argv[count++] = "--size";
    argv[count++] = "200";
    for (; key != NULL && count < 5; key = NULL) {
        argv[count++] = "--key";
        argv[count++] = key;
    }
    for (; faults != NULL && *faults != NULL; faults++) {
        argv[count++] = "--fault";
        argv[count++] = *faults;
    }
    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    provider.pid = fork();
    assert_true(provider.pid >= 0);
    if (provider.pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(fds[1]);
    FILE *out = fdopen(fds[0], "r");
    assert_int_equal(fscanf(out, "port %d", &port), 1);
    fclose(out);
    snprintf(provider.url, sizeof provider.url, "http://127.0.0.1:%d/v1", port);
    return provider;
}

static void provider_stop(const struct provider *provider)
{
    kill(provider->pid, SIGKILL);
    waitpid(provider->pid, NULL, 0);
}

/* A root task that starts its asks at once and ends with the last. */
struct asker {
    struct task task;
    struct completions *completions;
    struct ask asks[ASKS_MAX];
    size_t count;
    bool started;
    uint64_t cancel_after_ms; /* 0: never */
    struct timer timer;
};

static enum task_result asker_step(struct task *task)
{
    struct asker *asker = container_of(task, struct asker, task);
    if (!asker->started) {
        asker->started = true;
        for (size_t i = 0; i < asker->count; i++)
            ask_start(asker->completions, &asker->asks[i], task, "test");
        if (asker->cancel_after_ms > 0)
            timer_start(task->loop, &asker->timer, task, asker->cancel_after_ms);
    }
    if (asker->timer.fired)
        for (size_t i = 0; i < asker->count; i++)
            if (!asker->asks[i].task.finished)
                task_cancel(&asker->asks[i].task);
    for (size_t i = 0; i < asker->count; i++)
        if (!asker->asks[i].task.finished)
            return TASK_WAIT;
    timer_stop(&asker->timer);
    return TASK_DONE;
}

static const char *const asker_states[] = {"asking"};
static const uint32_t asker_moves[] = {1};
static const struct task_type asker_type = {"asker", asker_states, asker_moves,
                                            1,       asker_step,   NULL};

struct outcome {
    struct asker asker;
    struct completions_totals totals;
    struct err blocked;
};

static char *folder; /* of the present test's store */

/* Runs `count` asks against a provider; free with outcome_free(). */
static struct outcome *run_at(const char *url, const char *key, size_t count,
                              uint64_t cancel_after_ms, unsigned in_flight)
{
    struct outcome *outcome = MEM_NEW(struct outcome);
    struct loop *loop = loop_new();
    struct store *store;
    struct err err = {0};
    if (store_open(folder, true, false, &store, &err) != 0)
        fail_msg("%s", err.message);
    struct store_writer *writer = store_writer_new(loop, store);
    const struct model model = {.name = "m",
                                .provider = "openai",
                                .wire_name = "m",
                                .codec = &codec_openai,
                                .base_url = url,
                                .key = key,
                                .temperature = -1,
                                .prompt_price = -1,
                                .completion_price = -1,
                                .weight = 1,
                                .where = "here"};
    struct completions_spec spec = {.run = "r1",
                                    .seed = 5,
                                    .policy = &quick,
                                    .in_flight = in_flight,
                                    .between_bytes_ms = 300};
    struct completions *completions = completions_new(loop, store, writer, &spec, &err);
    assert_non_null(completions);
    outcome->asker.completions = completions;
    outcome->asker.count = count;
    outcome->asker.cancel_after_ms = cancel_after_ms;
    for (size_t i = 0; i < count; i++) {
        struct ask *ask = &outcome->asker.asks[i];
        ask->model = &model;
        ask->request = (struct completion_request){.prompt = "hello"};
        ask->purpose = "test";
        ask->sample = (int64_t)i;
    }
    task_start(loop, &outcome->asker.task, &asker_type, NULL, "asker");
    loop_run(loop);
    outcome->totals = completions_totals(completions);
    outcome->blocked = *completions_blocked(completions, &model);
    for (size_t i = 0; i < count; i++) { /* stored before it was used */
        const struct ask *ask = &outcome->asker.asks[i];
        assert_int_equal(store_has(store, STORE_COMPLETIONS, ask->key), ask->err.code == ERR_NONE);
    }
    completions_free(completions);
    store_writer_free(writer);
    loop_run(loop);
    loop_free(loop);
    store_close(store);
    return outcome;
}

static struct outcome *run(const char *const *faults, const char *key, size_t count,
                           uint64_t cancel_after_ms, unsigned in_flight)
{
    struct provider provider = provider_start(faults, "good");
    struct outcome *outcome = run_at(provider.url, key, count, cancel_after_ms, in_flight);
    provider_stop(&provider);
    return outcome;
}

static void outcome_free(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->asker.count; i++)
        ask_free(&outcome->asker.asks[i]);
    mem_free(outcome);
}

static const struct {
    const char *faults[FAULTS_MAX];
    const char *key;
    enum err_code code;
    enum fault fault;
    int64_t requests; /* so that retries do not multiply */
    bool blocked;
} rows[] = {
    {{NULL}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"drip"}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"hints"}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"status code=500", "status code=503"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"status code=408", "status code=409", "status code=529"}, "good", ERR_NONE, 0, 4, false},
    {{"status code=429 text=0", "status code=429"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"status code=502 times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 4, false},
    {{"reset after=0"}, "good", ERR_NONE, FAULT_NONE, 2, false},
    {{"reset after=300", "close after=400"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"stall after=300"}, "good", ERR_NONE, FAULT_NONE, 2, false},
    {{"truncate", "truncate"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"truncate times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 3, false},
    {{"empty times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 3, false},
    {{"html"}, "good", ERR_PROTOCOL, FAULT_FATAL, 1, false},
    {{"bomb after=100000000"}, "good", ERR_LIMIT, FAULT_FATAL, 1, false},
    {{"status code=400"}, "good", ERR_PROTOCOL, FAULT_FATAL, 1, false},
    {{"status code=413"}, "good", ERR_PROTOCOL, FAULT_TOO_LONG, 1, false},
    {{"status code=302 text=http://127.0.0.1:1/"}, "good", ERR_PROTOCOL, FAULT_FATAL, 1, false},
    {{"status code=404"}, "good", ERR_PROTOCOL, FAULT_MODEL, 1, true},
    {{"status code=402"}, "good", ERR_PROTOCOL, FAULT_QUOTA, 1, true},
    {{"status code=429 text=1000"}, "good", ERR_LIMIT, FAULT_LIMITED, 1, true},
    {{NULL}, "bad", ERR_PROTOCOL, FAULT_KEY, 1, true},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err;
        struct outcome *outcome = run(rows[i].faults, rows[i].key, 1, 0, 0);
        const struct ask *ask = &outcome->asker.asks[0];
        if (ask->err.code != rows[i].code || ask->fault != rows[i].fault ||
            outcome->totals.requests != rows[i].requests ||
            (outcome->blocked.code != ERR_NONE) != rows[i].blocked)
            fail_msg("row %zu (%s): %s \"%s\", fault %d, %lld requests, blocked \"%s\"", i,
                     rows[i].faults[0], err_code_name(ask->err.code), ask->err.message,
                     (int)ask->fault, (long long)outcome->totals.requests,
                     outcome->blocked.message);
        if (ask->err.code == ERR_NONE) {
            assert_true(strlen(ask->completion.text) >= 200);
            assert_string_equal(ask->completion.finish, "stop");
            assert_true(ask->completion.completion_tokens > 0);
        }
        if (rows[i].faults[0] != NULL && strcmp(rows[i].faults[0], "html") == 0)
            assert_non_null(strstr(ask->err.message, "content-type"));
        assert_null(strstr(ask->err.message, "bad"));
        outcome_free(outcome);
        assert_int_equal(file_remove_tree(folder, &err), 0);
    }
}

/* The second run, of another process as it were, finds every answer: no request is sent. */
static void test_stored(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    struct outcome *first = run_at(provider.url, "good", 5, 0, 2);
    struct outcome *second = run_at(provider.url, "good", 6, 0, 2);
    assert_int_equal(first->totals.requests, 5);
    assert_int_equal(second->totals.requests, 1);
    assert_int_equal(second->totals.from_store, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(first->asker.asks[i].completion.text,
                            second->asker.asks[i].completion.text);
    outcome_free(first);
    outcome_free(second);
    provider_stop(&provider);
}

/* The key stops at the first answer: the others learn of it and none is sent after. */
static void test_blocked_for_all(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=402 times=0", NULL};
    struct outcome *outcome = run(faults, "good", 6, 0, 1);
    assert_int_equal(outcome->totals.requests, 1);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(outcome->asker.asks[i].err.code, ERR_PROTOCOL);
    outcome_free(outcome);
}

static void test_cancel(void **state)
{
    (void)state;
    static const char *const faults[] = {"stall after=300 times=0", NULL};
    struct outcome *outcome = run(faults, "good", 4, 30, 2);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(outcome->asker.asks[i].err.code, ERR_CANCELLED);
    outcome_free(outcome);
}

static int set_up(void **state)
{
    (void)state;
    char path[] = "/tmp/twagent-test-XXXXXX";
    if (mkdtemp(path) == NULL)
        return -1;
    folder = file_join(path, "store");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct err err;
    char *slash = strrchr(folder, '/');
    *slash = '\0';
    int status = file_remove_tree(folder, &err);
    mem_free(folder);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_faults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blocked_for_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down)};
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
