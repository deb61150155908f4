/* What an entry is an answer to, who is believed, and when it is told in place of measuring. */
#include "agents/record/record.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cache/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static const char product[] = "name: product\n"
                              "dims: {M: 7, N: 5, K: 3, STEP: 2}\n"
                              "inputs: {A: {shape: [M, K], dtype: float32}, "
                              "B: {shape: [K, N], dtype: float32}}\n"
                              "outputs: {C: {shape: [M, N], dtype: float32}}\n"
                              "reference: ref.py\n"
                              "check: [{M: 1, N: 1, K: 1}]\n";

struct kit {
    struct arena *arena;
    char folder[64];
    const char *store;
    struct problem *problem;
    struct asked asked;
    struct question question;
};

static struct err err;

static const struct value *parse(struct arena *arena, const char *text)
{
    struct value *root = NULL;
    MUST(value_parse_json(arena, "test", text, strlen(text), &root, &err));
    return root;
}

static void put_file(struct kit *kit, const char *name, const char *text)
{
    MUST(
        file_write(arena_printf(kit->arena, "%s/%s", kit->folder, name), text, strlen(text), &err));
}

static const char *key(struct kit *kit)
{
    MUST(question_make(kit->arena, &kit->asked, &kit->question, &err));
    return kit->question.key;
}

static int open_kit(void **state)
{
    struct kit *kit = MEM_NEW(struct kit);
    kit->arena = arena_new();
    strcpy(kit->folder, "/tmp/twagent-test-XXXXXX");
    assert_non_null(mkdtemp(kit->folder));
    kit->store = arena_printf(kit->arena, "%s/store", kit->folder);
    put_file(kit, "spec.yaml", product);
    put_file(kit, "ref.py", "def reference(A, B):\n    return A @ B\n");
    MUST(problem_load(kit->folder, &kit->problem, &err));
    kit->asked = (struct asked){.by = "eval",
                                .problem = kit->problem,
                                .definition = hash_bytes("x", 1),
                                .machine = "m",
                                .twagent = "1",
                                .settings = "{\"effort\": \"full\"}",
                                .file = "k.c",
                                .source = "void kernel(void) {}",
                                .tune = "{\"BM\": 4}",
                                .device = parse(kit->arena,
                                                "{\"cpu\": \"A\", \"cores\": 2, "
                                                "\"flops_per_s\": 5, \"temperature_celsius\": 40, "
                                                "\"copy_bytes_per_s\": 1.5}"),
                                .versions = parse(kit->arena, "{\"gcc\": \"12\"}")};
    key(kit);
    *state = kit;
    return 0;
}

static int close_kit(void **state)
{
    struct kit *kit = *state;
    problem_free(kit->problem);
    (void)!file_remove_tree(kit->folder, &err);
    arena_free(kit->arena);
    mem_free(kit);
    return 0;
}

/* ---- questions ---- */

static void names_are_plain(void **state)
{
    struct kit *kit = *state;
    struct problem hostile = *kit->problem;
    const char *expected = "---pro-duct_i7x3_3x5_o7x5_step2_h";
    hostile.name = "../pro duct";
    kit->asked.problem = &hostile;
    key(kit);
    assert_memory_equal(kit->question.stem, expected, strlen(expected));
    assert_int_equal(strlen(kit->question.stem), strlen(expected) + 12);
    assert_memory_equal(kit->question.stem + strlen(expected), kit->question.key, 12);
}

static void same_is_same(void **state)
{
    struct kit *kit = *state;
    const char *before = kit->question.key, *text = kit->question.text;
    kit->asked.device = parse(kit->arena, "{\"cpu\": \"A\", \"cores\": 2, \"flops_per_s\": 7, "
                                          "\"temperature_celsius\": 80, \"copy_bytes_per_s\": 9}");
    assert_string_equal(key(kit), before);
    assert_string_equal(kit->question.text, text);
}

