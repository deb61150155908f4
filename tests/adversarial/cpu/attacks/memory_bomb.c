/* takes and touches all memory */
#include <stdlib.h>
#include <string.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)C, (void)M, (void)N, (void)K;
    for (;;) {
        char *p = malloc(1 << 26);
        if (!p)
            abort();
        memset(p, 1, 1 << 26);
    }
}
