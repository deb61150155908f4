/* numpy's files: what numpy.save() writes is read, and nothing else is. */
#include "base/random.h"
#include "eval/data/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct err err;

/* A header as numpy writes it, around `dict`. */
static size_t make(int major, const char *dict, char *out)
{
    size_t length = strlen(dict), before = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)major;
    out[7] = 0;
    for (size_t i = 8; i < before; i++)
        out[i] = (char)(length >> 8 * (i - 8));
    memcpy(out + before, dict, length);
    return before + length;
}

static int parse(int major, const char *dict, struct npy *npy)
{
    static char bytes[NPY_HEADER_MOST + 16];
    return npy_parse("a.npy", bytes, make(major, dict, bytes), npy, &err);
}

static void reads_what_numpy_writes(void **state)
{
    (void)state;
    struct npy npy;
    for (int major = 1; major <= 3; major++) {
        assert_int_equal(
            parse(major, "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 80), }      \n",
                  &npy),
            0);
        assert_true(npy.known && npy.dtype == DTYPE_FLOAT32 && !npy.fortran && npy.rank == 2 &&
                    npy.extents[0] == 64 && npy.extents[1] == 80);
    }
    assert_int_equal(parse(1, "{'descr': '|V2', 'fortran_order': True, 'shape': (), }\n", &npy), 0);
    assert_true(npy.known && npy.dtype == DTYPE_BFLOAT16 && npy.fortran && npy.rank == 0);
    assert_int_equal(parse(1, "{'shape': (3,), 'fortran_order': False, 'descr': '>f8'}", &npy), 0);
    assert_true(!npy.known && npy.rank == 1 && npy.extents[0] == 3);
    assert_int_equal(parse(1,
                           "{'descr': [('x', '<f4'), ('y', [('z', '<i4')])], "
                           "'fortran_order': False, 'shape': (3,)}",
                           &npy),
                     0);
    assert_true(!npy.known);
}

static void refuses_the_rest(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} os.system('x')",
        "{'descr': 'averyveryverylongname', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('x', '<f4'), 'fortran_order': False",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,"};
    struct npy npy;
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++)
        if (parse(1, dicts[i], &npy) == 0)
            fail_msg("taken: %s", dicts[i]);
    assert_int_equal(parse(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &npy), -1);
    assert_int_equal(npy_parse("a", "\x93NUMPY\1\0\xff\xff", 10, &npy, &err), -1);
    assert_int_equal(npy_parse("a", "\x93NUMPY\2\0\1", 9, &npy, &err), -1);
    assert_int_equal(npy_parse("a", "\x93NUMPY\2\0\1\0", 10, &npy, &err), -1);
    assert_int_equal(npy_parse("a", "", 0, &npy, &err), -1);
}

static void reads_what_it_writes(void **state)
{
    (void)state;
    const int64_t extents[] = {3, 1, 500000};
    for (int dtype = 0; dtype < DTYPES; dtype++)
        for (size_t rank = 0; rank <= 3; rank++) {
            struct npy npy;
            BUF_LOCAL(text, 1 << 12);
            npy_header((enum dtype)dtype, rank, extents, &text);
            assert_int_equal(text.length % 64, 0);
            assert_int_equal(npy_parse("a", buf_text(&text), text.length, &npy, &err), 0);
            assert_true(npy.known && npy.dtype == (enum dtype)dtype && npy.rank == rank &&
                        npy.offset == text.length);
            assert_memory_equal(npy.extents, extents, rank * sizeof *extents);
        }
}

/* Whatever bytes stand there, it ends, within what it was given. */
static void survives_noise(void **state)
{
    (void)state;
    struct random random;
    const int64_t extents[] = {3, 4};
    random_init(&random, 7);
    for (int round = 0; round < 20000; round++) {
        struct npy npy;
        BUF_LOCAL(text, 1 << 12);
        npy_header(DTYPE_FLOAT32, 2, extents, &text);
        for (int i = 0; i < 3; i++)
            text.data[random_below(&random, text.length)] = (char)random_below(&random, 256);
        size_t length = (size_t)random_below(&random, text.length + 1);
        char *exact = malloc(length ? length : 1);
        assert_non_null(exact);
        memcpy(exact, text.data, length);
        if (npy_parse("a", exact, length, &npy, &err) == 0)
            assert_true(npy.offset <= length && npy.rank <= NPY_RANK_MAX);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_numpy_writes),
        cmocka_unit_test(refuses_the_rest),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(survives_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
