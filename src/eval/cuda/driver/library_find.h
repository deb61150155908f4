/* eval/cuda/driver/library_find: where a library of NVIDIA's toolkit lies on this machine, without
 * opening it. Any thread. */
#pragma once

#include "base/arena.h"

/* `variable`: of the environment, names the file and then nothing else is looked at. `stem`:
 * "libcupti". $CUDA_HOME, /usr/local/cuda*, the loader's folders, a python's wheels; the newest
 * version of the first place that has one; NULL: none. */
const char *cuda_library_find(struct arena *arena, const char *variable, const char *stem);
