/* Before the kernel's source: the same code for arrays that need not lie at multiples of 64 bytes. */
#define __builtin_assume_aligned(pointer, ...) (pointer)
#if defined(__x86_64__)
#include <immintrin.h>
#define _mm_load_ps _mm_loadu_ps
#define _mm_load_pd _mm_loadu_pd
#define _mm_load_si128 _mm_loadu_si128
#define _mm_store_ps _mm_storeu_ps
#define _mm_store_pd _mm_storeu_pd
#define _mm_store_si128 _mm_storeu_si128
#define _mm256_load_ps _mm256_loadu_ps
#define _mm256_load_pd _mm256_loadu_pd
#define _mm256_load_si256 _mm256_loadu_si256
#define _mm256_store_ps _mm256_storeu_ps
#define _mm256_store_pd _mm256_storeu_pd
#define _mm256_store_si256 _mm256_storeu_si256
#define _mm512_load_ps _mm512_loadu_ps
#define _mm512_load_pd _mm512_loadu_pd
#define _mm512_load_si512 _mm512_loadu_si512
#define _mm512_store_ps _mm512_storeu_ps
#define _mm512_store_pd _mm512_storeu_pd
#define _mm512_store_si512 _mm512_storeu_si512
#endif
