/* a constructor replaces files that a harness might read */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void write_all(void)
{
    static const char *const paths[] = {"candidate.so", "/tmp/twagent-attacked", "expected.npy",
                                        "/dev/shm/twagent-attacked"};
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
        int fd = open(paths[i], O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (fd >= 0 && write(fd, "x", 1) == 1)
            close(fd);
    }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)K;
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
}
