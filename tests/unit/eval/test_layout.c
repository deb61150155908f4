/* Tensors apart and aligned, and regions that nobody else can write to or shorten. */
#include "eval/candidate/layout.h"
#include "parse.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>

#include <cmocka.h>

static const char text[] = "/*---\n"
                           "tune: {T: [2, 6]}\n"
                           "workspace: {w: {shape: [T, M], dtype: float16}}\n"
                           "---*/\n";

static void check_apart(const struct placed *placed, size_t count, size_t shift, size_t whole)
{
    size_t end = shift;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(placed[i].offset % TENSOR_ALIGN, 0);
        assert_true(placed[i].offset >= end + REDZONE_BYTES);
        end = placed[i].offset + placed[i].bytes;
    }
    assert_true(end + REDZONE_BYTES <= whole);
}

static void test_places(void **state)
{
    struct problem *problem = parse_problem(parse_spec);
    struct candidate *candidate = NULL;
    struct layout layout, plain;
    struct names tune;
    struct err err;
    struct call call;
    (void)state;
    assert_int_equal(candidate_parse(problem, "a.c", text, strlen(text), &candidate, &err), 0);
    tune_at(candidate, 1, &tune);
    for (size_t shift = 0; shift < 4096; shift += 64 * 21) {
        struct placed all[3];
        assert_int_equal(
            layout_make(problem, &problem->shapes[0], candidate, &tune, shift, &layout, &err), 0);
        check_apart(layout.inputs, 2, shift, layout.inputs_bytes);
        all[0] = layout.outputs[0];
        all[1] = layout.workspaces[0];
        check_apart(all, 2, shift, layout.outputs_bytes);
        assert_int_equal(layout.inputs[0].offset % 4096, shift);
    }
    assert_int_equal(layout.inputs[1].bytes, 32 * 48 * 8);
    assert_int_equal(layout.workspaces[0].bytes, 6 * 64 * 2);
    assert_int_equal(layout_make(problem, &problem->shapes[0], NULL, NULL, 0, &plain, &err), 0);
    assert_int_equal(plain.workspace_count, 0);
    call_make(&layout, 1 << 20, 77, &call);
    assert_int_equal(call.input_count + call.output_count + call.workspace_count, 4);
    assert_int_equal(call.offsets[1], (1 << 20) + layout.inputs[1].offset);
    assert_int_equal(call.offsets[2], layout.outputs[0].offset);
    assert_int_equal(call.offsets[3], layout.workspaces[0].offset);
    assert_int_equal(call.dim_count, 4);
    assert_int_equal(call.dims[3], 32); /* H, derived */
    assert_int_equal(call.timeout_ms, 77);
    candidate_free(candidate);
    problem_free(problem);
}

