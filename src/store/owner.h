/* store/owner: who owns the store: a lock on `owner.lock` in its folder, with the owner's process
 * number inside. The kernel drops the lock when the process ends, however it ends, so that none is
 * ever stale. Any thread; at most once a folder and process at a time (see owner.c). */
#ifndef STORE_OWNER_H
#define STORE_OWNER_H

#include "base/err.h"

/* Sets *fd, closed on exec. ERR_BUSY names the process that has it. */
int store_owner_take(const char *folder, int *fd, struct err *err) MUST_USE;
void store_owner_release(int fd);

#endif
