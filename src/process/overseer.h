/* process/overseer: nothing that a confined program started outlives it or the process that asked
 * for it, and its group has an end of threads. */
#pragma once

/* Called by whoever leads a process group and is about to become that program; leaves a child,
 * unconfined and in a group of its own, which ends the caller's group with SIGKILL
 *
 * - when the caller or its present parent has ended, in whatever way;
 * - when the group has more than 2000 threads, which is said on descriptor 2 first.
 *
 * Without an overseer, where none can be made, the rest still holds. */
void overseer_start(void);
