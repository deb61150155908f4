/* Instructions of $FAKE_CUPTI_FUNCTION (fake_relu) are sampled as the table below says;
 * $FAKE_CUPTI_SAMPLING: CUPTI's number for what enabling that is answered with. Calls out of order
 * fail, and so does sampling beside the range profiler. */
#include "fake_cupti.h"

#include <stdlib.h>
#include <string.h>

bool fake_sampling, fake_has_sampled;
static bool sampling_configured, sampling_started, sampled;

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
    if (fake_counting || fake_sampling)
        return INVALID;
    fake_sampling = fake_has_sampled = true;
    sampling_configured = sampling_started = sampled = false;
    kept = NULL;
    return 0;
}

EXPORT cuptiPCSamplingDisable(const struct head *head);
EXPORT cuptiPCSamplingDisable(const struct head *head)
{
    (void)head;
    if (fake_sampling && sampled)
        give(INSTRUCTIONS);
    fake_sampling = false;
    return 0;
}

EXPORT cuptiPCSamplingStart(const struct head *head);
EXPORT cuptiPCSamplingStart(const struct head *head)
{
    (void)head;
    sampling_started = fake_sampling && sampling_configured;
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
    return fake_sampling ? 0 : NOT_ENABLED;
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
    return fake_sampling && ask_names->count == REASONS ? 0 : INVALID;
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
    sampling_configured = fake_sampling && kept != NULL;
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
