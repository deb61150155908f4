/* fills the disk from a constructor */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void fill(void)
{
    static char block[1 << 16];
    int fd = open("/tmp/twagent-filler", O_WRONLY | O_CREAT, 0600);
    for (int i = 0; fd >= 0 && i < 1 << 16 && write(fd, block, sizeof block) > 0; i++)
        ;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)K;
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
}
