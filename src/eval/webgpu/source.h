/* eval/webgpu/source: what a WGSL text says of itself to whoever gives it memory: its bindings by
 * name, the constants it lets others set, the features it asks for. Any thread. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WGSL_BINDINGS_MOST = 32, WGSL_OVERRIDES_MOST = 32, WGSL_NAME_MOST = 64 };

struct wgsl_binding {
    uint32_t group, binding;
    bool uniform, writes; /* var<uniform>; var<storage, read_write> */
    int line;
    char name[WGSL_NAME_MOST];
};

struct wgsl_source {
    size_t binding_count, override_count;
    struct wgsl_binding bindings[WGSL_BINDINGS_MOST];
    char overrides[WGSL_OVERRIDES_MOST][WGSL_NAME_MOST];
    bool f16, subgroups;  /* enable f16; enable subgroups; */
    bool measures_arrays; /* it asks for an array's length, which is then the tensor's own */
};

/* ERR_LIMIT: more than there is room for, or a binding that is none of these. The text is not
 * checked otherwise: that is the compiler's to do. */
int wgsl_read(const char *text, size_t length, struct wgsl_source *source,
              struct err *err) MUST_USE;
