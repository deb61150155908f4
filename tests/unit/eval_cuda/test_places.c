/* Where a call's tensors lie, and what a call that stays launches, with a driver that has no GPU
 * (tests/fakes/fake_cuda.c). */
#include "relu.h"

#include "eval/cuda/run/tensors.h"

/* A call of these tensors: inputs, then outputs, then workspaces. */
static struct call call_of(uint64_t seed, size_t inputs, size_t outputs, size_t workspaces)
{
    struct call made = {.place_seed = seed,
                        .input_count = (uint32_t)inputs,
                        .output_count = (uint32_t)outputs,
                        .workspace_count = (uint32_t)workspaces};
    size_t from = REDZONE_BYTES;
    for (size_t i = 0; i < inputs + outputs + workspaces; i++) {
        from = i == inputs ? REDZONE_BYTES : from;
        made.offsets[i] = from;
        made.sizes[i] = (seed * (i + 3) % 5000) * (i % 3 == 0 ? 997 : 4);
        from = (from + made.sizes[i] + 255) / 256 * 256 + REDZONE_BYTES;
        made.inputs_bytes = i < inputs ? from : made.inputs_bytes;
        made.outputs_bytes = i < inputs ? 0 : from;
    }
    return made;
}

/* All tensors of a region lie in its room, as they are promised to, each with a zone of its own. */
static void test_places(void **unused)
{
    static struct tensors tensors;
    const cu_pointer base = UINT64_C(0x7f0000000000);
    (void)unused;
    for (uint64_t seed = 1; seed < 400; seed++) {
        size_t inputs = seed % 7 == 0 ? 200 : 1 + seed % 32;
        struct call call = call_of(seed, inputs, 1 + seed % 16, seed % 9);
        size_t count = inputs + call.output_count + call.workspace_count;
        cu_pointer last = base;
        tensors_place(&call, base, base, &tensors);
        assert_int_equal(tensors.whole, inputs > 32);
        for (size_t i = 0; i < count; i++) {
            uint64_t zone = tensors.whole && i > 0 && i < inputs ? REDZONE_BYTES : TENSORS_ZONE;
            last = i == inputs ? base : last;
            assert_int_equal(tensors.pointers[i] % 256, 0);
            assert_true(tensors.pointers[i] >= last + zone);
            last = tensors.pointers[i] + call.sizes[i];
            last += tensors.whole && i + 1 < inputs ? 0 : TENSORS_ZONE;
            if (i + 1 == inputs)
                assert_true(last - base <= call.inputs_bytes + TENSORS_SLACK);
        }
        assert_true(last - base <= call.outputs_bytes + TENSORS_SLACK);
    }
}

/* Multiples of 2 MiB are among them, alone and all at once, and each lesser power. */
static void test_all_alignments(void **unused)
{
    static struct tensors tensors;
    unsigned seen[32] = {0}, all_large = 0;
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct call call = call_of(seed, 2, 1, 0);
        unsigned large = 0;
        tensors_place(&call, 4096, 4096, &tensors);
        for (size_t i = 0; i < 3; i++) {
            int low = __builtin_ctzll(tensors.pointers[i]);
            seen[low < 21 ? low : 21]++;
            large += low >= 21;
        }
        all_large += large == 3;
    }
    assert_true(all_large >= 90);
    assert_true(seen[8] > 20 && seen[9] > 20 && seen[12] > 20 && seen[16] > 20 && seen[21] > 300);
}

/* The kernel sees what the seed says, timed or not, and the same for the same seed. */
static void test_a_call_is_placed(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    float places[2][16];
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_where"), 0);
    for (int timed = 0; timed < 2; timed++)
        for (unsigned seed = 0; seed < 16; seed++) {
            scene.call.timed = timed;
            scene.call.place_seed = seed;
            assert_int_equal(call(&scene, &elapsed_ns), 0);
            places[timed][seed] = output(&scene)[0];
            assert_true(seed % 2 == 0 || (output(&scene)[0] == 0.0f && output(&scene)[1] == 0.0f));
        }
    assert_memory_equal(places[0], places[1], sizeof places[0]);
    unsigned others = 0;
    for (unsigned seed = 0; seed < 16; seed += 2)
        others += places[0][seed] > 0.0f;
    assert_true(others >= 4);
    scene_end(&scene);
}

/* Further away than the region's red zones reach. */
static void test_writes_far_away(void **unused)
{
    static const char *const entries[] = {"fake_relu", "fake_far_behind", "fake_far_before"};
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        assert_int_equal(open_entry(&scene, entries[i]), 0);
        for (unsigned stays = 0; stays < 2; stays++) {
            scene.call.stays = stays != 0;
            scene.call.rounds = 3 * stays;
            assert_int_equal(call(&scene, &elapsed_ns), 0);
            assert_true(is_right(&scene));
            assert_int_equal(scene.subject->wrote_around, i > 0);
        }
    }
    scene_end(&scene);
}

/* One launch of sixteen that gives something else is the one that counts, and the first is there
 * besides. */
static void test_rounds_are_compared(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    scene.call.stays = true;
    scene.call.rounds = 15;
    assert_int_equal(open_entry(&scene, "fake_fifth"), 0);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_true(scene.subject->differs);
    assert_true(scene.subject->launches >= 5 && scene.subject->launches <= 16);
    bool wrong = output(&scene)[1] == 1.0f;
    scene.call.earlier = true;
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    scene.call.earlier = false;
    assert_int_equal(output(&scene)[1] == 1.0f, !wrong);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_false(scene.subject->differs);
    assert_int_equal(scene.subject->launches, 16);
    assert_true(is_right(&scene));
    scene_end(&scene);
}

static void test_launches_behind_it(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_aged"), 0);
    scene.call.stays = true;
    for (unsigned turn = 0; turn < 3; turn++) {
        scene.call.behind = turn == 1 ? 100001 : 0;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(is_right(&scene), turn == 0);
    }
    scene_end(&scene);
}

/* Company is there in calls that ask for it, and in no other. */
static void test_crowds(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_alone"), 0);
    for (unsigned turn = 0; turn < 6; turn++) {
        scene.call.crowded = turn % 2 == 1;
        scene.call.stays = turn >= 4;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(is_right(&scene), turn % 2 == 0);
    }
    scene_end(&scene);
}

/* Launches between those that count are on other bytes, which are moved where no company is. */
static void test_rounds_in_a_crowd(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_relu"), 0);
    draw_poison_bits(DTYPE_FLOAT32, &scene.call.poison[1].bits);
    scene.call.poison[0].bytes = scene.call.poison[1].bytes = 4000;
    scene.call.stays = scene.call.crowded = true;
    scene.call.rounds = 15;
    for (uint64_t seed = 1; seed < 9; seed++) {
        scene.call.poison_seed = seed << 8 | 1;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_true(is_right(&scene));
        assert_false(scene.subject->differs);
        assert_int_equal(scene.subject->launches, 16);
    }
    scene_end(&scene);
}

int main(int argc, char **argv)
{
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_all_alignments),
        cmocka_unit_test(test_a_call_is_placed),
        cmocka_unit_test(test_writes_far_away),
        cmocka_unit_test(test_rounds_are_compared),
        cmocka_unit_test(test_launches_behind_it),
        cmocka_unit_test(test_crowds),
        cmocka_unit_test(test_rounds_in_a_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
