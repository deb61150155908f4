/* What a CUDA candidate and its tools can say: the log of NVRTC and ptxas, a source whose first
 * includes are looked for, compute-sanitizer's report. */
#include "eval/cuda/compile/ptxas.h"
#include "eval/cuda/compile/source.h"
#include "eval/cuda/sanitize/sanitizer.h"
#include "fuzz.h"

#include <string.h>

static bool always(void *context, const char *name)
{
    (void)context;
    REQUIRE(strstr(name, "..") == NULL && name[0] != '/');
    return true;
}

/* The same is found, marked lines alone or all of them; a line a finding, at most as many as asked.
 */
static void sanitizer(const char *text, size_t size)
{
    struct sanitizer_words words, again;
    struct buf said, report;
    size_t lines = 0;
    buf_init(&said, 1 << 20);
    buf_init(&report, 1 << 20);
    buf_add(&said, text, size);
    sanitizer_read(TOOL_MEMCHECK, SANITIZER_MARK, text, size, 4, &words, &report);
    for (const char *at = buf_text(&report); *at != '\0'; at++)
        lines += *at == '\n';
    REQUIRE(lines <= 4 && words.errors >= 0 && words.warnings >= 0 && report.length < 4 * 600);
    sanitizer_keep_marked(SANITIZER_MARK, &said);
    REQUIRE(said.length <= size);
    buf_reset(&report);
    sanitizer_read(TOOL_MEMCHECK, SANITIZER_MARK, buf_text(&said), said.length, 4, &again, &report);
    REQUIRE(again.errors == words.errors && again.ended == words.ended);
    buf_free(&said);
    buf_free(&report);
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
    sanitizer(text, size);
    buf_free(&out);
    arena_free(arena);
    return 0;
}
