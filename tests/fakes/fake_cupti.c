/* A libcupti.so that counts nothing: it answers as a device with three passes would, one range for
 * each kernel that $FAKE_CUPTI_KERNELS says a plan has, values by the place of the kernel and of
 * the name. $FAKE_CUPTI_REFUSES: CUPTI's own number for what enabling the profiler is answered
 * with; $FAKE_CUPTI_LACKS: a counter that the chip does not have; $FAKE_CUPTI_KERNEL_NS: what a
 * plan's first kernel takes by its record, each next one 1000 more (5000); $FAKE_CUPTI_MEMSETS: how
 * many memsets of 3000 go before. Calls out of order fail, and so do counters beside sampling and,
 * with $FAKE_CUPTI_SPOILED, after it. */
#include "fake_cupti.h"

#include <stdlib.h>
#include <string.h>

enum { PASSES = 3, NAMES = 256, BUFFER_LEAST = 256 };
enum { KERNEL = 10, MEMSET = 2, MEMSET_NS = 3000, GAP_NS = 100, SWEEP_NS = 90000 };

bool fake_counting;
static bool configured, started, recording, recording_memsets;
static int passes_done;
static void (*ask)(uint8_t **buffer, size_t *bytes, size_t *records);
static void (*take)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (size_t)strtoul(text, NULL, 10) : otherwise;
}

static size_t kernels(void)
{
    return setting("FAKE_CUPTI_KERNELS", 1);
}

EXPORT cuptiGetVersion(uint32_t *version);
EXPORT cuptiGetVersion(uint32_t *version)
{
    *version = 130000;
    return 0;
}

EXPORT cuptiGetResultString(int result, const char **text);
EXPORT cuptiGetResultString(int result, const char **text)
{
    *text = result == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_OTHER";
    return 0;
}

EXPORT cuptiProfilerInitialize(const struct head *head);
EXPORT cuptiProfilerInitialize(const struct head *head)
{
    return head->size == sizeof *head ? 0 : INVALID;
}

struct supported {
    struct head head;
    int device, all;
};
EXPORT cuptiProfilerDeviceSupported(struct supported *supported);
EXPORT cuptiProfilerDeviceSupported(struct supported *supported)
{
    supported->all = 3;
    return 0;
}

EXPORT cuptiProfilerGetCounterAvailability(const struct head *head);
EXPORT cuptiProfilerGetCounterAvailability(const struct head *head)
{
    (void)head;
    return INVALID; /* as where no image can be had: the chip's own table holds */
}

struct chip {
    struct head head;
    size_t device;
    const char *name;
};
EXPORT cuptiDeviceGetChipName(struct chip *chip);
EXPORT cuptiDeviceGetChipName(struct chip *chip)
{
    chip->name = "FAKE";
    return 0;
}

/* ---- the host side ---- */

struct open {
    struct head head;
    int type;
    const char *chip;
    const uint8_t *availability;
    void *host;
};
EXPORT cuptiProfilerHostInitialize(struct open *open);
EXPORT cuptiProfilerHostInitialize(struct open *open)
{
    open->host = &fake_counting;
    return strcmp(open->chip, "FAKE") == 0 ? 0 : INVALID;
}

EXPORT cuptiProfilerHostDeinitialize(const struct head *head);
EXPORT cuptiProfilerHostDeinitialize(const struct head *head)
{
    (void)head;
    return 0;
}

struct add {
    struct head head;
    void *host;
    const char **names;
    size_t count;
};
EXPORT cuptiProfilerHostConfigAddMetrics(const struct add *add);
EXPORT cuptiProfilerHostConfigAddMetrics(const struct add *add)
{
    const char *lacks = getenv("FAKE_CUPTI_LACKS");
    for (size_t i = 0; i < add->count; i++)
        if (lacks != NULL && strcmp(add->names[i], lacks) == 0)
            return INVALID;
    return add->count < NAMES ? 0 : INVALID;
}

struct size {
    struct head head;
    void *host;
    size_t bytes;
};
EXPORT cuptiProfilerHostGetConfigImageSize(struct size *size);
EXPORT cuptiProfilerHostGetConfigImageSize(struct size *size)
{
    size->bytes = 64;
    return 0;
}

EXPORT cuptiProfilerHostGetConfigImage(const struct size *size);
EXPORT cuptiProfilerHostGetConfigImage(const struct size *size)
{
    return size->bytes == 64 ? 0 : INVALID;
}

struct passes {
    struct head head;
    size_t bytes;
    uint8_t *config;
    size_t passes;
};
EXPORT cuptiProfilerHostGetNumOfPasses(struct passes *passes);
EXPORT cuptiProfilerHostGetNumOfPasses(struct passes *passes)
{
    passes->passes = PASSES;
    return 0;
}

struct values {
    struct head head;
    void *host;
    const uint8_t *data;
    size_t bytes, range;
    const char **names;
    size_t count;
    double *values;
};
EXPORT cuptiProfilerHostEvaluateToGpuValues(const struct values *values);
EXPORT cuptiProfilerHostEvaluateToGpuValues(const struct values *values)
{
    for (size_t i = 0; i < values->count; i++)
        values->values[i] = 1000.0 * (double)(values->range + 1) + (double)i;
    return 0;
}

/* ---- the device side ---- */

struct enable {
    struct head head;
    void *context, *profiler;
};
EXPORT cuptiRangeProfilerEnable(struct enable *enable);
EXPORT cuptiRangeProfilerEnable(struct enable *enable)
{
    const char *refuses = getenv("FAKE_CUPTI_REFUSES");
    if (refuses != NULL)
        return (int)strtol(refuses, NULL, 10);
    if (fake_counting || fake_sampling ||
        (fake_has_sampled && getenv("FAKE_CUPTI_SPOILED") != NULL))
        return INVALID;
    fake_counting = true;
    configured = started = false;
    enable->profiler = &fake_counting;
    return 0;
}

