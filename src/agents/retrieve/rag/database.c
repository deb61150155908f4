#include "agents/retrieve/rag/database.h"

#include "agents/retrieve/rag/builder.h"
#include "base/file.h"
#include "base/mem.h"
#include "store/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAP_BYTES ((size_t)64 << 30) /* address space only */

enum { LAYOUT_VERSION = 1, READERS_MOST = 1022, MOVES_MOST = 100 };

static const struct {
    const char *name;
} tables[TABLES] = {{"meta"}, {"roots"}, {"documents"}, {"contents"}, {"passages"},
                    {"ids"},  {"terms"}, {"uses"},      {"vectors"}};

uint64_t database_version(void)
{
    return (uint64_t)LAYOUT_VERSION << 24 | (uint64_t)WORDS_VERSION << 16 |
           (uint64_t)CHUNK_VERSION << 8 | (uint64_t)BUILDER_VERSION;
}

int database_error(const struct rag *rag, int code, struct err *err)
{
    const char *folder = rag->folder;
    switch (code) {
    case MDB_NOTFOUND:
        return err_set(err, ERR_NOT_FOUND, "not in the index of documents");
    case MDB_MAP_FULL:
        return err_set(err, ERR_FULL, "the index %s has reached its %zu GiB", folder,
                       MAP_BYTES >> 30);
    case ENOSPC:
    case EDQUOT:
        return err_set(err, ERR_FULL, "the disk of %s is full; the index is as it was", folder);
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_PANIC:
        return err_set(err, ERR_CORRUPT,
                       "the index %s is damaged (%s); `twagent docs update` makes it again", folder,
                       mdb_strerror(code));
    default:
        return err_set(err, code > 0 ? ERR_ENVIRONMENT : ERR_IO, "the index %s: %s", folder,
                       mdb_strerror(code));
    }
}

static int damaged(const struct rag *rag, const struct err *why, struct err *err)
{
    struct err found = *why; /* `why` may be `err` */
    if (found.code != ERR_CORRUPT)
        return err_set(err, found.code, "the index %s: %.200s", rag->folder, found.message);
    return err_set(err, ERR_CORRUPT,
                   "the index %s is damaged (%.120s); `twagent docs update` makes it again",
                   rag->folder, found.message);
}

/* LMDB maps what it finds: the two pages that everything hangs on are looked at first. */
static int look_at_file(struct rag *rag, struct err *err)
{
    MEM_LOCAL char *path = file_join(rag->folder, "data.mdb");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* a new one */
    off_t size = lseek(fd, 0, SEEK_END);
    int result = 0;
    if (size > 0 && structure_check_metas(fd, err) != STRUCTURE_WHOLE)
        result = damaged(rag, err, err);
    close(fd);
    return result;
}

/* Every page that the snapshot can reach. */
static int look_at_pages(struct rag *rag, MDB_txn *txn, bool *moved, struct err *err)
{
    struct structure structure;
    struct err found = {ERR_NONE, ""};
    enum structure_result result = structure_check(rag->data, mdb_txn_id(txn), &structure, &found);
    *moved = result == STRUCTURE_MOVED;
    if (*moved)
        return err_set(err, ERR_BUSY, "the index %s is written to all the time", rag->folder);
    return result == STRUCTURE_WHOLE ? 0 : damaged(rag, &found, err);
}

/* A snapshot, once its pages are known to be whole. */
static int first_snapshot(struct rag *rag, MDB_txn **txn, struct err *err)
{
    bool moved = true;
    for (int tries = 0; tries < MOVES_MOST && moved; tries++) {
        int code = mdb_txn_begin(rag->env, NULL, MDB_RDONLY, txn);
        if (code != 0)
            return database_error(rag, code, err);
        if (look_at_pages(rag, *txn, &moved, err) == 0)
            return 0;
        mdb_txn_abort(*txn);
    }
    return -1;
}

