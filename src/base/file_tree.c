/* file_remove_tree(): the folders it removes may have been filled by code that nobody trusts, so
 * it walks by descriptors, follows no link, and is not stopped by depth or by missing rights. */
#include "base/file.h"
#include "base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One descriptor a level; what lies deeper is first moved up beside the first level. */
enum { LEVELS_MOST = 32 };

struct walk {
    int top;             /* the root's descriptor; -1 while it is not open */
    char failed_at[256]; /* the name at which errno was set */
};

static int empty_folder(struct walk *walk, int fd, int level);

static int note_failure(struct walk *walk, const char *name)
{
    int saved = errno;
    snprintf(walk->failed_at, sizeof walk->failed_at, "%s", name);
    errno = saved;
    return -1;
}

/* By way of a descriptor, since fchmodat() would follow a link that was put in the place. A failure
 * shows in what is tried next. */
static void allow_owner(int parent, const char *name)
{
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)!chmod(path, 0700);
    close(fd);
}

static int open_folder(int parent, const char *name)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    if (fd < 0 && errno == EACCES) {
        allow_owner(parent, name);
        fd = openat(parent, name, flags);
    }
    return fd;
}

static int remove_folder(struct walk *walk, int parent, const char *name, int level)
{
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 0;
    if (level >= LEVELS_MOST) {
        char higher[40];
        allow_owner(parent, name); /* moving a folder rewrites its "..", which needs a right */
        snprintf(higher, sizeof higher, "deep-%016llx", (unsigned long long)random_seed());
        return renameat(parent, name, walk->top, higher) == 0 ? 0 : note_failure(walk, name);
    }
    int fd = open_folder(parent, name);
    if (fd < 0)
        return note_failure(walk, name);
    if (level == 0)
        walk->top = fd;
    if (empty_folder(walk, fd, level) != 0)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) != 0)
        return note_failure(walk, name);
    return 0;
}

/* Removes what lies in the folder; several passes, since renames bring more into the top one.
 * Takes fd. */
static int empty_folder(struct walk *walk, int fd, int level)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        close(fd);
        return note_failure(walk, "opendir");
    }
    fchmod(fd, 0700); /* what is ours but not writable; a failure shows in the next call */
    int result = 0;
    bool seen;
    do {
        seen = false;
        rewinddir(folder);
        const struct dirent *entry;
        while (result == 0 && (entry = readdir(folder)) != NULL) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            seen = true;
            if (unlinkat(fd, entry->d_name, 0) == 0)
                continue;
            if (errno == EISDIR || errno == EPERM)
                result = remove_folder(walk, fd, entry->d_name, level + 1);
            else if (errno != ENOENT)
                result = note_failure(walk, entry->d_name);
        }
    } while (result == 0 && seen);
    int saved = errno;
    closedir(folder);
    errno = saved;
    return result;
}

int file_remove_tree(const char *path, struct err *err)
{
    struct walk walk = {.top = -1};
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_set_errno(err, ERR_IO, errno, "cannot remove %s", path);
    if (remove_folder(&walk, AT_FDCWD, path, 0) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot remove %s (at %s)", path, walk.failed_at);
    return 0;
}
