/* Every write that a commit makes fails once: the LMDB calls by the store's own hook, the system
 * calls by functions of this program that stand before libc's. After each, what was acknowledged
 * is there, what was not is not, and the same batch goes through on the second try. */
#include "support.h"

#include "store/structure.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum fault { FAULT_NONE, FAULT_ENOSPC, FAULT_EIO, FAULT_EFBIG, FAULT_SHORT, FAULTS };
static enum fault fault;
static int countdown; /* the call at which `fault` strikes; 0: never */
static bool lasting;  /* and at every call after it */
static int struck;

static bool strikes(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    countdown = lasting ? 1 : 0;
    struck++;
    errno = fault == FAULT_ENOSPC ? ENOSPC : fault == FAULT_EFBIG ? EFBIG : EIO;
    return true;
}

static void (*after_write)(void); /* called when bytes are written and the call has not returned */

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    if (strikes()) {
        if (fault != FAULT_SHORT)
            return -1;
        length /= 2;
    }
    ssize_t count = syscall(SYS_pwrite64, fd, bytes, length, offset);
    if (after_write)
        after_write();
    return count;
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    if (strikes()) {
        if (fault != FAULT_SHORT)
            return -1;
        count = count > 1 ? count / 2 : 1;
    }
    return syscall(SYS_writev, fd, pieces, count);
}

int fdatasync(int fd)
{
    return strikes() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    return strikes() ? -1 : (int)syscall(SYS_fsync, fd);
}

static struct store_batch *batch_of(int round)
{
    static char value[9000];
    struct store_batch *batch = store_batch_new();
    for (int i = 0; i < 5; i++) {
        char key[32];
        snprintf(key, sizeof key, "r1-c%d", i * 3);
        int length = snprintf(value, sizeof value, "round %d", round);
        store_batch_put(batch, STORE_CANDIDATES, key, value, (size_t)length);
    }
    memset(value, 'a' + round % 26, sizeof value);
    store_batch_put(batch, STORE_SOURCES, "large", value, sizeof value);
    return batch;
}

static void expect_round(struct store *store, int round)
{
    char text[32];
    snprintf(text, sizeof text, "round %d", round);
    for (int i = 0; i < 5; i++) {
        char key[32];
        snprintf(key, sizeof key, "r1-c%d", i * 3);
        expect(store, STORE_CANDIDATES, key, text);
    }
    struct buf buf;
    struct err err;
    buf_init(&buf, 1 << 20);
    must(store_get(store, STORE_SOURCES, "large", &buf, &err), &err);
    assert_int_equal(buf.length, 9000);
    assert_int_equal(buf.data[0], 'a' + round % 26);
    buf_free(&buf);
}

static void commit_round(struct store *store, int round)
{
    struct err err;
    struct store_batch *batch = batch_of(round);
    must(store_commit(store, batch, &err), &err);
    store_batch_free(batch);
}

/* Commits `round` with the armed fault; true where it failed. */
static bool fails(struct store *store, int round)
{
    struct err err = {ERR_NONE, ""};
    struct store_batch *batch = batch_of(round);
    bool failed = store_commit(store, batch, &err) != 0;
    store_batch_free(batch);
    countdown = 0;
    store_fail_commit_after(0, 0);
    if (failed && err.code != ERR_FULL)
        fail_msg("round %d: %s: %s", round, err_code_name(err.code), err.message);
    return failed;
}

static void test_lmdb_calls(void **state)
{
    (void)state;
    static const int codes[] = {MDB_MAP_FULL, MDB_BAD_TXN, ENOSPC, EIO, EDQUOT, MDB_PANIC};
    char *folder = new_folder();
    struct store *store = open_store(folder);
    int round = 0;
    commit_round(store, round);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
        for (int n = 1;; n++) {
            store_fail_commit_after(n, codes[c]);
            if (!fails(store, round + 1)) {
                round++;
                assert_int_equal(n, 9); /* begin, six puts, commit: all of them were hit */
                break;
            }
            expect_round(store, round); /* all of the old, nothing of the new */
            commit_round(store, ++round);
            expect_round(store, round);
        }
    store_close(store);
    store = open_store(folder);
    expect_round(store, round);
    store_close(store);
    remove_folder(folder);
}