/* Each input meets a page that cannot be read, aligned as ever, and is where the host writes it. */
static void test_guards(void **state)
{
    static const struct {
        enum guard guard;
        size_t slot, shift;
    } cases[] = {{GUARD_END, 0, 0},     {GUARD_START, 0, 128}, {GUARD_NEAR, 0, 0},
                 {GUARD_NEAR, 0, 64},   {GUARD_NEAR, 0, 4032}, {GUARD_START, 1, 0},
                 {GUARD_END, 1, 1024},  {GUARD_NEAR, 1, 0},    {GUARD_NEAR, 1, 128},
                 {GUARD_NEAR, 1, 2048}, {GUARD_NEAR, 1, 4032}};
    struct problem *problem = parse_problem(parse_spec);
    struct region region = {.inputs_bytes = 1 << 20};
    size_t most[INPUTS_MAX], main[INPUTS_MAX] = {1, 1};
    struct layout layout;
    struct err err;
    (void)state;
    assert_int_equal(layout_make(problem, &problem->shapes[0], NULL, NULL, 128, &layout, &err), 0);
    assert_false(layout_guard(&layout, GUARD_END, &region, 0, 0)); /* it has no aliases */
    for (size_t i = 0; i < layout.input_count; i++)
        most[i] = layout.inputs[i].bytes + 4096 * (i % 2);
    region_alias(&region, most, main, layout.input_count, 2, 1 << 19);
    layout.inputs[0].bytes -= 4; /* as a size that is no multiple of the alignment */
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct call call;
        const size_t slot = cases[k].slot, at = slot << 19;
        assert_true(layout_guard(&layout, cases[k].guard, &region, slot, cases[k].shift));
        call_make(&layout, at, 77, &call);
        assert_true(call.guarded);
        size_t last = region.inputs_bytes;
        for (size_t i = 0; i < layout.input_count; i++) {
            const struct alias *alias = &region.aliases[slot][i];
            size_t start = call.alias_offsets[i], end = start + layout.inputs[i].bytes;
            assert_int_equal(start % TENSOR_ALIGN, 0);
            assert_int_equal(start - alias->address, at + layout.inputs[i].offset - alias->offset);
            assert_int_equal(alias->address % (2 << 20), slot * 4096);
            assert_true(alias->address - last >= 4096); /* a page without rights between */
            assert_true(alias->address <= start && end <= alias->address + alias->bytes);
            if (cases[k].guard == GUARD_END)
                assert_true(alias->address + alias->bytes - end < TENSOR_ALIGN);
            else if (cases[k].guard == GUARD_START)
                assert_int_equal(start, alias->address);
            else /* no whole page behind its own can be read */
                assert_true(alias->address + alias->bytes - end < 4096);
            if (cases[k].guard == GUARD_NEAR && slot == 1 && cases[k].shift == 128)
                assert_int_equal((alias->address + alias->bytes - end) / 64, 2 * (2 * i + 1));
            last = alias->address + alias->bytes;
        }
        if (slot == 1)
            assert_true(region_alias_end(&region) - last >= 4096);
    }
    /* As the main shape: guards on both sides, in the first slot from a large page's start on. */
    for (size_t i = 0; i < layout.input_count; i++) {
        main[i] = 2 * 4096;
        layout.inputs[i].bytes = main[i] - 128;
        most[i] = 9 * 4096;
    }
    region_alias(&region, most, main, layout.input_count, 2, 1 << 19);
    for (size_t shift = 0; shift < 4096; shift += 64)
        for (size_t slot = 0; slot < 2; slot++) {
            assert_true(layout_guard(&layout, GUARD_NEAR, &region, slot, shift));
            for (size_t i = 0; i < layout.input_count; i++) {
                const struct alias *alias = &region.aliases[2 + slot][i];
                size_t start =
                    (slot << 19) + layout.inputs[i].offset + layout.alias_shift[i] - alias->address;
                assert_true(start < 2 * 4096);
                assert_true(start + layout.inputs[i].bytes + 4096 > alias->bytes);
                assert_true(start + layout.inputs[i].bytes <= alias->bytes);
            }
        }
    layout.inputs[1].bytes = most[1] + 8192;
    assert_false(layout_guard(&layout, GUARD_END, &region, 0, 0));
    problem_free(problem);
}

/* What a runner holds must not let it change an input, by whatever way it tries. */
static void test_region(void **state)
{
    struct region region;
    struct err err;
    char path[64];
    (void)state;
    assert_int_equal(region_open(10000, 5000, &region, &err), 0);
    assert_int_equal(region.inputs_bytes, 12288);
    memset(region.inputs, 7, region.inputs_bytes);
    memset(region.outputs, 8, region.outputs_bytes);
    unsigned char *seen = (unsigned char *)mmap(NULL, region.inputs_bytes, PROT_READ, MAP_SHARED,
                                                region.inputs_read_fd, 0);
    assert_true(seen != MAP_FAILED);
    assert_int_equal(seen[9999], 7);
    region.inputs[9999] = 9; /* our mapping stays writable */
    assert_int_equal(seen[9999], 9);
    munmap(seen, region.inputs_bytes);
    assert_true(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, region.inputs_read_fd, 0) == MAP_FAILED);
    assert_int_equal(write(region.inputs_read_fd, "x", 1), -1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", region.inputs_read_fd);
    int again = open(path, O_RDWR | O_CLOEXEC);
    if (again >= 0) { /* opened, but sealed */
        assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
        assert_int_equal(write(again, "x", 1), -1);
        close(again);
    }
    assert_int_equal(ftruncate(region.outputs_fd, 0), -1);
    assert_int_equal(ftruncate(region.inputs_fd, 1 << 20), -1);
    assert_int_equal(fcntl(region.outputs_fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(fcntl(region.inputs_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    region_close(&region);
    assert_int_equal(region.outputs_fd, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_guards),
                                       cmocka_unit_test(test_region)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
