/* loop/work: a blocking call on libuv's thread pool (store commits, file reads, checks).
 * Start and read on the loop thread; `run` itself runs on a pool thread and may touch only what it
 * was given. */
#pragma once

#include <stdbool.h>

struct loop;
struct task;

struct work {          /* zero-initialize; memory stays put until done */
    bool active, done; /* read by the owner */
    struct task *owner;
    void (*run)(void *argument);
    void *argument;
    void *handle;
};

/* Wakes `owner` when run(argument) has returned. Cannot be cancelled once it runs. */
void work_start(struct loop *loop, struct work *work, struct task *owner,
                void (*run)(void *argument), void *argument);
