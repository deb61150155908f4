/* eval/cuda/compile/cubin_cache: what other processes compiled: $XDG_CACHE_HOME/twagent/cubins, or
 * that of ~/.cache (base/kept), one file a compile that ended well. Trusted processes alone touch
 * it: the worker, which says where it is, and the process of a compile, which has no file of it
 * open while a confined child of its, or of the server, reads a source. Any thread.
 *
 * The whole of what a compile follows from stands in its file and is compared, the unit's text too:
 * nobody can write two sources of which one is answered with the other's cubin. */
#pragma once

#include "eval/cuda/compile/job.h"

/* Where it is; NULL: there is no place for it, or $TWAGENT_CUDA_CACHE is "0". */
const char *cubin_cache_folder(struct arena *arena);

/* 32 hex digits for this program, this NVRTC and every header that a source can include: paths,
 * sizes and times of all these files. NULL where they cannot be told (a tree of 100,000 files). */
const char *cubin_cache_toolkit(struct arena *arena, const struct cuda_compiler *compiler);

/* Fills job->cubin and job->log, which are empty, from the cache; false: nothing is written. */
bool cubin_cache_answer(const struct cuda_job *job);

/* Keeps what the two descriptors have, now that the job ended well. */
void cubin_cache_keep(const struct cuda_job *job);
void cubin_cache_empty(int fd); /* a file of a job, to be written from its start */
