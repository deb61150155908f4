/* CUPTI's records of activity: when each kernel began and ended on the device. They need no
 * permission. The buffers go to CUPTI and come back through callbacks without a place for a
 * pointer, so that what they fill is static: one thread of one process uses them. */
#include "eval/cuda/counters.h"

#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 16, BUFFER_ALIGN = 8 };

static struct {
    const struct cupti *cupti;
    double *times_ns;
    size_t most, count;
} taken;

static void ask(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
    *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
    *records = 0;
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream, (void)bytes;
    while (valid > 0 && taken.cupti->record_next(buffer, valid, &record) == 0) {
        const struct cupti_kernel_record *kernel = record;
        if (kernel->kind == CUPTI_KIND_CONCURRENT_KERNEL && taken.count < taken.most)
            taken.times_ns[taken.count++] = (double)(kernel->end_ns - kernel->start_ns);
    }
    free(buffer);
}

int counters_record_begin(struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    int result = taken.cupti == NULL ? cupti->record_callbacks(ask, take) : 0;
    if (result == 0)
        result = cupti->record_enable(CUPTI_KIND_CONCURRENT_KERNEL);
    taken.cupti = cupti;
    taken.most = taken.count = 0;
    if (result == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "CUPTI's records: %s", cupti_error(cupti, result));
}

int counters_record_end(struct counters *counters, double *times_ns, size_t most, size_t *kernels,
                        struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    taken.times_ns = times_ns;
    taken.most = most;
    int result = cupti->record_flush(1);
    (void)cupti->record_disable(CUPTI_KIND_CONCURRENT_KERNEL);
    *kernels = taken.count;
    taken.most = taken.count = 0;
    if (result == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "CUPTI's records: %s", cupti_error(cupti, result));
}
