/* eval/cuda/counters/cupti: libcupti behind one table, opened at run time. Only a runner that is
 * kept for profiles opens it: what it hooks into the driver would slow the launches of others. */
#pragma once

#include "base/err.h"
#include "eval/cuda/counters/cupti_host.h"
#include "eval/cuda/counters/cupti_range.h"
#include "eval/cuda/counters/cupti_samples.h"

#include <stdbool.h>

/* X(name in the table, exported symbol, arguments, needed by: R ranges, A activity,
 * S samples) */
/* clang-format off */
#define CUPTI_FUNCTIONS(X) \
    X(version, cuptiGetVersion, (uint32_t *version), A) \
    X(error_text, cuptiGetResultString, (int result, const char **text), A) \
    X(initialize, cuptiProfilerInitialize, (struct cupti_head *head), R) \
    X(supported, cuptiProfilerDeviceSupported, (struct cupti_supported *supported), R) \
    X(availability, cuptiProfilerGetCounterAvailability, (struct cupti_availability *availability), R) \
    X(chip, cuptiDeviceGetChipName, (struct cupti_chip *chip), R) \
    X(host_open, cuptiProfilerHostInitialize, (struct cupti_host_open *open), R) \
    X(host_close, cuptiProfilerHostDeinitialize, (struct cupti_host *host), R) \
    X(host_add, cuptiProfilerHostConfigAddMetrics, (struct cupti_host_add *add), R) \
    X(host_size, cuptiProfilerHostGetConfigImageSize, (struct cupti_host_size *size), R) \
    X(host_config, cuptiProfilerHostGetConfigImage, (struct cupti_host_config *config), R) \
    X(host_passes, cuptiProfilerHostGetNumOfPasses, (struct cupti_host_passes *passes), R) \
    X(host_values, cuptiProfilerHostEvaluateToGpuValues, (struct cupti_host_values *values), R) \
    X(enable, cuptiRangeProfilerEnable, (struct cupti_range_enable *enable), R) \
    X(disable, cuptiRangeProfilerDisable, (struct cupti_range *range), R) \
    X(configure, cuptiRangeProfilerSetConfig, (struct cupti_range_config *config), R) \
    X(start, cuptiRangeProfilerStart, (struct cupti_range *range), R) \
    X(stop, cuptiRangeProfilerStop, (struct cupti_range_stop *stop), R) \
    X(decode, cuptiRangeProfilerDecodeData, (struct cupti_range_decode *decode), R) \
    X(data_size, cuptiRangeProfilerGetCounterDataSize, (struct cupti_data_size *size), R) \
    X(data_init, cuptiRangeProfilerCounterDataImageInitialize, (struct cupti_data_init *init), R) \
    X(data_info, cuptiRangeProfilerGetCounterDataInfo, (struct cupti_data_info *info), R) \
    X(record_callbacks, cuptiActivityRegisterCallbacks, (void (*ask)(uint8_t **buffer, size_t *bytes, size_t *records), void (*take)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)), A) \
    X(record_enable, cuptiActivityEnable, (int kind), A) \
    X(record_disable, cuptiActivityDisable, (int kind), A) \
    X(record_flush, cuptiActivityFlushAll, (uint32_t flag), A) \
    X(record_next, cuptiActivityGetNextRecord, (uint8_t *buffer, size_t valid, void **record), A) \
    X(sampling_enable, cuptiPCSamplingEnable, (struct cupti_sampling *sampling), S) \
    X(sampling_disable, cuptiPCSamplingDisable, (struct cupti_sampling *sampling), S) \
    X(sampling_start, cuptiPCSamplingStart, (struct cupti_sampling *sampling), S) \
    X(sampling_stop, cuptiPCSamplingStop, (struct cupti_sampling *sampling), S) \
    X(sampling_configure, cuptiPCSamplingSetConfigurationAttribute, (struct cupti_sampling_config *config), S) \
    X(sampling_data, cuptiPCSamplingGetData, (struct cupti_sampling_data *data), S) \
    X(stall_count, cuptiPCSamplingGetNumStallReasons, (struct cupti_stall_count *count), S) \
    X(stall_names, cuptiPCSamplingGetStallReasons, (struct cupti_stall_names *names), S) \
    X(source_line, cuptiGetSassToSourceCorrelation, (struct cupti_source *source), S)
/* clang-format on */

struct cupti {
    void *library;
    bool has_ranges;  /* since CUPTI 12.6 */
    bool has_samples; /* of instructions; since 11.3 */
#define CUPTI_MEMBER(name, symbol, arguments, part) int(*name) arguments;
    CUPTI_FUNCTIONS(CUPTI_MEMBER)
#undef CUPTI_MEMBER
};

/* $TWAGENT_CUPTI, or where NVIDIA's toolkit lies. ERR_ENVIRONMENT, in words that say what to
 * install. */
int cupti_open(struct cupti *cupti, struct err *err) MUST_USE;

/* "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; static text. */
const char *cupti_error(const struct cupti *cupti, int result);
