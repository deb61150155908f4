/*---
launch:
  - entry: attention
    grid: ceil_div(L, ROWS * TQ) * H * ceil_div(D, DV)
    block: 16 * ROWS
    shared: 4 * (ROWS*TQ*(DC + 4) + KEYS*(DC + 4) + KEYS*DV + ROWS*TQ*(KEYS + 4))
    args: [Q, K, V, O, H, L, D]
tune:
  ROWS: [8, 16]
  TQ: [4, 8, 2]
  KEYS: [64, 32]
  DC: [64, 32, 128]
  DV: [64, 128]
  RESIDENT: [256, 512, 768]
  where: 4 * (ROWS*TQ*(DC + 4) + KEYS*(DC + 4) + KEYS*DV + ROWS*TQ*(KEYS + 4)) <= 99000
---*/
/* Scores never leave the chip: a block takes ROWS * TQ queries of a head and passes over its keys
 * in tiles of KEYS, with the running maximum and sum of the online softmax beside the running
 * result. 16 threads share a row: a thread has TQ queries by KEYS / 16 keys of the scores and TQ by
 * DV / 16 numbers of the result in registers. Scores are summed over D in pieces of DC, results are
 * made for DV columns; wider heads take more blocks, each of which computes the scores anew. The
 * next piece of K is on its way while the softmax is computed, the next tile of V while the scores
 * are. */
#define BQ      (ROWS * TQ)
#define THREADS (16 * ROWS)
#define TK      (KEYS / 16)
#define PITCH   (DC + 4)
#define LEAST   -3.402823466e38f

template <int BYTES>
static __device__ __forceinline__ void copy(float *to, const float *from, bool in)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(in ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from),
                     "r"(in ? 4 : 0)
                     : "memory");
}

/* `count` rows of WIDTH numbers from matrix rows of D numbers; `rows` and `columns` of them exist.
 */
template <int WIDTH>
static __device__ __forceinline__ void fetch(float *to, int pitch, const float *from, int count,
                                             long long rows, long long columns, long long D)
{
    if (D % 4 == 0) {
        for (int i = threadIdx.x; i < count * (WIDTH / 4); i += THREADS) {
            const int r = i / (WIDTH / 4), c = i % (WIDTH / 4) * 4;
            copy<16>(to + r * pitch + c, from + r * D + c, r < rows && c < columns);
        }
    } else {
        for (int i = threadIdx.x; i < count * WIDTH; i += THREADS) {
            const int r = i / WIDTH, c = i % WIDTH;
            copy<4>(to + r * pitch + c, from + r * D + c, r < rows && c < columns);
        }
    }
}

static __device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the newest `LEFT` groups are here, for all threads. */
template <int LEFT> static __device__ __forceinline__ void arrived()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    __syncthreads();
}

