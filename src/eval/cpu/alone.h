/* eval/cpu/alone: a folder in which nothing but an artifact lies, for a runner to be shut in. There
 * it has no way to name anything else: whoever can name a file of /proc sees its attributes, which
 * no Landlock forbids, and by them what its judge is doing. Worker's measuring thread, and the
 * runner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The worker: `path` is the artifact by its name in a new folder beside it. False: there can be
 * none, and `path` is the artifact. */
bool alone_make(const char *artifact, char *path, size_t size);
/* It is loaded, or will not be: the folder goes, and who is in it is nowhere. */
void alone_remove(const char *path);
/* The runner, while it has one thread: shut in, `path` becomes what the artifact is called in
 * there. Root may do that, and anybody who may make a user namespace; else it stays as it was,
 * false. */
bool alone_enter(char *path);
