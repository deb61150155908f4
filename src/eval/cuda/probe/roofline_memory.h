/* eval/cuda/probe/roofline_memory: ceilings are measured once for a GPU and its driver, and then
 * remembered in $XDG_CACHE_HOME/twagent/ceilings or ~/.cache/twagent/ceilings. Any thread. */
#pragma once

#include "base/value.h"

/* `device`: what a probe answered; gpu, pci and driver count. NULL: nothing is known. */
const struct value *roofline_recall(struct arena *arena, const struct value *device);

/* Of an answer with rates: those of `names` (NULL-terminated). Where it cannot be kept they are
 * measured again next time. */
void roofline_remember(const struct value *device, const char *const *names);
