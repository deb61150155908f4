/* loop/process's buffers against the plainest model of them, in pieces of every size. */
#include "probe.h"

#include "base/random.h"
#include "loop/process_private.h"

enum { ROUNDS = 400, MOST = 4000 };

static char letter(size_t position)
{
    return (char)('a' + position % 23);
}

static void test_capture_keeps_head_and_tail(void **state)
{
    (void)state;
    struct random dice;
    random_init(&dice, 7);
    char all[MOST];
    for (size_t i = 0; i < MOST; i++)
        all[i] = letter(i);
    for (int round = 0; round < ROUNDS; round++) {
        struct capture capture;
        size_t max = 1 + random_below(&dice, 300), total = 0;
        size_t most_piece = 1 + random_below(&dice, 500);
        size_t wanted = random_below(&dice, MOST);
        capture_init(&capture, max);
        while (total < wanted) {
            size_t piece = 1 + random_below(&dice, most_piece);
            if (piece > wanted - total)
                piece = wanted - total;
            capture_add(&capture, all + total, piece);
            total += piece;
            size_t length;
            uint64_t dropped;
            if (random_below(&dice, 4) != 0 && total < wanted)
                continue; /* looked at now and then, and at the end */
            const char *text = capture_text(&capture, &length, &dropped);
            size_t kept = total < max ? total : max, head = total <= max ? kept : max / 2;
            assert_int_equal(length, kept);
            assert_int_equal(dropped, total - kept);
            assert_memory_equal(text, all, head);
            assert_memory_equal(text + head, all + total - (kept - head), kept - head);
            assert_int_equal(text[length], '\0');
        }
        capture_free(&capture);
    }
    struct capture empty;
    size_t length = 1;
    uint64_t dropped = 1;
    capture_init(&empty, 10);
    assert_string_equal(capture_text(&empty, &length, &dropped), "");
    assert_int_equal(length, 0);
    assert_int_equal(dropped, 0);
    capture_free(&empty);
}

/* Feeds a text in pieces, takes lines at random, and joins them again. */
static void feed(struct random *dice, const char *text, size_t length, size_t max, char *joined)
{
    struct lines lines;
    lines_init(&lines, max);
    size_t fed = 0, out = 0;
    while (true) {
        const char *line = random_below(dice, 2) == 0 || lines_full(&lines) || fed == length
                               ? lines_next(&lines)
                               : NULL;
        if (line != NULL) {
            size_t bytes = strlen(line);
            memcpy(joined + out, line, bytes);
            out += bytes;
            joined[out++] = '\n';
            continue;
        }
        if (fed == length)
            break;
        size_t room, most = 1 + random_below(dice, 64);
        char *target = lines_room(&lines, most, &room);
        if (room > length - fed)
            room = length - fed;
        assert_true(room >= 1);
        memcpy(target, text + fed, room);
        bool newline = memchr(text + fed, '\n', room) != NULL;
        assert_int_equal(lines_added(&lines, room), newline);
        fed += room;
    }
    size_t rest;
    const char *tail = lines_rest(&lines, &rest);
    memcpy(joined + out, tail, rest);
    joined[out + rest] = '\0';
    assert_int_equal(strlen(tail), rest);
    lines_free(&lines);
}

static void test_lines_come_out_as_they_went_in(void **state)
{
    (void)state;
    struct random dice;
    random_init(&dice, 11);
    static char text[MOST + 1], joined[MOST + 1];
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = random_below(&dice, MOST), in_line = 0;
        for (size_t i = 0; i < length; i++) {
            bool end = in_line == 40 || random_below(&dice, 20) == 0;
            text[i] = end ? '\n' : letter(i);
            in_line = end ? 0 : in_line + 1;
        }
        text[length] = '\0';
        feed(&dice, text, length, 41 + random_below(&dice, 200), joined);
        assert_string_equal(joined, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture_keeps_head_and_tail),
        cmocka_unit_test(test_lines_come_out_as_they_went_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
