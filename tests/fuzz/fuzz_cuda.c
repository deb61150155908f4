/* What a CUDA candidate and its compiler can say: the log of NVRTC and ptxas, and a source whose
 * first includes are looked for. */
#include "eval/cuda/ptxas.h"
#include "eval/cuda/source.h"
#include "fuzz.h"

#include <string.h>

static bool always(void *context, const char *name)
{
    (void)context;
    REQUIRE(strstr(name, "..") == NULL && name[0] != '/');
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *text = (const char *)bytes;
    struct arena *arena = arena_new();
    struct cuda_report report = {0};
    struct candidate candidate = {.source = arena_strndup(arena, text, size), .length = size};
    struct buf out;
    struct json json;
    buf_init(&out, 1 << 20);
    ptxas_parse(arena, text, size, &report);
    json_init(&json, &out);
    ptxas_put(&report, &json);
    REQUIRE(report.entry_count <= CUDA_ENTRIES_MAX && out.dropped == 0);
    buf_reset(&out);
    cuda_diagnostics(&candidate, text, size, &out);
    REQUIRE(out.length < 8000 && memchr(buf_text(&out), '\x1b', out.length) == NULL);
    buf_reset(&out);
    cuda_source_prefix(text, size, always, NULL, &out);
    for (const char *at = buf_text(&out); *at != '\0'; at = strchr(at, '\n') + 1)
        REQUIRE(strncmp(at, "#include <", 10) == 0);
    buf_free(&out);
    arena_free(arena);
    return 0;
}
