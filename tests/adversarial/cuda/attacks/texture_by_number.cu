/*---
launch:
  - entry: rows
    grid: M
    block: 256
    args: [A, B, S, M, N, K]
---*/
/* reads textures by number, although the plan makes none: whatever a slot holds is no input */
extern "C" __global__ void rows(const float *A, const float *B, float *S, long long M, long long N,
                                long long K)
{
    if (threadIdx.x != 0)
        return;
    float found = 0;
    for (unsigned long long texture = 0; texture < 8; texture++)
        found += tex1Dfetch<float>((cudaTextureObject_t)texture, (int)blockIdx.x);
    for (long long m = blockIdx.x; m < M; m += gridDim.x)
        S[m] = found;
}
