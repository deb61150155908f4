/* C++20's headers first; a pool that meets at a condition variable, and threads that are joined */
#include <thread>
#include <chrono>
#include <ranges>
#include <condition_variable>
#include <mutex>
#include <vector>

static void rows(const float *A, const float *B, float *C, int64_t from, int64_t to, int64_t N,
                 int64_t K)
{
    for (int64_t i : std::views::iota(from, to)) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}

struct pool {
    std::mutex lock;
    std::condition_variable changed;
    int asked = 0, done = 0;
    const float *A, *B;
    float *C;
    int64_t from, to, N, K;

    void work()
    {
        std::unique_lock<std::mutex> own(lock);
        for (int turn = 0;;) {
            changed.wait(own, [&] { return asked != turn; });
            turn = asked;
            own.unlock();
            rows(A, B, C, from, to, N, K);
            own.lock();
            done = turn;
            changed.notify_all();
        }
    }
};

extern "C" void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static pool *shared = [] {
        auto *made = new pool;
        std::thread([made] { made->work(); }).detach();
        return made;
    }();
    int64_t third = M / 3;
    std::unique_lock<std::mutex> own(shared->lock);
    shared->A = A, shared->B = B, shared->C = C, shared->N = N, shared->K = K;
    shared->from = third, shared->to = 2 * third;
    int turn = ++shared->asked;
    shared->changed.notify_all();
    own.unlock();
    std::thread other(rows, A, B, C, 2 * third, M, N, K);
    rows(A, B, C, 0, third, N, K);
    other.join();
    own.lock();
    shared->changed.wait(own, [&] { return shared->done == turn; });
}
