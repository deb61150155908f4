#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/internal.h"
#include "store/record.h"
#include "store/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TABLES_MAX = 24,
    READERS_MAX = 254,
    LOCK_FILE_BYTES = 16384, /* LMDB's for READERS_MAX: (254 - 1) * 64 + 192 */
    CHECKS_MAX = 2000        /* tries to catch a snapshot while another process commits */
};

/* LMDB aborts after this, whatever it does: the least is to say what happened and what to do. */
static void on_assert(MDB_env *lmdb, const char *message)
{
    const char *folder = "";
    (void)mdb_env_get_path(lmdb, &folder);
    struct err err;
    (void)environment_damaged(folder, message, &err);
    log_event(LOG_ERROR, "store.damaged", "", "%s", err.message);
}

/* LMDB's lock file is written through a map: on a full disk, a page of it that has no room yet
 * would end the process by SIGBUS. Before LMDB has opened it, since closing a descriptor of it
 * drops this process's locks on it. */
static int reserve_lock_file(const struct environment *environment, struct err *err)
{
    MEM_LOCAL char *path = file_join(environment->folder, "lock.mdb");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        if (environment->read_only)
            return 0; /* LMDB does without on a read-only file system, and says what else is wrong
                       */
        return environment_error(environment, errno, err);
    }
    int result = fallocate(fd, 0, 0, LOCK_FILE_BYTES);
    int saved = errno;
    close(fd);
    if (result != 0 && (saved == ENOSPC || saved == EDQUOT || saved == EIO || saved == EFBIG))
        return environment_error(environment, saved, err);
    return 0; /* file systems that cannot reserve are left to themselves */
}

static int close_on_exec(MDB_env *lmdb, struct err *err)
{
    int fd = -1;
    if (mdb_env_get_fd(lmdb, &fd) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(fd, F_GETFD) != FD_CLOEXEC)
        return err_set_errno(err, ERR_ENVIRONMENT, errno,
                             "cannot keep the store's data file from child processes");
    return 0;
}

static int start(struct environment *environment, struct err *err)
{
    MDB_env *lmdb = NULL;
    unsigned flags = MDB_NOTLS | (environment->read_only ? MDB_RDONLY : 0u);
    int code = mdb_env_create(&lmdb);
    if (code == 0)
        code = mdb_env_set_mapsize(lmdb, environment->map_bytes);
    if (code == 0)
        code = mdb_env_set_maxdbs(lmdb, TABLES_MAX);
    if (code == 0)
        code = mdb_env_set_maxreaders(lmdb, READERS_MAX);
    if (code == 0)
        code = mdb_env_set_assert(lmdb, on_assert);
    if (code == 0)
        code = mdb_env_open(lmdb, environment->folder, flags, 0600);
    if (code == 0 && close_on_exec(lmdb, err) != 0) {
        mdb_env_close(lmdb);
        return -1;
    }
    int cleared;
    if (code == 0)
        code = mdb_reader_check(lmdb, &cleared);
    if (code != 0) {
        mdb_env_close(lmdb); /* NULL is fine */
        return environment_error(environment, code, err);
    }
    environment->lmdb = lmdb;
    return 0;
}

static int read_schema(MDB_txn *txn, MDB_dbi self, unsigned *schema)
{
    struct store_key key;
    struct err unused;
    if (store_key_encode("schema", &key, &unused) != 0)
        return MDB_BAD_VALSIZE;
    MDB_val name = {key.length, key.bytes}, record;
    int code = mdb_get(txn, self, &name, &record);
    if (code != 0)
        return code;
    unsigned header;
    const char *text;
    size_t length;
    if (record.mv_size <= STORE_RECORD_HEADER ||
        !store_record_head(record.mv_data, record.mv_size, STORE_TABLE_SELF, key.bytes, key.length,
                           &header) ||
        !store_record_read(record.mv_data, record.mv_size, STORE_TABLE_SELF, key.bytes, key.length,
                           &text, &length))
        return MDB_CORRUPTED;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || number > UINT16_MAX || number != header)
        return MDB_CORRUPTED;
    *schema = (unsigned)number;
    return 0;
}

static int check_schema(const char *folder, MDB_txn *txn, struct err *err)
{
    MDB_dbi self;
    unsigned schema = 0;
    int code = mdb_dbi_open(txn, STORE_SELF_NAME, 0, &self);
    if (code == 0)
        code = read_schema(txn, self, &schema);
    if (code == MDB_NOTFOUND || code == MDB_CORRUPTED || code == MDB_INCOMPATIBLE)
        return environment_damaged(folder, "it has no readable schema record", err);
    if (code != 0)
        return environment_error_at(folder, code, err);
    if (schema > STORE_SCHEMA)
        return err_set(err, ERR_UNSUPPORTED,
                       "the store %s has schema %u, this twagent knows schema %d: a newer twagent "
                       "wrote it. Use that one, or name another folder by $TWAGENT_STORE",
                       folder, schema, STORE_SCHEMA);
    if (schema < STORE_SCHEMA)
        return err_set(err, ERR_UNSUPPORTED,
                       "the store %s has schema %u, this twagent reads schema %d only: use the "
                       "twagent that wrote it, or move the folder away and start anew",
                       folder, schema, STORE_SCHEMA);
    return 0;
}

/* Looks at an open data file whole, and fills the error in as store_open() gives it. `txn` as for
 * structure_check(); *moved is set where that says so, and then the result is -1. */
