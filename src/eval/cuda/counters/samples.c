/* Program counters of a kernel's warps, sampled by the hardware every so many cycles, and why each
 * warp did not go on. Never while the range profiler is on: both use the same hardware. */
#include "eval/cuda/counters/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PCS_MOST = 4096, SCRATCH_BYTES = 8 << 20, HARDWARE_BYTES = 32 << 20, SLEEP_MS = 5 };
enum { READS_MOST = 24, REST_NS = 5000000 };

#define PARAMS(type, last, ...)                                                                    \
    {                                                                                              \
        .size = CUPTI_SIZE(type, last), __VA_ARGS__                                                \
    }

/* CUPTI keeps the address from configuring to disabling: one process, one thread. */
static struct {
    struct cupti_samples data;
    struct cupti_pc *pcs;
    struct cupti_stall *stalls; /* STALLS_MOST for each of them */
} kept;

static int fail(const struct counters *counters, const char *what, int result, struct err *err)
{
    return err_set(err, ERR_UNSUPPORTED, "sampling of instructions: %s: %s", what,
                   cupti_error(&counters->cupti, result));
}

static struct cupti_sampling of_context(const struct counters *counters)
{
    return (struct cupti_sampling)PARAMS(cupti_sampling, context, .context = counters->context);
}

/* "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued": the second of a pair counts those
 * samples again in which no other warp went on, and is left out. */
static void take_name(struct counters_stalls *stalls, size_t at, uint32_t reason, const char *name)
{
    static const char before[] = "smsp__pcsamp_warps_issue_stalled_", again[] = "_not_issued";
    size_t length = strnlen(name, CUPTI_STALL_NAME - 1), cut = sizeof again - 1;
    stalls->reason[at] = reason;
    stalls->name[at][0] = '\0';
    if (length >= cut && memcmp(name + length - cut, again, cut) == 0)
        return;
    if (length > sizeof before - 1 && memcmp(name, before, sizeof before - 1) == 0) {
        name += sizeof before - 1;
        length -= sizeof before - 1;
    }
    length = length < STALL_NAME_MOST - 1 ? length : STALL_NAME_MOST - 1;
    memcpy(stalls->name[at], name, length);
    stalls->name[at][length] = '\0';
}

static int read_names(struct counters *counters, struct err *err)
{
    static char texts[STALLS_MOST][CUPTI_STALL_NAME];
    char *names[STALLS_MOST];
    uint32_t reasons[STALLS_MOST] = {0};
    size_t count = 0;
    struct cupti_stall_count ask_count =
        PARAMS(cupti_stall_count, count, .context = counters->context, .count = &count);
    int result = counters->cupti.stall_count(&ask_count);
    if (result != 0 || count == 0 || count > STALLS_MOST)
        return fail(counters, "reasons", result, err);
    for (size_t i = 0; i < count; i++)
        names[i] = texts[i];
    struct cupti_stall_names ask = PARAMS(cupti_stall_names, names, .context = counters->context,
                                          .count = count, .reasons = reasons, .names = names);
    result = counters->cupti.stall_names(&ask);
    if (result != 0)
        return fail(counters, "reasons", result, err);
    counters->stalls.count = count;
    for (size_t i = 0; i < count; i++)
        take_name(&counters->stalls, i, reasons[i], texts[i]);
    return 0;
}

static bool make_room(void)
{
    if (kept.pcs == NULL)
        kept.pcs = calloc(PCS_MOST, sizeof *kept.pcs);
    if (kept.stalls == NULL)
        kept.stalls = calloc((size_t)PCS_MOST * STALLS_MOST, sizeof *kept.stalls);
    kept.data = (struct cupti_samples){.size = sizeof kept.data, .most = PCS_MOST, .pcs = kept.pcs};
    for (size_t i = 0; kept.pcs != NULL && kept.stalls != NULL && i < PCS_MOST; i++)
        kept.pcs[i] =
            (struct cupti_pc){.size = sizeof kept.pcs[i], .stalls = kept.stalls + i * STALLS_MOST};
    return kept.pcs != NULL && kept.stalls != NULL;
}

static int configure(struct counters *counters, uint32_t period, struct err *err)
{
    struct cupti_attribute attributes[] = {
        {.type = CUPTI_SAMPLING_PERIOD, .number = period},
        {.type = CUPTI_SAMPLING_SCRATCH, .bytes = SCRATCH_BYTES},
        {.type = CUPTI_SAMPLING_HARDWARE_BUFFER, .bytes = HARDWARE_BYTES},
        {.type = CUPTI_SAMPLING_SLEEP_MS, .number = SLEEP_MS},
        {.type = CUPTI_SAMPLING_MODE, .number = CUPTI_SAMPLED_CONTINUOUSLY},
        {.type = CUPTI_SAMPLING_FORMAT, .number = CUPTI_SAMPLES_PARSED},
        {.type = CUPTI_SAMPLING_DATA, .pointer = &kept.data},
        {.type = CUPTI_SAMPLING_START_STOP, .number = 1},
    };
    struct cupti_sampling_config config =
        PARAMS(cupti_sampling_config, attributes, .context = counters->context,
               .count = sizeof attributes / sizeof attributes[0], .attributes = attributes);
    int result = make_room() ? counters->cupti.sampling_configure(&config) : -1;
    return result == 0 ? 0 : fail(counters, "configuring", result, err);
}

