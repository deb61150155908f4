/* rag/walk: the files below a path, in the order of their names. Follows no link, so that loops of
 * links end nothing; leaves hidden names out; refuses what has too many names or is too deep.
 * Any thread; blocks. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* What one call may take in; the first two refuse the whole call by ERR_LIMIT. */
enum {
    RAG_FILES_MOST = 200000,       /* "files": names seen below the paths of one call */
    RAG_DEPTH_MOST = 64,           /* "depth": folders in folders */
    RAG_FILE_BYTES_MOST = 32 << 20 /* "file size": such a file is passed over and counted */
};

struct walk {
    const char *excludes; /* "*.inl,detail"; or "" */
    size_t seen;          /* names so far; the caller's, so that several paths share the limit */
    size_t links;         /* passed over */
    size_t unreadable;    /* folders that could not be opened */
    /* Each regular file. False ends the walk with the *err that it has set. */
    bool (*visit)(void *context, const char *path, bool named, struct err *err);
    void *context;
};

/* `path` is absolute; a file is visited itself, as named. ERR_LIMIT names the limit; ERR_NOT_FOUND
 * where nothing is there. */
int walk_path(struct walk *walk, const char *path, struct err *err) MUST_USE;
