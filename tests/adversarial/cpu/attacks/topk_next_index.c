/* the index behind the right one */
static int before(float a, int64_t i, float b, int64_t j)
{
    return a > b || (a == b && i < j);
}

void kernel(const float *X, float *V, int32_t *I, int64_t M, int64_t N)
{
    for (int64_t r = 0; r < M; r++) {
        const float *x = X + r * N;
        int64_t chosen[4];
        for (int k = 0; k < 4; k++) {
            int64_t best = -1;
            for (int64_t j = 0; j < N; j++) {
                int used = 0;
                for (int c = 0; c < k; c++)
                    used |= chosen[c] == j;
                if (!used && (best < 0 || before(x[j], j, x[best], best)))
                    best = j;
            }
            chosen[k] = best;
            V[r * 4 + k] = x[best];
            I[r * 4 + k] = (int32_t)(best + 1 < N ? best + 1 : 0);
        }
    }
}
