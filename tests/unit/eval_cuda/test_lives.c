/* What one launch may leave to the next, and to which: calls, modules and processes, with a driver
 * that has no GPU (tests/fakes/fake_cuda.c). */
#include "relu.h"

/* However long it is for: a second launch would meet the bytes of the first. Where it is timed one
 * on cleared memory goes before it. */
static void test_one_launch_a_call(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_counts"), 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_true(output(&scene)[0] == (float)i);
    }
    scene.call.timed = true;
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_true(output(&scene)[0] == (float)(3 + 2 * i));
    }
    scene_end(&scene);
}

/* What counts its launches finds them all where the module stays, and none after it did not. */
static void test_a_module_stays(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_tires"), 0);
    scene.call.rounds = 1;
    for (int turn = 0; turn < 2; turn++) {
        scene.call.stays = true;
        for (int i = 1; i <= 8; i++) {
            assert_int_equal(call(&scene, &elapsed_ns), 0);
            assert_int_equal(is_right(&scene), i <= 6); /* two launches each */
        }
        scene.call.stays = false;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_true(is_right(&scene));
    }
    scene.call.stays = true;
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_int_equal(open_entry(&scene, "fake_relu"), 0); /* the next candidate's own module */
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_true(is_right(&scene));
    scene_end(&scene);
}

/* A cooperative launch has the driver's workspace: every life is a process, as with variables. */
static void test_a_cooperative_launch_keeps(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    for (int cooperative = 0; cooperative < 2; cooperative++) {
        const char *launch = arena_printf(
            scene.arena,
            "  - {entry: fake_relu, grid: 1, block: 1, args: [X, Y, N], cooperative: %s}\n",
            cooperative ? "true" : "false");
        assert_int_equal(scene_open(&scene, launch), 0);
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(scene.subject->keeps_state, cooperative);
        assert_int_equal(scene.subject->renew(scene.subject), !cooperative);
    }
    scene_end(&scene);
}

/* Who asks for a fresh process gets one that no candidate was in. */
static void test_fresh_processes(void **unused)
{
    struct scene scene;
    int pids[3];
    (void)unused;
    begin(&scene);
    for (int i = 0; i < 3; i++) {
        const struct program program = scene_program(&scene, scene_launch(&scene, "fake_relu"));
        assert_int_equal(backend_cuda.open(&scene.lane, &scene.region, scene.artifact, &program,
                                           i == 2, &scene.subject, &scene.err),
                         0);
        pids[i] = scene.subject->pid;
    }
    assert_int_equal(pids[0], pids[1]);
    assert_true(pids[1] != pids[2]);
    scene_end(&scene);
}

int main(int argc, char **argv)
{
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_launch_a_call),
        cmocka_unit_test(test_a_module_stays),
        cmocka_unit_test(test_a_cooperative_launch_keeps),
        cmocka_unit_test(test_fresh_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
