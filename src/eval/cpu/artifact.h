/* eval/cpu/artifact: what a shared object will need, by the names that stand in it. A wrong answer
 * costs speed and nothing else, so hostile bytes may lie here. Any thread. */
#pragma once

#include <stdbool.h>

/* What a baseline's shared object is called. A runner lets an object of this name, and no other,
 * load libraries; the name is ours to give, whatever stands in the file. */
#define ARTIFACT_BASELINE "baseline.so"

struct artifact_needs {
    const char *openmp; /* "libgomp.so.1", "libomp.so.5", or NULL */
    bool own_threads;   /* it, or a library of its, may make threads by itself */
};
struct artifact_needs artifact_inspect(int fd);
bool artifact_may_load(const char *path);
