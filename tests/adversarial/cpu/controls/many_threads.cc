/* more threads than cores, all joined */
#include <thread>
#include <vector>

extern "C" void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    std::vector<std::thread> threads;
    const int64_t each = (M + 23) / 24;
    for (int64_t from = 0; from < M; from += each)
        threads.emplace_back([=] {
            for (int64_t i = from; i < M && i < from + each; i++) {
                for (int64_t j = 0; j < N; j++)
                    C[i * N + j] = 0;
                for (int64_t k = 0; k < K; k++)
                    for (int64_t j = 0; j < N; j++)
                        C[i * N + j] += A[i * K + k] * B[k * N + j];
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}
