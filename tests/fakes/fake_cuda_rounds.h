/* Kernels of fake_cuda.c for what goes before a launch, beside it and around it. Included once, by
 * fake_cuda_kernels.h. */
#pragma once

/* How many launches of each there were; what fake_late and fake_aged ask. */
static int crowds, empties;

static struct { /* what a crowd that nobody sent away reads and writes */
    const volatile uint32_t *gate;
    uint64_t from, to;
} crowd;

static void run_crowd(arguments a)
{
    crowds++;
    crowd.gate = (const volatile uint32_t *)(uintptr_t)a[0];
    crowd.from = a[2];
    crowd.to = a[2] + a[3] + 8192;
}

static bool is_crowded(uint64_t at, size_t bytes)
{
    return crowd.gate != NULL && *crowd.gate == 0 && at < crowd.to && at + bytes > crowd.from;
}

static void run_empty(arguments a)
{
    (void)a;
    empties++;
}

/* Right but in its fifth launch. */
static void run_fifth(arguments a)
{
    run_relu(a);
    if (++state == 5)
        ((float *)(uintptr_t)a[1])[1] += 1.0f;
}

/* Says where its input begins, in units of 256 bytes of 2 MiB, as the first number; as the second,
 * its output. */
static void run_where(arguments a)
{
    run_relu(a);
    ((float *)(uintptr_t)a[1])[0] = (float)(a[0] >> 8 & 8191);
    ((float *)(uintptr_t)a[1])[1] = (float)(a[1] >> 8 & 8191);
}

/* Idle once its context has seen many launches. */
static void run_aged(arguments a)
{
    if (empties < 100000)
        run_relu(a);
}

/* Idle where something else computes. */
static void run_alone(arguments a)
{
    if (crowds == 0)
        run_relu(a);
    crowds = 0;
}

/* Writes where no red zone of the region's is. */
static void run_far_behind(arguments a)
{
    run_relu(a);
    ((float *)(uintptr_t)a[1])[a[2] + 9000] = 1.0f;
}

static void run_far_before(arguments a)
{
    run_relu(a);
    ((float *)(uintptr_t)a[1])[-9000] = 1.0f;
}
