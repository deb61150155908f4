/* loop/readable: a descriptor that somebody else's library reads, watched for it: one that has an
 * event loop of its own, as libmicrohttpd. Loop thread only. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct loop;
struct task;

struct readable {        /* zero-initialize; memory stays put until stopped */
    bool waiting, ready; /* read by the owner */
    struct task *owner;
    void *handle;
};

/* Wakes `owner` once, when the descriptor can be read; start it again after each wake. The
 * descriptor is borrowed until readable_stop(). */
int readable_start(struct loop *loop, struct readable *readable, struct task *owner, int fd,
                   struct err *err) MUST_USE;
void readable_stop(struct readable *readable); /* no wake comes after; harmless when not started */