struct reader {
    pthread_t thread;
    struct store *store;
    atomic_bool *end;
    atomic_long reads;
};

/* One snapshot each: all five values are of the same round, whatever happens to the writer. */
static bool same_round(void *context, const char *key, const char *value, size_t length)
{
    char(*first)[32] = context;
    (void)key, (void)length;
    if ((*first)[0] == '\0')
        snprintf(*first, sizeof *first, "%s", value);
    return strcmp(*first, value) == 0 || ((*first)[0] = '!') == '\0';
}

static void *read_on(void *argument)
{
    struct reader *reader = argument;
    while (!atomic_load(reader->end)) {
        char first[32] = "";
        struct err err;
        if (store_scan(reader->store, STORE_CANDIDATES, "r1-c", same_round, first, &err) != 0 ||
            first[0] == '!') {
            fprintf(stderr, "%s %s\n", first, err.message);
            abort();
        }
        reader->reads++;
    }
    return NULL;
}

static bool all_have_read(struct reader *readers)
{
    for (int i = 0; i < 3; i++)
        if (atomic_load(&readers[i].reads) == 0)
            return false;
    return true;
}

/* Threads read while commits fail and the environment is opened again under them. */
static void test_readers_in_threads(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    atomic_bool end = false;
    struct reader readers[3];
    commit_round(store, 0);
    for (int i = 0; i < 3; i++) {
        readers[i].store = store;
        readers[i].end = &end;
        atomic_init(&readers[i].reads, 0);
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
    }
    for (int round = 1; round < 150 || !all_have_read(readers); round++) {
        if (round % 3 == 0)
            store_fail_commit_after(1 + round % 8, round % 2 == 0 ? MDB_PANIC : EIO);
        struct err err = {ERR_NONE, ""};
        struct store_batch *batch = batch_of(round);
        int tries = 0;
        while (store_commit(store, batch, &err) != 0) {
            assert_int_equal(err.code, ERR_FULL);
            assert_true(++tries < 100);
        }
        store_fail_commit_after(0, 0);
        store_batch_free(batch);
        expect_round(store, round);
    }
    atomic_store(&end, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
    store_close(store);
    remove_folder(folder);
}

static struct store *watched;
static uint64_t version_before;
static int looks;

static void look(void)
{
    bool has = false;
    looks++;
    if (store_version(watched) != version_before)
        has = store_has(watched, STORE_RUNS, "new");
    else
        has = true; /* who has this version's documents looks again */
    if (!has)
        fail_msg("the version of a commit is told before the commit can be read");
}

/* Whoever keeps what was read beside its version never has old bytes under a new number. */
static void test_version_is_a_readers(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct err err;
    struct store_batch *batch = store_batch_new();
    watched = open_store(folder);
    version_before = store_version(watched);
    store_batch_put(batch, STORE_RUNS, "new", "1", 1);
    after_write = look;
    int code = store_commit(watched, batch, &err);
    after_write = NULL;
    must(code, &err);
    assert_true(looks > 0);
    assert_true(store_version(watched) != version_before);
    store_batch_free(batch);
    store_close(watched);
    remove_folder(folder);
}

static void test_next_run_is_not_lost(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct err err;
    uint64_t number = 0;
    for (int n = 1; n <= 3; n++) {
        store_fail_commit_after(n, ENOSPC);
        assert_int_equal(store_next_run(store, &number, &err), -1);
        assert_int_equal(err.code, ERR_FULL);
    }
    must(store_next_run(store, &number, &err), &err);
    assert_int_equal(number, 1);
    store_close(store);
    remove_folder(folder);
}

static void strike_each_call(enum fault kind, bool last)
{
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct err err;
    int round = 0;
    commit_round(store, round);
    for (int n = 1;; n++) {
        fault = kind;
        lasting = last;
        countdown = n;
        struck = 0;
        bool failed = fails(store, round + 1);
        assert_int_equal(failed, struck > 0);
        if (!failed) {
            round++;
            assert_true(n > 3); /* data, sync and meta page at the least */
            break;
        }
        /* Whether it got there is not known after a failed sync of the meta page; that all or
         * nothing of it did is. Another process sees the same. */
        expect_round(store, round);
        commit_round(store, ++round);
        expect_round(store, round);
        if (n % 2 == 0) {
            store_close(store);
            store = open_store(folder);
            expect_round(store, round);
        }
    }
    store_close(store);
    must(store_open(folder, false, true, &store, &err), &err);
    expect_round(store, round);
    store_close(store);
    remove_folder(folder);
}

static void test_system_calls(void **state)
{
    (void)state;
    for (int kind = FAULT_NONE + 1; kind < FAULTS; kind++)
        strike_each_call((enum fault)kind, false);
    for (int kind = FAULT_NONE + 1; kind < FAULT_SHORT; kind++)
        strike_each_call((enum fault)kind, true);
}

/* A store that could not be made is not there, and can be made when there is room. */
static void test_making(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        char *folder = new_folder();
        struct store *store = NULL;
        struct err err = {ERR_NONE, ""};
        fault = FAULT_ENOSPC;
        lasting = true;
        countdown = n;
        struck = 0;
        int result = store_open(folder, true, false, &store, &err);
        countdown = 0;
        if (result != 0) {
            assert_true(struck > 0);
            if (err.code != ERR_FULL)
                fail_msg("call %d: %s: %s", n, err_code_name(err.code), err.message);
            store = open_store(folder);
        }
        commit_round(store, n);
        expect_round(store, n);
        store_close(store);
        remove_folder(folder);
        if (struck == 0) {
            assert_true(n > 4);
            return;
        }
    }
}

