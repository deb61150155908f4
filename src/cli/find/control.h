/* cli/find/control: a run that another process of this machine is at: who has the store, and
 * telling it to pause, to go on or to stop. Main thread; blocks. */
#pragma once

#include "agents/record/record.h"
#include "base/err.h"
#include "cli/options/settings.h"

#include <stdbool.h>
#include <sys/types.h>

/* The process that has the store in `folder`, as the kernel says; 0: none; -1: one that this
 * process cannot see (another container, another machine of a shared file system). */
pid_t control_owner(const char *folder);

/* True where `run` goes on now, in the store's owner. */
bool control_is_live(const char *folder, const struct run_record *run);

/* The run that is meant: `id`, or the live one, or (any) the last. Texts in the arena.
 * ERR_NOT_FOUND and ERR_USAGE say what there is. */
int control_find(const struct settings *settings, struct arena *arena, const char *folder,
                 const char *id, bool any, struct run_record *run, struct err *err) MUST_USE;

/* Sends the signal to the run's process, and to no other: one that ended meanwhile, whose number
 * somebody else has now, is ERR_NOT_FOUND. */
int control_signal(const char *folder, const struct run_record *run, int signal_number,
                   struct err *err) MUST_USE;

/* Waits, `ms` at most, until the run's record says that it is (not) paused. */
bool control_await_pause(const struct settings *settings, const char *id, bool paused, unsigned ms);

/* settings->store or the default folder. mem_free() it. */
char *control_folder(const struct settings *settings);