/* Whatever a verdict depends on makes another question. */
static void everything_counts(void **state)
{
    struct kit *kit = *state;
    const struct asked whole = kit->asked;
    const char *before = kit->question.key;
    struct problem other = *kit->problem;
    struct asked one[13];
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        one[i] = whole;
    one[0].by = "run";
    one[1].definition = hash_bytes("y", 1);
    one[2].machine = "n";
    one[3].twagent = "2";
    one[4].settings = "{\"effort\": \"final\"}";
    one[5].file = "k.cc";
    one[6].source = "void kernel(void) {;}";
    one[7].tune = "{\"BM\": 5}";
    one[8].device = parse(kit->arena, "{\"cpu\": \"A\", \"cores\": 3}");
    one[9].versions = parse(kit->arena, "{\"gcc\": \"13\"}");
    other.inputs[1].dtype = DTYPE_FLOAT64;
    one[10].problem = &other;
    one[11].tune = NULL;
    one[12].compilers = "[{\"triton\": \"3.9.0\"}]";
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
        kit->asked = one[i];
        assert_string_not_equal(key(kit), before);
    }
    other.inputs[1].dtype = kit->problem->inputs[1].dtype;
    other.shapes[0].number[0] = 8;
    kit->asked = whole;
    kit->asked.problem = &other;
    assert_string_not_equal(key(kit), before);
}

/* ---- entries ---- */

static struct evaluation kernel(void)
{
    struct evaluation evaluation = evaluation_empty();
    evaluation.verdict = VERDICT_KERNEL;
    evaluation.finding = FINDING_FASTER;
    evaluation.speedup = (struct interval){.median = 2, .low = 1.9, .high = 2.1, .samples = 20};
    evaluation.time_ns = (struct interval){.median = 5, .low = 4, .high = 6, .samples = 20};
    evaluation.checks_passed = evaluation.checks_total = 40;
    evaluation.baseline = "naive";
    evaluation.device = evaluation.versions = evaluation.tune = evaluation.metrics = "{}";
    evaluation.baselines = "{}";
    return evaluation;
}

static const char *keep(struct kit *kit, const struct evaluation *evaluation)
{
    struct cache *cache = NULL;
    const char *name = NULL;
    MUST(cache_open(kit->store, true, &cache, &err));
    MUST(cache_keep_eval(cache, kit->arena, &kit->question, kit->folder, "k.c", kit->asked.source,
                         evaluation, &name, &err));
    cache_close(cache);
    return name;
}

static bool find(struct kit *kit, struct cache_entry *entry)
{
    struct cache *cache = NULL;
    *entry = (struct cache_entry){.name = ""};
    if (cache_open(kit->store, false, &cache, &err))
        return false;
    bool found = cache_find(cache, kit->arena, &kit->question, entry);
    cache_close(cache);
    return found;
}

static char *copy_of(struct kit *kit, const char *name)
{
    return arena_printf(kit->arena, "%s/cache/%s", kit->store, name);
}

