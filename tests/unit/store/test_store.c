#include "support.h"

#include <fcntl.h>
#include <sys/stat.h>

static void test_put_get_remove(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct err err;
    assert_int_equal(get_code(store, STORE_RUNS, "r1"), ERR_NOT_FOUND);
    put(store, STORE_RUNS, "r1", "{}");
    put(store, STORE_CANDIDATES, "r1", "another table");
    expect(store, STORE_RUNS, "r1", "{}");
    expect(store, STORE_CANDIDATES, "r1", "another table");
    put(store, STORE_RUNS, "r1", "");
    expect(store, STORE_RUNS, "r1", "");
    assert_true(store_has(store, STORE_RUNS, "r1"));
    assert_false(store_has(store, STORE_RUNS, "r01"));
    struct store_batch *batch = store_batch_new();
    assert_true(store_batch_empty(batch));
    store_batch_remove(batch, STORE_RUNS, "r1");
    store_batch_remove(batch, STORE_RUNS, "r2"); /* not there: no error */
    store_batch_put(batch, STORE_IDEAS, "r1-i1", "first", 5);
    store_batch_put(batch, STORE_IDEAS, "r1-i1", "second", 6);
    assert_false(store_batch_empty(batch));
    must(store_commit(store, batch, &err), &err);
    store_batch_free(batch);
    assert_int_equal(get_code(store, STORE_RUNS, "r1"), ERR_NOT_FOUND);
    expect(store, STORE_IDEAS, "r1-i1", "second");
    store_close(store);
    store = open_store(folder); /* and from the disk */
    expect(store, STORE_IDEAS, "r1-i1", "second");
    expect(store, STORE_CANDIDATES, "r1", "another table");
    store_close(store);
    remove_folder(folder);
}

struct seen {
    char text[512];
    int stop_after; /* 0: never */
};

static bool note(void *context, const char *key, const char *value, size_t length)
{
    struct seen *seen = context;
    assert_int_equal(strlen(value), length);
    strcat(seen->text, key);
    strcat(seen->text, " ");
    return seen->stop_after == 0 || --seen->stop_after > 0;
}

static void test_scan(void **state)
{
    (void)state;
    static const struct {
        const char *prefix, *keys;
        size_t count;
        int stop_after;
    } cases[] = {
        {"", "r1-c1 r3 r3-c1 r3-c2 r3-c9 r3-c10 r3-c17 r3-c100 r3-x r10-c1 r30 ", 11, 0},
        {"r3-", "r3-c1 r3-c2 r3-c9 r3-c10 r3-c17 r3-c100 r3-x ", 7, 0},
        {"r3-c", "r3-c1 r3-c2 r3-c9 r3-c10 r3-c17 r3-c100 ", 6, 0},
        {"r3-c1", "r3-c1 r3-c10 r3-c17 r3-c100 ", 4, 0},
        {"r3", "r3 r3-c1 r3-c2 r3-c9 r3-c10 r3-c17 r3-c100 r3-x r30 ", 9, 0},
        {"r3-c17", "r3-c17 ", 1, 0},
        {"r03", "", 0, 0},
        {"zebra", "", 0, 0},
        {"r3-c", "r3-c1 r3-c2 r3-c9 ", 6, 3},
    };
    char *folder = new_folder();
    struct store *store = open_store(folder);
    static const char *const keys[] = {"r3-c10", "r30",    "r3-c2",   "r1-c1", "r3-x", "r3-c1",
                                       "r3-c17", "r10-c1", "r3-c100", "r3",    "r3-c9"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put(store, STORE_CANDIDATES, keys[i], "v");
    put(store, STORE_EVALUATIONS, "r3-c3", "v");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = {.stop_after = cases[i].stop_after};
        struct err err;
        size_t count;
        must(store_scan(store, STORE_CANDIDATES, cases[i].prefix, note, &seen, &err), &err);
        assert_string_equal(seen.text, cases[i].keys);
        must(store_count(store, STORE_CANDIDATES, cases[i].prefix, &count, &err), &err);
        assert_int_equal(count, cases[i].count);
    }
    store_close(store);
    remove_folder(folder);
}

struct nested {
    struct store *store;
    int visits;
};

static bool commit_inside(void *context, const char *key, const char *value, size_t length)
{
    struct nested *nested = context;
    (void)value, (void)length;
    char other[64];
    snprintf(other, sizeof other, "%s-new", key);
    put(nested->store, STORE_RUNS, other, "written while scanning");
    expect(nested->store, STORE_RUNS, other, "written while scanning");
    nested->visits++;
    return true;
}

