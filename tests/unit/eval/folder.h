/* tests/unit/eval/folder: a private folder with files in it, for the tests of problem loading. */
#pragma once

#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder {
    char path[64];
};

static inline void folder_make(struct folder *folder)
{
    snprintf(folder->path, sizeof folder->path, "/tmp/twagent-test-XXXXXX");
    if (mkdtemp(folder->path) == NULL)
        abort();
}

static inline void folder_put(const struct folder *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    unlink(path); /* a file that is cut and written again is flushed to disk by some systems */
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
}

static inline void folder_remove(struct folder *folder)
{
    struct err err;
    if (file_remove_tree(folder->path, &err) != 0)
        fprintf(stderr, "%s\n", err.message);
}
