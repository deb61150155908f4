/* `twagent show ID --source`: a file that `eval` takes, whatever came of the candidate. */
#include "check.h"

#include "base/file.h"
#include "cli/archive/archive.h"
#include "cli/options/command.h"
#include "eval/problem/identity.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/twagent-test-XXXXXX";

static void put(struct store_batch *batch, enum store_table table, const char *key,
                const char *text)
{
    store_batch_put(batch, table, key, text, strlen(text));
}

/* r2 is of the definition that ships, r3 of another one that bears its name. */
static void put_relu(struct store_batch *batch)
{
    struct problem *problem;
    struct err err = {0};
    char hash[IDENTITY_BYTES], text[256];
    assert_int_equal(problem_load(TEST_SOURCE_DIR "/problems/relu", &problem, &err), 0);
    problem_identity(problem, hash);
    problem_free(problem);
    snprintf(text, sizeof text,
             "{\"id\":\"r2\",\"problem\":\"relu\",\"problem_hash\":\"%s\","
             "\"state\":\"done\",\"number\":2}",
             hash);
    put(batch, STORE_RUNS, "r2", text);
    put(batch, STORE_RUNS, "r3",
        "{\"id\":\"r3\",\"problem\":\"relu\",\"state\":\"done\",\"number\":3}");
    put(batch, STORE_CANDIDATES, "r3-c1",
        "{\"id\":\"r3-c1\",\"run\":\"r3\",\"name\":\"a.c\",\"number\":1,\"verdict\":\"failed\"}");
}

static int begin(void **state)
{
    struct store *store;
    struct err err = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("TWAGENT_STORE", folder, 1);
    assert_int_equal(store_open(folder, true, false, &store, &err), 0);
    struct store_batch *batch = store_batch_new();
    put(batch, STORE_RUNS, "r1",
        "{\"id\":\"r1\",\"problem\":\"p\",\"state\":\"done\",\"baseline\":\"naive\","
        "\"best\":\"r1-c9\",\"number\":1}");
    put(batch, STORE_CANDIDATES, "r1-c1",
        "{\"id\":\"r1-c1\",\"run\":\"r1\",\"name\":\"a.c\",\"source\":\"of-a\",\"number\":1,"
        "\"tune\":{\"MR\":8},\"state\":\"failed\",\"verdict\":\"failed\"}");
    put(batch, STORE_CANDIDATES, "r1-c2",
        "{\"id\":\"r1-c2\",\"run\":\"r1\",\"name\":\"a.c\",\"source\":\"of-a\",\"number\":2,"
        "\"tune\":{\"MR\":4},\"state\":\"kept\",\"verdict\":\"kernel\",\"speedup\":2,"
        "\"speedup_low\":1.9,\"speedup_high\":2.1}");
    put(batch, STORE_EVALUATIONS, "r1-c2", "{\"baseline\":\"reference\",\"tune\":{\"MR\":4}}");
    put_relu(batch);
    put(batch, STORE_CANDIDATES, "r2-c1",
        "{\"id\":\"r2-c1\",\"run\":\"r2\",\"name\":\"a.c\",\"number\":1,\"verdict\":\"failed\"}");
    put(batch, STORE_SOURCES, "of-a", "/*---\ntune: {MR: [4, 8]}\n---*/\nint x = MR;\n");
    assert_int_equal(store_commit(store, batch, &err), 0);
    store_batch_free(batch);
    store_close(store);
    return 0;
}

static int end(void **state)
{
    struct err ignored;
    (void)state;
    return file_remove_tree(folder, &ignored);
}

static void shown(const char *id, struct buf *text)
{
    struct err err = {0};
    char path[64];
    snprintf(path, sizeof path, "%s/shown.c", folder);
    const struct settings settings = {.source = true, .output = path};
    assert_int_equal(command_show(&settings, &id, 1), 0);
    assert_int_equal(file_read(path, text, &err), 0);
}

/* Its evaluation came to no end: what it was to be measured with is known all the same. */
static void what_failed_has_its_numbers(void **state)
{
    BUF_LOCAL(text, 4096);
    (void)state;
    shown("r1-c1", &text);
    assert_non_null(strstr(buf_text(&text), "  MR: [8]\n"));
    assert_non_null(strstr(buf_text(&text), "p, r1-c1: failed\n"));
}

static void a_kernel_names_its_own_baseline(void **state)
{
    BUF_LOCAL(text, 4096);
    (void)state;
    shown("r1-c2", &text);
    assert_non_null(strstr(buf_text(&text), " reference (95 %: 1.90 to 2.10), as the search"));
}

/* As `twagent mcp` names a folder of its place, and a person with a slash. */
static void a_path_is_its_problem(void **state)
{
    ARENA_LOCAL(arena);
    struct kernel_row *rows;
    size_t count;
    struct err err = {0};
    const struct settings settings = {.store = NULL};
    const struct kernel_query all = {.problem = NULL};
    (void)state;
    assert_int_equal(
        archive_read(&settings, arena, &all, TEST_SOURCE_DIR "/problems/relu", &rows, &count, &err),
        0);
    assert_int_equal(count, 1);
    assert_string_equal(rows[0].id, "r2-c1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_failed_has_its_numbers),
        cmocka_unit_test(a_kernel_names_its_own_baseline),
        cmocka_unit_test(a_path_is_its_problem),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
