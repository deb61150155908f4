/* Servers for the fault table, and what they counted. */
#include "faults.h"

#include "base/arena.h"
#include "base/value.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(3);
}

struct server server_start(const char *const *argv)
{
    struct server server = {0};
    int fds[2];
    if (pipe(fds) != 0)
        die("pipe");
    fflush(NULL);
    server.pid = fork();
    if (server.pid == 0) {
        dup2(fds[1], 1);
        close(fds[0]);
        close(fds[1]);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(fds[1]);
    FILE *out = fdopen(fds[0], "r");
    if (server.pid < 0 || out == NULL || fscanf(out, "port %d", &server.port) != 1)
        die(argv[0]);
    fclose(out);
    return server;
}

struct server provider_start(const char *const *script, long size)
{
    char bytes[32];
    const char *argv[2 * SCRIPT_MOST + 8] = {TEST_BINARY_DIR "/tests/fakes/fake_provider", "--size",
                                             bytes, "--key", KEY};
    size_t count = 5;
    snprintf(bytes, sizeof bytes, "%ld", size);
    for (size_t i = 0; script != NULL && i < SCRIPT_MOST && script[i] != NULL; i++) {
        argv[count++] = "--fault";
        argv[count++] = script[i];
    }
    return server_start(argv);
}

void server_stop(const struct server *server, int signal_number)
{
    kill(server->pid, signal_number);
    waitpid(server->pid, NULL, 0);
}

/* One GET, blocking: the test has nothing else to do. */
static void get(int port, const char *path, struct buf *body)
{
    char text[4096];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    int length = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    if (write(fd, text, (size_t)length) != length)
        die("write");
    shutdown(fd, SHUT_WR);
    for (ssize_t got; (got = read(fd, text, sizeof text)) > 0;)
        buf_add(body, text, (size_t)got);
    close(fd);
}

struct counts counts_get(int port)
{
    struct counts counts = {0};
    struct buf body;
    struct err err;
    struct value *root = NULL;
    struct arena *arena = arena_new();
    buf_init(&body, 1 << 20);
    get(port, "/_counts", &body);
    const char *json = strstr(buf_text(&body), "\r\n\r\n");
    if (json == NULL || value_parse_json(arena, "counts", json + 4, strlen(json + 4), &root, &err))
        die("/_counts");
    counts.chats = value_int(root, "chat", -1);
    counts.models = value_int(root, "models", -1);
    counts.keys = value_int(root, "keys", -1);
    counts.answered = value_int(root, "answered", -1);
    counts.connections = value_int(root, "connections", -1);
    counts.requests = value_int(root, "requests", -1);
    buf_free(&body);
    arena_free(arena);
    return counts;
}
