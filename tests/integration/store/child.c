/* A process beside the test: `store_child write|hold|hold-child|read|pin|open|descriptors FOLDER`.
 * Each line on stdout is an acknowledgement. */
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "ledger.h"
#include "store/internal.h"
#include "store/record.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int report(const struct err *err)
{
    printf("error %s %s\n", err_code_name(err->code), err->message);
    return 1;
}

static long last_of(struct store *store)
{
    struct buf text;
    struct err err;
    buf_init(&text, 64);
    long last = 0;
    if (store_get(store, STORE_RUNS, "r1", &text, &err) == 0)
        last = strtol(buf_text(&text), NULL, 10);
    else if (err.code != ERR_NOT_FOUND)
        exit(report(&err));
    buf_free(&text);
    return last;
}

/* Commits until it is killed, and says so after each. */
static int write_on(const char *folder)
{
    struct store *store;
    struct err err;
    if (store_open(folder, true, false, &store, &err) != 0)
        return report(&err);
    puts("open");
    for (long n = last_of(store) + 1;; n++) {
        struct store_batch *batch = ledger_batch(n);
        if (store_commit(store, batch, &err) != 0)
            return report(&err);
        store_batch_free(batch);
        printf("commit %ld\n", n);
        if (n % 11 != 0)
            continue;
        uint64_t run;
        if (store_next_run(store, &run, &err) != 0)
            return report(&err);
        printf("run %llu\n", (unsigned long long)run);
    }
}

static void wait_for_end(void)
{
    while (getchar() != EOF)
        ;
}

/* Owns the store until stdin ends; with a child of its own that outlives it. */
static int hold(const char *folder, bool with_child)
{
    struct store *store;
    struct err err;
    if (store_open(folder, true, false, &store, &err) != 0)
        return report(&err);
    pid_t child = with_child ? fork() : 1;
    if (child == 0) {
        execl("/bin/sleep", "sleep", "100", (char *)NULL);
        _exit(127);
    }
    printf("open %ld\n", (long)child);
    wait_for_end();
    store_close(store);
    return 0;
}

struct tally {
    long events, newest;
};

static bool count_event(void *context, const char *key, const char *value, size_t length)
{
    struct tally *tally = context;
    (void)value, (void)length;
    tally->events++;
    tally->newest = strtol(key + strlen("r1-"), NULL, 10);
    return true;
}

static void say_warning(void *context, const struct event *event)
{
    (void)context;
    printf("error %s\n", event->message);
}

/* Opens for reading again and again while another process commits. */
static int read_on(const char *folder)
{
    long before = 0;
    log_add_sink(say_warning, NULL, LOG_WARN);
    for (int i = 0; i < 60; i++) {
        struct store *store;
        struct err err;
        struct tally tally = {0, 0};
        if (store_open(folder, false, true, &store, &err) != 0 ||
            store_scan(store, STORE_EVENTS, "", count_event, &tally, &err) != 0)
            return report(&err);
        long last = last_of(store);
        if (tally.newest < before || last < tally.newest) {
            printf("error went back from %ld to %ld, %ld\n", before, tally.newest, last);
            return 1;
        }
        before = last;
        store_close(store);
    }
    puts("done");
    return 0;
}

/* Holds a snapshot until it is killed. */
static int pin(const char *folder)
{
    struct store *store;
    struct err err;
    MDB_txn *txn;
    if (store_open(folder, false, true, &store, &err) != 0 ||
        environment_read(store->environment, &txn, &err) != 0)
        return report(&err);
    puts("pinned");
    wait_for_end();
    environment_read_end(store->environment, txn);
    store_close(store);
    return 0;
}

static int try_open(const char *folder)
{
    struct store *store;
    struct err err;
    if (store_open(folder, true, false, &store, &err) != 0)
        return report(&err);
    store_close(store);
    puts("open");
    return 0;
}

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 1;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], target[4096];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0)
            printf("fd %.*s\n", (int)length, target);
    }
    closedir(folder);
    return 0;
}

/* Takes room: a value of `bytes`. */
static int take_room(const char *folder, size_t bytes)
{
    struct store *store;
    struct err err;
    char *value = mem_alloc(bytes + 1);
    struct store_batch *batch = store_batch_new();
    store_batch_put(batch, STORE_SOURCES, "ballast", value, bytes);
    if (store_open(folder, true, false, &store, &err) != 0 || store_commit(store, batch, &err) != 0)
        return report(&err);
    store_batch_free(batch);
    store_close(store);
    mem_free(value);
    return 0;
}

static int count_evaluations(const char *folder)
{
    struct store *store;
    struct err err;
    size_t count = 0;
    if (store_open(folder, false, true, &store, &err) != 0 ||
        store_count(store, STORE_EVALUATIONS, "", &count, &err) != 0)
        return report(&err);
    printf("%zu\n", count);
    store_close(store);
    return 0;
}

/* The store as another version would have left it: its schema number, or without the newest table.
 */
static int restamp(const char *folder, unsigned schema)
{
    struct store *store;
    struct store_key key;
    struct err err;
    unsigned char record[64];
    char text[16];
    MDB_txn *txn;
    if (store_open(folder, false, false, &store, &err) != 0 ||
        store_key_encode("schema", &key, &err) != 0)
        return report(&err);
    int length = snprintf(text, sizeof text, "%u", schema);
    store_record_write(record, STORE_TABLE_SELF, &key, text, (size_t)length);
    store_record_stamp(record, STORE_TABLE_SELF, &key, schema);
    MDB_val name = {key.length, key.bytes}, value = {store_record_size((size_t)length), record};
    int code = mdb_txn_begin(store->environment->lmdb, NULL, 0, &txn);
    if (code == 0)
        code = schema > 0 ? mdb_put(txn, store->environment->self, &name, &value, 0)
                          : mdb_drop(txn, store->environment->tables[STORE_TABLES - 1], 1);
    if (code == 0)
        code = mdb_txn_commit(txn);
    store_close(store);
    return code == 0 ? 0 : 1;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *what = count > 1 ? arguments[1] : "", *folder = count > 2 ? arguments[2] : "";
    if (strcmp(what, "write") == 0)
        return write_on(folder);
    if (strcmp(what, "hold") == 0)
        return hold(folder, false);
    if (strcmp(what, "hold-child") == 0)
        return hold(folder, true);
    if (strcmp(what, "read") == 0)
        return read_on(folder);
    if (strcmp(what, "pin") == 0)
        return pin(folder);
    if (strcmp(what, "open") == 0)
        return try_open(folder);
    if (strcmp(what, "ballast") == 0 && count > 3)
        return take_room(folder, strtoul(arguments[3], NULL, 10));
    if (strcmp(what, "count") == 0)
        return count_evaluations(folder);
    if (strcmp(what, "schema") == 0 && count > 3)
        return restamp(folder, (unsigned)strtoul(arguments[3], NULL, 10));
    if (strcmp(what, "older-tables") == 0)
        return restamp(folder, 0);
    if (strcmp(what, "descriptors") == 0)
        return descriptors();
    return 2;
}
