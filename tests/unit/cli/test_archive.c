/* The archive's commands over a store that holds what a hostile model would write. With two
 * arguments: unit_cli_test_archive DIR N fills a store with N candidates, to time them by hand. */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "cli/archive/archive.h"
#include "cli/options/command.h"
#include "facts/summary.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
static const char *const hostile[] = {
    "plain", "it's \"quoted\", twice: '' \"\"", "two\nlines\r\n, a comma", "'); DROP TABLE kernels; --",
    "\x1b[31mred\x07", "no utf-8: \xff\xc0\x80", "right to left: \xe2\x80\xae x \xe2\x81\xa6", "=1+1", "\xc2\x9b",
    "</script><script>"};
/* clang-format on */
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

static void put_candidate(struct store_batch *batch, int64_t number, const char *words)
{
    char id[32], idea_id[32], parent[32], hash[32];
    struct buf text;
    bool right = number % 3 != 0;
    snprintf(id, sizeof id, "r1-c%lld", (long long)number);
    snprintf(idea_id, sizeof idea_id, "r1-i%lld", (long long)number);
    snprintf(parent, sizeof parent, "r1-c%lld", (long long)(number - 1));
    snprintf(hash, sizeof hash, "hash%lld", (long long)number);
    const struct candidate_record candidate = {.id = id,
                                               .run = "r1",
                                               .idea = idea_id,
                                               .parent = number > 1 ? parent : "",
                                               .name = "a.c",
                                               .source = hash,
                                               .tune = "{\"MR\": 8}",
                                               .identity = hash,
                                               .state = right ? "kept" : "rejected",
                                               .duplicate_of = "",
                                               .verdict = right ? "kernel" : "rejected",
                                               .reason = right ? "" : words,
                                               .time_ns = 1e6 / (double)number,
                                               .speedup = (double)number,
                                               .speedup_low = (double)number - 0.25,
                                               .speedup_high = (double)number + 0.25,
                                               .number = number,
                                               .round = 1 + number / 16,
                                               .failure = "",
                                               .diagnostics = "",
                                               .first_failure = ""};
    const struct idea_record idea = {
        .id = idea_id, .run = "r1", .parent = "", .title = words, .category = words, .why = words};
    buf_init(&text, 1 << 20);
    candidate_record_encode(&candidate, &text);
    store_batch_put(batch, STORE_CANDIDATES, id, buf_text(&text), text.length);
    buf_reset(&text);
    idea_record_encode(&idea, &text);
    store_batch_put(batch, STORE_IDEAS, idea_id, buf_text(&text), text.length);
    store_batch_put(batch, STORE_SOURCES, hash, words, strlen(words));
    buf_reset(&text);
    buf_addf(&text, "{\"wall_ms\": %lld, \"kind\": \"candidate.move\", \"subject\": \"%s\"}",
             1795353815826LL + (long long)number, id);
    store_batch_put(batch, STORE_EVENTS, id, buf_text(&text), text.length);
    buf_reset(&text);
    buf_addf(&text, "{\"ask\": \"%s\", \"model\": \"m%lld\", \"micro_dollars\": 7}", id,
             (long long)number % 2);
    store_batch_put(batch, STORE_SPENDING, id, buf_text(&text), text.length);
    buf_free(&text);
}

static void fill(const char *folder, int64_t count)
{
    struct store *store;
    struct err err = {0};
    struct buf text;
    const struct run_record run = {.id = "r1",
                                   .problem = "p",
                                   .problem_file = "/p/spec.yaml@M=64",
                                   .backend = "cpu",
                                   .state = "done",
                                   .context = "{\"device\": {\"cpu\": \"a\", \"cores\": 2}}",
                                   .baseline = "naive",
                                   .best = "r1-c2",
                                   .finding = "faster",
                                   .win = true,
                                   .verified = true,
                                   .time_ns = 5e5,
                                   .speedup = 2,
                                   .speedup_low = 1.9,
                                   .speedup_high = 2.1,
                                   .number = 1};
    assert_int_equal(store_open(folder, true, false, &store, &err), 0);
    struct store_batch *batch = store_batch_new();
    buf_init(&text, 1 << 20);
    run_record_encode(&run, &text);
    store_batch_put(batch, STORE_RUNS, "r1", buf_text(&text), text.length);
    for (int64_t i = 1; i <= count; i++)
        put_candidate(batch, i, hostile[i % HOSTILE]);
    store_batch_put(batch, STORE_EVALUATIONS, "r1-c1", "{\"baseline\":\"reference\"}", 24);
    assert_int_equal(store_commit(store, batch, &err), 0);
    store_batch_free(batch);
    buf_free(&text);
    store_close(store);
}

