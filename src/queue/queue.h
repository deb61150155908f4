/* queue/queue: sources that others ask to have evaluated, on lanes here or elsewhere. What was
 * accepted lies in a store until its result does: a process that is killed goes on with it.
 * Fair between clients: who has had the least of the lanes' time is next. Loop thread only, but for
 * what says otherwise. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/list.h"
#include "eval/lane/lane.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct queue; /* opaque */

enum {
    QUEUE_AT_ONCE = 256,          /* sources of one request */
    QUEUE_OF_CLIENT = 256,        /* most that wait, of one client */
    QUEUE_WAITING = 8192,         /* and of all */
    QUEUE_BYTES = 256 << 20,      /* of the sources that wait */
    QUEUE_KEPT = 10000,           /* results; then the oldest goes */
    QUEUE_PLACES = 2 * LANES_MAX, /* lanes that measure at once, of all backends */
    QUEUE_CLIENT_NAME = 64
};

struct queue_item {
    const char *problem; /* as problem_load() takes it */
    const char *backend; /* its name */
    const char *name;    /* the source's file name */
    const char *source;
    size_t length;
    const char *tune; /* a JSON object of numbers, or NULL */
    const char *effort;
    bool profile;
};

struct queue_asked { /* one request, its owner's until it was answered */
    struct link link;
    struct arena *arena;
    /* by parse() */
    const char *client;
    struct queue_item *items;
    size_t count;
    struct err err; /* why there is nothing to accept */
    /* the answer */
    enum queue_outcome {
        QUEUE_ACCEPTED, /* and on the disk */
        QUEUE_REFUSED,  /* err */
        QUEUE_FULL,     /* err, and when to come again */
        QUEUE_BROKEN    /* err: not the client's fault */
    } outcome;
    uint64_t first; /* the items are first, first + 1, ... */
    unsigned retry_s;
};

struct queue_options { /* borrowed for the queue's life */
    void *context;
    const char *folder;
    struct lane_spec spec; /* what all lanes have in common */
    /* What each of a backend's lanes has; how many there are. Loop thread. */
    size_t (*shares)(void *context, const char *backend, struct lane_share shares[LANES_MAX]);
    /* Pool thread: fills in what was asked; -1 with asked->err. */
    int (*parse)(void *context, struct queue_asked *asked);
    void (*answered)(void *context, struct queue_asked *asked);
    void (*changed)(void *context); /* a result was kept, or something is measured */
};

/* Blocks: reads what was accepted earlier. ERR_BUSY where another process has the folder. */
int queue_open(struct loop *loop, const struct queue_options *options, struct queue **queue,
               struct err *err) MUST_USE;
void queue_ask(struct queue *queue, struct queue_asked *asked); /* asked->arena is set */
void queue_stop(struct queue *queue); /* within seconds; what was not measured waits in the store */
void queue_free(struct queue *queue); /* after loop_run(); NULL is fine */

/* Any thread. */
uint64_t queue_version(struct queue *queue); /* another one where something may have changed */
/* One item: its state, and its result where it has one. ERR_NOT_FOUND. */
int queue_put_item(struct queue *queue, uint64_t id, struct buf *out, struct err *err) MUST_USE;
/* The item in a line, where its state is another than `note` says (one that it wrote; '\0': none).
 */
int queue_put_news(struct queue *queue, uint64_t id, char *note, struct buf *out,
                   struct err *err) MUST_USE;
enum { QUEUE_TOLD_DONE = 'd' }; /* in `note`: nothing more comes of it */
void queue_put_facts(struct queue *queue, struct buf *out); /* what waits, how busy lanes are */
