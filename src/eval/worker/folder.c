/* eval/worker/folder: where builds go. A private folder is locked as long as its worker lives; one
 * that a worker left behind when it was killed is swept by the next one that starts. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/worker/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "twagent-worker-";
enum { YOUNG_S = 60 }; /* made, and perhaps not locked yet */

static bool is_stale(int folder)
{
    struct stat status;
    return fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
           time(NULL) - status.st_mtime > YOUNG_S && flock(folder, LOCK_EX | LOCK_NB) == 0;
}

static void sweep(const char *parent)
{
    DIR *entries = opendir(parent);
    if (entries == NULL)
        return;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        struct err ignored;
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0)
            continue;
        int folder =
            openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0)
            continue;
        char *path = file_join(parent, entry->d_name);
        if (is_stale(folder) && file_remove_tree(path, &ignored) != 0)
            fprintf(stderr, "twagent worker: %s\n", ignored.message);
        mem_free(path);
        close(folder);
    }
    closedir(entries);
}

int folder_open(struct worker *worker, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    worker->folder_lock = -1;
    if (worker->options->folder != NULL) {
        worker->folder = mem_strdup(worker->options->folder);
        return file_make_dirs(worker->folder, err);
    }
    parent = parent != NULL && *parent == '/' ? parent : "/tmp";
    sweep(parent);
    char name[sizeof prefix + 6];
    snprintf(name, sizeof name, "%sXXXXXX", prefix);
    worker->folder = file_join(parent, name);
    if (mkdtemp(worker->folder) == NULL)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make a folder in %s", parent);
    worker->own_folder = true;
    worker->folder_lock = open(worker->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (worker->folder_lock >= 0)
        flock(worker->folder_lock, LOCK_EX | LOCK_NB);
    return 0;
}

void folder_close(struct worker *worker)
{
    struct err ignored;
    if (worker->own_folder && file_remove_tree(worker->folder, &ignored) != 0)
        fprintf(stderr, "twagent worker: %s\n", ignored.message);
    if (worker->own_folder && worker->folder_lock >= 0)
        close(worker->folder_lock);
    mem_free(worker->folder);
}
