/* each thread has memory of its own that the last columns are packed in */
#include <string.h>

enum { TILE = 16, STRIP = 64 };

static _Thread_local float edge[STRIP * TILE];

static void strip(const float *A, const float *B, float *C, int64_t N, int64_t K, int64_t i, int64_t j, int64_t k)
{
    int64_t depth = K - k < STRIP ? K - k : STRIP, width = N - j < TILE ? N - j : TILE;
    const float *b = B + k * N + j;
    int64_t step = N;
    if (width < TILE) { /* so that every tile is whole */
        memset(edge, 0, sizeof edge);
        for (int64_t r = 0; r < depth; r++)
            memcpy(edge + r * TILE, b + r * N, (size_t)width * sizeof *b);
        b = edge;
        step = TILE;
    }
    float sum[TILE] = {0};
    for (int64_t r = 0; r < depth; r++)
        for (int64_t l = 0; l < TILE; l++)
            sum[l] += A[i * K + k + r] * b[r * step + l];
    for (int64_t l = 0; l < width; l++)
        C[i * N + j + l] = (k == 0 ? 0 : C[i * N + j + l]) + sum[l];
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
#pragma omp parallel for
    for (int64_t i = 0; i < M; i++)
        for (int64_t k = 0; k < K; k += STRIP)
            for (int64_t j = 0; j < N; j += TILE)
                strip(A, B, C, N, K, i, j, k);
}
