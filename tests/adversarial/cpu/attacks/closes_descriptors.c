/* closes every descriptor and goes on */
#include <unistd.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)C, (void)M, (void)N, (void)K;
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    for (volatile int64_t i = 0;; i++)
        ;
}
