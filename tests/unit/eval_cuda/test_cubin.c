/* What a cubin would keep between launches, as NVRTC writes it; and files that are none. */
#include "kit.h"

#include "base/mem.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/compile/ptxas.h"

static const char *const front =
    "/*---\nlaunch:\n  - {entry: k, grid: 1, block: 32, args: [X, Y]}\n---*/\n";

static void read_artifact(struct kit *kit, struct buf *image)
{
    buf_init(image, 1 << 22);
    if (file_read(kit->build.artifact, image, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
}

/* Of its kernel, what ptxas has said of it. */
static void check_kernel(const struct kit *kit, const struct buf *image)
{
    const struct cuda_resources *said = ptxas_entry(&kit->report, "k");
    struct cubin_kernel kernel = cubin_kernel(buf_text(image), image->length, "k");
    assert_int_equal(kernel.registers, said->registers);
    assert_int_equal(kernel.stack_bytes, said->stack_bytes);
    assert_int_equal(cubin_kernel(buf_text(image), image->length, "none").registers, -1);
}

static struct cubin read_whole(const struct buf *image, bool hidden)
{
    struct cubin cubin;
    struct err err = {0};
    assert_int_equal(cubin_read(buf_text(image), image->length, &cubin), 0);
    (void)!cubin_loadable(buf_text(image), image->length, &cubin, &err);
    assert_true(cubin.hidden == hidden);
    assert_true(hidden == (strstr(err.message, "inline assembly declares a variable") != NULL));
    return cubin;
}

static const struct {
    const char *source, *heap;
    bool variables;
} rows[] = {
    {"extern \"C\" __global__ void k(float *x, float *y) { *y = *x; }", NULL, false},
    {"extern \"C\" __global__ void k(float *x, float *y) { __shared__ float s[32];"
     " s[threadIdx.x] = *x; __syncthreads(); *y = s[31 - threadIdx.x]; }",
     NULL, false},
    {"extern \"C\" __global__ void k(float *x, float **y) { *y = (float *)malloc(64); }", "malloc",
     false},
    {"extern \"C\" __global__ void k(float *x, float **y) { *y = new float[16]; }", "malloc",
     false},
    {"extern \"C\" __global__ void k(float *x, float *y) { free(y); }", "free", false},
    {"__device__ float v[4];\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = v[0]++; }",
     NULL, true},
    {"extern \"C\" __global__ void k(float *x, float *y) { static __device__ int n = 3;"
     " *y = n++; }",
     NULL, true},
    {"__constant__ float c[4] = {1, 2};\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = c[threadIdx.x & 3]; }",
     NULL, true},
/* what headers have and nobody uses is none; a thing of one's own is, with headers too */
#ifndef __SANITIZE_ADDRESS__ /* to read it is what the one below does */
    {"#include <cooperative_groups.h>\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = *x;"
     " cooperative_groups::this_grid().sync(); }",
     NULL, false},
    {"#include <cuda/pipeline>\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = *x; }",
     NULL, false},
#endif
    {"#include <cooperative_groups.h>\n__device__ float v[4], unused;\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = v[0]++;"
     " cooperative_groups::this_grid().sync(); }",
     NULL, true},
    {"__device__ int v; __device__ int *where = &v;\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = (float)++*where; }",
     NULL, true},
    {"extern \"C\" __global__ void k(float *x, unsigned *y) {"
     " asm volatile(\"{.global .u32 hidden; atom.global.inc.u32 %0, [hidden], 99;}\" : "
     "\"=r\"(*y)); }",
     NULL, true},
    {"__device__ unsigned v;\n"
     "__device__ __noinline__ unsigned f() { return v++; }\n"
     "extern \"C\" __global__ void k(float *x, unsigned *y) { *y = f(); }",
     NULL, true},
    {"extern \"C\" __global__ void k(float *x, float *y) { printf(\"%f\", *x); *y = *x; }", NULL,
     true},
    {"__managed__ int m;\n"
     "extern \"C\" __global__ void k(float *x, float *y) { *y = m++; }",
     NULL, true},
};

static void test_compiled(void **unused)
{
    (void)unused;
    kit_need_nvrtc();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kit kit;
        struct buf image;
        struct cubin cubin;
        kit_open(&kit, NULL);
        const char *text = arena_printf(kit.arena, "%s%s\n", front, rows[i].source);
        if (kit_compile(&kit, text) != 0)
            fail_msg("%s: %s", rows[i].source, buf_text(&kit.said));
        read_artifact(&kit, &image);
        cubin = read_whole(&image, strstr(text, "hidden") != NULL);
        if (cubin.variables != rows[i].variables || (cubin.heap == NULL) != (rows[i].heap == NULL))
            fail_msg("%s: %s, %d", rows[i].source, cubin.heap != NULL ? cubin.heap : "no heap",
                     cubin.variables);
        check_kernel(&kit, &image);
        buf_free(&image);
        kit_close(&kit);
    }
}

/* Whatever is wrong with a file, it is read no further than it goes (a sanitizer would see it). */
static void test_broken(void **unused)
{
    static const char source[] = "__device__ int v;\n"
                                 "extern \"C\" __global__ void k(int *x, int **y)"
                                 " { v++; *y = (int *)malloc(4); }\n";
    struct kit kit;
    struct buf image;
    struct cubin cubin;
    uint64_t random = 88172645463325252u;
    int well = 0;
    (void)unused;
    assert_int_equal(cubin_read("", 0, &cubin), -1);
    assert_int_equal(cubin_read("// PTX", 6, &cubin), -1);
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    const char *text = arena_printf(kit.arena, "%s%s", front, source);
    assert_int_equal(kit_compile(&kit, text), 0);
    read_artifact(&kit, &image);
    for (size_t length = 0; length < image.length; length += length < 80 ? 1 : 13) {
        char *part = mem_alloc(length + 1);
        memcpy(part, buf_text(&image), length);
        well += cubin_read(part, length, &cubin) == 0;
        (void)cubin_kernel(part, length, "k");
        mem_free(part);
    }
    char *other = mem_alloc(image.length);
    for (int round = 0; round < 20000; round++) {
        memcpy(other, buf_text(&image), image.length);
        for (int k = 0; k < 3; k++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size_t tables = image.length > 2000 ? image.length - 2000 : 0;
            size_t at = (random & 1) != 0
                            ? (size_t)(random >> 8) % 64
                            : tables + (size_t)(random >> 8) % (image.length - tables);
            other[at] = (char)(random >> 40);
        }
        well += cubin_read(other, image.length, &cubin) == 0;
        (void)cubin_kernel(other, image.length, "k");
    }
    assert_in_range(well, 1, 20000);
    mem_free(other);
    buf_free(&image);
    kit_close(&kit);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
