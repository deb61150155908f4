/* WGSL with a plan of passes. */
#include "eval/webgpu/target.h"

#include "base/mem.h"

#include <stdio.h>

static char *ceilings_key(const char *cores, const char *devices)
{
    char *key = mem_alloc(200);
    snprintf(key, 200, "machine/ceilings/webgpu/%.60s/%.60s", cores ? cores : "",
             devices ? devices : "0");
    return key;
}

static const char *const suffixes[] = {".wgsl", NULL};

static const struct language language = {
    .name = "wgsl",
    .suffixes = suffixes,
    .open = "/*---",
    .close = "---*/",
    .comment_end = "*/",
    .sign = "@compute",
    .entry = "@compute",
    .plan = true,
    .own_blocks = true,
    .requires = "shader-f16 subgroups",
    .facts = "max_workgroups max_invocations workgroup_bytes binding_bytes software",
};

static const struct language *const languages[] = {&language, NULL};

const struct target target_webgpu = {.name = "webgpu",
                                     .title = "GPU, by WebGPU",
                                     .languages = languages,
                                     .ceilings_key = ceilings_key,
                                     .finite_only = true}; /* WGSL: Floating Point Evaluation */
