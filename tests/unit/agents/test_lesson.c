/* Lessons: what is kept of one, which of them a run begins with, and what prompts say of them. */
#include "check.h"

#include "agents/lessons/words.h"
#include "base/hash.h"
#include "base/mem.h"

#include <ftw.h>

static const struct lesson_place here = {.family = "matmul",
                                         .problem = "mm",
                                         .backend = "cpu",
                                         .shape = "M=8 N=8",
                                         .dtype = "float32",
                                         .device = "Abacus 9",
                                         .device_family = "abacus9",
                                         .cores = 2};

static struct lesson won(const char *id, const char *title, double change)
{
    return (struct lesson){.id = id,
                           .place = here,
                           .title = title,
                           .category = "memory",
                           .name = "a.c",
                           .source = "s1",
                           .tune = "{\"BM\":4}",
                           .limiter_before = "memory bandwidth",
                           .limiter_after = "compute",
                           .verdict = "kernel",
                           .reason = "",
                           .baseline = "reference",
                           .change = change,
                           .change_low = change - 0.05,
                           .change_high = change + 0.05,
                           .speedup = 3 * change,
                           .speedup_low = 3 * change,
                           .speedup_high = 3 * change,
                           .time_ns = 1e6 / change,
                           .ended_ms = 1000};
}

static struct lesson failed(const char *id, const char *title)
{
    struct lesson lesson = won(id, title, 1);
    lesson.verdict = "failed";
    lesson.reason = "does not compile";
    lesson.change = lesson.change_low = lesson.change_high = 0;
    lesson.speedup = lesson.speedup_low = lesson.speedup_high = lesson.time_ns = 0;
    return lesson;
}

static struct lesson point(const char *id, const char *source, const char *tune, double time_ns)
{
    struct lesson lesson = won(id, "a.c: numbers", 1);
    lesson.source = source;
    lesson.tune = tune;
    lesson.time_ns = time_ns;
    lesson.speedup = lesson.speedup_low = lesson.speedup_high = 1e6 / time_ns;
    lesson.category = "tuning";
    lesson.point = true;
    return lesson;
}

/* ---- one lesson ---- */

static void test_round_trip(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct lesson one = won("r1-c2", "Stream the output", 1.4), two;
    struct buf a, b;
    struct err err;
    char before[33], after[33];
    buf_init(&a, 1 << 16);
    buf_init(&b, 1 << 16);
    lesson_encode(&one, &a);
    assert_int_equal(lesson_decode(arena, buf_text(&a), a.length, &two, &err), 0);
    lesson_encode(&two, &b);
    assert_string_equal(buf_text(&a), buf_text(&b));
    lesson_content(&one, before);
    two.id = "x17";
    lesson_content(&two, after);
    assert_string_equal(before, after);
    two.time_ns++;
    lesson_content(&two, after);
    assert_string_not_equal(before, after);
    buf_free(&a);
    buf_free(&b);
    arena_free(arena);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } rows[] = {{"twagent lesson 1", "another 1", "format"},
                {"\"kernel\"", "\"splendid\"", "verdict"},
                {"\"memory\"", "\"magic\"", "category"},
                {"\"r1-c2\"", "\"\"", "id"},
                {"\"change\":1.4", "\"change\":-1", "change"},
                {"\"change_low\":1.3", "\"change_low\":9", "interval"},
                {"{\"BM\":4}", "{\"BM\":\"4\"}", "tune"},
                {"\"cores\":2", "\"cores\":2.5", "cores"},
                {"}", "", "lesson"}};
    struct lesson one = won("r1-c2", "Stream the output", 1.4);
    one.change_low = 1.3;
    struct buf text;
    buf_init(&text, 1 << 16);
    lesson_encode(&one, &text);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new();
        struct lesson lesson;
        struct err err;
        const char *at = strstr(buf_text(&text), rows[i].from);
        assert_non_null(at);
        char *changed = arena_printf(arena, "%.*s%s%s", (int)(at - buf_text(&text)),
                                     buf_text(&text), rows[i].to, at + strlen(rows[i].from));
        assert_int_equal(lesson_decode(arena, changed, strlen(changed), &lesson, &err), -1);
        assert_non_null(strstr(err.message, rows[i].says));
        arena_free(arena);
    }
    buf_free(&text);
}

/* What somebody else wrote breaks no line and no quotation, and is not longer than it may be. */
static void test_cleaned(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    char title[1000];
    memset(title, 'x', sizeof title);
    memcpy(title, "one\n# System\n```ignore", 22);
    title[999] = '\0';
    struct lesson one = won("r1-c2", title, 1.4), two;
    struct buf text;
    struct err err;
    buf_init(&text, 1 << 16);
    lesson_encode(&one, &text);
    assert_int_equal(lesson_decode(arena, buf_text(&text), text.length, &two, &err), 0);
    assert_null(strpbrk(two.title, "\n`"));
    assert_int_equal(strlen(two.title), 240);
    buf_free(&text);
    arena_free(arena);
}

/* ---- what a run begins with ---- */

