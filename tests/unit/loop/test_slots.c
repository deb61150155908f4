/* loop/slots: first come, first served, and never more than the capacity. */
#include "probe.h"

#include "base/random.h"
#include "loop/slots.h"

/* Slots need no running loop: a wait is a count and a wake. */
struct scene {
    struct loop *loop;
    struct slots slots;
    struct probe probes[6];
    struct slot slot[6];
};

static enum task_result never(struct probe *probe)
{
    (void)probe;
    return TASK_DONE;
}

static void open_scene(struct scene *scene, unsigned capacity)
{
    *scene = (struct scene){.loop = loop_new()};
    slots_init(&scene->slots, "compile", capacity);
    for (int i = 0; i < 6; i++)
        probe_start(scene->loop, &scene->probes[i], NULL, "p", never, NULL);
}

static bool acquire(struct scene *scene, int i, unsigned amount)
{
    return slots_acquire(&scene->slots, &scene->slot[i], &scene->probes[i].task, amount);
}

static unsigned pending(const struct scene *scene, int i)
{
    return scene->probes[i].task.pending;
}

static void test_grants_in_order(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 4);
    assert_true(acquire(&scene, 0, 3));
    assert_int_equal(pending(&scene, 0), 0); /* granted here and now: no wake comes */
    assert_false(acquire(&scene, 1, 2));
    assert_false(acquire(&scene, 2, 1)); /* would fit, but is behind */
    assert_int_equal(pending(&scene, 1), 1);
    assert_int_equal(scene.slots.used, 3);
    slots_release(&scene.slot[0]);
    assert_true(scene.slot[1].granted);
    assert_true(scene.slot[2].granted);
    assert_int_equal(pending(&scene, 1), 0);
    assert_int_equal(scene.slots.used, 3);
    slots_release(&scene.slot[1]);
    slots_release(&scene.slot[1]); /* twice is harmless */
    assert_int_equal(scene.slots.used, 1);
    slots_release(&scene.slot[2]);
    assert_int_equal(scene.slots.used, 0);
    assert_true(acquire(&scene, 1, 4)); /* a released slot asks again */
    slots_release(&scene.slot[1]);
    loop_free(scene.loop);
}

static void test_a_large_wait_is_not_overtaken(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 4);
    assert_true(acquire(&scene, 0, 2));
    assert_true(acquire(&scene, 1, 2));
    assert_false(acquire(&scene, 2, 4));
    assert_false(acquire(&scene, 3, 1));
    slots_release(&scene.slot[0]); /* two are free: enough for the second in the queue alone */
    assert_false(scene.slot[2].granted);
    assert_false(scene.slot[3].granted);
    slots_release(&scene.slot[1]);
    assert_true(scene.slot[2].granted);
    assert_false(scene.slot[3].granted);
    slots_release(&scene.slot[2]);
    assert_true(scene.slot[3].granted);
    slots_release(&scene.slot[3]);
    loop_free(scene.loop);
}

static void test_a_wait_that_is_given_up(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    assert_true(acquire(&scene, 0, 1));
    assert_false(acquire(&scene, 1, 2));
    assert_false(acquire(&scene, 2, 1));
    slots_release(&scene.slot[1]); /* the one in front leaves: the next goes ahead */
    assert_int_equal(pending(&scene, 1), 0);
    assert_false(scene.slot[1].granted);
    assert_true(scene.slot[2].granted);
    slots_release(&scene.slot[0]);
    slots_release(&scene.slot[2]);
    assert_int_equal(scene.slots.used, 0);
    loop_free(scene.loop);
}

static void test_resize(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, 2);
    assert_true(acquire(&scene, 0, 2));
    assert_false(acquire(&scene, 1, 2));
    assert_false(acquire(&scene, 2, 1));
    slots_resize(&scene.slots, 5);
    assert_true(scene.slot[1].granted);
    assert_true(scene.slot[2].granted);
    slots_resize(&scene.slots, 1); /* shrinks as released */
    assert_int_equal(scene.slots.used, 5);
    assert_false(acquire(&scene, 3, 1));
    slots_release(&scene.slot[0]);
    slots_release(&scene.slot[1]);
    assert_false(scene.slot[3].granted);
    slots_release(&scene.slot[2]);
    assert_true(scene.slot[3].granted);
    assert_false(acquire(&scene, 4, 3)); /* more than is left: alone, so that it ends */
    slots_resize(&scene.slots, 0);       /* a pause */
    slots_release(&scene.slot[3]);
    assert_false(scene.slot[4].granted);
    slots_resize(&scene.slots, 1);
    assert_true(scene.slot[4].granted);
    slots_release(&scene.slot[4]);
    loop_free(scene.loop);
}

static void ask_twice(void)
{
    struct scene scene;
    open_scene(&scene, 2);
    (void)acquire(&scene, 0, 1);
    (void)acquire(&scene, 0, 1);
}

static void test_asking_twice_dies(void **state)
{
    (void)state;
    assert_non_null(strstr(dying_words(ask_twice), "asks for compile twice"));
}

/* --- a crowd that acquires, holds for some steps, releases, and at times gives up --- */

enum { CROWD = 2000, CAPACITY = 7 };

static struct slots lanes;
static struct random dice;
static unsigned most_used, grants;

struct worker {
    struct probe probe;
    struct slot slot;
    unsigned hold;
};

static enum task_result worker_step(struct probe *probe)
{
    struct worker *worker = (struct worker *)probe;
    assert_true(lanes.used <= CAPACITY);
    if (lanes.used > most_used)
        most_used = lanes.used;
    if (probe->steps == 1) {
        unsigned amount = 1 + (unsigned)random_below(&dice, CAPACITY);
        worker->hold = (unsigned)random_below(&dice, 5);
        if (!slots_acquire(&lanes, &worker->slot, &probe->task, amount)) {
            if (random_below(&dice, 10) == 0) {
                slots_release(&worker->slot);
                return TASK_DONE;
            }
            return TASK_WAIT;
        }
    }
    assert_true(worker->slot.granted);
    if (worker->hold-- > 0)
        return TASK_AGAIN;
    grants++;
    slots_release(&worker->slot);
    return TASK_DONE;
}

static void test_a_crowd(void **state)
{
    (void)state;
    static struct worker workers[CROWD];
    random_init(&dice, 42);
    slots_init(&lanes, "lanes", CAPACITY);
    struct loop *loop = loop_new();
    for (int i = 0; i < CROWD; i++)
        probe_start(loop, &workers[i].probe, NULL, "worker", worker_step, NULL);
    loop_run(loop); /* aborts if one of them waits for ever */
    assert_int_equal(lanes.used, 0);
    assert_int_equal(most_used, CAPACITY);
    assert_true(grants > CROWD / 2);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grants_in_order),
        cmocka_unit_test(test_a_large_wait_is_not_overtaken),
        cmocka_unit_test(test_a_wait_that_is_given_up),
        cmocka_unit_test(test_resize),
        cmocka_unit_test(test_asking_twice_dies),
        cmocka_unit_test(test_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
