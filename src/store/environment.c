#include "store/environment.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- who owns the store: a lock on `owner.lock` in its folder, with the owner's process number
 * inside. The kernel drops it when the process ends, however it ends, so that none is ever stale.
 * At most once a folder and process at a time. ---- */

/* A lock of the process, not of the open file: a child that was forked but has not run exec() yet
 * would keep the other kind when its parent is killed. The price is that this process loses the
 * lock when it closes any descriptor of the file, which is opened once at most. */
static int lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int result;
    do
        result = fcntl(fd, F_SETLK, &whole);
    while (result != 0 && errno == EINTR);
    return result;
}

static int busy(int fd, const char *folder, struct err *err)
{
    struct flock holder = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
        return err_set(
            err, ERR_BUSY,
            "process %ld has the store %s open: stop it, wait for its end, or give this one "
            "a store of its own (--store FOLDER, or $TWAGENT_STORE)",
            (long)holder.l_pid, folder);
    return err_set(err, ERR_BUSY, "another process has the store %s open", folder);
}

static int take(int fd, const char *folder, struct err *err)
{
    if (lock(fd) != 0) {
        if (errno == EAGAIN || errno == EACCES)
            return busy(fd, folder, err);
        return err_set_errno(err, ERR_ENVIRONMENT, errno,
                             "cannot lock the store %s: its file system must know locks", folder);
    }
    /* For people who look; the kernel tells us. So a full disk does not keep the owner out. */
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length)
        (void)!ftruncate(fd, 0);
    return 0;
}

/* Sets *result, closed on exec. ERR_BUSY names the process that has it. A lock on a file that its
 * owner has removed in between would keep nobody out. */
static int owner_take(const char *folder, int *result, struct err *err)
{
    MEM_LOCAL char *path = file_join(folder, "owner.lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        int saved = errno;
        (void)err_set_errno(err, saved == ENOSPC || saved == EDQUOT ? ERR_FULL : ERR_ENVIRONMENT,
                            saved, "cannot open %s", path);
        return -1;
    }
    struct stat status;
    int taken = take(fd, folder, err);
    if (taken == 0 && fstat(fd, &status) == 0 && status.st_nlink == 0)
        taken = err_set(err, ERR_BUSY, "another process is removing the store %s", folder);
    if (taken != 0) {
        close(fd);
        return -1;
    }
    *result = fd;
    return 0;
}

static void owner_release(int fd)
{
    (void)!ftruncate(fd, 0);
    close(fd);
}

enum { HEAL_TRIES = 50 }; /* a millisecond apart */

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list registry;

static struct environment *find(const struct stat *folder)
{
    if (registry.head.next == NULL)
        list_init(&registry);
    list_each (link, &registry) {
        struct environment *environment = container_of(link, struct environment, link);
        if (environment->device == folder->st_dev && environment->inode == folder->st_ino &&
            environment->process == getpid())
            return environment;
    }
    return NULL;
}

static void destroy(struct environment *environment)
{
    list_remove(&environment->link);
    if (environment->lmdb != NULL)
        mdb_env_close(environment->lmdb);
    if (environment->owner_fd >= 0)
        owner_release(environment->owner_fd);
    pthread_rwlock_destroy(&environment->swap);
    mem_free(environment->folder);
    mem_free(environment);
}

static int not_there(const char *folder, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND,
                   "there is no store at %s yet: `twagent run` makes one, and $TWAGENT_STORE names "
                   "another folder",
                   folder);
}

/* The data file is there, or *err says why not. An owner makes it where it may. */
static int find_data(const char *folder, bool create, size_t map_bytes, bool *made, struct err *err)
{
    MEM_LOCAL char *path = file_join(folder, STORE_FILE);
    struct stat status;
    int result = stat(path, &status);
    int saved = errno;
    if (result == 0)
        return 0;
    if (saved != ENOENT)
        return err_set_errno(err, ERR_ENVIRONMENT, saved, "cannot look into the store %s", folder);
    if (store_mark_there(folder))
        return environment_damaged(folder, "its data file is gone", err);
    if (!create)
        return not_there(folder, err);
    if (store_create_files(folder, map_bytes, err) != 0)
        return -1;
    *made = true;
    return 0;
}

static int open_owned(struct environment *environment, bool create, struct err *err)
{
    if (owner_take(environment->folder, &environment->owner_fd, err) != 0 ||
        find_data(environment->folder, create, environment->map_bytes, &environment->made, err) !=
            0)
        return -1;
    if (!store_mark_there(environment->folder) && store_mark(environment->folder, err) != 0)
        return -1;
    return environment_open(environment, err);
}

static int open_new(const char *folder, const struct stat *status, bool create, bool read_only,
                    size_t map_bytes, struct environment **result, struct err *err)
{
    char *absolute = realpath(folder, NULL);
    if (absolute == NULL)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot find the store %s", folder);
    struct environment *environment = MEM_NEW(struct environment);
    *environment = (struct environment){.device = status->st_dev,
                                        .inode = status->st_ino,
                                        .process = getpid(),
                                        .folder = mem_strdup(absolute),
                                        .map_bytes = map_bytes,
                                        .read_only = read_only,
                                        .references = 1,
                                        .owner_fd = -1};
    free(absolute);
    pthread_rwlock_init(&environment->swap, NULL);
    list_append(&registry, &environment->link);
    int opened = -1;
    if (!read_only)
        opened = open_owned(environment, create, err);
    else if (find_data(environment->folder, false, map_bytes, &environment->made, err) == 0)
        opened = environment_open(environment, err);
    if (opened != 0) {
        destroy(environment);
        return -1;
    }
    *result = environment;
    return 0;
}

