#include "eval/cuda/counters/counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const counter_names[COUNTER_COUNT] = {
#define COUNTER_NAME(number, name) [COUNTER_##number] = name,
    COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

static int fail(const struct counters *counters, const char *what, int result, struct err *err)
{
    bool refused = result == CUPTI_NOT_PERMITTED || result == CUPTI_NOT_PERMITTED_VIRTUAL;
    if (refused)
        return err_set(err, ERR_UNSUPPORTED,
                       "hardware counters are not permitted to this user "
                       "(NVreg_RestrictProfilingToAdminUsers=0 in the driver's options, or root)");
    return err_set(err, ERR_UNSUPPORTED, "hardware counters: %s: %s", what,
                   cupti_error(&counters->cupti, result));
}

#define PARAMS(type, last, ...)                                                                    \
    {                                                                                              \
        .size = CUPTI_SIZE(type, last), __VA_ARGS__                                                \
    }

/* ---- opening ---- */

static int open_host(struct counters *counters, const char *chip, const uint8_t *availability,
                     void **host)
{
    struct cupti_host_open open = PARAMS(cupti_host_open, host, .type = CUPTI_RANGE_PROFILER,
                                         .chip = chip, .availability = availability);
    int result = counters->cupti.host_open(&open);
    *host = open.host;
    return result;
}

/* In a host of its own: a name that a chip lacks spoils all that are added with it. */
static bool has_names(struct counters *counters, const char *chip, const uint8_t *availability,
                      const char *const *names, size_t count)
{
    void *host;
    if (open_host(counters, chip, availability, &host) != 0)
        return false;
    struct cupti_host_add add = PARAMS(cupti_host_add, count, .host = host,
                                       .names = (const char **)(uintptr_t)names, .count = count);
    struct cupti_host close = PARAMS(cupti_host, host, .host = host);
    bool has = counters->cupti.host_add(&add) == 0;
    (void)counters->cupti.host_close(&close);
    return has;
}

static void choose_names(struct counters *counters, const char *chip, const uint8_t *availability)
{
    bool all = has_names(counters, chip, availability, counter_names, COUNTER_COUNT);
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (all || has_names(counters, chip, availability, &counter_names[i], 1)) {
            counters->names[counters->count] = counter_names[i];
            counters->numbers[counters->count++] = (enum counter)i;
        }
}

static int make_config(struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    struct cupti_host_add add = PARAMS(cupti_host_add, count, .host = counters->host,
                                       .names = counters->names, .count = counters->count);
    struct cupti_host_size size = PARAMS(cupti_host_size, bytes, .host = counters->host);
    int result = cupti->host_add(&add);
    if (result == 0)
        result = cupti->host_size(&size);
    if (result != 0)
        return fail(counters, "configuration", result, err);
    counters->config_bytes = size.bytes;
    counters->config = malloc(size.bytes);
    struct cupti_host_config config = PARAMS(cupti_host_config, config, .host = counters->host,
                                             .bytes = size.bytes, .config = counters->config);
    struct cupti_host_passes passes =
        PARAMS(cupti_host_passes, passes, .bytes = size.bytes, .config = counters->config);
    if (counters->config != NULL)
        result = cupti->host_config(&config);
    if (result == 0)
        result = cupti->host_passes(&passes);
    counters->passes = passes.passes;
    if (result != 0 || counters->config == NULL)
        return fail(counters, "configuration", result, err);
    return 0;
}

/* What of the chip's counters this device, driver and user have; NULL: as the chip's own table. */
static uint8_t *find_availability(struct counters *counters)
{
    struct cupti_availability availability =
        PARAMS(cupti_availability, image, .context = counters->context);
    if (counters->cupti.availability(&availability) != 0)
        return NULL;
    availability.image = malloc(availability.bytes);
    if (availability.image == NULL || counters->cupti.availability(&availability) != 0) {
        free(availability.image);
        return NULL;
    }
    return availability.image;
}

static int open_ranges(int device, struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    struct cupti_head head = PARAMS(cupti_head, private_data, .private_data = NULL);
    struct cupti_supported supported = PARAMS(cupti_supported, api, .device = device);
    struct cupti_chip chip = PARAMS(cupti_chip, name, .device = (size_t)device);
    int result = cupti->initialize(&head);
    if (result == 0)
        result = cupti->supported(&supported);
    if (result == 0)
        result = cupti->chip(&chip);
    if (result != 0)
        return fail(counters, "profiler", result, err);
    if (supported.all != CUPTI_SUPPORTED)
        return err_set(err, ERR_UNSUPPORTED, "this device or its virtual machine has none");
    const uint8_t *availability = find_availability(counters); /* stays: the host looks at it */
    result = open_host(counters, chip.name, availability, &counters->host);
    if (result == 0)
        choose_names(counters, chip.name, availability);
    if (result != 0 || counters->count == 0)
        return fail(counters, chip.name, result, err);
    return make_config(counters, err);
}

