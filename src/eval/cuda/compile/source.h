/* eval/cuda/compile/source: the text that NVRTC reads: headers that the candidate's first lines
 * name, then a prologue and tune numbers, then the candidate with its own line numbers. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "eval/candidate/candidate.h"

/* Headers that stand before anything else in the source (comments aside), each of a list that is
 * known to be NVIDIA's and to be there: "#include <cuda_fp16.h>\n...", sorted, each once. They go
 * first, so that no tune parameter's name (a macro) breaks them, and so that the compiler can have
 * them ready. `exists` says whether a header can be found. */
void cuda_source_prefix(const char *text, size_t length,
                        bool (*exists)(void *context, const char *name), void *context,
                        struct buf *out);

/* Ours, with int64_t and its like: it comes first, as an include, since a precompiled header ends
 * at the first thing that is no directive. */
#define CUDA_SOURCE_TYPES "twagent_types.h"
#define CUDA_SOURCE_STOP  "#pragma nv_hdrstop\n"

/* The unit: types, `prefix`, the pragma, #define lines, "#line 1 NAME", the text. What goes before
 * the pragma depends on `prefix` alone. */
void cuda_source_unit(const struct candidate *candidate, const struct names *tune, const char *name,
                      const char *prefix, struct buf *out);

/* What C's and C++'s headers would have: NVRTC has none of them. Two lists of *count. */
const char *const *cuda_source_header_names(size_t *count);
const char *const *cuda_source_header_texts(void);
