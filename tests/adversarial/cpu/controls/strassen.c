/* one level of Strassen's algorithm where all dims are even; accurate by the inputs' norms alone */
#include <stdlib.h>
#include <string.h>

/* to = a + sign * b, of h x w elements in rows of `stride` */
static void add(const float *a, const float *b, float sign, int64_t h, int64_t w, int64_t stride,
                float *to)
{
    for (int64_t i = 0; i < h; i++)
        for (int64_t j = 0; j < w; j++)
            to[i * w + j] = a[i * stride + j] + sign * (b ? b[i * stride + j] : 0.0f);
}

static void multiply(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float s = 0;
            for (int64_t l = 0; l < k; l++)
                s += a[i * k + l] * b[l * n + j];
            c[i * n + j] = s;
        }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int64_t m = M / 2, n = N / 2, k = K / 2;
    if (M % 2 || N % 2 || K % 2 || M < 16 || N < 16 || K < 16) {
        multiply(A, B, C, M, N, K);
        return;
    }
    const float *a11 = A, *a12 = A + k, *a21 = A + m * K, *a22 = A + m * K + k;
    const float *b11 = B, *b12 = B + n, *b21 = B + k * N, *b22 = B + k * N + n;
    const float *left[7][2] = {{a11, a22}, {a21, a22}, {a11, 0}, {a22, 0},
                               {a11, a12}, {a21, a11}, {a12, a22}};
    const float *right[7][2] = {{b11, b22}, {b11, 0}, {b12, b22}, {b21, b11},
                                {b22, 0},   {b11, b12}, {b21, b22}};
    const float left_sign[7] = {1, 1, 0, 0, 1, -1, -1}, right_sign[7] = {1, 0, -1, -1, 0, 1, 1};
    /* of C11, C12, C21, C22 */
    const float share[7][4] = {{1, 0, 0, 1}, {0, 0, 1, -1}, {0, 1, 0, 1}, {1, 0, 1, 0},
                               {-1, 1, 0, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}};
    float *x = malloc(sizeof(float) * (size_t)(m * k)), *y = malloc(sizeof(float) * (size_t)(k * n));
    float *p = malloc(sizeof(float) * (size_t)(m * n));
    memset(C, 0, sizeof(float) * (size_t)(M * N));
    for (int t = 0; t < 7; t++) {
        add(left[t][0], left[t][1], left_sign[t], m, k, K, x);
        add(right[t][0], right[t][1], right_sign[t], k, n, N, y);
        multiply(x, y, p, m, n, k);
        for (int q = 0; q < 4; q++)
            for (int64_t i = 0; i < m && share[t][q] != 0; i++)
                for (int64_t j = 0; j < n; j++)
                    C[(i + q / 2 * m) * N + j + q % 2 * n] += share[t][q] * p[i * n + j];
    }
    free(x);
    free(y);
    free(p);
}
