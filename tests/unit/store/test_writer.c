/* The writer on a loop: many tasks write, each is woken when its batch is on the disk, in order;
 * failures come back with the batch. */
#include "support.h"

#include "base/clock.h"
#include "base/log.h"
#include "loop/loop.h"
#include "loop/task.h"
#include "store/writer.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { WRITING, WRITTEN };
static const char *const states[] = {"writing", "written"};
static const uint32_t moves[] = {1u << WRITTEN, 1u << WRITING};

struct client {
    struct task task;
    struct store *store;
    struct store_writer *writer;
    struct store_write write;
    int number, rounds, round, failures;
    bool bad_key;
};

static void key_of(const struct client *client, int round, char key[64])
{
    snprintf(key, 64, "r%d-c%d", client->number, round);
}

static struct store_batch *batch_of(const struct client *client)
{
    char key[64];
    struct store_batch *batch = store_batch_new();
    key_of(client, client->round, key);
    store_batch_put(batch, STORE_CANDIDATES, client->bad_key ? "" : key, "v", 1);
    return batch;
}

static enum task_result begin(struct client *client)
{
    store_write_take(client->writer, &client->write, &client->task, batch_of(client));
    task_move(&client->task, WRITTEN);
    return TASK_WAIT;
}

static enum task_result step(struct task *task)
{
    struct client *client = container_of(task, struct client, task);
    if (task->state == WRITING)
        return begin(client);
    if (!client->write.done)
        return TASK_WAIT;
    assert_false(client->write.active);
    if (client->write.err.code == ERR_FULL) { /* given up: the batch is here again */
        assert_non_null(client->write.batch);
        store_batch_free(client->write.batch);
        client->failures++;
        return TASK_DONE;
    }
    if (client->bad_key) {
        assert_int_equal(client->write.err.code, ERR_LIMIT);
        store_batch_free(client->write.batch);
        client->failures++;
        return TASK_DONE;
    }
    assert_int_equal(client->write.err.code, ERR_NONE);
    assert_null(client->write.batch);
    char key[64];
    key_of(client, client->round, key);
    assert_true(store_has(client->store, STORE_CANDIDATES, key)); /* done means it is there */
    if (++client->round == client->rounds)
        return TASK_DONE;
    task_move(task, WRITING);
    return TASK_AGAIN;
}

static const struct task_type type = {
    .name = "client", .states = states, .moves = moves, .state_count = 2, .step = step};

struct scene {
    char *folder;
    struct loop *loop;
    struct store *store;
    struct store_writer *writer;
};

static struct scene new_scene(void)
{
    struct scene scene = {.folder = new_folder(), .loop = loop_new()};
    scene.store = open_store(scene.folder);
    scene.writer = store_writer_new(scene.loop, scene.store);
    return scene;
}

static void end_scene(struct scene *scene)
{
    store_writer_free(scene->writer);
    store_close(scene->store);
    loop_free(scene->loop);
    remove_folder(scene->folder);
}

static void start(struct scene *scene, struct client *client, int number, int rounds)
{
    *client = (struct client){
        .store = scene->store, .writer = scene->writer, .number = number, .rounds = rounds};
    task_start(scene->loop, &client->task, &type, NULL, "client");
}

static void test_many(void **state)
{
    (void)state;
    enum { CLIENTS = 600, ROUNDS = 5 }; /* more than one group */
    struct scene scene = new_scene();
    struct client *clients = mem_array(CLIENTS, sizeof *clients);
    for (int i = 0; i < CLIENTS; i++)
        start(&scene, &clients[i], i, ROUNDS);
    loop_run(scene.loop);
    size_t count;
    struct err err;
    must(store_count(scene.store, STORE_CANDIDATES, "", &count, &err), &err);
    assert_int_equal(count, CLIENTS * ROUNDS);
    mem_free(clients);
    end_scene(&scene);
}

/* No room is no failure: the writes wait, and nothing that comes later overtakes them. */
static void test_full_then_room(void **state)
{
    (void)state;
    enum { CLIENTS = 3 };
    static const int codes[] = {ENOSPC, EIO, EROFS, EDQUOT, MDB_MAP_FULL, MDB_PANIC};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        struct scene scene = new_scene();
        struct client clients[CLIENTS];
        store_writer_retry_after(scene.writer, 2);
        for (int i = 0; i < CLIENTS; i++)
            start(&scene, &clients[i], i, 2);
        store_fail_commit_after(2, codes[c]);
        loop_run(scene.loop);
        store_fail_commit_after(0, 0);
        for (int i = 0; i < CLIENTS; i++) {
            assert_int_equal(clients[i].failures, 0);
            assert_int_equal(clients[i].round, 2);
        }
        assert_null(store_writer_waits(scene.writer));
        end_scene(&scene);
    }
}

/* Fails the commits of a writer while it lives: looks on each of its turns, and when it has seen
 * the writer wait `waits` times, makes room or gives up. */
struct saboteur {
    struct task task;
    struct store_writer *writer;
    struct timer timer;
    const struct client *clients;
    int looks, seen;
    bool give_up, relented;
    size_t count;
};

