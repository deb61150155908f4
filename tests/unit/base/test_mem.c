#include "check.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/mem.h"

static void memory_is_zeroed_and_never_null(void **state)
{
    (void)state;
    unsigned char *bytes = (unsigned char *)mem_alloc(1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(bytes[i], 0);
    bytes = (unsigned char *)mem_resize(bytes, 5000);
    bytes[4999] = 1;
    mem_free(bytes);
    void *nothing = mem_alloc(0);
    assert_non_null(nothing);
    nothing = mem_resize(nothing, 0);
    assert_non_null(nothing);
    mem_free(nothing);
    mem_free(NULL);
    char *copy = mem_strdup("text");
    assert_string_equal(copy, "text");
    mem_free(copy);
}

static void overflow_array(void)
{
    mem_free(mem_array(SIZE_MAX / 2, 3));
}

static void overflow_arena(void)
{
    (void)arena_array(arena_new(), SIZE_MAX / 2, 3);
}

static void fail_third(void)
{
    mem_fail_after(3);
    mem_free(mem_alloc(1));
    mem_free(mem_strdup("x"));
    mem_free(mem_resize(NULL, 1));
    _exit(1);
}

static void survive_two(void)
{
    mem_fail_after(3);
    mem_free(mem_alloc(1));
    mem_free(mem_resize(NULL, 1));
    mem_fail_after(-1);
    mem_free(mem_alloc(1));
    mem_free(mem_alloc(1));
}

static void faults_abort_where_they_are_aimed(void **state)
{
    (void)state;
    assert_true(aborts(overflow_array));
    assert_true(aborts(overflow_arena));
    assert_true(aborts(fail_third));
    assert_false(aborts(survive_two));
}

static void arena_pieces_are_zeroed_aligned_apart(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    static const size_t sizes[] = {0,    1,    15,    16,    17,     100,     4000, 4096,
                                   5000, 1000, 20000, 70000, 300000, 1 << 20, 3,    0};
    char *pieces[COUNT(sizes)];
    for (size_t i = 0; i < COUNT(sizes); i++) {
        pieces[i] = (char *)arena_alloc(arena, sizes[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], (char)(i + 1));
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(pieces[i], pieces[k]);
    }
    arena_free(arena);
    arena_free(NULL);
}

static void arena_copies_texts(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    assert_string_equal(arena_strdup(arena, ""), "");
    assert_string_equal(arena_strndup(arena, "abcdef", 3), "abc");
    char *text = arena_printf(arena, "%s-%05d", "x", 42);
    assert_string_equal(text, "x-00042");
    char *wide = arena_printf(arena, "%20000d", 7);
    assert_int_equal(strlen(wide), 20000);
    assert_int_equal(wide[19999], '7');
    for (int i = 0; i < 100000; i++) /* many chunks */
        assert_int_equal(*ARENA_NEW(arena, int), 0);
    arena_free(arena);
}

static void buf_never_passes_its_maximum(void **state)
{
    (void)state;
    for (size_t max = 0; max < 200; max++) {
        struct buf buf;
        buf_init(&buf, max);
        assert_string_equal(buf_text(&buf), "");
        size_t added = 0;
        for (int i = 0; i < 40; i++) {
            buf_add_text(&buf, "abc");
            buf_addf(&buf, "%d", i % 10);
            added += 4;
            assert_true(buf.length <= max);
            assert_true(buf.data == NULL || buf.data[buf.length] == '\0');
            assert_int_equal(buf.length + buf.dropped, added);
            assert_true(buf.capacity <= max + 1);
        }
        buf_free(&buf);
    }
}

static void buf_takes_long_formats(void **state)
{
    (void)state;
    static const int widths[] = {1, 510, 511, 512, 513, 9999, 100000};
    for (size_t i = 0; i < COUNT(widths); i++) {
        struct buf buf;
        buf_init(&buf, 20000);
        buf_addf(&buf, "%*d", widths[i], 5);
        size_t kept = widths[i] > 20000 ? 20000 : (size_t)widths[i];
        assert_int_equal(buf.length, kept);
        assert_int_equal(buf.dropped, (size_t)widths[i] - kept);
        buf_free(&buf);
    }
}

static void buf_consumes_resets_and_gives_away(void **state)
{
    (void)state;
    struct buf buf;
    buf_init(&buf, 8);
    buf_consume(&buf, 0);
    buf_add(&buf, "0123456789", 10);
    assert_int_equal(buf.dropped, 2);
    buf_consume(&buf, 3);
    assert_string_equal(buf_text(&buf), "34567");
    buf_add_char(&buf, 'x');
    assert_string_equal(buf_text(&buf), "34567x");
    buf_consume(&buf, 6);
    assert_string_equal(buf_text(&buf), "");
    buf_reset(&buf);
    assert_int_equal(buf.dropped, 0);
    buf_add(&buf, "a\0b", 3);
    assert_int_equal(buf.length, 3);
    char *taken = buf_take(&buf);
    assert_memory_equal(taken, "a\0b", 4);
    mem_free(taken);
    assert_int_equal(buf.length, 0);
    taken = buf_take(&buf);
    assert_string_equal(taken, "");
    mem_free(taken);
    buf_add_text(&buf, "again");
    assert_string_equal(buf_text(&buf), "again");
    buf_free(&buf);
    buf_add_text(&buf, "usable");
    assert_string_equal(buf_text(&buf), "usable");
    buf_free(&buf);
}

struct item {
    int number;
    struct link link;
};

static void list_keeps_order_and_lets_go(void **state)
{
    (void)state;
    struct list list;
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    list_init(&list);
    assert_true(list_empty(&list));
    assert_null(list_pop(&list));
    for (int i = 0; i < 4; i++)
        list_append(&list, &items[i].link);
    list_remove(&items[2].link);
    list_remove(&items[2].link);
    assert_false(list_linked(&items[2].link));
    int seen = 0;
    list_each (at, &list)
        seen = seen * 10 + container_of(at, struct item, link)->number;
    assert_int_equal(seen, 13);
    list_each_safe (at, &list) {
        if (container_of(at, struct item, link)->number == 1)
            list_remove(at);
    }
    assert_ptr_equal(list_pop(&list), &items[0].link);
    assert_ptr_equal(list_pop(&list), &items[3].link);
    assert_true(list_empty(&list));
}

/* More than what is free, on any machine that has read files. */
static void test_available(void **state)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    (void)state;
    assert_in_range(mem_available(), 1, page * (uint64_t)sysconf(_SC_PHYS_PAGES));
    assert_true(2 * mem_available() > page * (uint64_t)sysconf(_SC_AVPHYS_PAGES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_never_null),
        cmocka_unit_test(faults_abort_where_they_are_aimed),
        cmocka_unit_test(arena_pieces_are_zeroed_aligned_apart),
        cmocka_unit_test(arena_copies_texts),
        cmocka_unit_test(buf_never_passes_its_maximum),
        cmocka_unit_test(buf_takes_long_formats),
        cmocka_unit_test(buf_consumes_resets_and_gives_away),
        cmocka_unit_test(list_keeps_order_and_lets_go),
        cmocka_unit_test(test_available),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
