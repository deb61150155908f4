/* eval/data/flush: cold caches. On x86 line by line, which empties every level of every core and
 * leaves all else where it was; elsewhere by reading twice what the caches hold. */
#include "base/mem.h"
#include "eval/data/noise.h"

#include <pthread.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

enum { LINE = 64, CLFLUSHOPT_BIT = 1 << 23 };

__attribute__((target("clflushopt"))) static void flush_optimized(const char *at, const char *end)
{
    for (; at < end; at += LINE)
        _mm_clflushopt((void *)(uintptr_t)at);
}

static void flush_plain(const char *at, const char *end)
{
    for (; at < end; at += LINE)
        _mm_clflush(at);
}

static bool optimized;

static void probe(void)
{
    unsigned a, b, c, d;
    optimized = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & CLFLUSHOPT_BIT) != 0;
}

void flush_bytes(const void *bytes, size_t length, size_t cache_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *at = (const char *)((uintptr_t)bytes & ~(uintptr_t)(LINE - 1));
    (void)cache_bytes;
    pthread_once(&once, probe);
    _mm_mfence(); /* what was written before is in the caches, or behind them, by now */
    if (optimized)
        flush_optimized(at, (const char *)bytes + length);
    else
        flush_plain(at, (const char *)bytes + length);
    _mm_mfence();
}

#else

enum { LINE = 64 };

void flush_bytes(const void *bytes, size_t length, size_t cache_bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static volatile unsigned char *sweep;
    static size_t swept;
    (void)bytes;
    (void)length;
    pthread_mutex_lock(&lock);
    if (swept < 2 * cache_bytes) {
        mem_free((void *)(uintptr_t)sweep);
        swept = 2 * cache_bytes;
        sweep = (unsigned char *)mem_alloc(swept);
    }
    for (size_t i = 0; i < swept; i += LINE)
        sweep[i]++; /* written, so that no two pages can be one zero page */
    pthread_mutex_unlock(&lock);
}

#endif
