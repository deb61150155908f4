/* For whom a document is. The guides that ship say so by their names (cpu-simd.md, gpu-gemm.md),
 * others by a tag that is a backend's name, by the folder or ending of their path, or by what a
 * passage names. What says nothing is for all, but of the guides' passages those that name hardware
 * which only some backends have. */
#include "agents/retrieve/retrieve.h"

#include <string.h>

static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static const char GPUS[] = "cuda,triton,webgpu", NVIDIA[] = "cuda,triton";

/* NULL: for all. */
static const char *by_guide(const char *source)
{
    static const struct {
        const char *prefix, *backends;
    } rows[] = {{"cpu-", "cpu"}, {"gpu-", GPUS}, {"triton", "triton"}, {"wgsl", "webgpu"}};
    const char *slash = strrchr(source, '/'), *name = slash ? slash + 1 : source;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].backends;
    return NULL;
}

static const char *by_tag(const char *tags)
{
    static const struct {
        const char *tag, *backends;
    } rows[] = {{"cpu", "cpu"}, {"cuda", NVIDIA}, {"triton", "triton"}, {"webgpu", "webgpu"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (has_word(tags, rows[i].tag))
            return rows[i].backends;
    return NULL;
}

/* Of a guide that is for all, a passage about hardware that not all have. */
static const char *by_hardware(const char *text)
{
    static const struct {
        const char *sign, *backends;
    } rows[] = {{"tensor core", GPUS}, {"tensor-core", GPUS}, {"`__expf", NVIDIA}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strstr(text, rows[i].sign))
            return rows[i].backends;
    return NULL;
}

/* Words within the path, and within the passage itself. */
static const char *by_signs(const struct rag_passage *passage)
{
    static const struct {
        const char *sign, *backends;
    } paths[] = {{"/cuda", NVIDIA},    {"/cccl/", NVIDIA}, {"/cub/", NVIDIA}, {"/thrust/", NVIDIA},
                 {"/cutlass", NVIDIA}, {"/cudnn", NVIDIA}, {".cuh", NVIDIA},  {".cu", NVIDIA},
                 {".ptx", NVIDIA},     {".wgsl", "webgpu"}},
      texts[] = {{"__device__", NVIDIA},    {"__global__", NVIDIA},       {"cudaError", NVIDIA},
                 {"__shared__", NVIDIA},    {"cudaStream_t", NVIDIA},     {"CUDA_ERROR", NVIDIA},
                 {"@triton.jit", "triton"}, {"@workgroup_size", "webgpu"}};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strstr(passage->source, paths[i].sign))
            return paths[i].backends;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strstr(passage->text, texts[i].sign))
            return texts[i].backends;
    return NULL;
}

bool retrieve_is_for(const struct rag_passage *passage, const char *backend)
{
    const char *backends = by_tag(passage->tags);
    bool guide = has_word(passage->tags, RAG_BUILTIN);
    if (!backends)
        backends = guide ? by_guide(passage->source) : by_signs(passage);
    if (!backends && guide)
        backends = by_hardware(passage->text);
    return !backends || has_word(backends, backend);
}

bool retrieve_guide_is_for(const char *file, const char *backend)
{
    const char *backends = by_guide(file);
    return !backends || has_word(backends, backend);
}
