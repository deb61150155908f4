/* store/writer: the store's one writer on the loop: batches go to the pool in order, one commit at
 * a time; what queues up meanwhile is committed together. Loop thread only. */
#pragma once

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>

struct loop;
struct task;
struct store;
struct store_batch;
struct store_writer; /* opaque */

struct store_writer *store_writer_new(struct loop *loop, struct store *store);
void store_writer_free(struct store_writer *writer); /* asserts that nothing is queued */

/* One write; zero-initialize; memory stays put until done. After success `batch` is NULL. After a
 * failure it is the owner's again: store_write_take(writer, write, owner, write->batch) tries
 * again (ERR_FULL: when there is room), store_batch_free() gives up. */
struct store_write {
    bool active, done;
    struct err err; /* ERR_NONE after success */
    struct task *owner;
    struct store_batch *batch;
    struct link link;
};

/* Takes the batch; wakes the owner when it is on disk, or when it could not be put there. A disk or
 * a map that is full is no failure: the writes stay in the queue, in their order, and are tried
 * again every few seconds until there is room, so that nothing is lost. */
void store_write_take(struct store_writer *writer, struct store_write *write, struct task *owner,
                      struct store_batch *batch);

/* Why commits wait ("the disk is full: ..."), or NULL; for whoever says that the run pauses. */
const char *store_writer_waits(const struct store_writer *writer);

/* Gives up on what waits for room: those writes end with the error. For a program that must end. */
void store_writer_give_up(struct store_writer *writer);
