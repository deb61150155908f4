/* A libcupti.so that counts nothing: it answers as a device with three passes would, one range for
 * each kernel that $FAKE_CUPTI_KERNELS says a plan has, values by the place of the kernel and of
 * the name. $FAKE_CUPTI_REFUSES: CUPTI's own number for what enabling the profiler is answered
 * with; $FAKE_CUPTI_LACKS: a counter that the chip does not have; $FAKE_CUPTI_KERNEL_NS: what a
 * plan's first kernel takes by its record, each next one 1000 more (5000); $FAKE_CUPTI_MEMSETS: how
 * many memsets of 3000 go before. Instructions of $FAKE_CUPTI_FUNCTION (fake_relu) are sampled as
 * the table below says; $FAKE_CUPTI_SAMPLING: CUPTI's number for what enabling that is answered
 * with. Calls out of order fail, and so does sampling beside the range profiler. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES = 3, NAMES = 256, INVALID = 1, NOT_ENABLED = 2, BUFFER_LEAST = 256 };
enum { KERNEL = 10, MEMSET = 2, MEMSET_NS = 3000, GAP_NS = 100, SWEEP_NS = 90000 };

struct head {
    size_t size;
    void *private_data;
};

static bool enabled, configured, started, recording, recording_memsets;
static bool sampling, sampling_configured, sampling_started, sampled;
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

#define EXPORT __attribute__((visibility("default"))) int

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
    open->host = &enabled;
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
    if (enabled || sampling)
        return INVALID;
    enabled = true;
    configured = started = false;
    enable->profiler = &enabled;
    return 0;
}

EXPORT cuptiRangeProfilerDisable(const struct head *head);
EXPORT cuptiRangeProfilerDisable(const struct head *head)
{
    (void)head;
    enabled = false;
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
    return enabled ? 0 : NOT_ENABLED;
}

EXPORT cuptiRangeProfilerCounterDataImageInitialize(const struct head *head);
EXPORT cuptiRangeProfilerCounterDataImageInitialize(const struct head *head)
{
    (void)head;
    return enabled ? 0 : NOT_ENABLED;
}

EXPORT cuptiRangeProfilerSetConfig(const struct head *head);
EXPORT cuptiRangeProfilerSetConfig(const struct head *head)
{
    (void)head;
    configured = enabled;
    passes_done = 0;
    return enabled ? 0 : NOT_ENABLED;
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

/* ---- instructions ---- */

enum { REASONS = 3, SELECTED = 40, LONG = 41, LONG_NOT_ISSUED = 42 };

static const struct {
    uint64_t offset;
    uint32_t selected, waiting, line;
    const char *file;
} instructions[] = {{0x10, 10, 50, 3, "/somewhere/candidate.cu"},
                    {0x20, 20, 0, 3, "/somewhere/candidate.cu"},
                    {0x30, 0, 10, 999999, "candidate.cu"},
                    {0x40, 6, 0, 7, "/etc/pass wd\x1b[2J"},
                    {0x50, 1, 0, 4, "candidate.cu"},
                    {0x60, 3, 0, 0, NULL}};

enum { INSTRUCTIONS = sizeof instructions / sizeof instructions[0] };

struct stall {
    uint32_t reason, samples;
};
struct pc {
    size_t size;
    uint64_t cubin, offset;
    uint32_t function_index, pad;
    char *function;
    size_t stall_count;
    struct stall *stalls;
    uint32_t correlation;
};
struct samples {
    size_t size, most;
    uint64_t total, dropped;
    size_t count, remaining;
    uint64_t range;
    struct pc *pcs;
};

static struct samples *kept; /* the buffer of the configuration */
static size_t given;

/* Up to this one of them: two are there when sampling stops, then one comes with each reading, and
 * the last with disabling. Each waiting sample is told again as not issued. */
static void give(size_t until)
{
    static char none[] = "none_of_the_plan", relu[] = "fake_relu";
    char *name = getenv("FAKE_CUPTI_FUNCTION");
    for (kept->count = 0; given < until; given++) {
        struct pc *pc = &kept->pcs[kept->count++];
        const struct stall stalls[] = {{SELECTED, instructions[given].selected},
                                       {LONG, instructions[given].waiting},
                                       {LONG_NOT_ISSUED, instructions[given].waiting}};
        pc->offset = instructions[given].offset;
        pc->function = given == INSTRUCTIONS - 2 ? none : name != NULL ? name : relu;
        pc->stall_count = REASONS;
        memcpy(pc->stalls, stalls, sizeof stalls);
    }
}

