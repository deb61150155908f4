/* Processes beside each other: one owner, readers beside it, children that inherit nothing. */
#include "ledger.h"
#include "peer.h"

#include <signal.h>

static void expect_busy(const char *folder, pid_t owner)
{
    char pid[64];
    struct store *store = NULL;
    struct err err;
    assert_int_equal(store_open(folder, true, false, &store, &err), -1);
    assert_int_equal(err.code, ERR_BUSY);
    snprintf(pid, sizeof pid, "process %ld ", (long)owner);
    if (strstr(err.message, pid) == NULL || strstr(err.message, folder) == NULL)
        fail_msg("no %sin: %s", pid, err.message);
}

static void test_one_owner(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct peer owner;
    peer_start(&owner, "hold", folder);
    peer_expect(&owner, "open");
    expect_busy(folder, owner.pid);
    store_close(open_reader(folder)); /* reading is for everybody */
    expect_busy(folder, owner.pid);
    assert_int_equal(peer_end(&owner, 0), 0);
    store_close(open_store(folder)); /* it went in good order */

    peer_start(&owner, "hold", folder);
    peer_expect(&owner, "open");
    assert_true(WIFSIGNALED(peer_end(&owner, SIGKILL)));
    struct store *store = open_store(folder); /* or by force: no lock is left */
    struct peer second;
    peer_start(&second, "open", folder);
    char expected[64];
    snprintf(expected, sizeof expected, "error busy process %ld ", (long)getpid());
    peer_expect(&second, expected);
    peer_end(&second, 0);
    store_close(store);
    remove_folder(folder);
}

/* A child that its owner left behind must not keep the store locked. */
static void test_owner_with_child(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct peer owner;
    peer_start(&owner, "hold-child", folder);
    peer_expect(&owner, "open ");
    pid_t left = (pid_t)strtol(owner.line + strlen("open "), NULL, 10);
    assert_true(WIFSIGNALED(peer_end(&owner, SIGKILL)));
    struct store *store = NULL;
    struct err err = {ERR_NONE, ""};
    int result = store_open(folder, true, false, &store, &err);
    int alive = kill(left, 0);
    kill(left, SIGKILL);
    must(result, &err);
    assert_int_equal(alive, 0);
    store_close(store);
    remove_folder(folder);
}

static void expect_no_descriptor(const char *folder)
{
    struct peer child;
    int lines = 0;
    peer_start(&child, "descriptors", folder);
    while (peer_line(&child)) {
        lines++;
        if (strstr(child.line, folder) != NULL)
            fail_msg("a child has %s", child.line);
    }
    assert_int_equal(peer_end(&child, 0), 0);
    assert_true(lines >= 3); /* it did look */
}

static void test_children_inherit_nothing(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    put(store, STORE_RUNS, "r1", "{}");
    expect_no_descriptor(folder);
    environment_heal(store->environment, MDB_PANIC); /* opened again after a failed write */
    put(store, STORE_RUNS, "r1", "{}");
    expect_no_descriptor(folder);
    store_close(store);
    store = open_reader(folder);
    expect_no_descriptor(folder);
    store_close(store);
    remove_folder(folder);
}

/* Readers open, look the store over and scan it while the owner commits as fast as it can. */
static void test_readers_beside_owner(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct peer readers[2];
    long n = 1;
    struct err err;
    for (; n < 100; n++) {
        struct store_batch *batch = ledger_batch(n);
        must(store_commit(store, batch, &err), &err);
        store_batch_free(batch);
    }
    for (int i = 0; i < 2; i++) {
        peer_start(&readers[i], "read", folder);
        assert_int_equal(fcntl(fileno(readers[i].output), F_SETFL, O_NONBLOCK), 0);
    }
    for (int open = 2; open > 0; n++) {
        struct store_batch *batch = ledger_batch(n);
        must(store_commit(store, batch, &err), &err);
        store_batch_free(batch);
        for (int i = 0; i < 2; i++) {
            if (readers[i].output == NULL)
                continue;
            clearerr(readers[i].output);
            if (!peer_line(&readers[i]))
                continue;
            assert_string_equal(readers[i].line, "done");
            assert_int_equal(peer_end(&readers[i], 0), 0);
            open--;
        }
    }
    store_close(store);
    remove_folder(folder);
}

/* A reader that was killed holds its snapshot's pages until somebody looks. */
static void test_dead_readers(void **state)
{
    (void)state;
    char *folder = new_folder();
    struct store *store = open_store(folder);
    struct peer reader;
    size_t cleared = 9;
    struct err err;
    peer_start(&reader, "pin", folder);
    peer_expect(&reader, "pinned");
    must(store_check_readers(store, &cleared, &err), &err);
    assert_int_equal(cleared, 0);
    peer_end(&reader, SIGKILL);
    must(store_check_readers(store, &cleared, &err), &err);
    assert_int_equal(cleared, 1);
    peer_start(&reader, "pin", folder);
    peer_expect(&reader, "pinned");
    peer_end(&reader, SIGKILL);
    store_close(store);
    store = open_store(folder); /* looks, too */
    must(store_check_readers(store, &cleared, &err), &err);
    assert_int_equal(cleared, 0);
    store_close(store);
    remove_folder(folder);
}

/* A backup is taken by another process while the owner goes on. */
static void test_backup_beside_owner(void **state)
{
    (void)state;
    char *folder = new_folder();
    char *place = file_join(folder, "store"), *target = file_join(folder, "backup");
    struct peer owner;
    struct err err;
    peer_start(&owner, "write", place);
    do
        assert_true(peer_line(&owner));
    while (strcmp(owner.line, "commit 60") != 0);
    must(store_backup(place, target, &err), &err);
    peer_end(&owner, SIGKILL);
    struct store *store = open_store(target);
    struct buf last;
    buf_init(&last, 64);
    must(store_get(store, STORE_RUNS, "r1", &last, &err), &err);
    assert_true(strtol(buf_text(&last), NULL, 10) >= 60);
    buf_free(&last);
    store_close(store);
    mem_free(place);
    mem_free(target);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_owner),
        cmocka_unit_test(test_owner_with_child),
        cmocka_unit_test(test_children_inherit_nothing),
        cmocka_unit_test(test_readers_beside_owner),
        cmocka_unit_test(test_dead_readers),
        cmocka_unit_test(test_backup_beside_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
