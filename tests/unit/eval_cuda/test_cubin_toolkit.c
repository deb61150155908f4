/* Where cubins are kept, and which changes of a toolkit make others of them. */
#include "kit.h"

#include "base/mem.h"
#include "eval/cuda/compile/cubin_cache.h"

static void test_folder(void **state)
{
    struct arena *arena = arena_new();
    (void)state;
    setenv("XDG_CACHE_HOME", "/a", 1);
    assert_string_equal(cubin_cache_folder(arena), "/a/twagent/cubins");
    setenv("TWAGENT_CUDA_CACHE", "0", 1);
    assert_null(cubin_cache_folder(arena));
    unsetenv("TWAGENT_CUDA_CACHE");
    setenv("XDG_CACHE_HOME", "", 1);
    char *home = mem_strdup(getenv("HOME") != NULL ? getenv("HOME") : "");
    setenv("HOME", "/b", 1);
    assert_string_equal(cubin_cache_folder(arena), "/b/.cache/twagent/cubins");
    setenv("HOME", "b", 1);
    assert_null(cubin_cache_folder(arena));
    setenv("HOME", home, 1);
    mem_free(home);
    arena_free(arena);
}

static void put_file(const char *folder, const char *name, const char *text)
{
    struct err err;
    char *path = file_join(folder, name), *above = mem_strdup(path);
    *strrchr(above, '/') = '\0';
    assert_int_equal(file_make_dirs(above, &err), 0);
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
    mem_free(above);
    mem_free(path);
}

static void test_toolkit(void **state)
{
    char folder[] = "/tmp/twagent-test-XXXXXX";
    struct err err;
    char library[200], includes[200], cccl[200];
    const char *told[8];
    struct arena *arena = arena_new();
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(library, sizeof library, "%s/lib/libnvrtc.so.13", folder);
    snprintf(includes, sizeof includes, "%s/include", folder);
    snprintf(cccl, sizeof cccl, "%s/elsewhere", folder);
    const struct cuda_compiler compiler = {.library = library, .includes = includes, .cccl = cccl};
    assert_null(cubin_cache_toolkit(arena, &compiler));
    put_file(folder, "lib/libnvrtc.so.13", "a");
    put_file(folder, "include/deep/in/a.h", "a");
    put_file(folder, "elsewhere/b.h", "a");
    told[0] = cubin_cache_toolkit(arena, &compiler);
    assert_non_null(told[0]);
    assert_string_equal(cubin_cache_toolkit(arena, &compiler), told[0]);
    static const char *const files[] = {"lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0",
                                        "include/deep/in/a.h", "elsewhere/b.h", "include/c.h"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        put_file(folder, files[i], "other");
        told[i + 1] = cubin_cache_toolkit(arena, &compiler);
        for (size_t k = 0; k <= i; k++)
            assert_string_not_equal(told[k], told[i + 1]);
    }
    arena_free(arena);
    assert_int_equal(file_remove_tree(folder, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_toolkit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
