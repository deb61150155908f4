/* base/file: whole files in, whole files out, paths.
 * Any thread; blocks, so in the agent only at start or through loop/work. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads the whole file; more than buf->max is ERR_LIMIT, nothing there is ERR_NOT_FOUND. */
int file_read(const char *path, struct buf *buf, struct err *err) MUST_USE;

/* Replaces the file in one step: temporary file beside it, fsync, rename, fsync of the folder. */
int file_write(const char *path, const void *bytes, size_t length, struct err *err) MUST_USE;

/* What a person asked for with -o: the same for a file of its own. Devices, pipes and links, hard
 * ones too, stay what they are, and what is behind them is written. A reader that closes early has
 * seen enough: that is no error. */
int file_put(const char *path, const void *bytes, size_t length, struct err *err) MUST_USE;
/* Where it is written in place: an empty file, made where there is none, or what was there. -1 with
 * errno. */
int file_open_through(const char *path) MUST_USE;

/* From `offset` on, up to `length` bytes: fewer at the end of the file. -1 with errno. */
ssize_t file_read_at(int fd, void *bytes, size_t length, uint64_t offset) MUST_USE;
/* To the end, whatever signals come. -1 with errno. */
int file_write_all(int fd, const char *bytes, size_t length) MUST_USE;

int file_make_dirs(const char *path,
                   struct err *err) MUST_USE; /* mkdir -p, mode 0700 for new ones */
int file_remove_tree(const char *path, struct err *err) MUST_USE; /* follows no link */
bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_is_regular(const char *path); /* reading it ends: no pipe, no device */

/* "a" + "b" -> "a/b"; an absolute b stands alone. mem_free() the result. */
char *file_join(const char *folder, const char *name);

/* Absolute path of the running executable (/proc/self/exe). mem_free() the result. */
char *file_self_path(void);

/* The running program, or $TWAGENT_SELF: what answers to "runner", "sandbox" and "cuda-compile".
 * Static. */
const char *file_program_path(void);
/* $VARIABLE/REST where that is an absolute path, else ~/FOLDER/REST; NULL without a home.
 * mem_free() it. */
char *file_user_path(const char *variable, const char *folder, const char *rest);
/* Of what can be made again: twagent/KIND below $XDG_CACHE_HOME or ~/.cache, or NAME in that. */
char *file_cache_path(const char *kind, const char *name);

/* Finds what ships with the program ("problems", "templates", "libexec/reference.py"): the
 * environment's TWAGENT_DATA, then ../share/twagent beside the executable, then the source tree
 * that the build was made from. mem_free() the result; NULL where there is none. */
char *file_data_path(const char *name);
