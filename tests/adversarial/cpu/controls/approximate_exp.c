/* an exponential of its own, good to a few ulp */
#include <math.h>
#include <string.h>

static float fast_exp(float x)
{
    if (x < -87.0f)
        return 0;
    float n = rintf(x * 1.44269504f), r = fmaf(n, -0.693359375f, x);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1;
    int32_t bits = ((int32_t)n + 127) << 23;
    float scale;
    memcpy(&scale, &bits, 4);
    return p * scale;
}

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M; i++) {
        float m = X[i * N], s = 0;
        for (int64_t j = 1; j < N; j++)
            m = X[i * N + j] > m ? X[i * N + j] : m;
        for (int64_t j = 0; j < N; j++)
            s += Y[i * N + j] = fast_exp(X[i * N + j] - m);
        for (int64_t j = 0; j < N; j++)
            Y[i * N + j] *= 1 / s;
    }
}
