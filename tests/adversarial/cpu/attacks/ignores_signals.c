/* ignores every signal and sleeps */
#include <signal.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)C, (void)M, (void)N, (void)K;
    for (int i = 1; i < 64; i++)
        signal(i, SIG_IGN);
    for (volatile int64_t i = 0;; i++)
        ;
}
