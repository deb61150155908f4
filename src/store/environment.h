/* store/environment: an LMDB environment, opened at most once a process for a folder, since LMDB's
 * own locks do not survive a second one. Only files of src/store include this. Any thread.
 *
 * A transaction holds `swap` for reading. After a failed write of a meta page LMDB refuses all
 * further work (MDB_PANIC); the environment is then closed and opened again under `swap`. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "store/store.h"

#include <lmdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* LMDB's handles are small numbers. */
#define NO_TABLE ((MDB_dbi)-1)

struct environment {
    struct link link; /* in the process's list of open ones */
    dev_t device;     /* of the folder, with inode */
    ino_t inode;
    pid_t process; /* that opened it: one that forked off must not use it */
    char *folder;  /* absolute */
    size_t map_bytes;
    bool read_only, made; /* made: by this process, which found no data file */
    int references;
    int owner_fd; /* -1: nobody here owns the store */
    pthread_rwlock_t swap;
    MDB_env *lmdb;                      /* NULL: closed after a failure, to be opened again */
    MDB_dbi tables[STORE_TABLES], self; /* NO_TABLE: not there yet, and empty for a reader */
};

int environment_acquire(const char *folder, bool create, bool read_only, size_t map_bytes,
                        struct environment **environment, struct err *err) MUST_USE;
void environment_release(struct environment *environment, bool owner);
/* Of an owner: the files of the store go, before anybody else can own it. What else lies in its
 * folder stays, and then the folder does. */
void environment_remove(struct environment *environment);

/* Between enter and leave `lmdb` is there and stays. Reads may nest in a thread, writes may not. */
int environment_enter(struct environment *environment, struct err *err) MUST_USE;
void environment_leave(struct environment *environment);

/* Enter and a read transaction in one; environment_read_end() ends both. */
int environment_read(struct environment *environment, MDB_txn **txn, struct err *err) MUST_USE;
void environment_read_end(struct environment *environment, MDB_txn *txn);

/* To be called outside of enter and leave after LMDB's error `code`: opens again where needed. */
void environment_heal(struct environment *environment, int code);

/* Says what LMDB's (or errno's) `code` means for the user, and what to do. Returns -1. */
int environment_error(const struct environment *environment, int code, struct err *err);
int environment_error_at(const char *folder, int code, struct err *err);

/* A commit that failed and what damage is said to be, with what to do. Return -1. */
int environment_damaged(const char *folder, const char *what, struct err *err);
