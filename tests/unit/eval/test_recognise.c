/* A definition in numpy or in C that computes what a shipped problem computes has its starts, in
 * its own names, whatever it calls itself, its tensors and its dims. One that does not has none. */
#include "eval/candidate/shipped_start.h"
#include "eval/problem/shipped.h"

#include "base/value.h"
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct row {
    const char *what, *spec, *file, *text;
    const char *name, *dims[3]; /* what is found, and texts of some of its dims: "M=rows" */
} rows[] = {
    {"a product, tensors in another order",
     "dims: {rows: 96, cols: 80, inner: 64}\n"
     "inputs:\n  W: {shape: [inner, cols], dtype: float32}\n  X: {shape: [rows, inner], dtype: "
     "float32}\n"
     "outputs: {Z: {shape: [rows, cols], dtype: float32}}\n",
     "r.py",
     "def reference(w, x):\n    return x @ w\n",
     "matmul",
     {"M=rows", "K=inner", "N=cols"}},
    {"a sum of twelve tensors, which has more orders than memory holds",
     "dims: {n: 40}\n"
     "inputs:\n  a: {shape: [n], dtype: float32}\n  b: {shape: [n], dtype: float32}\n"
     "  c: {shape: [n], dtype: float32}\n  d: {shape: [n], dtype: float32}\n"
     "  e: {shape: [n], dtype: float32}\n  f: {shape: [n], dtype: float32}\n"
     "  g: {shape: [n], dtype: float32}\n  h: {shape: [n], dtype: float32}\n"
     "  i: {shape: [n], dtype: float32}\n  j: {shape: [n], dtype: float32}\n"
     "  k: {shape: [n], dtype: float32}\n  l: {shape: [n], dtype: float32}\n"
     "outputs: {z: {shape: [n], dtype: float32}}\n",
     "r.py",
     "def reference(a, b, c, d, e, f, g, h, i, j, k, l):\n"
     "    return a + b + c + d + e + f + g + h + i + j + k + l\n",
     NULL,
     {NULL}},
    {"the short form",
     "name: matmul\nshape_a: [512, 512]\nshape_b: [512, 512]\ndtype: float32\n",
     "r.py",
     "def product(a, b):\n    return a @ b\n",
     "matmul",
     {"M=M"}},
    {"rows of four axes",
     "dims: {B: 4, H: 8, L: 100}\n"
     "inputs: {s: {shape: [B, H, L, L], dtype: float32}}\n"
     "outputs: {p: {shape: [B, H, L, L], dtype: float32}}\n",
     "r.py",
     "import numpy as np\ndef reference(s):\n    e = np.exp(s - s.max(-1, keepdims=True))\n"
     "    return e / e.sum(-1, keepdims=True)\n",
     "softmax",
     {"M=B*H*L", "N=L"}},
    {"a row of several axes",
     "dims: {B: 4, C: 8, L: 10}\n"
     "inputs:\n  x: {shape: [B, C, L], dtype: float32}\n  g: {shape: [C, L], dtype: float32}\n"
     "  b: {shape: [C, L], dtype: float32}\n"
     "outputs: {y: {shape: [B, C, L], dtype: float32}}\nwhere: min(B, C, L) >= 1 && C * L >= 2\n",
     "r.py",
     "import numpy as np\ndef reference(x, g, b):\n    m = x.mean((1, 2), keepdims=True)\n"
     "    v = ((x - m) ** 2).mean((1, 2), keepdims=True)\n    return (x - m) / np.sqrt(v + 1e-5) * "
     "g + b\n",
     "layernorm",
     {"M=B", "N=C*L"}},
    {"an axis of one",
     "dims: {m: 128, n: 100}\ninputs: {a: {shape: [m, n], dtype: float32}}\n"
     "outputs: {s: {shape: [m, 1], dtype: float32}}\n",
     "r.py",
     "def reference(a):\n    return a.sum(axis=1, keepdims=True)\n",
     "sum_rows",
     {"M=m", "N=n"}},
    {"a convolution whose step and padding are dims of other names",
     "dims: {b: 2, ci: 8, co: 12, h: 20, w: 24, kh: 3, kw: 3, p: 1, t: 1,\n"
     "  oh: (h + 2*p - kh) / t + 1, ow: (w + 2*p - kw) / t + 1}\n"
     "inputs:\n  img: {shape: [b, ci, h, w], dtype: float32}\n  f: {shape: [co, ci, kh, kw], "
     "dtype: float32}\n"
     "outputs: {o: {shape: [b, co, oh, ow], dtype: float32}}\n"
     "where: min(b, ci, co, h, w, kh, kw, t) >= 1 && p >= 0 && h + 2*p >= kh && w + 2*p >= kw\n"
     "hidden: {kh: [1, 5], kw: [1, 5], p: [0, 2], t: [1, 3]}\n",
     "r.py",
     "import numpy as np\ndef reference(x, f, t, p):\n"
     "    x = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))\n"
     "    w = np.lib.stride_tricks.sliding_window_view(x, f.shape[2:], axis=(2, 3))[:, :, ::t, "
     "::t]\n"
     "    return np.einsum('bcijrs,kcrs->bkij', w, f)\n",
     "conv2d",
     {"PAD=p", "STRIDE=t", "OH=oh"}},
    {"groups, a dim that is derived from another",
     "dims: {n: 2, c: 12, h: 6, w: 5, g: 3}\n"
     "inputs:\n  x: {shape: [n, c, h, w], dtype: float32}\n  s: {shape: [c], dtype: float32}\n"
     "  t: {shape: [c], dtype: float32}\noutputs: {y: {shape: [n, c, h, w], dtype: float32}}\n"
     "where: min(n, c, h, w, g) >= 1 && c % g == 0 && c / g * h * w >= 2\n",
     "r.py",
     "import numpy as np\ndef reference(x, s, t, g):\n    z = x.reshape(x.shape[0], g, -1)\n"
     "    z = z - z.mean(2, keepdims=True)\n    z = z / np.sqrt((z * z).mean(2, keepdims=True) + "
     "1e-5)\n"
     "    return z.reshape(x.shape) * s[:, None, None] + t[:, None, None]\n",
     "group_norm",
     {"G=g", "CG=c / g"}},
    {"one in C, of one axis",
     "dims: {n: 100000}\ninputs: {v: {shape: [n], dtype: float32}}\n"
     "outputs: {o: {shape: [n], dtype: float32}}\n",
     "r.c",
     "void kernel(const REAL *v, REAL *o, int64_t n)\n{\n    for (int64_t i = 0; i < n; i++)\n"
     "        o[i] = v[i] > 0 ? v[i] : 0;\n}\n",
     "relu",
     {"M=1", "N=n"}},
    {"one that another shipped one is nearly: gelu strays from it by a ten thousandth",
     "dims: {n: 100, m: 30}\ninputs: {v: {shape: [n, m], dtype: float32}}\n"
     "outputs: {o: {shape: [n, m], dtype: float32}}\n",
     "r.py",
     "import numpy as np\ndef reference(v):\n"
     "    return v / 2 * (1 + np.tanh((2 / 3.141592653589793) ** 0.5 * (v + 0.044715 * v**3)))\n",
     "gelu_tanh",
     {"M=n", "N=m"}},
    {"a layer without a bias: a factor lies transposed",
     "dims: {rows: 96, out: 80, in: 64}\n"
     "inputs:\n  x: {shape: [rows, in], dtype: float32}\n  w: {shape: [out, in], dtype: float32}\n"
     "outputs: {y: {shape: [rows, out], dtype: float32}}\n",
     "r.py",
     "def reference(x, w):\n    return x @ w.T\n",
     "matmul",
     {"M=rows", "K=in", "N=out"}},
    {"both factors lie transposed",
     "dims: {m: 96, n: 80, k: 64}\n"
     "inputs:\n  x: {shape: [k, m], dtype: float32}\n  w: {shape: [n, k], dtype: float32}\n"
     "outputs: {y: {shape: [m, n], dtype: float32}}\n",
     "r.py",
     "def reference(x, w):\n    return x.T @ w.T\n",
     "matmul",
     {"M=m", "K=k", "N=n"}},
    {"a product and one more",
     "dims: {m: 96, n: 80, k: 64}\n"
     "inputs:\n  a: {shape: [m, k], dtype: float32}\n  b: {shape: [k, n], dtype: float32}\n"
     "outputs: {c: {shape: [m, n], dtype: float32}}\n",
     "r.py",
     "def reference(a, b):\n    return a @ b + 1\n",
     NULL,
     {NULL}},
    {"one that fails",
     "dims: {n: 100}\ninputs: {v: {shape: [n], dtype: float32}}\n"
     "outputs: {o: {shape: [n], dtype: float32}}\n",
     "r.c",
     "void kernel(const float *v, float *o, int64_t n)\n{\n    *(volatile int *)0 = 1;\n}\n",
     NULL,
     {NULL}},
};

