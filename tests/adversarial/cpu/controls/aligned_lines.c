/* reads A in aligned blocks of 64 bytes to its end, the last one too, which may hold more than A
 * has, and uses only what is A's: pointers are aligned to 64 bytes, so that a block that begins
 * inside a tensor can be read whole */
typedef float line __attribute__((vector_size(64)));

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t at = i * K, end = i * K + K; at < end;) {
            line block = *(const line *)(const void *)(A + at / 16 * 16);
            for (; at < end; at++) {
                float a = block[at % 16];
                for (int64_t j = 0; j < N; j++)
                    C[i * N + j] += a * B[(at - i * K) * N + j];
                if (at % 16 == 15) {
                    at++;
                    break;
                }
            }
        }
    }
}
