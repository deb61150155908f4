/* The fake provider behind a port of its own, and a model of it. */
#pragma once

#include "check.h"

#include "agents/llm/ask.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAULTS_MAX = 12 };

struct provider {
    pid_t pid;
    char url[64];
};

/* A program that says "port N" first. */
static inline struct provider provider_of(const char *const *argv, const char *scheme)
{
    struct provider provider = {0};
    int fds[2], port = 0;
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
    snprintf(provider.url, sizeof provider.url, "%s://127.0.0.1:%d/v1", scheme, port);
    return provider;
}

static inline struct provider provider_start(const char *const *faults, const char *key)
{
    const char *argv[2 * FAULTS_MAX + 8] = {TEST_BINARY_DIR "/tests/fakes/fake_provider"};
    size_t count = 1;
    argv[count++] = "--size";
    argv[count++] = "200";
    if (key != NULL) {
        argv[count++] = "--key";
        argv[count++] = key;
    }
    for (; faults != NULL && *faults != NULL; faults++) {
        argv[count++] = **faults == '@' ? "--batch" : "--fault"; /* @: of a batch's own */
        argv[count++] = *faults + (**faults == '@');
    }
    return provider_of(argv, "http");
}

static inline void provider_stop(const struct provider *provider)
{
    kill(provider->pid, SIGKILL);
    waitpid(provider->pid, NULL, 0);
}

static inline struct model model_at(const char *url, const char *key)
{
    return (struct model){.name = "m",
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
}