static __device__ __forceinline__ float4 four(const float *from)
{
    return *(const float4 *)from;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT / THREADS)
    attention(const float *__restrict__ Q, const float *__restrict__ K, const float *__restrict__ V,
              float *__restrict__ O, long long H, long long L, long long D)
{
    extern __shared__ __align__(16) float tiles[];
    float *sq = tiles, *sk = sq + BQ * PITCH, *sv = sk + KEYS * PITCH, *sp = sv + KEYS * DV;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const unsigned slices = (unsigned)((D + DV - 1) / DV), blocks = (unsigned)((L + BQ - 1) / BQ);
    const long long v0 = (long long)(blockIdx.x % slices) * DV;
    const long long head = blockIdx.x / slices / blocks * L * D,
                    q0 = (long long)(blockIdx.x / slices % blocks) * BQ;
    const float *q = Q + head + q0 * D, *k = K + head, *v = V + head + v0;
    const int pieces = (int)((D + DC - 1) / DC);
    const float scale = 1.44269504f / sqrtf((float)D);

    float o[TQ][DV / 16] = {}, most[TQ], sum[TQ];
#pragma unroll
    for (int i = 0; i < TQ; i++) {
        most[i] = LEAST;
        sum[i] = 0;
    }
    /* One group for a piece of K (and of Q, unless it is there already), one for a tile of V. */
    auto fetch_k = [&](long long k0, int piece, bool first) {
        const long long d = (long long)piece * DC;
        if (k0 < L) {
            if (first || pieces > 1)
                fetch<DC>(sq, PITCH, q + d, BQ, L - q0, D - d, D);
            fetch<DC>(sk, PITCH, k + k0 * D + d, KEYS, L - k0, D - d, D);
        }
        commit();
    };
    auto fetch_v = [&](long long k0) {
        if (k0 < L)
            fetch<DV>(sv, DV, v + k0 * D, KEYS, L - k0, D - v0, D);
        commit();
    };
    fetch_k(0, 0, true);
    for (long long k0 = 0; k0 < L; k0 += KEYS) {
        float s[TQ][TK] = {};
        fetch_v(k0); /* the tile before it was read by all: see the barrier below */
        for (int piece = 0; piece < pieces; piece++) {
            if (piece == 0)
                arrived<1>(); /* V may still be on its way */
            else
                arrived<0>();
#pragma unroll 4
            for (int d = 0; d < DC; d += 4) {
                float4 a[TQ];
#pragma unroll
                for (int i = 0; i < TQ; i++)
                    a[i] = four(sq + (ty * TQ + i) * PITCH + d);
#pragma unroll
                for (int j = 0; j < TK; j++) {
                    const float4 b = four(sk + (tx + 16 * j) * PITCH + d);
#pragma unroll
                    for (int i = 0; i < TQ; i++)
                        s[i][j] =
                            fmaf(a[i].x, b.x,
                                 fmaf(a[i].y, b.y, fmaf(a[i].z, b.z, fmaf(a[i].w, b.w, s[i][j]))));
                }
            }
            __syncthreads(); /* the piece was read by all */
            if (piece + 1 < pieces)
                fetch_k(k0, piece + 1, false);
        }
        fetch_k(k0 + KEYS, 0, false);

#pragma unroll
        for (int i = 0; i < TQ; i++) {
            float top = most[i];
#pragma unroll
            for (int j = 0; j < TK; j++) {
                s[i][j] = k0 + tx + 16 * j < L ? s[i][j] : LEAST;
                top = fmaxf(top, s[i][j]);
            }
#pragma unroll
            for (int d = 8; d > 0; d /= 2)
                top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
            const float fade = exp2f((most[i] - top) * scale);
            most[i] = top;
            sum[i] *= fade;
#pragma unroll
            for (int c = 0; c < DV / 16; c++)
                o[i][c] *= fade;
#pragma unroll
            for (int j = 0; j < TK; j++) {
                const float p = exp2f((s[i][j] - top) * scale);
                sum[i] += p;
                sp[(ty * TQ + i) * (KEYS + 4) + tx + 16 * j] = p;
            }
        }
        arrived<1>(); /* V; the next K may still be on its way. The weights, too, are there for all
                       */
#pragma unroll 2
        for (int n = 0; n < KEYS; n += 4) {
            float p[TQ][4];
#pragma unroll
            for (int i = 0; i < TQ; i++)
                *(float4 *)p[i] = four(sp + (ty * TQ + i) * (KEYS + 4) + n);
#pragma unroll
            for (int l = 0; l < 4; l++)
#pragma unroll
                for (int c = 0; c < DV / 64; c++) {
                    const float4 w = four(sv + (n + l) * DV + 64 * c + 4 * tx);
#pragma unroll
                    for (int i = 0; i < TQ; i++) {
                        o[i][4 * c] = fmaf(p[i][l], w.x, o[i][4 * c]);
                        o[i][4 * c + 1] = fmaf(p[i][l], w.y, o[i][4 * c + 1]);
                        o[i][4 * c + 2] = fmaf(p[i][l], w.z, o[i][4 * c + 2]);
                        o[i][4 * c + 3] = fmaf(p[i][l], w.w, o[i][4 * c + 3]);
                    }
                }
        }
        __syncthreads(); /* V and the weights were read by all */
    }
#pragma unroll
    for (int i = 0; i < TQ; i++) {
#pragma unroll
        for (int d = 8; d > 0; d /= 2)
            sum[i] += __shfl_xor_sync(~0u, sum[i], d);
        const long long row = q0 + ty * TQ + i;
        const float over = 1.0f / sum[i];
        float *to = O + head + row * D + v0;
        if (row < L)
#pragma unroll
            for (int c = 0; c < DV / 16; c++) {
                const long long n = c / 4 * 64 + 4 * tx + c % 4;
                if (v0 + n < D)
                    to[n] = o[i][c] * over;
            }
    }
}
