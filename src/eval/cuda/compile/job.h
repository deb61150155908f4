/* eval/cuda/compile/job: one compile inside a process that has nothing else to do, and takes every
 * privilege away from itself before it looks at the unit. A job's files are descriptors, opened
 * before. */
#pragma once

#include "eval/cuda/compile/nvrtc.h"

enum {
    JOB_OPTIONS_MAX = 32,
    JOB_UNIT_MAX = 8 << 20,
    JOB_ERRORS_MAX = 48 << 10, /* bytes of the log that are printed */
    JOB_MEMORY_MIB = 4096
};

struct cuda_job {
    struct cuda_compiler compiler; /* paths; the versions come from `nvrtc` */
    const char *arch;
    size_t flag_count, entry_count;
    const char *flags[JOB_OPTIONS_MAX];   /* of NVRTC, as they are */
    const char *entries[JOB_OPTIONS_MAX]; /* that the launch plan names */
    uint64_t cpu_s, memory_mib;           /* at most; 0: COMPILE_CPU_S, JOB_MEMORY_MIB */
    int unit, cubin, log, errors;         /* descriptors: one to read, three to write */
    const char *pch;                      /* precompiled header that fits the unit; NULL: none */
    const char *cache, *toolkit;          /* for cubin_cache.h; NULL: none */
};

/* Opens NVRTC, and the library that it opens by itself later, when that is no longer possible. */
int cuda_job_open(const struct cuda_job *job, struct nvrtc *nvrtc, struct err *err) MUST_USE;

/* No files but the toolkit's headers (and `readable`, `writable`, or NULL), no network, no other
 * process, bounded memory (if `bounded`) and time. Without a way back. */
int cuda_job_confine(const struct cuda_job *job, const char *readable, const char *writable,
                     bool bounded, struct err *err) MUST_USE;

/* Compiles and writes. Returns the exit code that the process should end with; the reasons of
 * another one than 0 stand in job->errors. The process is confined. */
int cuda_job_run(const struct cuda_job *job, const struct nvrtc *nvrtc);

/* Writes the precompiled header `path` from `prefix`. The process is confined, or reads nothing but
 * what is ours. Returns an exit code. */
int cuda_job_precompile(const struct cuda_job *job, const struct nvrtc *nvrtc, const char *prefix,
                        const char *path);

/* NVRTC's options, in order; `soft` ones are left out where an NVRTC does not know them. */
size_t cuda_job_options(struct arena *arena, const struct cuda_job *job, bool soft,
                        const char *options[JOB_OPTIONS_MAX * 2]);

/* How a compiler process ended that did not exit: one line into job->errors. */
void cuda_job_tell_end(const struct cuda_job *job, int signal_number);
