/* eval/webgpu/source: what a WGSL text says of itself to whoever gives it memory: its bindings by
 * name, the constants it lets others set, the features it asks for. Any thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "eval/candidate/candidate.h"

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
    bool f16, subgroups;                 /* enable f16; enable subgroups; */
    size_t subgroups_from, subgroups_to; /* the first directive that has the latter */
    bool measures_arrays; /* it asks for an array's length, which is then the tensor's own */
};

/* ERR_LIMIT: more than there is room for, or a binding that is none of these. The text is not
 * checked otherwise: that is the compiler's to do. */
int wgsl_read(const char *text, size_t length, struct wgsl_source *source,
              struct err *err) MUST_USE;

bool wgsl_requires(const struct candidate *candidate, const char *feature); /* in front matter */

/* The text as a compiler takes it, with what front matter requires and the text does not enable.
 * Naga (not `browser`) knows subgroups where the device has them, but not `enable subgroups;`:
 * blanks are in its place. */
void wgsl_compiled(const struct candidate *candidate, bool browser, struct buf *into);