/* A scan reads one snapshot: what is committed meanwhile is not visited. */
static void test_scan_is_a_snapshot(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    put(store, STORE_RUNS, "r1", "v");
    put(store, STORE_RUNS, "r2", "v");
    struct nested nested = {.store = store};
    struct err err;
    must(store_scan(store, STORE_RUNS, "", commit_inside, &nested, &err), &err);
    assert_int_equal(nested.visits, 2);
    store_close(store);
    remove_folder(folder);
}

static void test_limits(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct err err;
    char key[600];
    memset(key, 'k', sizeof key);
    key[512] = '\0';
    assert_int_equal(try_put(store, STORE_FACTS, key, "v", &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_int_equal(try_put(store, STORE_FACTS, "", "v", &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_int_equal(get_code(store, STORE_FACTS, key), ERR_LIMIT);
    assert_false(store_has(store, STORE_FACTS, key));
    key[511] = '\0';
    put(store, STORE_FACTS, key, "the longest");
    expect(store, STORE_FACTS, key, "the longest");

    struct store_batch *batch = store_batch_new(); /* one bad key: nothing of it is written */
    store_batch_put(batch, STORE_FACTS, "good", "v", 1);
    store_batch_put(batch, STORE_FACTS, "", "v", 1);
    assert_int_equal(store_commit(store, batch, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    store_batch_free(batch);
    assert_false(store_has(store, STORE_FACTS, "good"));

    struct buf small;
    buf_init(&small, 4);
    put(store, STORE_FACTS, "five", "12345");
    assert_int_equal(store_get(store, STORE_FACTS, "five", &small, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    buf_free(&small);
    store_close(store);
    remove_folder(folder);
}

static void test_large_values(void **state)
{
    (void)state;
    size_t most = (size_t)64 << 20;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct err err;
    char *value = mem_alloc(most + 2);
    memset(value, 'x', most + 1);
    struct store_batch *batch = store_batch_new();
    store_batch_put(batch, STORE_COMPLETIONS, "too much", value, most + 1);
    assert_int_equal(store_commit(store, batch, &err), -1);
    assert_int_equal(err.code, ERR_LIMIT);
    store_batch_free(batch);
    static const size_t lengths[] = {1, 2000, 2040, 4096, 65535, 1000000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        value[lengths[i]] = '\0';
        put(store, STORE_COMPLETIONS, "much", value);
        expect(store, STORE_COMPLETIONS, "much", value);
        value[lengths[i]] = 'x';
    }
    value[most] = '\0';
    put(store, STORE_COMPLETIONS, "most", value);
    store_close(store);
    store = open_store(folder);
    expect(store, STORE_COMPLETIONS, "most", value);
    mem_free(value);
    store_close(store);
    remove_folder(folder);
}

static void test_next_run(void **state)
{
    (void)state;
    char *folder = new_folder();
    for (uint64_t i = 1; i <= 12; i++) {
        struct store *store = open_store(folder);
        uint64_t number;
        struct err err;
        must(store_next_run(store, &number, &err), &err);
        assert_int_equal(number, i);
        store_close(store);
    }
    remove_folder(folder);
}

static void test_nothing_there(void **state)
{
    (void)state;
    char *folder = new_folder();
    char *missing = file_join(folder, "a/b");
    struct store *store = NULL;
    struct err err;
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? missing : folder;
        assert_int_equal(store_open(path, false, true, &store, &err), -1);
        assert_int_equal(err.code, ERR_NOT_FOUND);
        assert_non_null(strstr(err.message, path));
        assert_non_null(strstr(err.message, "twagent run"));
        assert_int_equal(store_open(path, false, false, &store, &err), -1);
        assert_int_equal(err.code, ERR_NOT_FOUND);
        assert_int_equal(store_open(path, true, true, &store, &err), -1); /* readers make nothing */
        assert_int_equal(err.code, ERR_NOT_FOUND);
    }
    assert_false(file_exists(missing));
    store_close(open_store(missing)); /* an owner makes the folders above, too */
    assert_true(file_is_dir(missing));
    char *file = file_join(missing, "data.mdb");
    assert_int_equal(store_open(file, true, false, &store, &err), -1);
    mem_free(file);
    mem_free(missing);
    remove_folder(folder);
}

/* LMDB must not be opened twice in a process: readers share, a second owner is refused. */
static void test_twice_in_a_process(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *owner = open_store(folder), *second = NULL;
    struct err err;
    assert_int_equal(store_open(folder, true, false, &second, &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_non_null(strstr(err.message, pid));
    struct store *reader = open_reader(folder);
    put(owner, STORE_RUNS, "r1", "v");
    expect(reader, STORE_RUNS, "r1", "v");
    store_close(owner);
    expect(reader, STORE_RUNS, "r1", "v");
    owner = open_store(folder); /* the ownership went with the owner, not with the last reader */
    put(owner, STORE_RUNS, "r2", "v");
    expect(reader, STORE_RUNS, "r2", "v");
    store_close(reader);
    expect(owner, STORE_RUNS, "r2", "v");
    store_close(owner);
    reader = open_reader(folder);
    expect(reader, STORE_RUNS, "r2", "v");
    assert_int_equal(store_open(folder, true, false, &owner, &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    store_close(reader);
    store_close(NULL);
    remove_folder(folder);
}

static void test_close_unused(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *reader = NULL;
    struct err err;
    struct store *owner = open_store(folder);
    put(owner, STORE_FACTS, "machine/roofline", "v");
    assert_true(store_close_unused(owner));
    assert_int_equal(access(folder, F_OK), -1);
    owner = open_store(folder);
    put(owner, STORE_RUNS, "r1", "v");
    assert_false(store_close_unused(owner)); /* a run is in it */
    owner = open_store(folder);
    struct store_batch *batch = store_batch_new();
    store_batch_remove(batch, STORE_RUNS, "r1");
    assert_int_equal(store_commit(owner, batch, &err), 0);
    store_batch_free(batch);
    assert_false(store_close_unused(owner)); /* it was there before */
    assert_int_equal(store_open(folder, false, true, &reader, &err), 0);
    assert_false(store_close_unused(reader));
    remove_folder(folder);
}

static void test_backup(void **state)
{
    (void)state;
    char *folder = new_folder();
    char *place = file_join(folder, "store"), *target = file_join(folder, "backups/one");
    struct store *store = open_store(place);
    struct err err;
    char value[10001] = "";
    memset(value, 'v', sizeof value - 1);
    for (int i = 0; i < 300; i++) { /* so that there is something to compact */
        char key[32];
        snprintf(key, sizeof key, "r1-c%d", i % 30);
        put(store, STORE_CANDIDATES, key, value + i);
    }
    must(store_backup(place, target, &err), &err); /* while it is owned */
    put(store, STORE_RUNS, "r1", "after the backup");
    assert_int_equal(store_backup(place, target, &err), -1);
    assert_int_equal(err.code, ERR_EXISTS);
    store_close(store);
    assert_int_equal(store_backup(folder, target, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);

    struct stat original, copy;
    char *a = file_join(place, "data.mdb"), *b = file_join(target, "data.mdb");
    assert_int_equal(stat(a, &original), 0);
    assert_int_equal(stat(b, &copy), 0);
    assert_true(copy.st_size < original.st_size);
    mem_free(a);
    mem_free(b);

    store = open_store(target); /* a backup is a store */
    size_t count;
    must(store_count(store, STORE_CANDIDATES, "r1-", &count, &err), &err);
    assert_int_equal(count, 30);
    expect(store, STORE_CANDIDATES, "r1-c29", value + 299);
    assert_false(store_has(store, STORE_RUNS, "r1"));
    put(store, STORE_RUNS, "r2", "goes on");
    store_close(store);
    store = open_reader(target);
    expect(store, STORE_RUNS, "r2", "goes on");
    store_close(store);
    mem_free(place);
    mem_free(target);
    remove_folder(folder);
}

static void test_readers_checked(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    size_t cleared = 7;
    struct err err;
    must(store_check_readers(store, &cleared, &err), &err);
    assert_int_equal(cleared, 0);
    store_close(store);
    remove_folder(folder);
}

static void test_default_folder(void **state)
{
    (void)state;
    static const struct {
        const char *named, *state_home, *home, *folder;
    } cases[] = {
        {"/x/y", "/state", "/home/u", "/x/y"},
        {"relative", "/state", "/home/u", "relative"},
        {NULL, "/state", "/home/u", "/state/twagent"},
        {"", "/state", "/home/u", "/state/twagent"},
        {NULL, "not/absolute", "/home/u", "/home/u/.local/state/twagent"},
        {NULL, NULL, "/home/u", "/home/u/.local/state/twagent"},
    };
    static const char *const names[] = {"TWAGENT_STORE", "XDG_STATE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *values[] = {cases[i].named, cases[i].state_home, cases[i].home};
        for (int j = 0; j < 3; j++)
            assert_int_equal(
                values[j] != NULL ? setenv(names[j], values[j], 1) : unsetenv(names[j]), 0);
        char *folder = store_default_folder();
        assert_string_equal(folder, cases[i].folder);
        mem_free(folder);
    }
    unsetenv("HOME");
    char *folder = store_default_folder();
    assert_int_equal(folder[0], '/');
    mem_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_remove),     cmocka_unit_test(test_scan),
        cmocka_unit_test(test_scan_is_a_snapshot), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_large_values),       cmocka_unit_test(test_next_run),
        cmocka_unit_test(test_nothing_there),      cmocka_unit_test(test_twice_in_a_process),
        cmocka_unit_test(test_close_unused),       cmocka_unit_test(test_backup),
        cmocka_unit_test(test_readers_checked),    cmocka_unit_test(test_default_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