EXPORT cuptiPCSamplingEnable(const struct head *head);
EXPORT cuptiPCSamplingEnable(const struct head *head)
{
    const char *refuses = getenv("FAKE_CUPTI_SAMPLING");
    (void)head;
    if (refuses != NULL)
        return (int)strtol(refuses, NULL, 10);
    if (enabled || sampling)
        return INVALID;
    sampling = true;
    sampling_configured = sampling_started = sampled = false;
    kept = NULL;
    return 0;
}

EXPORT cuptiPCSamplingDisable(const struct head *head);
EXPORT cuptiPCSamplingDisable(const struct head *head)
{
    (void)head;
    if (sampling && sampled)
        give(INSTRUCTIONS);
    sampling = false;
    return 0;
}

EXPORT cuptiPCSamplingStart(const struct head *head);
EXPORT cuptiPCSamplingStart(const struct head *head)
{
    (void)head;
    sampling_started = sampling && sampling_configured;
    return sampling_started ? 0 : INVALID;
}

EXPORT cuptiPCSamplingStop(const struct head *head);
EXPORT cuptiPCSamplingStop(const struct head *head)
{
    (void)head;
    sampled = sampling_started;
    sampling_started = false;
    given = 0;
    if (sampled)
        give(2);
    return sampled ? 0 : INVALID;
}

struct stall_count {
    struct head head;
    void *context;
    size_t *count;
};
EXPORT cuptiPCSamplingGetNumStallReasons(const struct stall_count *ask_count);
EXPORT cuptiPCSamplingGetNumStallReasons(const struct stall_count *ask_count)
{
    *ask_count->count = REASONS;
    return sampling ? 0 : NOT_ENABLED;
}

struct stall_names {
    struct head head;
    void *context;
    size_t count;
    uint32_t *reasons;
    char **names;
};
EXPORT cuptiPCSamplingGetStallReasons(const struct stall_names *ask_names);
EXPORT cuptiPCSamplingGetStallReasons(const struct stall_names *ask_names)
{
    static const char *const names[] = {
        "smsp__pcsamp_warps_issue_stalled_selected",
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
        "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"};
    for (size_t i = 0; i < REASONS; i++) {
        ask_names->reasons[i] = SELECTED + (uint32_t)i;
        strcpy(ask_names->names[i], names[i]);
    }
    return sampling && ask_names->count == REASONS ? 0 : INVALID;
}

struct attribute {
    int type, status;
    union {
        uint32_t number;
        void *pointer;
        uint64_t room[3];
    };
};
struct config {
    struct head head;
    void *context;
    size_t count;
    struct attribute *attributes;
};
EXPORT cuptiPCSamplingSetConfigurationAttribute(const struct config *config);
EXPORT cuptiPCSamplingSetConfigurationAttribute(const struct config *config)
{
    enum { DATA = 8 };
    for (size_t i = 0; i < config->count; i++)
        if (config->attributes[i].type == DATA)
            kept = (struct samples *)config->attributes[i].pointer;
    sampling_configured = sampling && kept != NULL;
    return sampling_configured ? 0 : NOT_ENABLED;
}
struct data {
    struct head head;
    void *context;
    struct samples *samples;
};

EXPORT cuptiPCSamplingGetData(struct data *data);
EXPORT cuptiPCSamplingGetData(struct data *data)
{
    if (!sampled || data->samples != kept)
        return INVALID;
    give(given < INSTRUCTIONS - 1 ? given + 1 : given);
    kept->remaining = INSTRUCTIONS - 1 - given;
    return 0;
}

struct source {
    size_t size;
    const void *cubin;
    const char *function;
    size_t cubin_bytes;
    uint32_t line;
    uint64_t offset;
    char *file, *folder;
};
EXPORT cuptiGetSassToSourceCorrelation(struct source *source);
EXPORT cuptiGetSassToSourceCorrelation(struct source *source)
{
    for (size_t i = 0; i < sizeof instructions / sizeof instructions[0]; i++) {
        if (instructions[i].offset != source->offset || instructions[i].file == NULL)
            continue;
        source->line = instructions[i].line;
        source->file = strdup(instructions[i].file);
        source->folder = strdup("/somewhere");
    }
    return source->file != NULL && source->cubin_bytes > 0 ? 0 : INVALID;
}
