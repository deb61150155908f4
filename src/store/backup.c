/* store/backup: a compacted copy of one snapshot. It is written beside its place, synced, looked
 * over as a store is when it is opened, and renamed: a backup that is there can be read. */
#include "base/file.h"
#include "base/mem.h"
#include "store/internal.h"
#include "store/structure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int copy(struct environment *environment, int fd, const char *target, struct err *err)
{
    if (environment_enter(environment, err) != 0)
        return -1;
    int code = mdb_env_copyfd2(environment->lmdb, fd, MDB_CP_COMPACT);
    environment_leave(environment);
    if (code == 0 && fsync(fd) != 0)
        code = errno;
    if (code == MDB_INCOMPATIBLE || code == MDB_CORRUPTED || code == MDB_PAGE_NOTFOUND)
        return environment_error(environment, code, err);
    if (code != 0)
        return environment_error_at(target, code, err);
    return 0;
}

static int look_over(int fd, const char *target, struct err *err)
{
    struct structure structure;
    struct err found = {ERR_NONE, ""};
    if (structure_check(fd, 0, &structure, &found) != STRUCTURE_WHOLE)
        return err_set(err, found.code, "the backup in %s cannot be read back: %.200s", target,
                       found.message);
    if (structure.damaged[0] != '\0')
        return err_set(err, ERR_CORRUPT, "the backup in %s cannot be read back: %s", target,
                       structure.damaged);
    return 0;
}

static int sync_folder(const char *folder, struct err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : fsync(fd);
    int saved = errno;
    if (fd >= 0)
        close(fd);
    if (result != 0 && saved != EINVAL)
        return err_set_errno(err, ERR_IO, saved, "cannot sync %s", folder);
    return 0;
}

static int write_copy(struct environment *environment, const char *target, const char *partial,
                      const char *place, struct err *err)
{
    int fd = open(partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return environment_error_at(target, errno, err);
    int result = copy(environment, fd, target, err);
    if (result == 0)
        result = look_over(fd, target, err);
    close(fd);
    if (result == 0 && rename(partial, place) != 0)
        result = environment_error_at(target, errno, err);
    if (result != 0) {
        (void)unlink(partial);
        return -1;
    }
    return sync_folder(target, err) == 0 ? store_mark(target, err) : -1;
}

int store_backup(const char *folder, const char *target, struct err *err)
{
    struct store *store;
    if (store_open(folder, false, true, &store, err) != 0)
        return -1;
    MEM_LOCAL char *place = file_join(target, STORE_FILE);
    MEM_LOCAL char *partial = file_join(target, "data.mdb.partial");
    int result = file_make_dirs(target, err);
    if (result == 0 && file_exists(place))
        result = err_set(err, ERR_EXISTS, "there is a store in %s already: name an empty folder",
                         target);
    if (result == 0)
        result = write_copy(store->environment, target, partial, place, err);
    store_close(store);
    return result == 0 ? 0 : err_wrap(err, "backup");
}
