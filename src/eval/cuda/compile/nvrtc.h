/* eval/cuda/compile/nvrtc: libnvrtc, opened at run time: the few types and functions of nvrtc.h
 * that are used here (https://docs.nvidia.com/cuda/nvrtc), by their names. Only a process that
 * compiles opens it: it takes 100 MB of address space, and may look for a driver. */
#pragma once

#include "eval/cuda/compile/compile.h"

typedef struct nvrtc_program *nvrtc_program; /* nvrtcProgram */

enum { NVRTC_OK = 0, NVRTC_OUT_OF_MEMORY = 1, NVRTC_INVALID_OPTION = 5, NVRTC_COMPILATION = 6 };

struct nvrtc {
    int version_major, version_minor;
    int (*version)(int *major, int *minor);
    const char *(*error_string)(int result);
    int (*create)(nvrtc_program *program, const char *source, const char *name, int headers,
                  const char *const *texts, const char *const *names);
    int (*destroy)(nvrtc_program *program);
    int (*compile)(nvrtc_program program, int count, const char *const *options);
    int (*log_size)(nvrtc_program program, size_t *bytes);
    int (*log)(nvrtc_program program, char *text);
    int (*cubin_size)(nvrtc_program program, size_t *bytes);
    int (*cubin)(nvrtc_program program, char *bytes);
    int (*ptx_size)(nvrtc_program program, size_t *bytes); /* NULL: not known to be there */
    int (*ptx)(nvrtc_program program, char *text);
    int (*pch_heap)(size_t bytes); /* NULL before NVRTC 12.8 */
};

/* Never closed again. ERR_ENVIRONMENT. */
int nvrtc_open(const char *library, struct nvrtc *nvrtc, struct err *err) MUST_USE;
