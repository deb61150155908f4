/* A child process of the tests: its stdout by lines, its end by KILL. */
#pragma once

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer {
    pid_t pid;
    int input;    /* closing it tells a peer that waits to end */
    FILE *output; /* NULL after peer_end() */
    char line[8192];
};

static inline void peer_start(struct peer *peer, const char *what, const char *folder)
{
    int input[2], output[2];
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    peer->pid = fork();
    assert_true(peer->pid >= 0);
    if (peer->pid == 0) {
        dup2(input[0], 0);
        dup2(output[1], 1);
        execl(STORE_CHILD, STORE_CHILD, what, folder, (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    peer->input = input[1];
    peer->output = fdopen(output[0], "r");
    assert_non_null(peer->output);
}

/* False at the end of its output. A line that was cut by KILL is no acknowledgement. */
static inline bool peer_line(struct peer *peer)
{
    if (fgets(peer->line, sizeof peer->line, peer->output) == NULL)
        return false;
    size_t length = strlen(peer->line);
    if (peer->line[length - 1] != '\n')
        return false;
    peer->line[length - 1] = '\0';
    return true;
}

static inline void peer_expect(struct peer *peer, const char *start)
{
    if (!peer_line(peer) || strncmp(peer->line, start, strlen(start)) != 0)
        fail_msg("%s expected, got %s", start, peer->line);
}

/* Its wait status. Ends it first where `signal_number` is not 0. */
static inline int peer_end(struct peer *peer, int signal_number)
{
    int status;
    if (signal_number != 0) /* before the end of its input, which ends it in good order */
        kill(peer->pid, signal_number);
    close(peer->input);
    if (peer->output != NULL)
        fclose(peer->output);
    peer->output = NULL;
    while (waitpid(peer->pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}
