#include "eval/cpu/alone.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool alone_make(const char *artifact, char *path, size_t size)
{
    const char *name = strrchr(artifact, '/');
    int length = name == NULL
                     ? -1
                     : snprintf(path, size, "%.*s/alone-XXXXXX", (int)(name - artifact), artifact);
    if (length > 0 && (size_t)length + strlen(name) < size && mkdtemp(path) != NULL) {
        strcpy(path + length, name);
        if (link(artifact, path) == 0)
            return true;
        path[length] = '\0';
        rmdir(path);
    }
    snprintf(path, size, "%s", artifact);
    return false;
}

void alone_remove(const char *path)
{
    char folder[4096];
    const char *name = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    unlink(path);
    rmdir(folder);
}

bool alone_enter(char *path)
{
    char *name = strrchr(path, '/');
    if (name == NULL || name == path)
        return false;
    *name = '\0';
    bool inside = chroot(path) == 0 || (unshare(CLONE_NEWUSER) == 0 && chroot(path) == 0);
    inside = inside && chdir("/") == 0;
    *name = '/';
    if (inside)
        memmove(path, name, strlen(name) + 1);
    return inside;
}