static void test_full_map(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = NULL;
    struct err err;
    must(store_open_sized(folder, true, false, (size_t)1 << 20, &store, &err), &err);
    int written = 0;
    struct store_batch *batch = NULL;
    for (;; written++) {
        char key[32], value[5000];
        memset(value, 'v', sizeof value);
        snprintf(key, sizeof key, "r1-%d", written);
        batch = store_batch_new();
        store_batch_put(batch, STORE_EVENTS, key, value, sizeof value);
        if (store_commit(store, batch, &err) != 0)
            break;
        store_batch_free(batch);
    }
    assert_int_equal(err.code, ERR_FULL);
    assert_non_null(strstr(err.message, "nothing is lost"));
    assert_true(written > 50);
    assert_int_equal(store_commit(store, batch, &err), -1); /* and stays full, and usable */
    assert_int_equal(err.code, ERR_FULL);
    size_t count;
    must(store_count(store, STORE_EVENTS, "", &count, &err), &err);
    assert_int_equal(count, written);
    store_close(store);
    must(store_open_sized(folder, false, false, (size_t)2 << 20, &store, &err), &err);
    must(store_commit(store, batch, &err), &err); /* the batch that was kept goes through */
    must(store_count(store, STORE_EVENTS, "", &count, &err), &err);
    assert_int_equal(count, written + 1);
    store_batch_free(batch);
    store_close(store);
    remove_folder(folder);
}

static void test_backup_without_room(void **state)
{
    (void)state;
    char *folder = new_folder();
    char *place = file_join(folder, "store"), *target = file_join(folder, "backup");
    struct store *store = open_store(place);
    struct err err;
    commit_round(store, 1);
    fault = FAULT_ENOSPC;
    lasting = true;
    countdown = 1; /* of the calls that this program counts: the sync of the copy */
    assert_int_equal(store_backup(place, target, &err), -1);
    countdown = 0;
    assert_int_equal(err.code, ERR_FULL);
    char *partial = file_join(target, "data.mdb.partial"), *data = file_join(target, "data.mdb");
    assert_false(file_exists(partial));
    assert_false(file_exists(data));
    must(store_backup(place, target, &err), &err);
    assert_true(file_exists(data));
    mem_free(partial);
    mem_free(data);
    mem_free(place);
    mem_free(target);
    store_close(store);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lmdb_calls),
        cmocka_unit_test(test_readers_in_threads),
        cmocka_unit_test(test_version_is_a_readers),
        cmocka_unit_test(test_next_run_is_not_lost),
        cmocka_unit_test(test_system_calls),
        cmocka_unit_test(test_making),
        cmocka_unit_test(test_full_map),
        cmocka_unit_test(test_backup_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
