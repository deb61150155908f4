/* eval/cpu/built: what other processes compiled for this CPU: $XDG_CACHE_HOME/twagent/built, or
 * that of ~/.cache (base/kept), one file a build that ended well. Only `twagent cpu-compile`
 * touches it, outside of the compiler's sandbox: it hands out what is kept, or runs the command and
 * keeps what that made. Its key is all that the compiler is told and given, the compiler itself,
 * and the processor. With the artifact stand size and times of every header that was read: where
 * one has changed, it is compiled again. */
#pragma once

#include "base/arena.h"

/* Sandboxed compilers write there, in the folder of a build, what they read; gcc's variable says
 * so. Where there is no such file nothing is kept. */
#define BUILT_READ     "read.d"
#define BUILT_VARIABLE "SUNPRO_DEPENDENCIES=" BUILT_READ

/* NULL: there is no place for it. */
const char *built_folder(struct arena *arena);

/* FOLDER ARTIFACT UNIT... -- SANDBOX... -- COMPILER...: in the build's folder; exits as the command
 * does. */
int built_main(int argc, char **argv);
