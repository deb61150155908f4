/* C++ with templates and the standard library */
#include <algorithm>
#include <vector>

template <class T> static T dot(const T *a, const T *b, int64_t n, int64_t step)
{
    T s{};
    for (int64_t k = 0; k < n; k++)
        s += a[k] * b[k * step];
    return s;
}

extern "C" void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    std::vector<float> row((size_t)N);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            row[(size_t)j] = dot(A + i * K, B + j, K, N);
        std::copy(row.begin(), row.end(), C + i * N);
    }
}
