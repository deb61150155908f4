#include "store/store.h"

#include "base/file.h"
#include "base/mem.h"
#include "store/internal.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE_MAP_MIB_MAX (64L << 20)

int store_open_sized(const char *folder, bool create, bool read_only, size_t map_bytes,
                     struct store **store, struct err *err)
{
    struct environment *environment;
    if (environment_acquire(folder, create, read_only, map_bytes, &environment, err) != 0)
        return -1;
    *store = MEM_NEW(struct store);
    **store = (struct store){.environment = environment, .owner = !read_only};
    return 0;
}

/* A quarter of what `ulimit -v` leaves, which is the whole program's: a job on a cluster has some
 * GiB. A file that is larger already is mapped whole by LMDB. */
static size_t usual_map_bytes(void)
{
    const size_t least = (size_t)64 << 20, page = (size_t)1 << 20;
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / 4 >= STORE_MAP_BYTES)
        return STORE_MAP_BYTES;
    size_t bytes = limit.rlim_cur / 4 / page * page;
    return bytes > least ? bytes : least;
}

/* How large the file may grow. A number that is none, or too small to hold anything, is not taken
 * silently. */
static int map_bytes(size_t *bytes, struct err *err)
{
    const char *text = getenv("TWAGENT_STORE_MAP_MIB");
    *bytes = usual_map_bytes();
    if (text == NULL || text[0] == '\0')
        return 0;
    char *end;
    errno = 0;
    long mib = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || mib < 1 || mib > STORE_MAP_MIB_MAX)
        return err_set(err, ERR_USAGE,
                       "$TWAGENT_STORE_MAP_MIB is \"%.40s\": a number from 1 to %ld is expected",
                       text, STORE_MAP_MIB_MAX);
    *bytes = (size_t)mib << 20;
    return 0;
}

int store_open(const char *folder, bool create, bool read_only, struct store **store,
               struct err *err)
{
    size_t bytes;
    if (map_bytes(&bytes, err) != 0)
        return -1;
    return store_open_sized(folder, create, read_only, bytes, store, err);
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    environment_release(store->environment, store->owner);
    mem_free(store);
}

bool store_close_unused(struct store *store)
{
    struct environment *environment = store != NULL ? store->environment : NULL;
    struct err ignored;
    size_t runs = 0;
    bool unused = store != NULL && store->owner && environment->made &&
                  store_count(store, STORE_RUNS, "", &runs, &ignored) == 0 && runs == 0;
    if (unused)
        environment_remove(environment);
    store_close(store);
    return unused;
}

/* Pages of the map that were read count as this process's own until the kernel needs them, which
 * looks like a leak from outside. They stay in the page cache. LMDB does not say where its map is;
 * it is the one of the file. */
static void drop_pages(MDB_env *lmdb)
{
    struct stat file;
    mdb_filehandle_t fd;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool known = mdb_env_get_fd(lmdb, &fd) == 0 && fstat(fd, &file) == 0;
    while (maps != NULL && known && fgets(line, sizeof line, maps) != NULL) {
        char *at = line; /* start-end access offset device inode path */
        uintptr_t start = strtoull(at, &at, 16);
        uintptr_t end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
        for (int field = 0; field < 3 && at != NULL; field++)
            at = strchr(at + 1, ' ');
        if (at != NULL && end > start && strtoull(at, NULL, 10) == file.st_ino &&
            strstr(at, "/data.mdb") != NULL)
            (void)madvise((void *)start, end - start, MADV_DONTNEED);
    }
    if (maps != NULL)
        (void)fclose(maps);
}

int store_check_readers(struct store *store, size_t *cleared, struct err *err)
{
    int dead = 0;
    if (environment_enter(store->environment, err) != 0)
        return -1;
    int code = mdb_reader_check(store->environment->lmdb, &dead);
    drop_pages(store->environment->lmdb);
    environment_leave(store->environment);
    if (code != 0)
        return environment_error(store->environment, code, err);
    *cleared = dead > 0 ? (size_t)dead : 0;
    return 0;
}

char *store_default_folder(void)
{
    const char *named = getenv("TWAGENT_STORE");
    if (named != NULL && named[0] != '\0')
        return mem_strdup(named);
    char *own = file_user_path("XDG_STATE_HOME", ".local/state", "twagent");
    if (own != NULL)
        return own;
    const struct passwd *user = getpwuid(getuid());
    return file_join(user != NULL && user->pw_dir[0] == '/' ? user->pw_dir : "/",
                     ".local/state/twagent");
}

const char *store_folder(const struct store *store)
{
    return store->environment->folder;
}