static char folder[] = "/tmp/twagent-test-XXXXXX";

static int begin(void **state)
{
    (void)state, assert_non_null(mkdtemp(folder));
    setenv("TWAGENT_STORE", folder, 1);
    fill(folder, 60);
    return 0;
}

static int end(void **state)
{
    struct err ignored;
    (void)state;
    return file_remove_tree(folder, &ignored);
}

static void export_as(const char *format)
{
    char path[128];
    snprintf(path, sizeof path, "%s/kernels.%s", folder, format);
    const struct settings settings = {.format = format, .output = path};
    assert_int_equal(command_export(&settings, NULL, 0), 0);
}

/* SQLite and Python's csv read the same rows and values as the JSON lines have. */
static void every_format_says_the_same(void **state)
{
    char command[4096];
    (void)state;
    export_as("jsonl");
    export_as("csv");
    export_as("sql");
    snprintf(command, sizeof command, "/usr/bin/python3 %s/tests/tools/exports %s/kernels",
             TEST_SOURCE_DIR, folder);
    assert_int_equal(system(command), 0);
}

static void rows_say_what_the_store_has(void **state)
{
    struct arena *arena = arena_new();
    struct kernel_row *rows;
    size_t count;
    struct err err = {0};
    const struct settings settings = {.store = NULL};
    (void)state;
    const struct kernel_query query = {.code = true, .evaluation = true};
    assert_int_equal(archive_read(&settings, arena, &query, "p", &rows, &count, &err), 0);
    assert_int_equal(count, 60);
    assert_string_equal(rows[0].size, "M=64");
    assert_string_equal(rows[0].device, "a, 2 cores");
    assert_string_equal(rows[0].model, "m1");
    assert_true(rows[0].micro_dollars == 7 && rows[0].decided_ms == 1795353815827);
    assert_string_equal(rows[0].code, hostile[1]);
    assert_true(rows[1].verified && rows[1].champion && rows[1].latency_ns == 5e5);
    assert_string_equal(rows[1].finding, "faster");
    assert_string_equal(rows[1].baseline, "naive"); /* the fastest: its own list in `history` */
    assert_string_equal(rows[3].baseline, "reference");
    assert_false(rows[2].correct);
    assert_true(rows[2].speedup == 0); /* of what is no kernel there is none */
    assert_int_equal(archive_read(&settings, arena, &query, "q", &rows, &count, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    arena_free(arena);
}

static struct kernel_row row(const char *id, const char *parent, uint64_t at, double low,
                             double high)
{
    return (struct kernel_row){.id = id,
                               .parent = parent,
                               .duplicate_of = "",
                               .model = "m",
                               .finding = "",
                               .verdict = "kernel",
                               .correct = true,
                               .decided_ms = at,
                               .speedup = (low + high) / 2,
                               .speedup_low = low,
                               .speedup_high = high,
                               .searched = {(low + high) / 2, low, high}};
}

static void steps_go_by_the_lower_end(void **state)
{
    struct arena *arena = arena_new();
    const struct kernel_row rows[] = {row("d", "", 40, 1.3, 1.5), row("a", "", 10, 1.0, 1.2),
                                      row("b", "", 20, 0.1, 90), row("c", "", 30, 1.1, 1.3)};
    const struct kernel_row *all[] = {&rows[0], &rows[1], &rows[2], &rows[3]};
    struct step *steps;
    size_t count;
    (void)state;
    summary_steps(arena, all, 4, &steps, &count);
    assert_int_equal(count, 3);
    assert_string_equal(steps[0].row->id, "a");
    assert_string_equal(steps[1].row->id, "c"); /* b, "90x", is not known to be above 0.1 */
    assert_false(steps[1].clear);
    assert_string_equal(steps[2].row->id, "d");
    arena_free(arena);
}

static void groups_count_what_paid(void **state)
{
    struct arena *arena = arena_new();
    struct kernel_row rows[] = {
        row("r1-c1", "", 10, 1.0, 1.2),       row("r1-c2", "r1-c1", 20, 1.3, 1.5),
        row("r1-c10", "r1-c1", 30, 1.1, 1.4), row("r1-c3", "", 40, 0, 0),
        row("r1-c4", "", 50, 0, 0),           row("r1-c5", "r1-c1", 60, 1.3, 1.5)};
    struct summary *groups;
    size_t count;
    (void)state;
    rows[3].correct = rows[4].correct = false;
    rows[3].verdict = rows[4].verdict = "rejected";
    rows[3].reason = "element 12 is 1.5", rows[4].reason = "element 7 is 23.75";
    rows[1].verified = true, rows[1].finding = "faster";
    rows[1].speedup = rows[1].speedup_low = rows[1].speedup_high = 0.5; /* over a faster baseline */
    rows[5].duplicate_of = "r1-c2", rows[5].micro_dollars = 7; /* paid for, and never measured */
    summary_make(arena, rows, 6, SUMMARY_MODEL, &groups, &count);
    assert_int_equal(groups[0].evaluated, 5);
    assert_int_equal(groups[0].kernels, 3);
    assert_int_equal(groups[0].better, 1);
    assert_int_equal(groups[0].wins, 1);
    assert_int_equal(groups[0].gain.samples + (size_t)groups[0].micro_dollars, 2 + 7);
    summary_make(arena, rows, 5, SUMMARY_REASON, &groups, &count);
    assert_int_equal(count, 1); /* but for the numbers they are one */
    assert_string_equal(groups[0].name, "rejected: element # is #.#");
    arena_free(arena);
}

static void nothing_moves_the_cursor(void **state)
{
    static const struct {
        const char *text, *shown;
        size_t most;
    } cases[] = {
        {"a\tb\nc", "a\tb\nc", 0},
        {"a\nb", "a", 9},
        {"\x1b[31m", "\\x1b[31m", 0},
        {"\xe2\x80\xae|\xe2\x81\xa6|\xe2\x82\xac", "\\u202e|\\u2066|\xe2\x82\xac", 0},
        {"\xff\xc2\x9b\x7f", "\\xff\\u009b\\x7f", 0},
    };
    struct buf out;
    (void)state;
    buf_init(&out, 4096);
    for (size_t i = 0; i < COUNT(cases); i++) {
        buf_reset(&out);
        archive_visible(cases[i].text, cases[i].most, &out);
        assert_string_equal(buf_text(&out), cases[i].shown);
    }
    buf_free(&out);
}

/* ---- the report's page ---- */

static size_t times_in(const char *text, const char *words)
{
    size_t count = 0;
    for (; (text = strstr(text, words)) != NULL; text++)
        count++;
    return count;
}

/* Nothing that a run holds ends a script, begins one, or is a character that hides. */
static void a_page_is_only_its_own(void **state)
{
    char path[128];
    struct buf page;
    struct err err = {0};
    (void)state;
    snprintf(path, sizeof path, "%s/report.html", folder);
    const struct settings settings = {.html = true, .output = path};
    const char *const run[] = {"r1"};
    assert_int_equal(command_report(&settings, run, 1), 0);
    buf_init(&page, 16 << 20);
    assert_int_equal(file_read(path, &page, &err), 0);
    assert_int_equal(times_in(buf_text(&page), "<script"), 2);
    assert_int_equal(times_in(buf_text(&page), "</script"), 2);
    assert_int_equal(times_in(buf_text(&page), "<!--"), 0);
    assert_int_equal(times_in(buf_text(&page), "\x1b"), 0);
    assert_non_null(strstr(buf_text(&page), "default-src 'none'"));
    assert_non_null(strstr(buf_text(&page), "\\u003c/script>"));
    buf_free(&page);
}

/* ---- gc ---- */

static void put_text(struct store_batch *batch, enum store_table table, const char *key,
                     const char *text)
{
    store_batch_put(batch, table, key, text, strlen(text));
}

/* A run that found nothing, and answers: of it alone, of a candidate that stays, of both. */
static void add_loser(void)
{
    struct store *store;
    struct err err = {0};
    assert_int_equal(store_open(folder, false, false, &store, &err), 0);
    struct store_batch *batch = store_batch_new();
    put_text(batch, STORE_RUNS, "r2",
             "{\"id\":\"r2\",\"problem\":\"p\",\"state\":\"done\",\"number\":2}");
    put_text(batch, STORE_CANDIDATES, "r2-c1",
             "{\"id\":\"r2-c1\",\"source\":\"of-r2\",\"number\":1}");
    put_text(batch, STORE_SOURCES, "of-r2", "int x;");
    put_text(batch, STORE_LESSONS, "p/1", "{}");
    put_text(batch, STORE_COMPLETIONS, "k1", "{\"run\":\"r2\",\"asker\":\"r2-c1\"}");
    put_text(batch, STORE_COMPLETIONS, "k2", "{\"run\":\"r1\",\"asker\":\"r1-c2\"}");
    put_text(
        batch, STORE_COMPLETIONS, "k3",
        "{\"run\":\"r2\",\"asker\":\"r2-c1\",\"also\":[{\"run\":\"r1\",\"asker\":\"r1-c1\"}]}");
    put_text(batch, STORE_COMPLETIONS, "k4", "{\"run\":\"r1\",\"asker\":\"r1-c9\"}");
    assert_int_equal(store_commit(store, batch, &err), 0);
    store_batch_free(batch);
    store_close(store);
}

static size_t left_in(struct store *store, enum store_table table)
{
    size_t count;
    struct err err = {0};
    assert_int_equal(store_count(store, table, "", &count, &err), 0);
    return count;
}

static void winners_outlive_gc(void **state)
{
    struct settings settings = {.search.dry_run = true, .older_than_ms = 1};
    struct store *store;
    struct err err = {0};
    (void)state;
    add_loser();
    assert_int_equal(command_gc(&settings, NULL, 0), 0);
    settings.search.dry_run = false;
    settings.older_than_ms = 0;
    settings.max_size = INT64_C(1) << 40; /* it fits: nothing goes */
    assert_int_equal(command_gc(&settings, NULL, 0), 0);
    settings.older_than_ms = INT64_C(100) * 365 * 86400000; /* nothing is that old */
    assert_int_equal(command_gc(&settings, NULL, 0), 0);
    assert_int_equal(store_open(folder, false, true, &store, &err), 0);
    assert_int_equal(left_in(store, STORE_CANDIDATES), 61);
    assert_int_equal(left_in(store, STORE_COMPLETIONS), 4);
    store_close(store);
    settings.max_size = 1; /* whatever may go goes */
    assert_int_equal(command_gc(&settings, NULL, 0), 0);
    assert_int_equal(store_open(folder, false, true, &store, &err), 0);
    assert_int_equal(left_in(store, STORE_RUNS), 1);
    assert_true(store_has(store, STORE_CANDIDATES, "r1-c1")); /* what the best came from */
    assert_true(store_has(store, STORE_CANDIDATES, "r1-c2"));
    assert_int_equal(left_in(store, STORE_CANDIDATES), 2);
    assert_int_equal(left_in(store, STORE_IDEAS), 2);
    assert_int_equal(left_in(store, STORE_SOURCES), 2);
    assert_true(store_has(store, STORE_COMPLETIONS, "k2"));
    assert_true(store_has(store, STORE_COMPLETIONS, "k3"));
    assert_int_equal(left_in(store, STORE_COMPLETIONS), 2);
    assert_int_equal(left_in(store, STORE_LESSONS), 1);
    assert_int_equal(left_in(store, STORE_SPENDING), 60); /* money that was spent */
    store_close(store);
    assert_int_equal(command_gc(&settings, NULL, 0), 0); /* again: nothing is left to do */
}

/* ---- gc that is killed ---- */

enum { LOSERS = 12, OF_EACH = 8, KILLS = 30 };

static void put_loser(struct store_batch *batch, int run)
{
    char key[32], text[96];
    snprintf(key, sizeof key, "r%d", run);
    snprintf(text, sizeof text, "{\"id\":\"r%d\",\"problem\":\"p\",\"number\":%d}", run, run);
    put_text(batch, STORE_RUNS, key, text);
    for (int i = 1; i <= OF_EACH; i++) {
        snprintf(key, sizeof key, "of-r%d-c%d", run, i);
        snprintf(text, sizeof text, "{\"id\":\"%s\",\"source\":\"%s\"}", key + 3, key);
        put_text(batch, STORE_CANDIDATES, key + 3, text);
        put_text(batch, STORE_SOURCES, key, "int x;");
    }
}

/* In a process of its own, killed after a while; 0: not. Microseconds that it took. */
static uint64_t collect(const char *where, uint64_t kill_us)
{
    const struct settings settings = {.older_than_ms = 1, .max_size = 1};
    uint64_t began = clock_now_ns();
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("TWAGENT_STORE", where, 1);
        _exit(freopen("/dev/null", "w", stdout) == NULL || command_gc(&settings, NULL, 0) != 0);
    }
    int status;
    if (kill_us > 0) {
        usleep((useconds_t)kill_us);
        kill(child, SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (kill_us == 0)
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return (clock_now_ns() - began) / 1000;
}

/* A run is there whole, with its sources, or it is not there; how many are. */
static int losers_in(struct store *store)
{
    int found = 0;
    char key[32];
    for (int run = 2; run < 2 + LOSERS; run++) {
        snprintf(key, sizeof key, "r%d", run);
        bool there = store_has(store, STORE_RUNS, key);
        for (int i = 1; i <= OF_EACH; i++) {
            snprintf(key, sizeof key, "of-r%d-c%d", run, i);
            assert_int_equal(store_has(store, STORE_CANDIDATES, key + 3), there);
            assert_true(!there || store_has(store, STORE_SOURCES, key));
        }
        found += there;
    }
    return found;
}

static void check_winners(struct store *store)
{
    ARENA_LOCAL(arena);
    struct run_record *runs;
    struct candidate_record candidate;
    struct err err = {0};
    size_t count;
    assert_int_equal(history_runs(store, arena, &runs, &count, &err), 0);
    assert_string_equal(runs[0].best, "r1-c2");
    for (const char *const *id = (const char *const[]){"r1-c1", "r1-c2", NULL}; *id; id++) {
        assert_int_equal(history_candidate(store, arena, *id, &candidate, &err), 0);
        assert_non_null(history_source(store, arena, &candidate));
        assert_true(store_has(store, STORE_IDEAS, candidate.idea));
    }
}

/* kill -9 at any moment of a gc leaves a store that reads, winners in it and no half of a run, and
 * the next one does the rest. */
static void a_killed_gc_breaks_nothing(void **state)
{
    struct store *store;
    struct random random;
    struct err err = {0};
    uint64_t whole_us = 0;
    char whole[sizeof folder + 8], part[sizeof folder + 8];
    (void)state;
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(part, sizeof part, "%s/part", folder);
    fill(whole, 60);
    assert_int_equal(store_open(whole, false, false, &store, &err), 0);
    struct store_batch *batch = store_batch_new();
    for (int run = 2; run < 2 + LOSERS; run++)
        put_loser(batch, run);
    assert_int_equal(store_commit(store, batch, &err), 0);
    store_batch_free(batch);
    store_close(store);
    random_init(&random, random_seed());
    for (int i = 0; i <= KILLS;
         i++) { /* the first one is let through, and says how long it takes */
        assert_int_equal(store_backup(whole, part, &err), 0);
        uint64_t took = collect(part, i == 0 ? 0 : 1 + random_below(&random, whole_us));
        whole_us = i == 0 ? took : whole_us;
        assert_int_equal(store_open(part, false, false, &store, &err), 0);
        check_winners(store);
        assert_true(losers_in(store) == 0 || i > 0);
        store_close(store);
        collect(part, 0);
        assert_int_equal(store_open(part, false, true, &store, &err), 0);
        check_winners(store);
        assert_int_equal(left_in(store, STORE_CANDIDATES), 2);
        assert_int_equal(left_in(store, STORE_SOURCES), 2);
        store_close(store);
        assert_int_equal(file_remove_tree(part, &err), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_says_the_same), cmocka_unit_test(rows_say_what_the_store_has),
        cmocka_unit_test(steps_go_by_the_lower_end),  cmocka_unit_test(groups_count_what_paid),
        cmocka_unit_test(nothing_moves_the_cursor),   cmocka_unit_test(a_page_is_only_its_own),
        cmocka_unit_test(winners_outlive_gc),         cmocka_unit_test(a_killed_gc_breaks_nothing),
    };
    if (argc == 3) {
        fill(argv[1], atoll(argv[2]));
        return 0;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
