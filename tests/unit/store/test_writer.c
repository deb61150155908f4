/* The writer on a loop: many tasks write, each is woken when its batch is on the disk, in order;
 * failures come back with the batch. */
#include "support.h"

#include "loop/loop.h"
#include "loop/task.h"
#include "store/writer.h"

#include <errno.h>

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
    if (client->write.err.code == ERR_FULL) { /* the batch is here again: nothing is lost */
        assert_non_null(client->write.batch);
        client->failures++;
        store_write_take(client->writer, &client->write, task, client->write.batch);
        return TASK_WAIT;
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

static void test_full_then_room(void **state)
{
    (void)state;
    enum { CLIENTS = 3 };
    struct scene scene = new_scene();
    struct client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        start(&scene, &clients[i], i, 2);
    store_fail_commit_after(2, ENOSPC);
    loop_run(scene.loop);
    store_fail_commit_after(0, 0);
    int failures = 0;
    for (int i = 0; i < CLIENTS; i++) {
        failures += clients[i].failures;
        assert_int_equal(clients[i].round, 2);
    }
    assert_true(failures > 0);
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
        cmocka_unit_test(test_bad_batch),
        cmocka_unit_test(test_again_after_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