/* A second use in this process: readers share what is open, an owner must be the first one. */
static int share(struct environment *environment, bool read_only, struct err *err)
{
    if (!read_only && (environment->owner_fd >= 0 || environment->read_only))
        return err_set(err, ERR_BUSY, "process %ld (this one) has the store %s open already",
                       (long)getpid(), environment->folder);
    if (!read_only && owner_take(environment->folder, &environment->owner_fd, err) != 0)
        return -1;
    environment->references++;
    return 0;
}

static int acquire(const char *folder, bool create, bool read_only, size_t map_bytes,
                   struct environment **result, struct err *err)
{
    struct stat status;
    if (stat(folder, &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return not_there(folder, err);
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot look into the store %s", folder);
    }
    if (!S_ISDIR(status.st_mode))
        return err_set(err, ERR_USAGE, "the store %s is not a folder", folder);
    struct environment *environment = find(&status);
    if (environment == NULL)
        return open_new(folder, &status, create, read_only, map_bytes, result, err);
    *result = environment;
    return share(environment, read_only, err);
}

int environment_acquire(const char *folder, bool create, bool read_only, size_t map_bytes,
                        struct environment **environment, struct err *err)
{
    if (create && !read_only && file_make_dirs(folder, err) != 0)
        return err_wrap(err, "cannot make the store");
    pthread_mutex_lock(&registry_lock);
    int result = acquire(folder, create, read_only, map_bytes, environment, err);
    pthread_mutex_unlock(&registry_lock);
    return result;
}

void environment_release(struct environment *environment, bool owner)
{
    pthread_mutex_lock(&registry_lock);
    assert(environment->references > 0);
    if (--environment->references == 0) {
        destroy(environment);
    } else if (owner) {
        owner_release(environment->owner_fd);
        environment->owner_fd = -1;
    }
    pthread_mutex_unlock(&registry_lock);
}

/* The lock's file is the last: who finds it owned is told so, who finds none makes a store. */
void environment_remove(struct environment *environment)
{
    static const char *const files[] = {STORE_FILE, "lock.mdb", STORE_MARK, "owner.lock"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        MEM_LOCAL char *path = file_join(environment->folder, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(environment->folder);
}

/* Replaces the LMDB environment, unless somebody reads at this moment: then the next call does. */
static void reopen(struct environment *environment)
{
    if (pthread_rwlock_trywrlock(&environment->swap) != 0)
        return;
    if (environment->lmdb != NULL)
        mdb_env_close(environment->lmdb);
    environment->lmdb = NULL;
    struct err err;
    if (environment_open(environment, &err) != 0)
        log_event(LOG_ERROR, "store.reopen", "", "%s", err.message);
    else
        log_event(LOG_WARN, "store.reopen", "", "opened the store again after a failed write");
    pthread_rwlock_unlock(&environment->swap);
}

static int probe(struct environment *environment)
{
    pthread_rwlock_rdlock(&environment->swap);
    MDB_txn *txn = NULL;
    int code = environment->lmdb == NULL ? MDB_PANIC
                                         : mdb_txn_begin(environment->lmdb, NULL, MDB_RDONLY, &txn);
    if (code == 0)
        mdb_txn_abort(txn);
    pthread_rwlock_unlock(&environment->swap);
    return code;
}

void environment_heal(struct environment *environment, int code)
{
    if (code == MDB_PANIC || probe(environment) == MDB_PANIC)
        reopen(environment);
}

/* While it is closed, or waits to be opened again, every use of it is short: it is soon free. It is
 * not where this thread itself is inside of it, so that there is an end to the tries. */
static bool heal_and_wait(struct environment *environment, int tries)
{
    environment_heal(environment, 0);
    if (tries > 0)
        usleep(1000);
    return tries < HEAL_TRIES;
}

int environment_enter(struct environment *environment, struct err *err)
{
    assert(environment->process == getpid());
    for (int tries = 0;; tries++) {
        pthread_rwlock_rdlock(&environment->swap);
        if (environment->lmdb != NULL)
            return 0;
        pthread_rwlock_unlock(&environment->swap);
        if (!heal_and_wait(environment, tries))
            return environment_error(environment, MDB_PANIC, err);
    }
}

void environment_leave(struct environment *environment)
{
    pthread_rwlock_unlock(&environment->swap);
}

int environment_read(struct environment *environment, MDB_txn **txn, struct err *err)
{
    for (int tries = 0;; tries++) {
        if (environment_enter(environment, err) != 0)
            return -1;
        int code = mdb_txn_begin(environment->lmdb, NULL, MDB_RDONLY, txn);
        if (code == MDB_READERS_FULL && mdb_reader_check(environment->lmdb, NULL) == 0)
            code = mdb_txn_begin(environment->lmdb, NULL, MDB_RDONLY, txn);
        if (code == 0)
            return 0;
        environment_leave(environment);
        if (code != MDB_PANIC || !heal_and_wait(environment, tries))
            return environment_error(environment, code, err);
    }
}

void environment_read_end(struct environment *environment, MDB_txn *txn)
{
    mdb_txn_abort(txn);
    environment_leave(environment);
}