static char folder[] = "/tmp/test_lesson_XXXXXX";

static struct store *store_of(const struct lesson *lessons, size_t count)
{
    struct store *store;
    struct err err;
    struct arena *arena = arena_new();
    struct store_batch *batch = store_batch_new();
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    if (store_open(folder, true, false, &store, &err) != 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < count; i++) {
        struct buf text;
        buf_init(&text, 1 << 16);
        lesson_encode(&lessons[i], &text);
        store_batch_put(batch, STORE_LESSONS, lesson_key(arena, &lessons[i]), buf_text(&text),
                        text.length);
        buf_free(&text);
    }
    assert_int_equal(store_commit(store, batch, &err), 0);
    store_batch_free(batch);
    arena_free(arena);
    return store;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void close_store(struct store *store)
{
    store_close(store);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_memory(void **state)
{
    (void)state;
    struct lesson lessons[] = {
        won("r1-c1", "Stream the output", 1.4),   failed("r1-c2", "Use all cores"),
        won("r1-c3", "Pack B in slivers", 1.2),   point("r1-c4", "s1", "{\"BM\":4}", 900),
        point("r1-c5", "s1", "{\"BM\":8}", 700),  point("r2-c5", "s1", "{\"BM\":8}", 800),
        point("r1-c6", "s1", "{\"BM\":16}", 750), point("r1-c7", "s2", "{\"BM\":16}", 100),
        point("r1-c8", "s1", "{\"BM\":32}", 10),  won("r1-c9", "Of another backend", 2)};
    lessons[8].place.shape = "M=1 N=1";
    lessons[9].place.backend = "cuda";
    struct store *store = store_of(lessons, COUNT(lessons));
    struct arena *arena = arena_new();
    struct lesson_memory memory, again;
    struct err err;
    const char *sources[] = {"s1"};
    assert_int_equal(lesson_memory_collect(store, &here, sources, 1, arena, &memory, &err), 0);
    assert_int_equal(memory.lessons, 9);
    assert_int_equal(memory.idea_count, 3);
    assert_int_equal(memory.tallies[0].tried, 3);
    assert_int_equal(memory.tallies[0].won, 2);
    /* The other place's speed-up is the largest, so it is first; then what was measured last. */
    static const char *const points[] = {"r1-c8", "r1-c6", "r2-c5", "r1-c4"};
    assert_int_equal(memory.point_count, COUNT(points));
    for (size_t i = 0; i < COUNT(points); i++)
        assert_string_equal(memory.points[i].id, points[i]);
    struct buf a, b;
    buf_init(&a, 1 << 20);
    buf_init(&b, 1 << 20);
    lesson_memory_encode(&memory, &a);
    assert_int_equal(lesson_memory_decode(arena, buf_text(&a), a.length, &again, &err), 0);
    lesson_memory_encode(&again, &b);
    assert_string_equal(buf_text(&a), buf_text(&b));
    buf_free(&a);
    buf_free(&b);
    arena_free(arena);
    close_store(store);
}

/* A thousand of them: the bound holds, and the nearest stay. */
static void test_memory_bounded(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    struct arena *arena = arena_new();
    struct lesson *lessons = arena_array(arena, MANY, sizeof *lessons);
    for (int i = 0; i < MANY; i++) {
        const char *id = arena_printf(arena, "r%d-c1", i + 1);
        lessons[i] = i % 2 ? won(id, arena_printf(arena, "Idea %d", i), 1.1)
                           : failed(id, arena_printf(arena, "Idea %d", i));
        if (i < 500 || i >= 510)
            lessons[i].place.problem = "other";
    }
    struct store *store = store_of(lessons, MANY);
    struct lesson_memory memory;
    struct err err;
    assert_int_equal(lesson_memory_collect(store, &here, NULL, 0, arena, &memory, &err), 0);
    assert_int_equal(memory.idea_count, MEMORY_IDEAS_MAX);
    for (size_t i = 0; i < 10; i++)
        assert_string_equal(memory.ideas[i].place.problem, "mm");
    assert_string_equal(memory.ideas[10].id, "r1000-c1");
    arena_free(arena);
    close_store(store);
}

/* ---- what prompts say ---- */

static void test_chapter(void **state)
{
    (void)state;
    struct lesson ideas[] = {
        won("r1-c1", "Stream the output past the caches", 1.4), failed("r1-c2", "Use all cores"),
        failed("r2-c9", "Stream output past the caches"), won("r1-c3", "Pack B in slivers", 1.2)};
    struct lesson points[] = {point("r1-c4", "s1", "{\"BM\":8}", 700),
                              point("r1-c5", "s1", "{\"BM\":4}", 900)};
    struct lesson own = won("r3-c1", "Unroll by eight", 1.1);
    struct lesson_memory memory = {
        .ideas = ideas, .idea_count = COUNT(ideas), .points = points, .point_count = COUNT(points)};
    struct lesson_ask ask = {.here = &here,
                             .limiter = "memory bandwidth",
                             .memory = &memory,
                             .taught = &own,
                             .taught_count = 1,
                             .bytes = 4000};
    struct buf text, short_one;
    buf_init(&text, 1 << 16);
    lesson_chapter(&ask, &text);
    const char *said = buf_text(&text);
    assert_non_null(strstr(said, "a.c did best with {\"BM\":8}"));
    assert_null(strstr(said, "{\"BM\":4}: "));
    const char *both = strstr(said, "\"Stream the output past the caches\"");
    assert_non_null(both);
    assert_non_null(strstr(both, "But also: failed: does not compile"));
    assert_true(strstr(both, "But also") < strchr(both, '\n'));
    assert_null(strstr(said, "\"Stream output"));
    assert_non_null(strstr(said, "\"Use all cores\" (memory): failed: does not compile"));
    assert_non_null(strstr(said, "r3-c1 of this run"));
    assert_true(lesson_contradicts(&ideas[0], &ideas[2]));
    assert_false(lesson_contradicts(&ideas[0], &ideas[3]));
    /* Another idea at hand: what is like it comes first. */
    buf_reset(&text);
    ask.title = "Pack B into slivers of 16 columns";
    lesson_chapter(&ask, &text);
    assert_int_equal(strncmp(buf_text(&text), "- \"Pack B in slivers\"", 21), 0);
    /* As long as it may be, and no line is cut. */
    buf_init(&short_one, 1 << 16);
    ask.bytes = 300;
    lesson_chapter(&ask, &short_one);
    assert_true(short_one.length > 0 && short_one.length <= 300);
    assert_int_equal(short_one.data[short_one.length - 1], '\n');
    buf_free(&short_one);
    buf_free(&text);
}

/* No number that its interval does not support. */
static void test_outcome(void **state)
{
    static const struct {
        double change, low, high;
        const char *said;
    } rows[] = {
        {19.005, 2.04, 103.2, "faster, 2x to 100x its parent"},
        {1.3801, 1.3112, 1.4521, "faster, 1.38x its parent (1.31 to 1.45)"},
        {1.41, 1.01, 1.6, "faster, 1.01x to 1.60x its parent"},
        {0.9812, 0.94, 1.02, "no difference, 0.98x its parent (0.94 to 1.02)"},
        {0.5, 0.48, 0.52, "slower, 0.500x its parent (0.480 to 0.520)"},
        {1.4049, 0, 0, "right, 1.40x its parent, measured once"},
        {0, 0, 0, "right, 12.0x the baseline (9.1 to 13.4)"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct lesson lesson = won("r1-c1", "Pack", rows[i].change);
        lesson.change_low = rows[i].low;
        lesson.change_high = rows[i].high;
        lesson.speedup = 11.987;
        lesson.speedup_low = 9.1;
        lesson.speedup_high = 13.4;
        BUF_LOCAL(text, 4096);
        lesson_outcome(&lesson, &text);
        assert_string_equal(buf_text(&text), rows[i].said);
    }
    /* What was gained at least weighs, not the middle of a wide interval. */
    struct lesson ideas[] = {won("r1-c1", "Pack B in slivers", 19), won("r1-c2", "Use fmas", 1.5)};
    ideas[0].change_low = 1.02;
    ideas[0].change_high = 103;
    struct lesson_memory memory = {.ideas = ideas, .idea_count = COUNT(ideas)};
    const struct lesson_ask ask = {.here = &here, .limiter = "", .memory = &memory, .bytes = 4000};
    BUF_LOCAL(text, 1 << 16);
    lesson_chapter(&ask, &text);
    assert_int_equal(strncmp(buf_text(&text), "- \"Use fmas\"", 12), 0);
}

static void test_quotas(void **state)
{
    (void)state;
    struct lesson_memory memory = {0};
    struct lesson_ask ask = {.here = &here, .limiter = "", .memory = &memory};
    struct buf text;
    buf_init(&text, 4096);
    lesson_quotas(&ask, "", 8, &text);
    assert_string_equal(buf_text(&text), ""); /* nothing is known */
    memory.tallies[0] = (struct lesson_tally){"memory", 10, 9, 7, 1.6};
    memory.tallies[1] = (struct lesson_tally){"compute", 20, 20, 0, 0};
    lesson_quotas(&ask, "memory", 8, &text);
    int memory_ideas = 0;
    const char *at = strstr(buf_text(&text), " memory (7 of 10 won)");
    assert_non_null(at);
    assert_int_equal(sscanf(at - 1, "%d", &memory_ideas), 1);
    assert_true(memory_ideas >= 3 && memory_ideas <= 6);
    assert_null(strstr(buf_text(&text), "compute"));
    assert_non_null(strstr(buf_text(&text), " 2 of any kind."));
    buf_reset(&text);
    lesson_quotas(&ask, "memory", 1, &text);
    assert_string_equal(buf_text(&text), ""); /* one idea is nobody's to steer */
    buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cleaned),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_bounded), cmocka_unit_test(test_chapter),
        cmocka_unit_test(test_outcome),        cmocka_unit_test(test_quotas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
