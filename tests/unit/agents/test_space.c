#include "check.h"

#include "agents/search/run/space.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static int make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test_space.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop(void **state)
{
    struct err err;
    (void)state;
    return file_remove_tree(folder, &err);
}

static void put(const char *name, size_t bytes)
{
    struct err err = {0};
    char *path = file_join(folder, name), *text = mem_alloc(bytes + 1);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(file_make_dirs(path, &err), 0);
    *slash = '/';
    memset(text, 'x', bytes);
    assert_int_equal(file_write(path, text, bytes, &err), 0);
    mem_free(text);
    mem_free(path);
}

static void a_quota_counts_everything_below(void **state)
{
    struct buf why;
    (void)state;
    buf_init(&why, 4096);
    put("a", 40000);
    put("b/c/d", 60000);
    assert_true(space_left(folder, 200000, 0, &why));
    assert_int_equal(why.length, 0);
    assert_false(space_left(folder, 90000, 0, &why));
    assert_non_null(strstr(buf_text(&why), folder));
    assert_non_null(strstr(buf_text(&why), "--disk-quota is 87.9 KiB"));
    assert_true(space_left(folder, 0, 0, &why)); /* no limit */
    buf_free(&why);
}

/* A store's map is a file of many gigabytes that takes a few pages. */
static void holes_take_no_room(void **state)
{
    struct buf why;
    (void)state;
    buf_init(&why, 4096);
    put("sparse", 10);
    char *path = file_join(folder, "sparse");
    assert_int_equal(truncate(path, (off_t)1 << 30), 0);
    mem_free(path);
    assert_true(space_left(folder, 1000000, 0, &why));
    buf_free(&why);
}

static void links_are_not_followed(void **state)
{
    struct buf why;
    (void)state;
    buf_init(&why, 4096);
    char *path = file_join(folder, "usr");
    assert_int_equal(symlink("/usr", path), 0);
    mem_free(path);
    assert_true(space_left(folder, 1000000, 0, &why));
    buf_free(&why);
}

static void a_floor_is_of_the_file_system(void **state)
{
    struct buf why;
    (void)state;
    buf_init(&why, 4096);
    assert_true(space_left(folder, 0, 1, &why));
    assert_false(space_left(folder, 0, INT64_MAX, &why));
    assert_non_null(strstr(buf_text(&why), "--disk-floor"));
    buf_free(&why);
}

static void what_is_not_known_counts_as_room(void **state)
{
    struct buf why;
    (void)state;
    buf_init(&why, 4096);
    assert_true(space_left("/nonexistent/folder", 1, INT64_MAX, &why));
    buf_free(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_quota_counts_everything_below, make, drop),
        cmocka_unit_test_setup_teardown(holes_take_no_room, make, drop),
        cmocka_unit_test_setup_teardown(links_are_not_followed, make, drop),
        cmocka_unit_test_setup_teardown(a_floor_is_of_the_file_system, make, drop),
        cmocka_unit_test(what_is_not_known_counts_as_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