int counters_samples_begin(struct counters *counters, uint32_t period, struct err *err)
{
    struct cupti_sampling context = of_context(counters);
    if (!counters->cupti.has_samples)
        return err_set(err, ERR_UNSUPPORTED, "this libcupti does not sample instructions");
    int result = counters->cupti.sampling_enable(&context);
    if (result != 0)
        return fail(counters, "enabling", result, err);
    if (read_names(counters, err) != 0 || configure(counters, period, err) != 0) {
        counters_samples_abandon(counters);
        return -1;
    }
    result = counters->cupti.sampling_start(&context);
    if (result == 0)
        return 0;
    counters_samples_abandon(counters);
    return fail(counters, "starting", result, err);
}

/* What CUPTI says is not believed further than the room that it was given. */
static void hand_out(const struct counters *counters,
                     void (*take)(void *context, const struct counters_pc *pc), void *context)
{
    size_t count = kept.data.count < PCS_MOST ? kept.data.count : PCS_MOST;
    for (size_t i = 0; i < count; i++) {
        const struct cupti_pc *from = &kept.pcs[i];
        struct counters_pc pc = {.function = from->function, .offset = from->offset};
        size_t stalls = from->stall_count < STALLS_MOST ? from->stall_count : STALLS_MOST;
        for (size_t k = 0; k < stalls && from->function != NULL && from->stalls != NULL; k++) {
            const struct cupti_stall *stall = &from->stalls[k];
            for (size_t at = 0; at < counters->stalls.count; at++)
                if (counters->stalls.reason[at] == stall->reason &&
                    counters->stalls.name[at][0] != '\0') {
                    pc.stalls[at] += stall->samples;
                    pc.samples += stall->samples;
                }
        }
        if (pc.samples > 0)
            take(context, &pc);
    }
}

/* What is there already with the end of sampling, then what CUPTI's threads still bring. */
static int read_all(struct counters *counters,
                    void (*take)(void *context, const struct counters_pc *pc), void *context)
{
    const struct timespec rest = {.tv_nsec = REST_NS};
    bool some = kept.data.count > 0;
    int result = 0;
    hand_out(counters, take, context);
    for (int reads = 0; result == 0 && reads < READS_MOST; reads++) {
        struct cupti_sampling_data data = PARAMS(
            cupti_sampling_data, samples, .context = counters->context, .samples = &kept.data);
        kept.data.count = kept.data.remaining = 0;
        result = counters->cupti.sampling_data(&data);
        if (result == 0)
            hand_out(counters, take, context);
        if (kept.data.count > 0)
            some = true;
        else if (some && kept.data.remaining == 0)
            break;
        else
            clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    }
    return result;
}

/* Disabling writes what was not read to the buffer of the configuration. */
int counters_samples_end(struct counters *counters,
                         void (*take)(void *context, const struct counters_pc *pc), void *context,
                         struct err *err)
{
    struct cupti_sampling sampling = of_context(counters);
    int result = counters->cupti.sampling_stop(&sampling);
    if (result == 0)
        result = read_all(counters, take, context);
    kept.data.count = 0;
    int disabled = counters->cupti.sampling_disable(&sampling);
    if (result == 0 && disabled == 0)
        hand_out(counters, take, context);
    return result == 0 ? 0 : fail(counters, "reading", result, err);
}

void counters_samples_abandon(struct counters *counters)
{
    struct cupti_sampling context = of_context(counters);
    (void)counters->cupti.sampling_disable(&context);
}

void counters_samples_told(char text[SAMPLES_TOLD_MOST])
{
    snprintf(text, SAMPLES_TOLD_MOST, "%llu samples, %llu dropped, %llu of other kernels",
             (unsigned long long)kept.data.total, (unsigned long long)kept.data.dropped,
             (unsigned long long)kept.data.others);
}

uint32_t counters_line(const struct counters *counters, const void *image, size_t bytes,
                       const char *function, uint64_t offset, char file[LINE_FILE_MOST])
{
    struct cupti_source source = {.size = CUPTI_SIZE(cupti_source, folder),
                                  .cubin = image,
                                  .function = function,
                                  .cubin_bytes = bytes,
                                  .offset = offset};
    file[0] = '\0';
    if (counters->cupti.source_line(&source) != 0)
        source.line = 0;
    if (source.file != NULL) {
        const char *name = strrchr(source.file, '/');
        name = name != NULL ? name + 1 : source.file;
        size_t length = strnlen(name, LINE_FILE_MOST - 1);
        memcpy(file, name, length);
        file[length] = '\0';
    }
    free(source.file);
    free(source.folder);
    return source.line;
}
