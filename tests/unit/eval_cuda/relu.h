/* A scene whose kernels are to give relu(x) of numbers from -3 to 3. */
#pragma once

#include "scene.h"

static inline void begin(struct scene *scene)
{
    scene_begin(scene);
    scene->call.cold = true;
    float *x = (float *)(void *)(scene->region.inputs + scene->call.offsets[0]);
    for (int i = 0; i < 1000; i++)
        x[i] = (float)(i % 7) - 3.0f;
}

static inline int open_entry(struct scene *scene, const char *entry)
{
    return scene_open(scene, scene_launch(scene, entry));
}

static inline int call(struct scene *scene, uint64_t *elapsed_ns)
{
    memset(scene->region.outputs, 0x7f, scene->region.outputs_bytes);
    return subject_call(scene->subject, &scene->call, elapsed_ns, &scene->err);
}

static inline const float *output(const struct scene *scene)
{
    return (const float *)(const void *)(scene->region.outputs + scene->call.offsets[1]);
}

static inline bool is_right(const struct scene *scene)
{
    for (int i = 0; i < 1000; i++)
        if (output(scene)[i] != (i % 7 > 3 ? (float)(i % 7) - 3.0f : 0.0f))
            return false;
    return true;
}

/* Calls what fails. A hang counts once its kernel runs: where the runner was stopped for as long
 * before, or amid another one, it is asked again. */
static inline void fail_at(struct scene *scene, const char *launches)
{
    enum { TRIES = 50 };
    uint64_t elapsed_ns;
    bool hangs = strstr(launches, "fake_hang") != NULL;
    int tries = 0;
    do {
        assert_int_equal(scene_open(scene, launches), 0);
        scene->call.timeout_ms = hangs ? 100 : SCENE_HANG_MS;
        assert_int_equal(call(scene, &elapsed_ns), -1);
        scene->call.timeout_ms = SCENE_HANG_MS;
    } while (hangs && ++tries < TRIES && strstr(scene->err.message, "fake_hang did not") == NULL);
}