static void check_starts(const struct problem *problem)
{
    const char *paths[32];
    struct err err;
    size_t count = problem_starts(problem, "cpu", paths, 32);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct candidate *start = NULL;
        BUF_LOCAL(text, 1 << 20);
        if (shipped_read_start(problem, paths[i], &text, &err) != 0 ||
            candidate_parse(problem, paths[i], buf_text(&text), text.length, &start, &err) != 0)
            fail_msg("%s: %s", paths[i], err.message);
        candidate_free(start);
    }
}

static void check_found(const struct problem *problem, const struct row *row)
{
    const struct value *found = shipped_of(problem);
    const char *paths[1];
    if (row->name == NULL) {
        assert_null(found);
        assert_int_equal(problem_starts(problem, "cpu", paths, 1), 0);
        return;
    }
    assert_string_equal(value_text(found, "name", "none"), row->name);
    for (size_t i = 0; i < 3 && row->dims[i] != NULL; i++) {
        const char *equals = strchr(row->dims[i], '=');
        char dim[16] = "";
        memcpy(dim, row->dims[i], (size_t)(equals - row->dims[i]));
        assert_string_equal(value_text(value_get(found, "dims"), dim, ""), equals + 1);
    }
    check_starts(problem);
    if (shipped_is_flipped(problem, NULL)) /* a launch plan cannot transpose */
        assert_int_equal(problem_starts(problem, "cuda", paths, 1), 0);
}

static void test_rows(void **state)
{
    struct folder folder;
    (void)state;
    folder_make(&folder);
    setenv("XDG_CACHE_HOME", folder.path, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct problem *problem;
        struct err err;
        char spec[4096], path[160];
        snprintf(spec, sizeof spec, "%s%sreference: %s\n",
                 strncmp(row->spec, "name:", 5) == 0 ? "" : "name: mine\n", row->spec, row->file);
        folder_put(&folder, "spec.yaml", spec);
        folder_put(&folder, row->file, row->text);
        snprintf(path, sizeof path, "%s/spec.yaml", folder.path);
        for (int time = 0; time < 2; time++) { /* the second time it is remembered */
            if (problem_load(path, &problem, &err) != 0)
                fail_msg("%s: %s", row->what, err.message);
            print_message("%s\n", row->what);
            setenv("TWAGENT_PYTHON", time == 0 ? "/usr/bin/python3" : "/nowhere/python3", 1);
            check_found(problem, row);
            problem_free(problem);
        }
    }
    folder_remove(&folder);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests_name("recognise", tests, NULL, NULL);
}
