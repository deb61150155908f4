/* Kernels whose limit is known, from source to word: each gets the right one, or "no single limiter
 * seen"; never a wrong one. Their work is their own, so that it can be as much as is needed to be
 * sampled; what the problem asks decides its roof alone. */
#include "../eval_cpu/kit.c" /* each test is one source file */

#include "agents/diagnosis/diagnosis.h"
#include "base/value.h"

#define FACTS "{\"cores\": 1, \"vector_bytes\": 32}"

#define VEC "typedef float vec __attribute__((vector_size(32)));\n"
/* Filled in, so that no compiler knows what they hold. */
#define NUMBERS                                                                                    \
    "static float X[1 << 12], Y[1 << 12];\n"                                                       \
    "static void fill(const float *A)\n{\n"                                                        \
    "for (int i = 0; i < 1 << 12; i++) X[i] = Y[i] = A[i % 15];\n}\n"

static const struct {
    const char *what;
    bool by_memory;
    double share;         /* of its roof */
    const char *words[3]; /* the right ones */
    const char *phase;    /* where most of the time is: the function, or NULL */
    const char *source;
} rows[] = {
    {"vectors, many accumulators",
     false,
     0.7,
     {"compute"},
     NULL,
     VEC KIT_SIGNATURE "{\nvec s[10], a = {A[0]}, b = {B[0]};\n"
                       "for (int v = 0; v < 10; v++) s[v] = a + (float)v;\n"
                       "for (long i = 0; i < 400000; i++)\n#pragma GCC unroll 10\n"
                       "for (int v = 0; v < 10; v++) s[v] = s[v] * a + b;\n"
                       "for (int v = 0; v < 10; v++) C[v] = s[v][0];\n}\n"},
    {"vectors far below the roof, beside a loop that was left",
     false,
     0.05,
     {"register reuse", "latency"},
     NULL,
     NUMBERS KIT_SIGNATURE "{\nfill(A);\nfor (long n = 0; n < 3000; n++) {\n"
                           "for (int i = 0; i < 4096; i++) Y[i] = X[i] * A[0] + Y[i];\n"
                           "__asm__ volatile(\"\" ::: \"memory\"); }\n"
                           "float s = 0;\nfor (int i = 0; i < 9; i++) s += Y[i] * B[0];\n"
                           "C[0] = s;\n}\n"},
    {"a sum in order",
     false,
     0.02,
     {"not vectorized", "latency"},
     NULL,
     NUMBERS KIT_SIGNATURE "{\nfill(A);\nfloat s = 0;\nfor (long n = 0; n < 600; n++) {\n"
                           "for (int i = 0; i < 4096; i++) s += X[i] * Y[i];\n"
                           "__asm__ volatile(\"\" ::: \"memory\"); }\nC[0] = s;\n}\n"},
    {"a stream",
     true,
     0.9,
     {"memory bandwidth"},
     NULL,
     VEC
     "static vec V[1 << 20];\n" KIT_SIGNATURE
     "{\nvec s[4] = {{0}};\nV[A[0] > 2][1] = A[1];\nfor (long i = 0; i < 1 << 20; i += 4)\n"
     "for (int v = 0; v < 4; v++) s[v] += V[i + v];\nC[0] = (s[0] + s[1] + s[2] + s[3])[0];\n}\n"},
    {"a chase of pointers",
     true,
     0.05,
     {"latency", "cache misses"},
     NULL,
     "static int next[1 << 21];\n" KIT_SIGNATURE
     "{\nconst int most = 1 << 21;\nif (next[0] == 0)\nfor (int i = 0; i < most; i++)\n"
     "next[i] = (int)((i * 1103515245u + 12345) % most);\nint at = 0;\n"
     "for (int i = 0; i < 200000; i++) at = next[at];\nC[0] = (float)at;\n}\n"},
    {"packing",
     false,
     0.1,
     {"data movement"},
     "pack",
     "static float P[512 * 512], Q[512 * 512];\n"
     "static void pack(void)\n{\nfor (int i = 0; i < 512; i++)\nfor (int j = 0; j < 512; j++)\n"
     "P[j * 512 + i] = Q[i * 512 + j];\n}\n" NUMBERS KIT_SIGNATURE
     "{\nfill(A);\nQ[A[0] > 2] = A[1];\nfor (int n = 0; n < 8; n++) {\npack();\n"
     "for (int i = 0; i < 4096; i++) Y[i] = P[i] * A[0] + Y[i];\n"
     "__asm__ volatile(\"\" ::: \"memory\"); }\nC[0] = Y[1];\n}\n"},
    {"a library's function by numbers",
     true,
     0.05,
     {"not vectorized"},
     NULL,
     "#include <math.h>\n" NUMBERS KIT_SIGNATURE
     "{\nfill(A);\nfloat s = 0;\nfor (int n = 0; n < 60; n++)\nfor (int i = 0; i < 4096; i++)\n"
     "s += powf(X[i] + 1.5f + (float)n, A[0] + 2.5f);\nC[0] = s;\n}\n"},
};

/* By 210 operations and 284 bytes, which is what the kit's problem asks for. */
static struct value *profile(size_t i, struct buf *text)
{
    struct json json;
    struct value *root;
    const double seconds = 1e-3;
    kit.lane.flops_per_s = 210 / seconds / (rows[i].by_memory ? 1e-6 : rows[i].share);
    kit.lane.copy_bytes_per_s = 284 / seconds / (rows[i].by_memory ? rows[i].share : 1e-6);
    kit.lane.read_bytes_per_s = 0;
    json_init(&json, text);
    json_object(&json);
    assert_int_equal(backend_cpu.profile(&kit.lane, kit.problem, &kit.problem->shapes[0],
                                         kit.build.artifact, NULL, seconds * 1e9, kit.subject,
                                         &kit.call, &json, &kit.err),
                     0);
    json_object_end(&json);
    assert_int_equal(
        value_parse_json(kit.arena, "profile", buf_text(text), text->length, &root, &kit.err), 0);
    return root;
}

static void each_gets_its_word(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf text;
        if (i > 0) {
            kit_close(&kit);
            kit_open(&kit);
        }
        if (kit_try(&kit, rows[i].source) != ERR_NONE)
            fail_msg("%s: %s", rows[i].what, kit.err.message);
        buf_init(&text, 64 << 10);
        const struct value *root = profile(i, &text);
        const struct value *phases = value_at(root, "time.phases");
        if (phases == NULL && i == 0)
            skip(); /* no samples are permitted here, or no objdump */
        if (phases == NULL)
            fail_msg("%s: %s", rows[i].what, buf_text(&text));
        struct diagnosis found = diagnosis_of(kit.arena, buf_text(&text), FACTS);
        bool right = strcmp(found.limiter, DIAGNOSIS_NONE) == 0;
        for (int k = 0; k < 3 && rows[i].words[k] != NULL; k++)
            right = right || strcmp(found.limiter, rows[i].words[k]) == 0;
        if (!right)
            fail_msg("%s: %s\n%s", rows[i].what, found.limiter, found.evidence);
        if (rows[i].phase != NULL)
            assert_string_equal(value_text(phases->items[0], "in", ""), rows[i].phase);
        if (rows[i].phase != NULL)
            assert_int_equal(value_int(phases->items[0], "last_line", 0), 6);
        buf_free(&text);
    }
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_gets_its_word, set_up, tear_down),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
