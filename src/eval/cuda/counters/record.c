/* CUPTI's records of activity: when each kernel began and ended on the device. They need no
 * permission. The buffers go to CUPTI and come back through callbacks without a place for a
 * pointer, so that what they fill is static: one thread of one process uses them. */
#include "eval/cuda/counters/counters.h"

#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 16, BUFFER_ALIGN = 8 };

static struct {
    const struct cupti *cupti;
    double *times_ns; /* of kernels */
    size_t most, count;
    struct counters_span span;
    uint64_t first_ns, last_ns;
} taken;

static void ask(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = aligned_alloc(BUFFER_ALIGN, BUFFER_BYTES);
    *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
    *records = 0;
}

static void add(const struct cupti_record *record)
{
    struct counters_span *span = &taken.span;
    bool kernel = record->kind == CUPTI_KIND_CONCURRENT_KERNEL;
    if (!kernel && (record->kind != CUPTI_KIND_MEMSET ||
                    ((const struct cupti_memset_record *)record)->graph_node == 0))
        return; /* a memset that was no graph's has emptied the caches */
    if (kernel)
        span->kernels++;
    else
        span->memsets++;
    if (record->start_ns == 0 || record->end_ns < record->start_ns) {
        span->untimed++;
        return;
    }
    double took_ns = (double)(record->end_ns - record->start_ns);
    if (kernel && taken.count < taken.most)
        taken.times_ns[taken.count++] = took_ns;
    if (taken.first_ns == 0 || record->start_ns < taken.first_ns)
        taken.first_ns = record->start_ns;
    if (record->end_ns > taken.last_ns)
        taken.last_ns = record->end_ns;
    span->busy_ns += took_ns;
    span->span_ns = (double)(taken.last_ns - taken.first_ns);
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    void *record = NULL;
    (void)context, (void)stream, (void)bytes;
    while (valid > 0 && taken.cupti->record_next(buffer, valid, &record) == 0)
        add(record);
    free(buffer);
}

static void forget(void)
{
    taken.most = taken.count = 0;
    taken.span = (struct counters_span){0};
    taken.first_ns = taken.last_ns = 0;
}

static int told(const struct cupti *cupti, int result, struct err *err)
{
    if (result == 0)
        return 0;
    return err_set(err, ERR_UNSUPPORTED, "CUPTI's records: %s", cupti_error(cupti, result));
}

int counters_record_begin(struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    int result = taken.cupti == NULL ? cupti->record_callbacks(ask, take) : 0;
    if (result == 0)
        result = cupti->record_enable(CUPTI_KIND_CONCURRENT_KERNEL);
    if (result == 0)
        taken.cupti = cupti;
    forget();
    return told(cupti, result, err);
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
    forget();
    return told(cupti, result, err);
}

int counters_span_begin(struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    if (counters_record_begin(counters, err) != 0)
        return -1;
    int result = cupti->record_enable(CUPTI_KIND_MEMSET);
    if (result != 0)
        (void)cupti->record_disable(CUPTI_KIND_CONCURRENT_KERNEL);
    return told(cupti, result, err);
}

/* What was done to memory and caches before has records, too: they are taken and forgotten. */
int counters_span_start(struct counters *counters, struct err *err)
{
    int result = counters->cupti.record_flush(1);
    forget();
    return told(&counters->cupti, result, err);
}

int counters_span_stop(struct counters *counters, struct counters_span *span, struct err *err)
{
    int result = counters->cupti.record_flush(1);
    *span = taken.span;
    forget();
    return told(&counters->cupti, result, err);
}

void counters_span_end(struct counters *counters)
{
    const struct cupti *cupti = &counters->cupti;
    (void)cupti->record_flush(1);
    (void)cupti->record_disable(CUPTI_KIND_MEMSET);
    (void)cupti->record_disable(CUPTI_KIND_CONCURRENT_KERNEL);
    forget();
}
