/* agents/search/run/space: is there room on the disk to go on? Blocks on the file system; pool
 * thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* False, with one line for people in `why`, where `folder` (the store's, all that is in it) takes
 * more than `quota` bytes, or its file system has less than `least_free` bytes left for us. 0: no
 * limit. What cannot be found out counts as room. */
bool space_left(const char *folder, int64_t quota, int64_t least_free, struct buf *why);
