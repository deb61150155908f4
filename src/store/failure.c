/* store/failure: what LMDB's codes mean for the person who reads the message. */
#include "store/environment.h"
#include "store/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

enum { ROOM_MIB = 16 }; /* free space with which a short write is not for lack of it */

static int full_disk(const char *folder, int code, struct err *err)
{
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0)
        return err_set(err, ERR_FULL, "cannot write to the store %s: %s; nothing is lost", folder,
                       strerror(code));
    unsigned long long free_mib = (unsigned long long)disk.f_bavail * disk.f_frsize >> 20;
    if (code == EIO && free_mib >= ROOM_MIB)
        return err_set(err, ERR_FULL,
                       "cannot write to the store %s: %s, though %llu MiB are free: does the disk "
                       "fail (look at dmesg), or a quota end? Nothing is lost: the write can be "
                       "tried again",
                       folder, strerror(code), free_mib);
    return err_set(err, ERR_FULL,
                   "cannot write to the store %s: %s (%llu MiB free): is the disk full? Nothing is "
                   "lost: make room, and the write can be tried again",
                   folder, strerror(code), free_mib);
}

static int full_map(const char *folder, struct err *err)
{
    return err_set(err, ERR_FULL,
                   "the store %s has no room left in its map; nothing is lost: start again with "
                   "a larger $TWAGENT_STORE_MAP_MIB (65536 unless it is set), or back it up, "
                   "which compacts it",
                   folder);
}

int environment_damaged(const char *folder, const char *what, struct err *err)
{
    return err_set(err, ERR_CORRUPT,
                   "the store %s is damaged: %.200s. Put the data.mdb of a backup in place of its "
                   "own, or move the folder away and start anew; nothing in it was changed",
                   folder, what);
}

int environment_error_at(const char *folder, int code, struct err *err)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO: /* LMDB's word for a short write, which is how a full disk shows */
        return full_disk(folder, code, err);
    case MDB_MAP_FULL:
    case MDB_BAD_TXN: /* what a transaction says after MDB_MAP_FULL */
        return full_map(folder, err);
    case MDB_PANIC:
        return err_set(err, ERR_FULL,
                       "a write to the store %s failed and it could not be opened again yet; "
                       "nothing is lost: try again",
                       folder);
    case MDB_TXN_FULL:
        return err_set(err, ERR_LIMIT, "too much in one write to the store %s", folder);
    case MDB_READERS_FULL:
        return err_set(err, ERR_LIMIT, "too many readers of the store %s at once", folder);
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
        return environment_damaged(folder, mdb_strerror(code), err);
    case MDB_VERSION_MISMATCH:
        return err_set(err, ERR_UNSUPPORTED, "the store %s belongs to another version of LMDB: %s",
                       folder, mdb_strerror(code));
    case ENOMEM:
        return err_set(err, ERR_ENVIRONMENT,
                       "no address space for the store %s (it reserves 64 GiB, and uses what it "
                       "holds): raise `ulimit -v`",
                       folder);
    case EACCES:
    case EPERM:
    case EROFS:
    case EMFILE:
    case ENFILE:
    case ENOLCK:
        return err_set_errno(err, ERR_ENVIRONMENT, code, "cannot use the store %s", folder);
    default:
        return err_set(err, ERR_IO, "the store %s: %s", folder, mdb_strerror(code));
    }
}

int environment_error(const struct environment *environment, int code, struct err *err)
{
    return environment_error_at(environment->folder, code, err);
}