static void a_kernel_is_told_again(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry;
    struct evaluation evaluation = kernel();
    struct cache *cache = NULL;
    assert_int_equal(cache_open(kit->store, false, &cache, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    const char *name = keep(kit, &evaluation);
    assert_memory_equal(name, "c_", 2);
    assert_true(find(kit, &entry) && cache_is_answer(&entry));
    assert_string_equal(entry.source, kit->asked.source);
    assert_true(entry.evaluation.speedup.high == 2.1);
    assert_true(file_exists(copy_of(kit, name)));
    kit->asked.source = "another";
    key(kit);
    assert_false(find(kit, &entry));
}

static void what_is_not_settled_is_not(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry;
    struct evaluation unsettled[8];
    size_t count = sizeof unsettled / sizeof unsettled[0];
    for (size_t i = 0; i < count; i++)
        unsettled[i] = kernel();
    unsettled[0].finding = FINDING_NOISY;
    unsettled[1].finding = FINDING_NONE;
    unsettled[2].unfit = "zeros pass";
    unsettled[3].unconfined = "NOT SANDBOXED";
    unsettled[4].dropped = true;
    unsettled[5].checks_passed = 39;
    unsettled[6].speedup.low = 1.4;
    unsettled[7].checks_passed = unsettled[7].checks_total = 0;
    for (size_t i = 0; i < count; i++) {
        assert_memory_equal(keep(kit, &unsettled[i]), "c_", 2);
        assert_true(find(kit, &entry));
        if (cache_is_answer(&entry))
            fail_msg("row %zu is told again", i);
    }
}

/* The same question, answered anew: one entry, and its name says which. */
static void a_rejected_one_never_is(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry, *entries;
    struct evaluation evaluation = kernel();
    struct cache *cache = NULL;
    size_t count, damaged;
    const char *accepted = keep(kit, &evaluation);
    evaluation.verdict = VERDICT_REJECTED;
    evaluation.reason = "wrong";
    const char *rejected = keep(kit, &evaluation);
    assert_memory_equal(rejected, "r_", 2);
    assert_string_equal(rejected + 2, accepted + 2);
    assert_true(find(kit, &entry) && !cache_is_answer(&entry));
    assert_false(file_exists(copy_of(kit, accepted)));
    MUST(cache_open(kit->store, true, &cache, &err));
    MUST(cache_list(cache, kit->arena, &entries, &count, &damaged, &err));
    assert_int_equal(count, 1);
    const struct cache_entry *gone[] = {entries};
    MUST(cache_remove(cache, gone, 1, &err));
    cache_close(cache);
    assert_false(file_exists(copy_of(kit, rejected)) || find(kit, &entry));
}

/* ---- who is believed ---- */

static void a_copy_is_not_read(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry;
    struct evaluation evaluation = kernel();
    const char *name = keep(kit, &evaluation);
    MUST(file_write(copy_of(kit, name), "{}", 2, &err));
    assert_true(find(kit, &entry) && entry.evaluation.speedup.median == 2);
}

static void others_are_not_believed(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry;
    struct evaluation evaluation = kernel();
    struct cache *cache = NULL;
    const char *name;
    keep(kit, &evaluation);
    const char *const paths[] = {copy_of(kit, ""), copy_of(kit, "data.mdb")};
    for (size_t i = 0; i < 2; i++) {
        struct stat status;
        assert_int_equal(stat(paths[i], &status), 0);
        assert_int_equal(chmod(paths[i], i ? 0662 : 0770), 0);
        assert_false(find(kit, &entry));
        assert_int_equal(err.code, ERR_ENVIRONMENT);
        assert_int_equal(cache_open(kit->store, true, &cache, &err), -1);
        assert_int_equal(chmod(paths[i], status.st_mode & 07777), 0);
        assert_true(find(kit, &entry));
    }
    MUST(cache_remove_all(kit->store, &err));
    name = keep(kit, &evaluation);
    assert_non_null(name);
}

/* Whoever moves a record, or changes what it says it answers, has an entry of nothing. */
static void a_moved_record_answers_nothing(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry, *entries;
    struct evaluation evaluation = kernel();
    struct store *store = NULL;
    struct cache *cache = NULL;
    size_t count, damaged;
    BUF_LOCAL(text, 1 << 20);
    keep(kit, &evaluation);
    const char *first = kit->question.key;
    MUST(store_open(copy_of(kit, ""), false, false, &store, &err));
    MUST(store_get(store, STORE_EVALUATIONS, first, &text, &err));
    kit->asked.source = "a cheat";
    key(kit);
    struct store_batch *batch = store_batch_new();
    store_batch_put(batch, STORE_EVALUATIONS, kit->question.key, buf_text(&text), text.length);
    store_batch_put(batch, STORE_EVALUATIONS, "nonsense", "{", 1);
    MUST(store_commit(store, batch, &err));
    store_batch_free(batch);
    store_close(store);
    assert_false(find(kit, &entry));
    MUST(cache_open(kit->store, false, &cache, &err));
    MUST(cache_list(cache, kit->arena, &entries, &count, &damaged, &err));
    assert_int_equal(count, 1);
    assert_int_equal(damaged, 2);
    cache_close(cache);
}

static void damage_is_no_answer(void **state)
{
    struct kit *kit = *state;
    struct cache_entry entry;
    struct evaluation evaluation = kernel();
    BUF_LOCAL(text, 16 << 20);
    keep(kit, &evaluation);
    const char *path = copy_of(kit, "data.mdb");
    MUST(file_read(path, &text, &err));
    for (size_t at = 0; at < text.length; at += 997) {
        text.data[at] = (char)(text.data[at] ^ 0x41);
        FILE *file = fopen(path, "r+");
        assert_non_null(file);
        assert_int_equal(fwrite(text.data, 1, text.length, file), text.length);
        fclose(file);
        if (find(kit, &entry)) /* the byte was none of the entry's */
            assert_true(entry.evaluation.speedup.median == 2 &&
                        entry.evaluation.checks_total == 40);
        text.data[at] = (char)(text.data[at] ^ 0x41);
    }
}

/* ---- runs ---- */

static void put_record(struct store_batch *batch, enum store_table table, const char *name,
                       const struct buf *text)
{
    store_batch_put(batch, table, name, buf_text(text), text->length);
}

static struct run_record plain_run(struct kit *kit)
{
    BUF_LOCAL(text, 1 << 16);
    struct run_record run;
    const char empty[] = "{\"id\": \"r1\"}";
    buf_add_text(&text, empty);
    MUST(run_record_decode(kit->arena, buf_text(&text), text.length, &run, &err));
    run.problem = "product";
    run.problem_file = kit->folder;
    run.state = "done";
    run.best = "r1-c1";
    run.options = "{\"seed\": 7}";
    run.win = run.verified = true;
    run.started_ms = 1000;
    return run;
}

static void write_run(struct kit *kit, const struct run_record *run)
{
    struct store *store = NULL;
    struct candidate_record candidate;
    struct evaluation evaluation = kernel();
    const char bare[] = "{\"id\": \"r1-c1\", \"run\": \"r1\"}";
    MUST(candidate_record_decode(kit->arena, bare, strlen(bare), &candidate, &err));
    candidate.name = "k.c";
    candidate.source = "abc";
    BUF_LOCAL(records, 1 << 16);
    struct store_batch *batch = store_batch_new();
    run_record_encode(run, &records);
    put_record(batch, STORE_RUNS, "r1", &records);
    buf_reset(&records);
    candidate_record_encode(&candidate, &records);
    put_record(batch, STORE_CANDIDATES, "r1-c1", &records);
    buf_reset(&records);
    struct json json = {.out = &records};
    evaluation_to_json(&evaluation, &json);
    put_record(batch, STORE_EVALUATIONS, "r1-c1", &records);
    put_record(batch, STORE_EVALUATIONS, "r1-c1-final", &records);
    store_batch_put(batch, STORE_SOURCES, "abc", "source", 6);
    MUST(store_open(kit->store, true, false, &store, &err));
    MUST(store_commit(store, batch, &err));
    store_batch_free(batch);
    store_close(store);
}

static void keep_run(struct kit *kit)
{
    struct cache *cache = NULL;
    const char *name = NULL;
    kit->asked.by = "run";
    kit->asked.source = NULL;
    key(kit);
    MUST(cache_open(kit->store, true, &cache, &err));
    MUST(cache_keep_run(cache, kit->arena, &kit->question, "r1", &name, &err));
    cache_close(cache);
}

static bool run_is_told(struct kit *kit)
{
    struct cache_entry entry;
    return find(kit, &entry) && cache_is_answer(&entry) && entry.seed == 7 &&
           strcmp(entry.source, "source") == 0;
}

/* What a run found stands in the run's records alone. */
static void a_run_is_named(void **state)
{
    struct kit *kit = *state;
    struct run_record run = plain_run(kit);
    struct cache_entry entry;
    write_run(kit, &run);
    keep_run(kit);
    assert_true(run_is_told(kit));
    run.stopped = "budget: a time of 0:25";
    write_run(kit, &run);
    assert_true(find(kit, &entry) && !cache_is_answer(&entry)); /* more time finds more */
    run.stopped = "";
    run.verified = false;
    write_run(kit, &run);
    assert_true(find(kit, &entry) && !cache_is_answer(&entry));
    run.verified = true;
    run.started_ms = 2000; /* the r1 of another store in the same place */
    write_run(kit, &run);
    assert_false(find(kit, &entry));
    run.started_ms = 1000;
    write_run(kit, &run);
    assert_true(run_is_told(kit));
    assert_int_equal(chmod(kit->store, 0777), 0);
    assert_false(find(kit, &entry));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_are_plain, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(same_is_same, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(everything_counts, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(a_kernel_is_told_again, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(what_is_not_settled_is_not, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(a_rejected_one_never_is, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(a_copy_is_not_read, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(others_are_not_believed, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(a_moved_record_answers_nothing, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(damage_is_no_answer, open_kit, close_kit),
        cmocka_unit_test_setup_teardown(a_run_is_named, open_kit, close_kit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
