/* What the cache of cubins depends on beside a source and its options: where it lies, and which
 * compiler and headers there are. The worker asks once. */
#include "eval/cuda/compile/cubin_cache.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MOST = 100000, FOLDERS_OPEN = 16 };

const char *cubin_cache_folder(struct arena *arena)
{
    const char *wanted = getenv("TWAGENT_CUDA_CACHE");
    MEM_LOCAL char *folder = file_cache_path("cubins", NULL);
    return folder == NULL || (wanted != NULL && strcmp(wanted, "0") == 0)
               ? NULL
               : arena_strdup(arena, folder);
}

/* nftw() knows no context. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t sum[2]; /* of the files' hashes: a folder has no order */
    size_t count;
} walk;

/* ctime too: who gives a changed file its old time cannot set that one. */
static struct hash hash_of(const char *path, const struct stat *status)
{
    const int64_t facts[] = {status->st_size,        status->st_mode,
                             status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
                             status->st_ctim.tv_sec, status->st_ctim.tv_nsec};
    return hash_combine(hash_bytes(path, strlen(path)), hash_bytes(facts, sizeof facts));
}

static int visit(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)where;
    if (kind == FTW_NS || kind == FTW_DNR || ++walk.count > FILES_MOST)
        return -1;
    struct hash hash = hash_of(path, status);
    walk.sum[0] += hash.high;
    walk.sum[1] += hash.low;
    return 0;
}

static bool add_tree(const char *folder, struct hash *hash)
{
    memset(&walk, 0, sizeof walk);
    if (nftw(folder, visit, FOLDERS_OPEN, FTW_PHYS) != 0)
        return false;
    *hash = hash_combine(*hash, hash_bytes(&walk, sizeof walk));
    return true;
}

static bool add_file(const char *path, struct hash *hash)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return false;
    *hash = hash_combine(*hash, hash_of(path, &status));
    return true;
}

/* The library and what it opens by itself, which lies beside it: libnvrtc-builtins.so.13.0. */
static bool add_library(struct arena *arena, const char *library, struct hash *hash)
{
    const char *slash = strrchr(library, '/');
    glob_t found;
    bool fine = slash != NULL && add_file(library, hash);
    if (!fine || glob(arena_printf(arena, "%.*s/libnvrtc*", (int)(slash - library), library), 0,
                      NULL, &found) != 0)
        return fine;
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)add_file(found.gl_pathv[i], hash); /* a link to nothing is opened by nobody */
    globfree(&found);
    return true;
}

static bool within(const char *path, const char *folder)
{
    size_t length = folder != NULL ? strlen(folder) : 0;
    return length > 0 && strncmp(path, folder, length) == 0 &&
           (path[length] == '/' || path[length] == '\0');
}

const char *cubin_cache_toolkit(struct arena *arena, const struct cuda_compiler *compiler)
{
    const char *includes = compiler->includes, *cccl = compiler->cccl;
    struct hash hash = {0};
    char text[33];
    pthread_mutex_lock(&lock);
    /* Headers of ours and the way from a log to kernel.json are the program's; who compiles may be
     * another one than this ($TWAGENT_SELF). */
    bool fine = add_file("/proc/self/exe", &hash) && add_file(file_program_path(), &hash) &&
                add_library(arena, compiler->library, &hash) &&
                (includes == NULL || add_tree(includes, &hash)) &&
                (cccl == NULL || within(cccl, includes) || add_tree(cccl, &hash));
    pthread_mutex_unlock(&lock);
    hash_format(hash, text);
    return fine ? arena_strdup(arena, text) : NULL;
}
