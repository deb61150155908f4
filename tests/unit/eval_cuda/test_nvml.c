/* Who else computes on the device, as a runner tells it beside its clocks
 * (tests/fakes/fake_nvml.c). */
#include "scene.h"

static struct device_state timed_state(const char *others, const char *elsewhere)
{
    struct scene scene;
    uint64_t elapsed_ns;
    if (others != NULL)
        setenv("FAKE_NVML_OTHERS", others, 1);
    if (elsewhere != NULL)
        setenv("FAKE_NVML_ELSEWHERE", elsewhere, 1);
    scene_begin(&scene);
    scene.call.timed = true;
    assert_int_equal(scene_open(&scene, scene_launch(&scene, "fake_relu")), 0);
    assert_int_equal(subject_call(scene.subject, &scene.call, &elapsed_ns, &scene.err), 0);
    struct device_state state = scene.subject->state;
    scene_end(&scene);
    unsetenv("FAKE_NVML_OTHERS");
    unsetenv("FAKE_NVML_ELSEWHERE");
    return state;
}

static void test_counts_others(void **unused)
{
    (void)unused;
    struct device_state state = timed_state(NULL, NULL);
    assert_int_equal(state.looks, 1);
    assert_int_equal(state.sm_mhz[0], 1980);
    assert_int_equal(state.other_looks, 1);
    assert_int_equal(state.others[0], 0); /* the runner, and the worker that started it */
    state = timed_state("3", NULL);
    assert_int_equal(state.other_looks, 1);
    assert_int_equal(state.others[0], 3);
    assert_int_equal(state.others[1], 3);
}

/* Not known is not none. */
static void test_says_what_is_not_known(void **unused)
{
    (void)unused;
    struct device_state state = timed_state("3", "1");
    assert_int_equal(state.looks, 1);
    assert_int_equal(state.other_looks, 0);
    state = timed_state("100", NULL); /* more than there is room for */
    assert_int_equal(state.looks, 1);
    assert_int_equal(state.other_looks, 0);
}

int main(int argc, char **argv)
{
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    setenv("LD_LIBRARY_PATH", FAKES "nvml", 1); /* of the runners, which are started from here */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts_others),
                                       cmocka_unit_test(test_says_what_is_not_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