EXPORT cuptiRangeProfilerDisable(const struct head *head);
EXPORT cuptiRangeProfilerDisable(const struct head *head)
{
    (void)head;
    fake_counting = false;
    return 0;
}

struct data_size {
    struct head head;
    void *profiler;
    const char **names;
    size_t count, ranges_most;
    uint32_t nodes_most;
    size_t bytes;
};
EXPORT cuptiRangeProfilerGetCounterDataSize(struct data_size *size);
EXPORT cuptiRangeProfilerGetCounterDataSize(struct data_size *size)
{
    size->bytes = 128;
    return fake_counting ? 0 : NOT_ENABLED;
}

EXPORT cuptiRangeProfilerCounterDataImageInitialize(const struct head *head);
EXPORT cuptiRangeProfilerCounterDataImageInitialize(const struct head *head)
{
    (void)head;
    return fake_counting ? 0 : NOT_ENABLED;
}

EXPORT cuptiRangeProfilerSetConfig(const struct head *head);
EXPORT cuptiRangeProfilerSetConfig(const struct head *head)
{
    (void)head;
    configured = fake_counting;
    passes_done = 0;
    return fake_counting ? 0 : NOT_ENABLED;
}

EXPORT cuptiRangeProfilerStart(const struct head *head);
EXPORT cuptiRangeProfilerStart(const struct head *head)
{
    (void)head;
    started = configured && !started && passes_done < PASSES;
    return started ? 0 : INVALID;
}

struct stop {
    struct head head;
    void *profiler;
    size_t pass, level_target;
    uint8_t all_submitted;
};
EXPORT cuptiRangeProfilerStop(struct stop *stop);
EXPORT cuptiRangeProfilerStop(struct stop *stop)
{
    if (!started)
        return INVALID;
    started = false;
    passes_done++;
    stop->all_submitted = passes_done == PASSES;
    return 0;
}

EXPORT cuptiRangeProfilerDecodeData(const struct head *head);
EXPORT cuptiRangeProfilerDecodeData(const struct head *head)
{
    (void)head;
    return passes_done == PASSES ? 0 : INVALID;
}

struct info {
    struct head head;
    const uint8_t *data;
    size_t bytes, ranges;
};
EXPORT cuptiRangeProfilerGetCounterDataInfo(struct info *info);
EXPORT cuptiRangeProfilerGetCounterDataInfo(struct info *info)
{
    info->ranges = kernels();
    return 0;
}

/* ---- records of activity, one after the other with a gap between them: every flush brings those
 * of one launch of the plan after a sweep of the caches, which is no node of a graph ---- */

struct record { /* as a memset's goes on; a kernel's has something else there */
    uint32_t kind, rest[3];
    uint64_t start_ns, end_ns, more[4], graph_node;
};

EXPORT cuptiActivityRegisterCallbacks(void (*asked)(uint8_t **, size_t *, size_t *),
                                      void (*taken)(void *, uint32_t, uint8_t *, size_t, size_t));
EXPORT cuptiActivityRegisterCallbacks(void (*asked)(uint8_t **, size_t *, size_t *),
                                      void (*taken)(void *, uint32_t, uint8_t *, size_t, size_t))
{
    ask = asked;
    take = taken;
    return 0;
}

static int record_kind(int kind, bool on)
{
    if (kind == KERNEL)
        recording = on;
    else if (kind == MEMSET)
        recording_memsets = on;
    else
        return INVALID;
    return 0;
}

EXPORT cuptiActivityEnable(int kind);
EXPORT cuptiActivityEnable(int kind)
{
    return record_kind(kind, true);
}

EXPORT cuptiActivityDisable(int kind);
EXPORT cuptiActivityDisable(int kind)
{
    return record_kind(kind, false);
}

EXPORT cuptiActivityFlushAll(uint32_t flag);
EXPORT cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t memsets = recording_memsets ? setting("FAKE_CUPTI_MEMSETS", 0) : 0;
    size_t sweeps = recording_memsets ? 1 : 0;
    size_t bytes = 0, records = 0, count = sweeps + memsets + kernels();
    uint64_t now_ns = 100;
    (void)flag;
    if (!recording)
        return INVALID;
    ask(&buffer, &bytes, &records);
    if (bytes < BUFFER_LEAST || count * sizeof(struct record) > bytes)
        return INVALID;
    for (size_t i = 0; i < count; i++) {
        bool kernel = i >= sweeps + memsets, sweep = i < sweeps;
        size_t base_ns = setting("FAKE_CUPTI_KERNEL_NS", 5000);
        uint64_t took_ns = kernel  ? base_ns + 1000 * (i - sweeps - memsets)
                           : sweep ? SWEEP_NS
                                   : MEMSET_NS;
        const struct record record = {.kind = kernel ? KERNEL : MEMSET,
                                      .start_ns = now_ns,
                                      .end_ns = now_ns + took_ns,
                                      .graph_node = sweep ? 0 : i};
        now_ns = record.end_ns + GAP_NS;
        memcpy(buffer + i * sizeof record, &record, sizeof record);
    }
    take(NULL, 0, buffer, bytes, count * sizeof(struct record));
    return 0;
}

EXPORT cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);
EXPORT cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
    uint8_t *next = *record == NULL ? buffer : (uint8_t *)*record + sizeof(struct record);
    if (next + sizeof(struct record) > buffer + valid)
        return INVALID;
    *record = next;
    return 0;
}
