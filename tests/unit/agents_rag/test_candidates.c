/* The best of many, and two rankings made one. */
#include "agents/retrieve/rag/candidates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void keeps_the_best(void **state)
{
    struct candidate items[7];
    (void)state;
    for (size_t most = 1; most <= 7; most++) {
        struct candidates best = {items, 0, most};
        for (uint32_t i = 0; i < 1000; i++) /* 617 and 1000 have no common divisor */
            candidates_offer(&best, (struct candidate){i, (float)(i * 617 % 1000)});
        candidates_sort(&best);
        assert_int_equal(best.count, most);
        for (size_t i = 0; i < most; i++)
            assert_true(items[i].score == (float)(999 - i));
    }
}

static void fewer_than_there_is_room_for(void **state)
{
    struct candidate items[8];
    struct candidates best = {items, 0, 8};
    (void)state;
    candidates_sort(&best);
    assert_int_equal(best.count, 0);
    candidates_offer(&best, (struct candidate){9, 1});
    candidates_offer(&best, (struct candidate){4, 1});
    candidates_offer(&best, (struct candidate){5, 2});
    candidates_sort(&best);
    assert_int_equal(best.count, 3);
    assert_int_equal(items[0].number, 5);
    assert_int_equal(items[1].number, 4); /* equal ones by number */
    assert_int_equal(items[2].number, 9);
}

/* What both rank second is ahead of what one ranks first and the other not at all. */
static void fuses_by_rank(void **state)
{
    struct candidate words[4] = {{1, 90}, {2, 50}, {3, 1}}, others[2] = {{7, 0.9f}, {2, 0.8f}};
    struct candidates first = {words, 3, 4}, second = {others, 2, 2};
    (void)state;
    candidates_fuse(&first, &second);
    assert_int_equal(first.count, 4);
    assert_int_equal(words[0].number, 2);
    assert_int_equal(words[1].number, 1);
    assert_int_equal(words[2].number, 7);
    assert_int_equal(words[3].number, 3);
    struct candidate full[1] = {{1, 2}}, other[1] = {{0, 1}};
    struct candidates one = {full, 1, 1}, none = {other, 0, 1}, another = {other, 1, 1};
    candidates_fuse(&one, &none);
    assert_int_equal(one.count, 1);
    assert_int_equal(full[0].number, 1);
    candidates_fuse(&one, &another); /* no more than there is room for; equal ones by number */
    assert_int_equal(one.count, 1);
    assert_int_equal(full[0].number, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_best),
        cmocka_unit_test(fewer_than_there_is_room_for),
        cmocka_unit_test(fuses_by_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
