/* eval/cuda/compile/ptxas: what `ptxas -v` says of each entry in NVRTC's log, as numbers and as
 * JSON. The log is written by whoever compiled the candidate: advice to people and proposers, never
 * a verdict. Any thread. */
#pragma once

#include "eval/cuda/compile/compile.h"

/* More than this should be dynamic; ptxas refuses what no block can have without a word. */
enum { PTXAS_SHARED_MAX = 48 << 10 };

/* The last words about an entry count: what a source prints comes before ptxas speaks. */
void ptxas_parse(struct arena *arena, const char *log, size_t length, struct cuda_report *report);

/* The whole of kernel.json. */
void ptxas_put(const struct cuda_report *report, struct json *json);

const struct cuda_resources *ptxas_entry(const struct cuda_report *report, const char *entry);
