/* eval/cuda/compile: a CUDA candidate becomes a cubin, in a sandboxed child `twagent cuda-compile`
 * that opens NVRTC at run time; neither a GPU nor a CUDA context is needed. The worker's loop
 * starts the child. Any thread. */
#pragma once

#include "eval/backend/backend.h"

/* Writes the unit into `folder` and prepares the command. `arch`: "sm_90a". Then build->artifact is
 * FOLDER/kernel.cubin and build->log FOLDER/kernel.json, for cuda_report_read(). `baseline` (or
 * NULL) is a .cu file of the same form as a candidate, at the first point of its tune space. Every
 * flavour is the same cubin, with line information; BUILD_PORTABLE is ERR_UNSUPPORTED.
 * ERR_ENVIRONMENT where no NVRTC is found. */
int cuda_build(struct arena *arena, const char *arch, const struct problem *problem,
               const struct candidate *candidate, const struct names *tune,
               const struct baseline_spec *baseline, enum build_flavour flavour, const char *folder,
               struct build *build, struct err *err) MUST_USE;

/* Starts the compile server, where there can be one. */
void cuda_build_warm(const char *arch);

/* What the child wrote to stderr, as the candidate's author may see it: at most about 3 KB, source
 * lines from the candidate's own text alone. */
void cuda_diagnostics(const struct candidate *candidate, const char *text, size_t length,
                      struct buf *out);

struct cuda_compiler {    /* lives in the arena of the call */
    const char *library;  /* path of libnvrtc.so.N */
    const char *includes; /* the toolkit's headers, or NULL: NVRTC's own alone */
    const char *cccl;     /* CCCL's headers (cub, cuda/pipeline), or NULL */
    int version_major, version_minor;
};
/* Which NVRTC cuda_build() uses: $TWAGENT_NVRTC (a file), $CUDA_HOME, /usr/local/cuda*, the
 * loader's own folders, the wheel of a python found. Opens it in a child. ERR_ENVIRONMENT: none. */
int cuda_compiler_find(struct arena *arena, struct cuda_compiler *compiler,
                       struct err *err) MUST_USE;

/* ---- what ptxas says of each entry ---- */

enum { CUDA_ENTRIES_MAX = 32 };
struct cuda_resources {
    const char *entry;
    int64_t registers, spill_store_bytes, spill_load_bytes, stack_bytes; /* a thread; -1: unknown */
    int64_t shared_bytes;                                                /* static, a block */
    int64_t constant_bytes; /* kernel arguments and constants */
    int64_t barriers;
};
struct cuda_report { /* lives in the arena of the call */
    size_t entry_count;
    struct cuda_resources entries[CUDA_ENTRIES_MAX];
    const char *arch;    /* "sm_90a" */
    const char *version; /* "NVRTC 13.0" */
    double compile_ms;
    bool precompiled; /* its headers were */
    bool cached;      /* from disk; compile_ms is what it took then */
};
int cuda_report_read(struct arena *arena, const char *log, struct cuda_report *report,
                     struct err *err) MUST_USE;

/* `twagent cuda-compile ...`: what cuda_build() prepares. Returns an exit code. */
int cuda_compile_main(int argc, char **argv);