/* A mapped file that is cut ends the process when a page past its end is read. */
static int look_at_size(struct rag *rag, struct err *err)
{
    struct stat status;
    long long known = rag->size; /* before: other threads may see it grow meanwhile */
    if (fstat(rag->data, &status) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot look at the index %s", rag->folder);
    if (status.st_size < known)
        return err_set(err, ERR_CORRUPT,
                       "the index %s was cut short; `twagent docs update` makes it again",
                       rag->folder);
    rag->size = status.st_size;
    return 0;
}

static int open_tables(struct rag *rag, MDB_txn *txn, unsigned flags)
{
    int code = 0;
    for (int i = 0; i < TABLES && code == 0; i++)
        code = mdb_dbi_open(txn, tables[i].name, flags, &rag->tables[i]);
    return code;
}

static int check_version(struct rag *rag, MDB_txn *txn, bool writing, struct err *err)
{
    uint64_t version;
    if (database_number(rag, txn, "version", &version, err) != 0)
        return -1;
    if (writing && version == 0)
        return database_set_number(rag, txn, "version", database_version(), err);
    if (version >> 24 > LAYOUT_VERSION)
        return err_set(err, ERR_UNSUPPORTED, "a newer twagent made the index %s", rag->folder);
    return 0;
}

static int open_data(struct rag *rag, struct err *err)
{
    MEM_LOCAL char *path = file_join(rag->folder, "data.mdb");
    rag->data = open(path, O_RDONLY | O_CLOEXEC);
    int saved = errno;
    if (rag->data < 0)
        return err_set_errno(err, ERR_IO, saved, "cannot look at the index %s", rag->folder);
    return look_at_size(rag, err);
}

static int open_environment(struct rag *rag, bool create, struct err *err)
{
    int code = mdb_env_create(&rag->env);
    if (code != 0)
        return database_error(rag, code, err);
    mdb_env_set_maxdbs(rag->env, TABLES);
    mdb_env_set_mapsize(rag->env, MAP_BYTES);
    mdb_env_set_maxreaders(rag->env, READERS_MOST);
    /* NOTLS: a snapshot belongs to a search, not to a thread. NORDAHEAD: searches hop about. */
    code = mdb_env_open(rag->env, rag->folder, MDB_NOTLS | MDB_NORDAHEAD, 0600);
    if (code != 0)
        return database_error(rag, code, err);
    int dead;
    mdb_reader_check(rag->env, &dead); /* what died amid a search keeps no pages */
    MDB_txn *txn;
    if (open_data(rag, err) != 0 || first_snapshot(rag, &txn, err) != 0)
        return -1;
    code = open_tables(rag, txn, 0);
    if (code == 0) {
        int result = check_version(rag, txn, false, err);
        if (mdb_txn_commit(txn) != 0 && result == 0) /* commit: the tables' numbers stay */
            result = err_set(err, ERR_IO, "the index %s cannot be read", rag->folder);
        return result;
    }
    /* An index made before there were as many tables gets those that it lacks. */
    bool older = code == MDB_NOTFOUND &&
                 mdb_dbi_open(txn, tables[TABLE_META].name, 0, &rag->tables[TABLE_META]) == 0;
    mdb_txn_abort(txn);
    if (code != MDB_NOTFOUND)
        return database_error(rag, code, err);
    if (!create && !older)
        return err_set(err, ERR_NOT_FOUND, "there is no index of documents in %s", rag->folder);
    if ((code = mdb_txn_begin(rag->env, NULL, 0, &txn)) != 0)
        return database_error(rag, code, err);
    if ((code = open_tables(rag, txn, MDB_CREATE)) != 0) {
        mdb_txn_abort(txn);
        return database_error(rag, code, err);
    }
    if (check_version(rag, txn, true, err) != 0) {
        mdb_txn_abort(txn);
        return -1;
    }
    return database_commit(rag, txn, err);
}

int rag_open(const char *folder, bool create, struct rag **result, struct err *err)
{
    struct rag *rag = MEM_NEW(struct rag);
    rag->folder = file_join(folder, "rag");
    rag->data = -1;
    pthread_mutex_init(&rag->lock, NULL);
    char *data = file_join(rag->folder, "data.mdb");
    int failed = 0;
    if (create)
        failed = file_make_dirs(rag->folder, err);
    else if (!file_exists(data))
        failed = err_set(
            err, ERR_NOT_FOUND,
            "there is no index of documents in %s yet: `twagent docs add --builtin` makes one "
            "of the guides that ship, `twagent docs add PATH...` one of your manuals",
            folder);
    mem_free(data);
    if (failed || look_at_file(rag, err) != 0 || open_environment(rag, create, err) != 0) {
        rag_close(rag);
        return -1;
    }
    *result = rag;
    return 0;
}

void rag_close(struct rag *rag)
{
    if (rag == NULL)
        return;
    scratch_free_all(rag);
    if (rag->env != NULL)
        mdb_env_close(rag->env);
    if (rag->data >= 0)
        close(rag->data);
    pthread_mutex_destroy(&rag->lock);
    mem_free(rag->folder);
    mem_free(rag);
}

int database_read(struct rag *rag, MDB_txn **txn, struct err *err)
{
    if (look_at_size(rag, err) != 0)
        return -1;
    int code = mdb_txn_begin(rag->env, NULL, MDB_RDONLY, txn);
    if (code == MDB_READERS_FULL && mdb_reader_check(rag->env, NULL) == 0)
        code = mdb_txn_begin(rag->env, NULL, MDB_RDONLY, txn);
    return code == 0 ? 0 : database_error(rag, code, err);
}

int database_write(struct rag *rag, MDB_txn **txn, struct err *err)
{
    if (look_at_size(rag, err) != 0)
        return -1;
    int code = mdb_txn_begin(rag->env, NULL, 0, txn);
    return code == 0 ? 0 : database_error(rag, code, err);
}

int database_commit(struct rag *rag, MDB_txn *txn, struct err *err)
{
    int code = mdb_txn_commit(txn);
    return code == 0 ? 0 : database_error(rag, code, err);
}

bool rag_say_damage(struct rag *rag)
{
    return !atomic_exchange(&rag->damage_said, true);
}

void rag_wait_for_others(struct rag *rag, void (*told)(long process))
{
    rag->waits = told;
}

int database_entries(struct rag *rag, MDB_txn *txn, enum table table, uint64_t *count,
                     struct err *err)
{
    MDB_stat stat;
    int code = mdb_stat(txn, rag->tables[table], &stat);
    *count = code == 0 ? stat.ms_entries : 0;
    return code == 0 ? 0 : database_error(rag, code, err);
}

static MDB_val value_of(const void *bytes, size_t length)
{
    return (MDB_val){.mv_size = length, .mv_data = (void *)(uintptr_t)bytes};
}

int database_get(struct rag *rag, MDB_txn *txn, enum table table, const void *key, size_t length,
                 MDB_val *value, struct err *err)
{
    MDB_val name = value_of(key, length);
    int code = mdb_get(txn, rag->tables[table], &name, value);
    return code == 0 ? 0 : database_error(rag, code, err);
}

int database_put(struct rag *rag, MDB_txn *txn, enum table table, const void *key, size_t length,
                 const void *bytes, size_t value_length, struct err *err)
{
    MDB_val name = value_of(key, length), value = value_of(bytes, value_length);
    int code = mdb_put(txn, rag->tables[table], &name, &value, 0);
    return code == 0 ? 0 : database_error(rag, code, err);
}

int database_remove(struct rag *rag, MDB_txn *txn, enum table table, const void *key, size_t length,
                    struct err *err)
{
    MDB_val name = value_of(key, length);
    int code = mdb_del(txn, rag->tables[table], &name, NULL);
    return code == 0 || code == MDB_NOTFOUND ? 0 : database_error(rag, code, err);
}

int database_number(struct rag *rag, MDB_txn *txn, const char *name, uint64_t *number,
                    struct err *err)
{
    MDB_val value;
    *number = 0;
    if (database_get(rag, txn, TABLE_META, name, strlen(name), &value, err) != 0)
        return err->code == ERR_NOT_FOUND ? 0 : -1;
    if (value.mv_size != sizeof *number)
        return err_set(err, ERR_CORRUPT, "the index %s: a damaged \"%s\"", rag->folder, name);
    memcpy(number, value.mv_data, sizeof *number);
    return 0;
}

int database_set_number(struct rag *rag, MDB_txn *txn, const char *name, uint64_t number,
                        struct err *err)
{
    return database_put(rag, txn, TABLE_META, name, strlen(name), &number, sizeof number, err);
}

struct key_hash database_hash_key(struct hash hash)
{
    struct key_hash key;
    for (int i = 0; i < 8; i++) {
        key.bytes[i] = (unsigned char)(hash.high >> (56 - 8 * i));
        key.bytes[8 + i] = (unsigned char)(hash.low >> (56 - 8 * i));
    }
    return key;
}

struct key_number database_number_key(uint32_t number)
{
    return (struct key_number){{(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                (unsigned char)(number >> 8), (unsigned char)number}};
}

uint32_t database_key_number(const void *bytes)
{
    const unsigned char *from = bytes;
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

int database_lock(struct rag *rag, int *result, struct err *err)
{
    MEM_LOCAL char *path = file_join(rag->folder, "writer");
    char text[24] = "";
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int saved = errno;
    if (fd < 0)
        return err_set_errno(err, ERR_ENVIRONMENT, saved, "cannot write into %s", rag->folder);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)!pread(fd, text, sizeof text - 1, 0);
        long other = strtol(text, NULL, 10);
        if (rag->waits)
            rag->waits(other);
        int waited = -1;
        while (rag->waits && (waited = flock(fd, LOCK_EX)) != 0 && errno == EINTR)
            ;
        if (waited != 0) {
            close(fd);
            return err_set(err, ERR_BUSY, "process %ld changes the index %s at this moment", other,
                           rag->folder);
        }
    }
    int length = snprintf(text, sizeof text, "%-10ld\n", (long)getpid());
    (void)!pwrite(fd, text, (size_t)length, 0);
    *result = fd;
    return 0;
}

void database_unlock(int fd)
{
    close(fd);
}
