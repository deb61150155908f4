#include "eval/webgpu/private.h"

#include "eval/webgpu/library.h"
#include "eval/webgpu/probe.h"

#include <stdio.h>
#include <string.h>

/* What was found. */
static bool library, adapter, hardware;

static void print_adapter(int index, const struct value *answer)
{
    const struct value *facts = value_get(answer, "facts");
    bool software = strcmp(value_text(answer, "kind", ""), "software") == 0;
    printf("  adapter %-12d %s, %s%s, %s\n", index, value_text(answer, "gpu", "?"),
           value_text(answer, "kind", "?"),
           software ? " (it computes on the CPU: its times say nothing of a GPU)" : "",
           value_text(answer, "driver", "?"));
    printf("  %-20s %s, timestamps of %.3g ns,%s%s %lld invocations and %lld KiB a workgroup\n", "",
           value_text(answer, "api", "?"), value_real(answer, "timestamp_ns", 0.0),
           value_bool(answer, "shader_f16", false) ? " shader-f16," : "",
           value_bool(answer, "subgroups", false) ? " subgroups," : "",
           (long long)value_int(facts, "max_invocations", 0),
           (long long)value_int(facts, "workgroup_bytes", 0) >> 10);
    hardware = hardware || !software;
}

void webgpu_describe(void)
{
    ARENA_LOCAL(arena);
    const char *path = webgpu_library_find(arena);
    int count = 1;
    library = path != NULL;
    printf("webgpu\n  %-20s %s\n", "libwgpu_native", library ? path : "not found");
    for (int i = 0; library && i < count; i++) {
        struct value *answer;
        struct err err = {0};
        if (webgpu_ask(i, NULL, arena, &answer, &err) != 0 || value_get(answer, "facts") == NULL) {
            printf("  %-20s none: %s\n", "adapter",
                   err.code != ERR_NONE ? err.message : value_text(answer, "error", "?"));
            break;
        }
        count = (int)value_int(answer, "count", 0);
        adapter = true;
        print_adapter(i, answer);
    }
}

int webgpu_findings(const struct value *answer, struct buf *out)
{
    (void)answer;
    if (!library)
        buf_add_text(out,
                     "  MISSING  libwgpu_native, which runs WGSL: pip install wgpu, or its path "
                     "as\n           TWAGENT_WGPU\n");
    else if (!adapter)
        buf_add_text(out, "  MISSING  an adapter: a Vulkan driver, or mesa-vulkan-drivers, which "
                          "computes on\n           the CPU\n");
    else if (!hardware)
        buf_add_text(out, "  note     no GPU: WGSL is checked and timed on the CPU\n");
    return !library || !adapter;
}
