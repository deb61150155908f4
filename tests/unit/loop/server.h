/* Starts a fake server and learns its port, for the tests of loop/http. */
#pragma once

#include "probe.h"

struct server {
    pid_t pid;
    int port;
    char url[128]; /* "http://127.0.0.1:PORT" */
};

static inline struct server server_start(const char *scheme, const char *host,
                                         const char *const *argv)
{
    struct server server = {0};
    int pipe_fds[2];
    setenv("no_proxy", "*", 1); /* the fakes are on this machine, whatever the user's proxy is */
    assert_int_equal(pipe(pipe_fds), 0);
    fflush(NULL);
    server.pid = fork();
    assert_true(server.pid >= 0);
    if (server.pid == 0) {
        dup2(pipe_fds[1], 1);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(pipe_fds[1]);
    char line[64] = "";
    size_t length = 0;
    while (length < sizeof line - 1 && strchr(line, '\n') == NULL) {
        ssize_t got = read(pipe_fds[0], line + length, sizeof line - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
        line[length] = '\0';
    }
    close(pipe_fds[0]);
    assert_int_equal(sscanf(line, "port %d", &server.port), 1);
    snprintf(server.url, sizeof server.url, "%s://%s:%d", scheme, host, server.port);
    return server;
}

static inline void server_stop(struct server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
}

/* A fake_provider; the arguments follow its name. */
#define PROVIDER(...)                                                                              \
    server_start(                                                                                  \
        "http", "127.0.0.1",                                                                       \
        (const char *const[]){TEST_BINARY_DIR "/tests/fakes/fake_provider", __VA_ARGS__, NULL})