static int store_check_file(int fd, const char *folder, MDB_txn *txn, bool *moved, struct err *err)
{
    struct structure structure;
    struct err found = {ERR_NONE, ""};
    *moved = false;
    switch (structure_check(fd, mdb_txn_id(txn), &structure, &found)) {
    case STRUCTURE_WHOLE:
        break;
    case STRUCTURE_MOVED:
        *moved = true;
        return err_set(err, ERR_BUSY, "the store %s is written to all the time", folder);
    case STRUCTURE_DAMAGED:
        if (found.code == ERR_CORRUPT)
            return environment_damaged(folder, found.message, err);
        return err_set(err, found.code, "the store %s: %.200s", folder, found.message);
    }
    if (check_schema(folder, txn, err) != 0)
        return -1;
    if (structure.damaged[0] != '\0')
        return environment_damaged(folder, structure.damaged, err);
    if (structure.unfinished)
        log_event(LOG_WARN, "store.unfinished", "",
                  "the store %s was left by a failed write: its very last commit may be missing",
                  folder);
    return 0;
}

/* Tables came to the schema one after the other: an older store may lack the newest. Its owner
 * makes them; to a reader they are empty. */
static int open_tables(struct environment *environment, MDB_txn *txn, bool make, struct err *err)
{
    int code = mdb_dbi_open(txn, STORE_SELF_NAME, 0, &environment->self);
    for (int i = 0; i < STORE_TABLES && code == 0; i++) {
        const char *name = store_table_name((enum store_table)i);
        code = mdb_dbi_open(txn, name, make ? MDB_CREATE : 0, &environment->tables[i]);
        if (code == MDB_NOTFOUND && i > STORE_TABLES_FIRST) {
            environment->tables[i] = NO_TABLE;
            code = 0;
        }
    }
    if (code == MDB_NOTFOUND || code == MDB_INCOMPATIBLE)
        return environment_damaged(environment->folder, "a table is missing", err);
    if (code != 0)
        return environment_error(environment, code, err);
    return 0;
}

/* After the look over: an owner's store gets the tables that it lacks, in one commit. */
static int complete_tables(struct environment *environment, struct err *err)
{
    bool complete = true;
    for (int i = 0; i < STORE_TABLES; i++)
        complete = complete && environment->tables[i] != NO_TABLE;
    if (complete || environment->read_only)
        return 0;
    MDB_txn *txn;
    int code = mdb_txn_begin(environment->lmdb, NULL, 0, &txn);
    if (code != 0)
        return environment_error(environment, code, err);
    if (open_tables(environment, txn, true, err) != 0) {
        mdb_txn_abort(txn);
        return -1;
    }
    code = mdb_txn_commit(txn);
    return code == 0 ? 0 : environment_error(environment, code, err);
}

/* One try on one snapshot; the tables' handles outlive it only where it is committed. */
static int look_over(struct environment *environment, bool *moved, struct err *err)
{
    MDB_txn *txn;
    int fd;
    *moved = false;
    int code = mdb_env_get_fd(environment->lmdb, &fd);
    if (code == 0)
        code = mdb_txn_begin(environment->lmdb, NULL, MDB_RDONLY, &txn);
    if (code != 0)
        return environment_error(environment, code, err);
    if (store_check_file(fd, environment->folder, txn, moved, err) != 0 ||
        open_tables(environment, txn, false, err) != 0) {
        mdb_txn_abort(txn);
        return -1;
    }
    code = mdb_txn_commit(txn);
    return code == 0 ? 0 : environment_error(environment, code, err);
}

/* A writer that was killed has left LMDB's lock held, and perhaps a commit that readers are not
 * told of yet; whoever takes the lock next puts both right. An owner does before it looks. */
static int take_over(const struct environment *environment, struct err *err)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(environment->lmdb, NULL, 0, &txn);
    if (code != 0)
        return environment_error(environment, code, err);
    mdb_txn_abort(txn);
    return 0;
}

static int check_metas(const struct environment *environment, struct err *err)
{
    MEM_LOCAL char *path = file_join(environment->folder, STORE_FILE);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    if (fd < 0)
        return environment_error(environment, saved, err);
    struct err found = {ERR_NONE, ""};
    enum structure_result result = structure_check_metas(fd, &found);
    close(fd);
    if (result == STRUCTURE_WHOLE)
        return 0;
    if (found.code == ERR_CORRUPT)
        return environment_damaged(environment->folder, found.message, err);
    return err_set(err, found.code, "the store %s: %.200s", environment->folder, found.message);
}

int environment_open(struct environment *environment, struct err *err)
{
    if (check_metas(environment, err) != 0 || reserve_lock_file(environment, err) != 0 ||
        start(environment, err) != 0)
        return -1;
    int result = environment->read_only ? 0 : take_over(environment, err);
    bool again = result == 0;
    for (int tries = 0; again && tries < CHECKS_MAX; tries++) {
        result = look_over(environment, &again, err);
        /* What a reader saw may have been half written: damage is still there at a second look. */
        again = again || (result != 0 && environment->read_only && tries == 0);
        if (again)
            usleep(200);
    }
    if (result == 0 && complete_tables(environment, err) == 0)
        return 0;
    mdb_env_close(environment->lmdb);
    environment->lmdb = NULL;
    return -1;
}
