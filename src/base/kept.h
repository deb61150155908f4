/* base/kept: what took long to make and follows from a key, kept in a folder for other processes
 * and later ones; 0700, a file for each key. Trusted processes alone use it. The whole key stands
 * in the file and is compared, so that no two keys share one. A file that is cut, altered, a link
 * or writable by others is a miss, and removed. Whatever fails here fails nothing. Any thread. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { /* of a folder: 4096 files and 512 MiB in all; those that nobody asked for longest go first
        */
       KEPT_SHELVES = 16,
       KEPT_SHELF_FILES = 256,
       KEPT_SHELF_BYTES = 32 << 20,
       KEPT_FILE_BYTES = 16 << 20 /* larger ones are not kept */
};

/* Adds what is kept of `key` to `found`; false: nothing is known, and nothing was added. */
bool kept_find(const char *folder, const struct buf *key, struct buf *found);
void kept_put(const char *folder, const struct buf *key, const void *bytes, size_t length);
