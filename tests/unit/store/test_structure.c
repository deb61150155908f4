/* What is healthy must never be called damaged: the structure of a store is looked over after each
 * of many random commits, with readers that pin old pages, large values, and a map that fills. */
#include "support.h"

#include "store/structure.h"

#include <fcntl.h>
#include <unistd.h>

static void expect_whole(const char *folder, int round)
{
    char *path = file_join(folder, "data.mdb");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct structure structure;
    struct err err = {ERR_NONE, ""};
    if (structure_check(fd, 0, &structure, &err) != STRUCTURE_WHOLE)
        fail_msg("round %d: %s", round, err.message);
    assert_string_equal(structure.damaged, "");
    assert_false(structure.unfinished);
    close(fd);
    mem_free(path);
}

static char big[300 * 1024];

static struct store_batch *random_batch(struct random *random, int keys)
{
    struct store_batch *batch = store_batch_new();
    size_t count = 1 + random_below(random, random_below(random, 10) == 0 ? 400 : 12);
    for (size_t i = 0; i < count; i++) {
        char key[64];
        snprintf(key, sizeof key, "r%d-c%d", (int)random_below(random, 3),
                 (int)random_below(random, (uint64_t)keys));
        enum store_table table = (enum store_table)random_below(random, STORE_TABLES);
        size_t kind = random_below(random, 20);
        if (kind < 7)
            store_batch_remove(batch, table, key);
        else
            store_batch_put(batch, table, key, big,
                            random_below(random, kind < 18 ? 600 : sizeof big / 8));
    }
    if (random_below(random, 40) == 0)
        store_batch_put(batch, STORE_COMPLETIONS, "big", big, sizeof big);
    if (random_below(random, 40) == 0)
        store_batch_remove(batch, STORE_COMPLETIONS, "big");
    return batch;
}

static bool stop(void *context, const char *key, const char *value, size_t length)
{
    (void)context, (void)key, (void)value, (void)length;
    return false;
}

static void stress(uint64_t seed, size_t map_bytes, int rounds, int keys)
{
    struct random random;
    random_init(&random, seed);
    memset(big, 'b', sizeof big);
    char *folder = new_quick_folder();
    struct store *store = NULL;
    struct err err = {ERR_NONE, ""};
    must(store_open_sized(folder, true, false, map_bytes, &store, &err), &err);
    MDB_txn *pinned = NULL;
    int full = 0;
    for (int round = 0; round < rounds; round++) {
        struct store_batch *batch = random_batch(&random, keys);
        if (store_commit(store, batch, &err) != 0) {
            assert_int_equal(err.code, ERR_FULL);
            full++;
        }
        store_batch_free(batch);
        if (random_below(&random, 25) == 0) {
            if (pinned != NULL)
                environment_read_end(store->environment, pinned);
            pinned = NULL;
            if (random_below(&random, 2) == 0)
                must(environment_read(store->environment, &pinned, &err), &err);
        }
        expect_whole(folder, round);
        if (round % 50 == 49 && pinned == NULL) {
            store_close(store);
            must(store_open_sized(folder, true, false, map_bytes, &store, &err), &err);
        }
    }
    if (pinned != NULL)
        environment_read_end(store->environment, pinned);
    must(store_scan(store, STORE_RUNS, "", stop, NULL, &err), &err);
    char *target = file_join(folder, "backup"); /* LMDB compacts only where no page is lost */
    must(store_backup(folder, target, &err), &err);
    mem_free(target);
    store_close(store);
    if (map_bytes < STORE_MAP_BYTES)
        assert_true(full > 0); /* or the small map was not small enough to test anything */
    remove_folder(folder);
}

static void test_healthy_is_whole(void **state)
{
    (void)state;
    stress(1, STORE_MAP_BYTES, 400, 300);
    stress(2, STORE_MAP_BYTES, 400, 3000);
}

static void test_healthy_is_whole_when_full(void **state)
{
    (void)state;
    stress(3, (size_t)3 << 20, 400, 2000);
}

static void test_emptied(void **state)
{
    (void)state;
    char *folder = new_quick_folder();
    struct store *store = open_store(folder);
    expect_whole(folder, 0);
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "r%d", i);
        put(store, STORE_RUNS, key, "v");
    }
    for (int i = 0; i < 300; i++) {
        struct store_batch *batch = store_batch_new();
        struct err err;
        char key[32];
        snprintf(key, sizeof key, "r%d", i);
        store_batch_remove(batch, STORE_RUNS, key);
        must(store_commit(store, batch, &err), &err);
        store_batch_free(batch);
        expect_whole(folder, i);
    }
    store_close(store);
    store_close(open_store(folder));
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy_is_whole),
        cmocka_unit_test(test_healthy_is_whole_when_full),
        cmocka_unit_test(test_emptied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
