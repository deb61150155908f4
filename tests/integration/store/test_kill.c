/* KILL at 200 moments: after each the store opens, and nothing acknowledged is missing. The moments
 * are drawn from a fixed seed; where they fall in the writer's work is the machine's business. */
#include "ledger.h"
#include "peer.h"

#include <time.h>

enum { MOMENTS = 200, FRESH_EVERY = 8 };

static void sleep_us(uint64_t us)
{
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    while (nanosleep(&time, &time) != 0)
        assert_int_equal(errno, EINTR);
}

struct acknowledged {
    long commit;
    unsigned long long run;
};

static void read_acknowledged(struct peer *peer, struct acknowledged *acknowledged)
{
    while (peer_line(peer)) {
        if (strncmp(peer->line, "commit ", 7) == 0)
            acknowledged->commit = strtol(peer->line + 7, NULL, 10);
        else if (strncmp(peer->line, "run ", 4) == 0)
            acknowledged->run = strtoull(peer->line + 4, NULL, 10);
        else if (strcmp(peer->line, "open") != 0)
            fail_msg("%s", peer->line);
    }
}

static void expect_bytes(struct store *store, enum store_table table, const char *key,
                         const char *value, size_t length)
{
    struct buf buf;
    struct err err = {ERR_NONE, ""};
    buf_init(&buf, LEDGER_VALUE);
    must(store_get(store, table, key, &buf, &err), &err);
    assert_int_equal(buf.length, length);
    assert_memory_equal(buf_text(&buf), value, length);
    buf_free(&buf);
}

static bool removed_by(long n, long last)
{
    return ledger_removes(n + 40) && n + 40 <= last;
}

/* Everything up to the commit that the store says was the last, and nothing of a later one. */
static long check_ledger(struct store *store)
{
    static char value[LEDGER_VALUE];
    char key[64];
    struct buf text;
    struct err err;
    buf_init(&text, 64);
    long last = 0;
    if (store_get(store, STORE_RUNS, "r1", &text, &err) == 0)
        last = strtol(buf_text(&text), NULL, 10);
    else
        assert_int_equal(err.code, ERR_NOT_FOUND);
    buf_free(&text);
    for (long n = 1; n <= last; n++) {
        ledger_event_key(n, key);
        if (removed_by(n, last))
            assert_false(store_has(store, STORE_EVENTS, key));
        else
            expect_bytes(store, STORE_EVENTS, key, value, ledger_event(n, value));
        snprintf(key, sizeof key, "source-%ld", n);
        if (n % 7 == 0)
            expect_bytes(store, STORE_SOURCES, key, value, ledger_source(n, value));
    }
    ledger_event_key(last + 1, key);
    assert_false(store_has(store, STORE_EVENTS, key));
    return last;
}

static void check_after(const char *folder, const struct acknowledged *acknowledged)
{
    struct store *store = open_store(folder);
    struct err err;
    uint64_t run;
    long last = check_ledger(store);
    if (last < acknowledged->commit)
        fail_msg("commit %ld was acknowledged, %ld is there", acknowledged->commit, last);
    must(store_next_run(store, &run, &err), &err);
    if (check_ledger(store) != last) /* a commit that comes to light only now has been missed */
        fail_msg("commit %ld was the last, until another write", last);
    if (run <= acknowledged->run)
        fail_msg("run %llu was given out twice", acknowledged->run);
    store_close(store);
}

/* Half of the time a reader holds a snapshot through the kill, so that LMDB's lock file is not made
 * anew by the next who opens: the dead writer's lock and the reader's pages are still in it. */
static void one_moment(const char *folder, struct random *random, bool fresh, bool with_reader)
{
    struct peer writer, reader;
    struct acknowledged acknowledged = {0, 0};
    if (with_reader) {
        peer_start(&reader, "pin", folder);
        peer_expect(&reader, "pinned");
    }
    peer_start(&writer, "write", folder);
    if (!fresh && random_below(random, 4) > 0)
        peer_expect(&writer, "open");
    sleep_us(random_below(random, fresh ? 12000 : 25000));
    assert_int_equal(kill(writer.pid, SIGKILL), 0);
    read_acknowledged(&writer, &acknowledged);
    int status = peer_end(&writer, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_after(folder, &acknowledged);
    if (with_reader) {
        status = peer_end(&reader, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void test_killed_while_writing(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 2026);
    char *folder = NULL;
    for (int i = 0; i < MOMENTS; i++) {
        bool fresh = i % FRESH_EVERY == 0;
        if (fresh && folder != NULL)
            remove_folder(folder);
        if (fresh)
            folder = new_folder();
        one_moment(folder, &random, fresh, !fresh && i % 2 == 1);
    }
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed_while_writing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