static bool clients_done(const struct saboteur *saboteur)
{
    for (size_t i = 0; i < saboteur->count; i++)
        if (!saboteur->clients[i].task.finished)
            return false;
    return true;
}

static enum task_result sabotage(struct task *task)
{
    struct saboteur *saboteur = container_of(task, struct saboteur, task);
    const char *waits = store_writer_waits(saboteur->writer);
    if (waits != NULL) {
        assert_non_null(strstr(waits, "othing is lost"));
        saboteur->seen++;
    }
    if (!saboteur->relented && saboteur->seen >= 5) {
        saboteur->relented = true;
        if (saboteur->give_up)
            store_writer_give_up(saboteur->writer);
    }
    store_fail_commit_after(saboteur->relented && !saboteur->give_up ? 0 : 1, ENOSPC);
    if (clients_done(saboteur))
        return TASK_DONE;
    assert_true(++saboteur->looks < 20000);
    timer_start(task->loop, &saboteur->timer, task, 1);
    return TASK_WAIT;
}

static const uint32_t no_moves[] = {0};
static const struct task_type sabotage_type = {
    .name = "saboteur", .states = states, .moves = no_moves, .state_count = 1, .step = sabotage};

static void run_full(bool give_up, struct client *clients, size_t count)
{
    struct scene scene = new_scene();
    struct saboteur saboteur = {
        .writer = scene.writer, .clients = clients, .count = count, .give_up = give_up};
    store_writer_retry_after(scene.writer, give_up ? 3600000 : 1);
    store_fail_commit_after(1, ENOSPC);
    for (size_t i = 0; i < count; i++)
        start(&scene, &clients[i], (int)i, 3);
    task_start(scene.loop, &saboteur.task, &sabotage_type, NULL, "saboteur");
    loop_run(scene.loop);
    store_fail_commit_after(0, 0);
    assert_true(saboteur.relented);
    assert_null(store_writer_waits(scene.writer));
    size_t stored;
    struct err err;
    must(store_count(scene.store, STORE_CANDIDATES, "", &stored, &err), &err);
    size_t acknowledged = 0;
    for (size_t i = 0; i < count; i++)
        acknowledged += (size_t)clients[i].round;
    assert_int_equal(stored, acknowledged);
    end_scene(&scene);
}

static void test_full_for_long(void **state)
{
    (void)state;
    struct client clients[400]; /* more than one group waits */
    run_full(false, clients, 400);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(clients[i].failures, 0);
        assert_int_equal(clients[i].round, 3);
    }
}

static void test_give_up(void **state)
{
    (void)state;
    struct client clients[300];
    run_full(true, clients, 300);
    for (int i = 0; i < 256; i++) /* the group that waited; the saboteur may miss the next */
        assert_int_equal(clients[i].failures, 1);
}

static uint64_t later_ns;
static uint64_t injected(void *context)
{
    (void)context;
    return later_ns;
}

static void count_readers(void *context, const struct event *event)
{
    *(int *)context += strcmp(event->kind, "store.readers") == 0;
}

/* A process that is killed with a snapshot open. */
static void leave_dead_reader(const char *folder)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct store *store = open_reader(folder);
        MDB_txn *txn;
        struct err err;
        if (environment_read(store->environment, &txn, &err) != 0 || write(ready[1], "!", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* What a dead reader holds on to is freed within a minute of commits. */
static void test_readers(void **state)
{
    (void)state;
    int cleared = 0;
    log_add_sink(count_readers, &cleared, LOG_INFO);
    struct scene scene = new_scene();
    struct client client;
    later_ns = clock_now_ns();
    clock_inject(injected, NULL);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            leave_dead_reader(scene.folder);
        start(&scene, &client, i, 1);
        loop_run(scene.loop);
        assert_int_equal(client.round, 1);
        assert_int_equal(cleared, i == 2 ? 1 : 0);
        later_ns += 3 * UINT64_C(1000000000) * (uint64_t)(i + 1);
    }
    clock_inject(NULL, NULL);
    log_remove_sink(count_readers, &cleared);
    end_scene(&scene);
}

/* A batch that cannot be stored fails alone, whatever it is committed with. */
static void test_bad_batch(void **state)
{
    (void)state;
    enum { CLIENTS = 5 };
    struct scene scene = new_scene();
    struct client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        start(&scene, &clients[i], i, 1);
        clients[i].bad_key = i == 0 || i == 3;
    }
    loop_run(scene.loop);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(clients[i].failures, i == 0 || i == 3 ? 1 : 0);
    size_t count;
    struct err err;
    must(store_count(scene.store, STORE_CANDIDATES, "", &count, &err), &err);
    assert_int_equal(count, 3);
    end_scene(&scene);
}

/* The writer's own task comes and goes: the loop can run dry and be run again. */
static void test_again_after_idle(void **state)
{
    (void)state;
    struct scene scene = new_scene();
    for (int i = 0; i < 3; i++) {
        struct client client;
        start(&scene, &client, i, 2);
        loop_run(scene.loop);
        assert_int_equal(client.round, 2);
    }
    end_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_full_then_room),
        cmocka_unit_test(test_full_for_long),
        cmocka_unit_test(test_give_up),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_bad_batch),
        cmocka_unit_test(test_again_after_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
