#include "agents/retrieve/rag/read/walk.h"

#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Does a pattern of the list fit the name, the path below the root, or a folder on the way? */
static bool walk_excluded(const char *excludes, const char *relative)
{
    const char *slash = strrchr(relative, '/'), *name = slash ? slash + 1 : relative;
    char pattern[512];
    for (const char *at = excludes; *at != '\0';) {
        at += strspn(at, ",");
        size_t length = strcspn(at, ",");
        if (length > 0 && length < sizeof pattern) {
            memcpy(pattern, at, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, relative, 0) == 0)
                return true;
        }
        at += length;
    }
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    char **items;
    size_t count, capacity;
};

static int read_names(struct walk *walk, const char *folder, struct names *names, struct err *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        walk->unreadable++;
        return 0;
    }
    int result = 0;
    for (const struct dirent *entry; result == 0 && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        if (++walk->seen > RAG_FILES_MOST)
            result = err_set(err, ERR_LIMIT,
                             "more than %d files (the limit \"files\") at %s: name smaller "
                             "folders, or leave some out with --exclude",
                             RAG_FILES_MOST, folder);
        MEM_MORE(names->items, names->count, names->capacity);
        names->items[names->count++] = mem_strdup(entry->d_name);
    }
    closedir(dir);
    if (names->count > 0)
        qsort(names->items, names->count, sizeof *names->items, by_name);
    return result;
}

static int walk_folder(struct walk *walk, const char *folder, size_t root_length, int depth,
                       struct err *err)
{
    struct names names = {0};
    if (depth > RAG_DEPTH_MOST)
        return err_set(err, ERR_LIMIT, "folders %d deep (the limit \"depth\"): %s", depth, folder);
    int result = read_names(walk, folder, &names, err);
    for (size_t i = 0; i < names.count; i++) {
        char *path = file_join(folder, names.items[i]);
        struct stat status;
        mem_free(names.items[i]);
        if (result != 0 || walk_excluded(walk->excludes, path + root_length + 1) ||
            lstat(path, &status) != 0)
            ; /* nothing to visit */
        else if (S_ISDIR(status.st_mode))
            result = walk_folder(walk, path, root_length, depth + 1, err);
        else if (S_ISREG(status.st_mode))
            result = walk->visit(walk->context, path, false, err) ? 0 : -1;
        else
            walk->links += S_ISLNK(status.st_mode);
        mem_free(path);
    }
    mem_free(names.items);
    return result;
}

int walk_path(struct walk *walk, const char *path, struct err *err)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
                             "cannot look at %s", path);
    if (S_ISDIR(status.st_mode))
        return walk_folder(walk, path, strcmp(path, "/") == 0 ? 0 : strlen(path), 0, err);
    walk->seen++;
    return walk->visit(walk->context, path, true, err) ? 0 : -1;
}
