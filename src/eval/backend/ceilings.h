/* eval/backend/ceilings: what a lane's memory and units can do at most, as its machine has been
 * seen to do: $XDG_CACHE_HOME/twagent/ceilings or ~/.cache/twagent/ceilings has a file for each
 * lane_facts.identity. The best that was ever seen stays. Any thread, any number of processes. */
#pragma once

#include "eval/backend/lane_facts.h"

enum { CEILINGS = 6 };
extern const char *const ceiling_names[CEILINGS]; /* as records, answers and messages have them */
double *ceiling_of(struct lane_facts *lane, size_t which);
void ceilings_put(struct lane_facts *lane,
                  struct json *json); /* those that are known, as members */

/* By lane->identity: the rates and under_load, as they are remembered; else they stay. */
void ceilings_recall(struct lane_facts *lane);
/* Of a lane whose rates have just been measured: the higher ones, of these and of what is
 * remembered. They are under load where both were. Where nothing can be kept they are measured
 * again next time. */
void ceilings_remember(struct lane_facts *lane);
/* A kernel was faster by 10 % than they allow: they are measured again, as those under load are. */
void ceilings_doubt(struct lane_facts *lane);
