#include "kit.h"

#include "../run_build.h"

static const char spec[] = "name: product\n"
                           "dims: {M: 7, N: 5, K: 3}\n"
                           "inputs: {A: {shape: [M, K], dtype: float32}, "
                           "B: {shape: [K, N], dtype: float32}}\n"
                           "outputs: {C: {shape: [M, N], dtype: float32}}\n"
                           "reference: ref.py\n"
                           "flops: 2*M*N*K\n"
                           "check: [{M: 1, N: 1, K: 1}]\n";

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            fail_msg("%s: %s", #call, kit->err.message);                                           \
    } while (0)

static float *input(const struct kit *kit, size_t i)
{
    return (float *)(void *)(kit->region.inputs + kit->layout.inputs[i].offset);
}

float *kit_output(const struct kit *kit)
{
    return (float *)(void *)(kit->region.outputs + kit->layout.outputs[0].offset);
}

static void write_file(struct kit *kit, const char *name, const char *text)
{
    char *path = file_join(kit->folder, name);
    MUST(file_write(path, text, strlen(text), &kit->err));
    mem_free(path);
}

static size_t lane_cores(int cores[64])
{
    cpu_set_t set;
    size_t count = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
        if (CPU_ISSET((size_t)i, &set))
            cores[count++] = i;
    return count;
}

void kit_open(struct kit *kit)
{
    memset(kit, 0, sizeof *kit);
    kit->arena = arena_new();
    buf_init(&kit->said, 64 << 10);
    strcpy(kit->folder, "/tmp/twagent-test-XXXXXX");
    assert_non_null(mkdtemp(kit->folder));
    write_file(kit, "spec.yaml", spec);
    write_file(kit, "ref.py", "def reference(A, B):\n    return A @ B\n");
    MUST(problem_load(kit->folder, &kit->problem, &kit->err));
    kit->lane.core_count = lane_cores(kit->lane.cores);
    MUST(layout_make(kit->problem, &kit->problem->shapes[0], NULL, NULL, 128, &kit->layout,
                     &kit->err));
    MUST(region_open(kit->layout.inputs_bytes + 4 * 4096, kit->layout.outputs_bytes, &kit->region,
                     &kit->err));
    call_make(&kit->layout, 0, KIT_HANG_MS, &kit->call);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < kit->layout.inputs[i].elements; j++)
            input(kit, i)[j] = (float)((int)(j * 7 + i) % 11 - 5);
}

void kit_close(struct kit *kit)
{
    struct err err;
    if (kit->subject != NULL)
        kit->subject->ops->close(kit->subject);
    cpu_runner_discard_spares();
    candidate_free(kit->candidate);
    region_close(&kit->region);
    problem_free(kit->problem);
    (void)!file_remove_tree(kit->folder, &err);
    buf_free(&kit->said);
    arena_free(kit->arena);
}

int kit_run_build(struct kit *kit)
{
    return run_build(&kit->build.spec, &kit->said);
}

void kit_lay_out(struct kit *kit, const char *name, const char *text, enum build_flavour flavour)
{
    buf_reset(&kit->said);
    candidate_free(kit->candidate);
    kit->candidate = NULL;
    MUST(candidate_parse(kit->problem, name, text, strlen(text), &kit->candidate, &kit->err));
    struct names tune = {0};
    if (kit->candidate->tune_count > 0)
        tune_at(kit->candidate, 0, &tune);
    MUST(backend_cpu.build(kit->arena, &kit->lane, kit->problem, kit->candidate, &tune, NULL,
                           flavour, kit->folder, &kit->build, &kit->err));
}

int kit_compile(struct kit *kit, const char *name, const char *text, enum build_flavour flavour)
{
    kit_lay_out(kit, name, text, flavour);
    return kit_run_build(kit);
}

int kit_load(struct kit *kit)
{
    if (kit->subject != NULL)
        kit->subject->ops->close(kit->subject);
    kit->subject = NULL;
    static const struct program none;
    return backend_cpu.open(&kit->lane, &kit->region, kit->build.artifact, &none, false,
                            &kit->subject, &kit->err);
}

int kit_call(struct kit *kit)
{
    uint64_t elapsed_ns;
    memset(kit_output(kit), 0xff, kit->layout.outputs[0].bytes);
    return subject_call(kit->subject, &kit->call, &elapsed_ns, &kit->err);
}

bool kit_right(const struct kit *kit)
{
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 5; j++) {
            float sum = 0;
            for (int k = 0; k < 3; k++)
                sum += input(kit, 0)[i * 3 + k] * input(kit, 1)[k * 5 + j];
            if (!(kit_output(kit)[i * 5 + j] == sum))
                return false;
        }
    return true;
}

enum err_code kit_try(struct kit *kit, const char *text)
{
    kit->err = (struct err){0};
    if (kit_compile(kit, "k.c", text, BUILD_FAST) != 0)
        fail_msg("does not compile: %s", buf_text(&kit->said));
    if (kit_load(kit) != 0 || kit_call(kit) != 0)
        return kit->err.code;
    return ERR_NONE;
}

/* ---- each test has one ---- */

static struct kit kit;

static int set_up(void **state)
{
    (void)state;
    kit_open(&kit);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kit_close(&kit);
    return 0;
}
