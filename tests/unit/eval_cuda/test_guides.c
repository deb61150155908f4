/* Every CUDA block of the guides in rag/ compiles for sm_90a as a candidate does, without a
 * warning. Skipped where there is no NVRTC; tests/tools/guides has those in C. */
#include "kit.h"

#include "base/mem.h"

#include <dirent.h>

static const char fence[] = "```cuda\n", end[] = "\n```\n";

static size_t line_of(const char *text, const char *at)
{
    size_t lines = 1;
    for (; text < at; text++)
        lines += *text == '\n';
    return lines;
}

static size_t seen, failed;

static void compile_blocks(struct kit *kit, const char *name, const char *text)
{
    const char *stop;
    for (const char *at = text; (at = strstr(at, fence)) != NULL; at = stop, seen++) {
        at += sizeof fence - 1;
        size_t line = line_of(text, at);
        stop = strstr(at, end);
        if (stop == NULL)
            fail_msg("rag/%s:%zu: a fence that is never closed", name, line - 1);
        const char *block = arena_strndup(kit->arena, at, (size_t)(stop + 1 - at));
        if (kit_compile(kit, block) == 0 && strstr(buf_text(&kit->said), "warning") == NULL)
            continue;
        print_message("rag/%s: the block at line %zu:\n%s\n", name, line, buf_text(&kit->said));
        failed++;
    }
}

static void test_guides(void **state)
{
    struct kit kit;
    const struct dirent *entry;
    (void)state;
    kit_need_nvrtc();
#ifdef __SANITIZE_ADDRESS__
    skip(); /* NVRTC, in which nothing of ours runs */
#endif
    DIR *guides = opendir(TEST_SOURCE_DIR "/rag");
    assert_non_null(guides);
    kit_open(&kit, NULL);
    while ((entry = readdir(guides)) != NULL) {
        BUF_LOCAL(text, 1 << 20);
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".md") != 0)
            continue;
        if (file_read(arena_printf(kit.arena, TEST_SOURCE_DIR "/rag/%s", entry->d_name), &text,
                      &kit.err) != 0)
            fail_msg("%s", kit.err.message);
        compile_blocks(&kit, entry->d_name, buf_text(&text));
    }
    closedir(guides);
    kit_close(&kit);
    assert_true(seen > 0);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    kit_start_self();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
