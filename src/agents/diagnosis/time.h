/* agents/diagnosis/time: where a kernel's time goes, as evidence and as numbers for rules, from the
 * profile's "time". Pure; any thread. */
#ifndef AGENTS_DIAGNOSIS_TIME_H
#define AGENTS_DIAGNOSIS_TIME_H

#include "base/buf.h"
#include "base/value.h"

/* `time`: the profile's member, or NULL. "- where the time goes: 62 % in lines 40 to 58 (pack: only
 * moves data), ...": one line. */
void time_say(const struct value *time, struct buf *out);

/* Shares of all time: in loops that store and compute nothing; in the library whose name begins so.
 * NaN where nothing was sampled. */
double time_moving_share(const struct value *time);
double time_library_share(const struct value *time, const char *name);

#endif