int counters_open(int device, void *context, struct counters *counters, struct err *err)
{
    memset(counters, 0, sizeof *counters);
    counters->context = context;
    if (cupti_open(&counters->cupti, err) != 0)
        return -1;
    if (!counters->cupti.has_ranges)
        return err_set(err, ERR_UNSUPPORTED,
                       "libcupti is older than 12.6 and has no range profiler");
    return open_ranges(device, counters, err);
}

/* ---- passes ---- */

static int make_data(struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    struct cupti_data_size size =
        PARAMS(cupti_data_size, bytes, .profiler = counters->profiler, .names = counters->names,
               .count = counters->count, .ranges_most = COUNTERS_KERNELS_MOST,
               .nodes_most = COUNTERS_KERNELS_MOST);
    int result = cupti->data_size(&size);
    if (result != 0)
        return fail(counters, "data", result, err);
    if (size.bytes > counters->data_bytes) {
        free(counters->data);
        counters->data = malloc(size.bytes);
        counters->data_bytes = counters->data != NULL ? size.bytes : 0;
    }
    struct cupti_data_init init = PARAMS(cupti_data_init, data, .profiler = counters->profiler,
                                         .bytes = counters->data_bytes, .data = counters->data);
    result = cupti->data_init(&init);
    return result == 0 ? 0 : fail(counters, "data", result, err);
}

int counters_begin(struct counters *counters, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    struct cupti_range_enable enable =
        PARAMS(cupti_range_enable, profiler, .context = counters->context);
    int result = cupti->enable(&enable);
    if (result != 0)
        return fail(counters, "enabling", result, err);
    counters->profiler = enable.profiler;
    if (make_data(counters, err) != 0) {
        counters_abandon(counters);
        return -1;
    }
    struct cupti_range_config config =
        PARAMS(cupti_range_config, level_target, .profiler = counters->profiler,
               .config_bytes = counters->config_bytes, .config = counters->config,
               .data_bytes = counters->data_bytes, .data = counters->data,
               .range = CUPTI_AUTO_RANGE, .replay = CUPTI_USER_REPLAY,
               .ranges_most = COUNTERS_KERNELS_MOST, .levels = 1, .level_least = 1);
    result = cupti->configure(&config);
    if (result == 0)
        return 0;
    counters_abandon(counters);
    return fail(counters, "configuring", result, err);
}

int counters_start(struct counters *counters, struct err *err)
{
    struct cupti_range range = PARAMS(cupti_range, profiler, .profiler = counters->profiler);
    int result = counters->cupti.start(&range);
    return result == 0 ? 0 : fail(counters, "starting", result, err);
}

int counters_stop(struct counters *counters, bool *all, struct err *err)
{
    struct cupti_range_stop stop =
        PARAMS(cupti_range_stop, all_submitted, .profiler = counters->profiler);
    int result = counters->cupti.stop(&stop);
    *all = stop.all_submitted != 0;
    return result == 0 ? 0 : fail(counters, "stopping", result, err);
}

static int read_values(struct counters *counters, double values[][COUNTER_COUNT], size_t most,
                       size_t *kernels, struct err *err)
{
    const struct cupti *cupti = &counters->cupti;
    struct cupti_data_info info =
        PARAMS(cupti_data_info, ranges, .data = counters->data, .bytes = counters->data_bytes);
    int result = cupti->data_info(&info);
    *kernels = info.ranges < most ? info.ranges : most;
    for (size_t i = 0; result == 0 && i < *kernels; i++) {
        double read[COUNTER_COUNT];
        struct cupti_host_values ask =
            PARAMS(cupti_host_values, values, .host = counters->host, .data = counters->data,
                   .bytes = counters->data_bytes, .range = i, .names = counters->names,
                   .count = counters->count, .values = read);
        result = cupti->host_values(&ask);
        for (int k = 0; k < COUNTER_COUNT; k++)
            values[i][k] = NAN;
        for (size_t k = 0; result == 0 && k < counters->count; k++)
            values[i][counters->numbers[k]] = read[k];
    }
    return result == 0 ? 0 : fail(counters, "reading", result, err);
}

int counters_end(struct counters *counters, double values[][COUNTER_COUNT], size_t most,
                 size_t *kernels, struct err *err)
{
    struct cupti_range_decode decode =
        PARAMS(cupti_range_decode, dropped, .profiler = counters->profiler);
    int result = counters->cupti.decode(&decode), status;
    if (result != 0)
        status = fail(counters, "decoding", result, err);
    else
        status = read_values(counters, values, most, kernels, err);
    counters_abandon(counters);
    return status;
}

void counters_abandon(struct counters *counters)
{
    struct cupti_range range = PARAMS(cupti_range, profiler, .profiler = counters->profiler);
    if (counters->profiler != NULL)
        (void)counters->cupti.disable(&range);
    counters->profiler = NULL;
}
